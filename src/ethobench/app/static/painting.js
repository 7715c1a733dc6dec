// Drawing of tiles into lanes. A tile of binned data is drawn once into an image, which is then moved and scaled.

import { rgb, textColorOn } from "./palette.js";
import { state } from "./state.js";
import { BINS } from "./tiles.js";

const MISSING = 255;

/** Draw the frames [first, last) of a lane from a tile that contains them. */
export function paintTile(context, lane, tile, first, last, scale, ink) {
  const left = Math.max(scale.x(first), 0);
  const right = Math.min(scale.x(last), scale.width);
  if (right <= left) return;
  const { data } = tile.content;
  if (data.bouts) paintBouts(context, lane, data, left, right, scale, ink);
  else if (lane.kind === "trace" && tile.level === 0) paintCurves(context, lane, tile, left, right, scale, ink);
  else paintPicture(context, lane, tile, left, right, scale, ink);
}

/** Draw the observed frames as a band; `lane.bare` omits the background. */
export function paintObserved(context, lane, spans, scale, ink) {
  const [top, height] = [lane.top + lane.height / 2 - 4, 8];
  const end = Math.min(scale.x(state.nFrames), scale.width);
  if (!lane.bare) {
    context.fillStyle = ink.ground;
    context.fillRect(0, top, end, height);
  }
  context.fillStyle = ink.observed;
  for (const [start, stop] of spans) {
    const [left, right] = [Math.max(scale.x(start), 0), Math.min(scale.x(stop), end)];
    if (right > left) context.fillRect(left, top, Math.max(right - left, 1), height);
  }
}

function paintBouts(context, lane, data, left, right, scale, ink) {
  context.save();
  context.beginPath();
  context.rect(left, lane.top, right - left, lane.height);
  context.clip();
  const selected = state.bout;
  for (const [, start, stop, code] of data.bouts) {
    const { background, color, name } = state.behaviors[code];
    const [top, height] = band(lane, code);
    const x = scale.x(start);
    const width = scale.x(stop) - x;
    if (x > right || x + width < left - 6) continue;
    if (start === stop) {
      paintPoint(context, x, lane.top, lane.height, color, ink);
      continue;
    }
    if (background) continue; // the background behavior has the color of the lane
    context.fillStyle = color;
    context.fillRect(x, top, Math.max(width - (width > 4 ? 0.75 : 0), 0.75), height);
    if (width > 44 && height > 14 && !lane.small) paintName(context, name, x, width, top + height / 2, color);
    if (selected && selected.lane === lane.id && selected.start === start && selected.stop === stop && selected.behavior === code) {
      context.strokeStyle = ink.text;
      context.lineWidth = 2;
      context.strokeRect(x + 1, top + 1, Math.max(width - 2.75, 1), height - 2);
    }
  }
  for (const [start, stop] of data.hidden) paintHidden(context, lane, Math.max(scale.x(start), left), Math.min(scale.x(stop), right), ink);
  context.restore();
}

/** The top and height of a behavior within a lane. */
export function band(lane, code) {
  if (!lane.rows?.includes(code)) return [lane.top, lane.height];
  const height = (lane.height - 2) / Math.max(lane.rows.length, 1);
  return [lane.top + 1 + lane.rows.indexOf(code) * height, Math.max(height - 1.5, 2)];
}

function paintName(context, name, x, width, middle, color) {
  const from = Math.max(x, 0) + 6;
  const available = x + width - from - 6;
  if (available < 30) return;
  context.fillStyle = textColorOn(color);
  context.textBaseline = "middle";
  let shown = name;
  while (shown.length > 1 && context.measureText(shown).width > available) shown = `${shown.slice(0, -2)}…`;
  if (shown.length > 2) context.fillText(shown, from, middle + 0.5);
}

function paintPoint(context, x, top, height, color, ink) {
  context.beginPath();
  context.moveTo(x, top + height / 2 - 6);
  context.lineTo(x + 5, top + height / 2);
  context.lineTo(x, top + height / 2 + 6);
  context.lineTo(x - 5, top + height / 2);
  context.closePath();
  context.fillStyle = color;
  context.fill();
  context.strokeStyle = ink.text;
  context.lineWidth = 1;
  context.stroke();
}

function paintHidden(context, lane, left, right, ink) {
  if (right - left < 0.5) return;
  context.fillStyle = ink.ground;
  context.fillRect(left, lane.top, right - left, lane.height);
  context.fillStyle = ink.hatch;
  context.fillRect(left, lane.top, right - left, lane.height);
}

/** Draw a signal as lines through the middle of each frame. */
function paintCurves(context, lane, tile, left, right, scale, ink) {
  const { low } = tile.content.data;
  const count = lane.signal.channels.length;
  const first = tile.index * BINS;
  const begin = Math.max(Math.floor(scale.frame(left)) - first - 1, 0);
  const end = Math.min(Math.ceil(scale.frame(right)) - first + 1, BINS);
  context.save();
  context.beginPath();
  context.rect(left, lane.top, right - left, lane.height);
  context.clip();
  for (let channel = 0; channel < count; channel++) {
    context.beginPath();
    let down = false;
    for (let i = begin; i < end; i++) {
      const value = low[i * count + channel];
      if (value === MISSING) down = false;
      else {
        const [x, y] = [scale.x(first + i + 0.5), lane.top + lane.height - 1 - (value / 254) * (lane.height - 2)];
        if (down) context.lineTo(x, y);
        else context.moveTo(x, y);
        down = true;
      }
    }
    context.strokeStyle = ink.traces[channel % ink.traces.length];
    context.lineWidth = 1.25;
    context.stroke();
  }
  context.restore();
}

