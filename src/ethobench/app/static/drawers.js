// Drawers of narrow windows: the list of recordings and the panel slide over the page; wide windows show them beside it.

import { icon } from "./icons.js";
import { state } from "./state.js";

const DRAWERS = { list: "eb-recordings", details: "eb-panel" }; // by the button that opens it

/** Connect the buttons of the drawers. */
export function listenToDrawers() {
  for (const [name, element] of Object.entries(DRAWERS)) {
    const button = document.getElementById(name);
    button.append(icon(name));
    button.addEventListener("click", () => open(button.getAttribute("aria-expanded") === "true" ? null : name));
    document.addEventListener("pointerdown", ({ target }) => {
      const isOutside = !target.closest(`${element}, dialog, #${name}`);
      if (button.getAttribute("aria-expanded") === "true" && isOutside) open(null);
    });
  }
  document.addEventListener("keydown", (event) => event.key === "Escape" && !document.querySelector("dialog[open]") && open(null));
  document.addEventListener("open", () => open(null));
  state.addEventListener("review", () => state.review && matchMedia("(max-width: 1080px)").matches && open("details"));
}

/** Open one drawer, or none. */
function open(chosen) {
  for (const [name, element] of Object.entries(DRAWERS)) {
    document.getElementById(name).setAttribute("aria-expanded", String(name === chosen));
    document.querySelector(element).classList.toggle("open", name === chosen);
  }
}
