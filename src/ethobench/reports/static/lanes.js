// Lanes of an ethogram on a canvas. Each row is one line of pixels, stretched to its height: a pixel that covers several bouts
// mixes their colors by duration, so that nothing flickers while zooming.

import { behaviorColor, partColor, resolved } from "./colors.js";
import { firstAfter, spansOf } from "./data.js";

const LANE = 17;
const ROW = 7;
const ERRORS = 5;
const GAP = 4;
const NARROWEST = 0.7;

// Rows of a recording from top to bottom: position and contents.
export function layout(recording, figure, group) {
  const rows = [];
  let top = 0;
  for (const lane of recording.lanes) {
    const unobserved = spansOf(lane.unobserved);
    const tracks = lane.tracks.map((track) => ({ ...track, spans: spansOf(track.runs), color: behaviorColor(group, group.behaviors[track.behavior].name) }));
    const stacked = figure.options.overlaps ? [...new Set(tracks.map((track) => track.behavior))].sort((a, b) => a - b) : [null];
    const from = top;
    for (const behavior of stacked.length ? stacked : [null]) {
      const height = figure.options.overlaps ? ROW : LANE;
      const behaviorTracks = behavior === null ? tracks : tracks.filter((track) => track.behavior === behavior);
      rows.push({ lane, top, height, unobserved, tracks: behaviorTracks, ground: "var(--lane)" });
      top += height + (figure.options.overlaps ? 1 : 0);
    }
    if (lane.errors.length) {
      const wrong = lane.errors.map((runs, k) => ({ kind: figure.options.kinds[k], spans: spansOf(runs), color: partColor(k) }));
      rows.push({ lane, top: top + 1, height: ERRORS, unobserved: null, tracks: wrong, ground: "var(--page)" });
      top += ERRORS + 1;
    }
    rows.filter((row) => row.lane === lane).forEach((row) => Object.assign(row, { from, to: top }));
    top += GAP;
  }
  return { rows, height: Math.max(top - GAP, LANE) };
}

// Adds the share of each pixel that the spans of one color cover.
function cover(mix, spans, first, scale, width, [red, green, blue]) {
  const add = (pixel, share) => {
    mix[4 * pixel] += share * red;
    mix[4 * pixel + 1] += share * green;
    mix[4 * pixel + 2] += share * blue;
    mix[4 * pixel + 3] += share;
  };
  for (let k = firstAfter(spans, first - 1); k < spans.start.length; k++) {
    const from = Math.max((spans.start[k] - first) * scale, 0);
    if (from >= width) break;
    const to = Math.min(Math.max((spans.stop[k] - first) * scale, from + NARROWEST), width);
    if (to <= 0) continue;
    const left = Math.floor(from);
    const right = Math.min(Math.floor(to), width - 1);
    if (left === right) {
      add(left, to - from);
      continue;
    }
    add(left, left + 1 - from);
    for (let pixel = left + 1; pixel < right; pixel++) add(pixel, 1);
    add(right, to - right);
  }
}

const strip = document.createElement("canvas");

export function paint(canvas, { rows, height }, recording, view, width, density) {
  const wide = Math.round(width * density);
  canvas.width = strip.width = wide;
  canvas.height = Math.round(height * density);
  strip.height = rows.length;
  const first = view.start * recording.rate;
  const scale = wide / (view.span * recording.rate);
  const end = Math.min(Math.max((recording.n_frames - first) * scale, 0), wide);
  const pencil = strip.getContext("2d");
  const picture = pencil.createImageData(wide, rows.length);
  const colors = new Map();
  const rgb = (color) => colors.get(color) ?? colors.set(color, resolved(color)).get(color);
  rows.forEach((row, line) => {
    const mix = new Float32Array(4 * wide);
    for (const track of row.tracks) cover(mix, track.spans, first, scale, wide, rgb(track.color));
    const ground = rgb(row.ground);
    for (let pixel = 0; pixel < wide; pixel++) {
      const covered = mix[4 * pixel + 3];
      const rest = Math.max(1 - covered, 0);
      const at = 4 * (line * wide + pixel);
      for (let channel = 0; channel < 3; channel++) {
        picture.data[at + channel] = mix[4 * pixel + channel] / Math.max(covered, 1) + rest * ground[channel];
      }
      picture.data[at + 3] = pixel < end ? 255 : 0;
    }
  });
  pencil.putImageData(picture, 0, 0);
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  rows.forEach(({ top, height: tall }, line) => context.drawImage(strip, 0, line, wide, 1, 0, top * density, wide, tall * density));
  hatch(context, rows, first, scale, density);
}

// Unobserved frames are hatched on the background of the page.
function hatch(context, rows, first, scale, density) {
  const hatched = rows.filter((row) => row.unobserved?.start.length);
  if (!hatched.length) return;
  const [ground, line] = ["var(--page)", "var(--hatch)"].map((color) => `rgb(${resolved(color).slice(0, 3).join(" ")})`);
  for (const { unobserved, top, height } of hatched) {
    for (let k = 0; k < unobserved.start.length; k++) {
      const from = (unobserved.start[k] - first) * scale;
      const wide = (unobserved.stop[k] - unobserved.start[k]) * scale;
      if (from + wide < 0 || from > context.canvas.width) continue;
      context.save();
      context.beginPath();
      context.rect(from, top * density, wide, height * density);
      context.clip();
      context.fillStyle = ground;
      context.fill();
      context.strokeStyle = line;
      context.lineWidth = density;
      context.beginPath();
      const [low, high] = [Math.max(from, 0), Math.min(from + wide, context.canvas.width)];
      for (let x = low - (low % (6 * density)) - height * density; x < high; x += 6 * density) {
        context.moveTo(x, (top + height) * density);
        context.lineTo(x + height * density, top * density);
      }
      context.stroke();
      context.restore();
    }
  }
}
