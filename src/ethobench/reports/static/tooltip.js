// One tooltip for the page.

import { element, painted } from "./dom.js";

const box = element("div", { class: "tooltip", hidden: "" });
document.body.append(box);

// Lines are text, or [color, text].
export function showTooltip(lines, x, y) {
  box.replaceChildren(
    ...lines.map((line) =>
      Array.isArray(line)
        ? element("div", {}, painted(element("span", { class: "swatch" }), line[0]), line[1])
        : element("div", { class: "tooltip-head" }, line),
    ),
  );
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
  const top = y + 14 + height > innerHeight ? y - 14 - height : y + 14;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${Math.max(4, top)}px`;
}

export function hideTooltip() {
  box.hidden = true;
}

export function explained(mark, lines) {
  mark.addEventListener("pointermove", (event) => showTooltip(lines, event.clientX, event.clientY));
  mark.addEventListener("pointerleave", hideTooltip);
  return mark;
}
