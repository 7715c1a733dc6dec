// Helpers for drawing: canvases at the resolution of the screen, the colors of the page, and ticks of the time axis.

import { clockTime } from "./dom.js";
import { rgb } from "./palette.js";
import { state } from "./state.js";

const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400];
const MIN_TICK_DISTANCE = 110; // pixels

/** Convert between frames and pixels from the left edge of the canvas. */
export class Scale {
  constructor(from, to, width) {
    Object.assign(this, { from, to, width, perFrame: width / (to - from) });
  }

  x(frame) {
    return (frame - this.from) * this.perFrame;
  }

  frame(x) {
    return this.from + x / this.perFrame;
  }
}

/** Resize a canvas to the resolution of the screen; returns a context whose unit is one CSS pixel. */
export function resizeCanvas(canvas, width, height) {
  const [w, h] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Ticks at round times, with their labels. */
export function ticks(scale) {
  const minStep = MIN_TICK_DISTANCE / (scale.perFrame * state.rate);
  const step = STEPS.find((s) => s >= minStep) ?? STEPS.at(-1) * Math.ceil(minStep / STEPS.at(-1));
  const digits = step < 0.1 ? 2 : step < 1 ? 1 : 0;
  const marks = [];
  for (let i = Math.ceil(scale.from / state.rate / step); i * step * state.rate < scale.to; i++) {
    const frame = i * step * state.rate;
    marks.push({ frame, text: clockTime(frame, state.rate, digits) });
  }
  return marks;
}

let colors = null;

/** Colors of the page, read from the style sheet once per theme. */
export function themeColors() {
  const { theme } = document.documentElement.dataset;
  if (colors?.theme === theme) return colors;
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  colors = { theme, font: `11px ${read("sans")}`, hidden: rgb(read("unobserved")) };
  for (const name of ["text", "faint", "line", "grid", "ground", "accent", "selection", "playhead", "veil", "observed"]) colors[name] = read(name);
  colors.traces = ["trace-1", "trace-2", "trace-3"].map(read);
  colors.animals = ["animal-1", "animal-2", "animal-3", "animal-4"].map(read);
  colors.hatch = hatchPattern(colors.hidden);
  return colors;
}

function hatchPattern([r, g, b]) {
  const tile = new OffscreenCanvas(6, 6);
  const context = tile.getContext("2d");
  context.strokeStyle = `rgb(${r} ${g} ${b})`;
  context.lineWidth = 1;
  for (const shift of [-6, 0, 6]) {
    context.moveTo(shift, 6);
    context.lineTo(shift + 6, 0);
  }
  context.stroke();
  return context.createPattern(tile, "repeat");
}
