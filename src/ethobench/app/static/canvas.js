// What drawing needs: sharp canvases, the page's colours, round times for an axis.

import { clockTime } from "./dom.js";
import { rgb } from "./palette.js";
import { state } from "./state.js";

const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400];
const APART = 110; // pixels between two times

/** Where frames are on the canvas: pixels from the left edge. */
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

/** Make a canvas as sharp as the screen; returns a context whose unit is one CSS pixel. */
export function sized(canvas, width, height) {
  const [w, h] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Round times within a scale, with what to write there. */
export function ticks(scale) {
  const wanted = APART / (scale.perFrame * state.rate);
  const step = STEPS.find((s) => s >= wanted) ?? STEPS.at(-1) * Math.ceil(wanted / STEPS.at(-1));
  const digits = step < 0.1 ? 2 : step < 1 ? 1 : 0;
  const found = [];
  for (let i = Math.ceil(scale.from / state.rate / step); i * step * state.rate < scale.to; i++) {
    const frame = i * step * state.rate;
    found.push({ frame, text: clockTime(frame, state.rate, digits) });
  }
  return found;
}

let known = null;

/** The page's colours, read from the style sheet once per theme. */
export function inks() {
  const { theme } = document.documentElement.dataset;
  if (known?.theme === theme) return known;
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  known = { theme, font: `11px ${read("sans")}`, hidden: rgb(read("unseen")) };
  for (const name of ["text", "faint", "line", "grid", "ground", "accent", "selection", "playhead", "veil", "observed"]) known[name] = read(name);
  known.traces = ["trace-1", "trace-2", "trace-3"].map(read);
  known.animals = ["animal-1", "animal-2", "animal-3", "animal-4"].map(read);
  known.hatch = hatching(known.hidden);
  return known;
}

function hatching([r, g, b]) {
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
