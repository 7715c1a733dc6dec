// Colors are named in the style sheet; which one a behavior has is decided in Python (Occurrence.color_indices), for the viewer too.

import { element } from "./dom.js";

const BEHAVIORS = 8;
const SERIES = 4;

export function behaviorColor(group, name) {
  const index = group.behaviors.find((behavior) => behavior.name === name)?.color ?? null;
  if (index === null) return "var(--background-behavior)";
  const base = `var(--behavior-${index % BEHAVIORS})`;
  return index < BEHAVIORS ? base : `color-mix(in oklab, ${base} 55%, var(--lane))`;
}

export function partColor(index, palette = "part") {
  return `var(--${palette}-${index})`;
}

export function seriesColor(index) {
  return `var(--series-${index % SERIES})`;
}

// Red, green and blue of a CSS color as the page displays it now.
const probe = element("span", { hidden: "" });
const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
document.body.append(probe);

export function resolved(color) {
  probe.style.color = color;
  pixel.fillStyle = getComputedStyle(probe).color;
  pixel.fillRect(0, 0, 1, 1);
  return pixel.getImageData(0, 0, 1, 1).data;
}