function paintPicture(context, lane, tile, left, right, scale, ink) {
  const { content, level, index } = tile;
  const height = Math.round(lane.height * devicePixelRatio);
  const name = lane.small ? "small" : "large";
  let cached = content[name];
  if (cached?.canvas.height !== height || cached.theme !== ink.theme) {
    cached = content[name] = { theme: ink.theme, canvas: picture(lane, content.data, height, ink) };
  }
  const step = 2 ** level;
  const first = index * BINS * step;
  const source = (x) => (scale.frame(x) - first) / step;
  context.imageSmoothingEnabled = lane.kind === "trace" || lane.kind === "lines";
  context.drawImage(cached.canvas, source(left), 0, source(right) - source(left), height, left, lane.top, right - left, lane.height);
}

function picture(lane, data, height, ink) {
  const canvas = new OffscreenCanvas(BINS, height);
  const context = canvas.getContext("2d");
  if (lane.kind === "trace") envelopes(context, data, lane.signal.channels.length, height, ink);
  else if (lane.kind === "lines") lines(context, data.shares, height);
  else if (lane.kind === "disagreement") marks(context, data.shares, height, ink);
  else if (lane.kind === "rows") rows(context, data.shares, lane, height);
  else stacks(context, data.shares, lane.kind === "ribbon", height, ink);
  for (const [bin, code] of data.points ?? []) {
    context.fillStyle = state.behaviors[code].color;
    context.fillRect(bin, height * 0.25, 2, height * 0.5);
  }
  return canvas;
}

/** Draw each bin as a column, stacked from the shares of its behaviors. */
function stacks(context, shares, withHidden, height, ink) {
  const count = state.behaviors.length;
  const width = withHidden ? count + 1 : count;
  const image = context.createImageData(BINS, height);
  const pixels = new Uint32Array(image.data.buffer);
  const colors = state.behaviors.map((b) => (b.background ? 0 : packRgb(rgb(b.color))));
  const hidden = packRgb(ink.hidden);
  for (let i = 0; i < BINS; i++) {
    if (shares[i * width] === MISSING) continue;
    const binShares = shares.subarray(i * width, (i + 1) * width);
    const total = Math.max(binShares.reduce((sum, share) => sum + share, 0), 254);
    let y = height;
    for (let code = 0; code < width; code++) {
      if (!binShares[code]) continue;
      const color = code < count ? colors[code] : hidden;
      const until = Math.max(y - Math.max(Math.round((binShares[code] / total) * height), 1), 0);
      if (color) for (let at = until; at < y; at++) pixels[at * BINS + i] = color;
      y = until;
    }
  }
  context.putImageData(image, 0, 0);
}

/** Draw one row per behavior; the opacity increases with its share. */
function rows(context, shares, lane, height) {
  const width = state.behaviors.length + 1;
  const zoom = height / lane.height;
  for (const code of lane.rows) {
    const [top, high] = band({ ...lane, top: 0 }, code);
    context.fillStyle = state.behaviors[code].color;
    for (let i = 0; i < BINS; i++) {
      const share = shares[i * width + code];
      if (!share) continue;
      context.globalAlpha = 0.35 + (0.65 * share) / 254;
      context.fillRect(i, top * zoom, 1, high * zoom);
    }
  }
  context.globalAlpha = 1;
}

function marks(context, shares, height, ink) {
  context.fillStyle = ink.accent;
  for (let i = 0; i < BINS; i++) {
    if (!shares[i]) continue;
    context.globalAlpha = 0.3 + (0.7 * shares[i]) / 254;
    context.fillRect(i, 0, 1, height);
  }
  context.globalAlpha = 1;
}

function lines(context, shares, height) {
  const count = state.behaviors.length;
  state.behaviors.forEach((behavior, code) => {
    if (behavior.background) return;
    context.beginPath();
    for (let i = 0; i < BINS; i++) {
      const share = shares[i * count + code];
      if (share !== MISSING) context.lineTo(i + 0.5, height - 1 - (share / 254) * (height - 2));
    }
    context.strokeStyle = behavior.color;
    context.lineWidth = 1.5;
    context.stroke();
  });
}

/** Draw the band between the minimum and maximum of each bin, and the mean. */
function envelopes(context, { low, high, mean }, count, height, ink) {
  const y = (value) => height - 1 - (value / 254) * (height - 2);
  context.lineWidth = 1.5;
  for (let channel = count - 1; channel >= 0; channel--) {
    const [band, middle] = [new Path2D(), new Path2D()];
    for (let first = 0, last = 0; first < BINS; first = last + 1) {
      for (last = first; last < BINS && low[last * count + channel] !== MISSING; last++) {
        const at = last * count + channel;
        for (const x of [last, last + 1]) {
          if (x === first) band.moveTo(x, y(high[at]) - 0.5);
          else band.lineTo(x, y(high[at]) - 0.5);
        }
        if (last === first) middle.moveTo(last, y(mean[at]));
        middle.lineTo(last + 0.5, y(mean[at]));
      }
      for (let i = last - 1; i >= first; i--) {
        for (const x of [i + 1, i]) band.lineTo(x, y(low[i * count + channel]) + 0.5);
      }
      band.closePath();
    }
    context.fillStyle = context.strokeStyle = ink.traces[channel % ink.traces.length];
    context.globalAlpha = 0.32;
    context.fill(band);
    context.globalAlpha = 1;
    context.stroke(middle);
  }
}

function packRgb([r, g, b]) {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}
