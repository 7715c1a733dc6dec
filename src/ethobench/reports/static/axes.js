// Axes, grids and labels of the small charts.

import { painted, shape, shortened } from "./dom.js";

export const CHARACTER = 7.4;

export function horizontalAxis(scale, ticks, format, { top, bottom, label, middle }) {
  const axis = shape("g", { class: "axis" });
  for (const tick of ticks) {
    const x = scale(tick);
    axis.append(shape("line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom }));
    axis.append(shape("text", { x, y: bottom + 15, "text-anchor": "middle" }, format(tick)));
  }
  if (label) axis.append(shape("text", { class: "axis-label", x: middle, y: bottom + 32, "text-anchor": "middle" }, label));
  return axis;
}

export function verticalAxis(scale, ticks, format, { left, right, label, middle }) {
  const axis = shape("g", { class: "axis" });
  for (const tick of ticks) {
    const y = scale(tick);
    axis.append(shape("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }));
    axis.append(shape("text", { x: left - 7, y: y + 4, "text-anchor": "end" }, format(tick)));
  }
  if (label) {
    axis.append(shape("text", { class: "axis-label", transform: `translate(${left - 36} ${middle}) rotate(-90)`, "text-anchor": "middle" }, label));
  }
  return axis;
}

// A label at the left of a row, with its color before it if it has one.
export function rowLabel(text, y, width, color) {
  const room = Math.floor((width - (color ? 20 : 8)) / CHARACTER);
  const label = shape("g", { class: "row-label" }, shape("title", {}, text));
  if (color) label.append(painted(shape("rect", { class: "paint", x: 0, y: y - 5, width: 10, height: 10, rx: 2 }), color));
  label.append(shape("text", { x: color ? 17 : 0, y: y + 4 }, shortened(text, room)));
  return label;
}

export function labelWidth(names, most = 190) {
  return Math.min(most, 32 + CHARACTER * Math.max(4, ...names.map((name) => name.length)));
}
