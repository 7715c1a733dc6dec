// The timeline: an overview of the entire recording, a time axis, and the lanes.

import { resizeCanvas, Scale, themeColors, ticks } from "./canvas.js";
import { clockTime, duration, make } from "./dom.js";
import { downloadTimeline } from "./exporting.js";
import { layOutLanes } from "./lanes.js";
import { band, paintObserved, paintTile } from "./painting.js";
import { dragging, Pointing } from "./pointing.js";
import { state } from "./state.js";
import { BINS, Tiles } from "./tiles.js";
import { watching } from "./watching.js";

const AXIS = 22;
const OVERVIEW = 28;
const TWO_LINES = 32; // height in pixels of a label with two lines

class Timeline extends HTMLElement {
  lanes = [];
  tiles = null;
  #height = 0;
  #recordingIndex = -1;
  #stale = { lanes: false, cursor: false };

  connectedCallback() {
    const canvas = (className, ariaLabel) => make("canvas", { className, role: "img", ariaLabel });
    this.overview = canvas("overview", "The entire recording; drag to scroll");
    this.axis = canvas("axis", "Time; drag to move the playhead");
    this.canvas = canvas("lanes", "Tracks, probabilities and signals over time");
    this.canvas.tabIndex = 0;
    this.cursor = make("canvas", { className: "cursor", ariaHidden: "true" });
    this.labels = make("div", { className: "labels" });
    this.field = make("div", { className: "field" }, this.canvas, this.cursor);
    this.scroller = make("div", { className: "scroller" }, this.labels, this.field);
    this.tip = make("div", { className: "tip", hidden: true, role: "tooltip" });
    this.chosen = make("output", { className: "chosen", ariaLabel: "Selected frames" });
    const save = make("button", { type: "button", className: "quiet", title: "Download the visible part of the timeline as SVG" }, "Download SVG");
    save.addEventListener("click", () => downloadTimeline("svg", [state.from / state.rate, state.to / state.rate]).finally(() => save.blur()));
    const strip = (canvas, ...content) => make("div", { className: "strip" }, make("div", { className: "gutter" }, ...content), canvas);
    this.append(strip(this.overview, this.chosen), strip(this.axis, save), this.scroller, this.tip);
    state.watch(["mark", "recording"], () => this.#showSelection());
    new Pointing(this);
    dragging(this.axis, (x, byStep) => state.seek(this.#scale.frame(x), { follow: false, byStep }));
    dragging(this.overview, (x) => {
      const span = state.to - state.from;
      state.setView((x / this.field.clientWidth) * state.nFrames - span / 2, span);
    });
    new ResizeObserver(() => this.#layOut()).observe(this.scroller);
    state.watch(["recording", "signals", "hidden", "active", "observed"], () => this.#layOut());
    state.watch(["from", "to", "bout", "behaviors"], () => this.#redraw());
    state.addEventListener("subject", () => this.#layOut());
    state.addEventListener("blind", () => this.#layOut());
    for (const name of ["frame", "mark", "running", "watched", "pending"]) state.addEventListener(name, () => this.#redrawCursor());
    document.addEventListener("themechange", () => this.#redraw());
    document.addEventListener("ethogram", () => {
      this.tiles?.close(); // they contain the old codes of behaviors
      this.#recordingIndex = -1;
    });
  }

  #showSelection() {
    const { in: first, out: last } = state.mark;
    const [a, b] = [first, last].map((edge) => (edge === null ? "…" : clockTime(edge, state.rate)));
    const length = state.selection ? make("strong", {}, duration(last - first, state.rate)) : null;
    this.chosen.replaceChildren(...(first === null && last === null ? [] : [make("span", {}, `${a} – ${b}`), length].filter(Boolean)));
  }

  get #scale() {
    return new Scale(state.from, state.to, this.field.clientWidth);
  }

  /** Lay out the lanes; a new recording gets new tiles. */
  #layOut() {
    if (!state.recording) return;
    if (state.recording.index !== this.#recordingIndex) {
      this.tiles?.close();
      this.tiles = new Tiles(state.recording.index, state.nFrames, () => this.#redraw());
      this.#recordingIndex = state.recording.index;
    }
    const room = this.scroller.clientHeight;
    const { lanes, height } = layOutLanes(room);
    this.lanes = lanes;
    this.#height = Math.max(height, room - 1);
    this.style.setProperty("--scrollbar", `${this.scroller.offsetWidth - this.scroller.clientWidth}px`);
    this.canvas.style.height = this.cursor.style.height = this.labels.style.height = `${this.#height}px`;
    this.labels.replaceChildren(...lanes.map(label));
    for (const [i, row] of [...this.labels.children].entries()) {
      const { subject, track, kind } = lanes[i];
      if (track?.name !== state.active || !["ribbon", "rows"].includes(kind) || subject === null) continue;
      row.classList.toggle("focal", (subject || null) === state.subject);
      row.classList.add("choosable");
      row.addEventListener("click", () => state.set({ subject: subject || null }));
    }
    this.#redraw();
  }

  #redraw() {
    if (!this.#stale.lanes) requestAnimationFrame(() => this.#draw());
    this.#stale.lanes = true;
  }

  #redrawCursor() {
    if (!this.#stale.cursor && !this.#stale.lanes) requestAnimationFrame(() => this.#drawCursor());
    this.#stale.cursor = true;
  }

  #draw() {
    this.#stale.lanes = false;
    if (!this.tiles || !this.field.clientWidth) return;
    const [scale, ink, { tiles, lanes }] = [this.#scale, themeColors(), this];
    const context = resizeCanvas(this.canvas, scale.width, this.#height);
    context.font = ink.font;
    context.fillStyle = ink.grid;
    for (const { frame } of ticks(scale)) context.fillRect(Math.round(scale.x(frame)), 0, 1, this.#height);
    const level = tiles.levelFor(1 / scale.perFrame);
    const indices = tiles.between(level, state.from, state.to);
    for (const lane of lanes) this.#drawLane(context, lane, level, indices, scale, ink);
    this.#drawAxis(scale, ink);
    this.#drawOverview(ink);
    this.#dropDrawn(level, indices);
    this.#drawCursor();
    const coarsest = [tiles.coarsest, 0]; // requested first, because it replaces missing tiles
    const tiled = lanes.filter((lane) => lane.query);
    const hasOverview = tiled.every((lane) => tiles.find(lane, ...coarsest));
    const near = nearFirst(indices, level).map((index) => [level, index]);
    tiles.request(tiled, hasOverview ? [...near, coarsest] : [coarsest, ...near]);
  }

  #drawLane(context, lane, level, indices, scale, ink) {
    if (lane.kind === "observed") return paintObserved(context, lane, state.observed.spans, scale, ink);
    if (lane.kind !== "trace") {
      context.fillStyle = ink.ground;
      context.fillRect(0, lane.top, Math.min(scale.x(state.nFrames), scale.width), lane.height);
    }
    const step = BINS * 2 ** level;
    for (const index of indices) {
      const tile = this.tiles.find(lane, level, index);
      if (tile) paintTile(context, lane, tile, index * step, Math.min((index + 1) * step, state.nFrames), scale, ink);
    }
    if (lane.track?.name === state.active && ["ribbon", "rows"].includes(lane.kind)) {
      context.strokeStyle = ink.accent;
      context.lineWidth = 1.5;
      context.strokeRect(-2, lane.top - 1.5, scale.width + 4, lane.height + 3);
    }
  }

  /** Forget pending edits that the tiles now contain. */
  #dropDrawn(level, indices) {
    if (!state.pending.length) return;
    const lane = this.lanes.find((l) => l.track?.name === state.active && l.query && ["ribbon", "rows"].includes(l.kind));
    const versions = indices.map((index) => this.tiles.find(lane, level, index)).map((tile) => tile?.level === level && tile.content.version);
    const revision = Math.min(...versions.map((version) => (version ? parseInt(version, 10) : -1)));
    state.pending = state.pending.filter((item) => item.revision === null || item.revision > revision);
  }

  #drawAxis(scale, ink) {
    const context = resizeCanvas(this.axis, scale.width, AXIS);
    context.font = ink.font;
    context.fillStyle = ink.faint;
    context.textBaseline = "middle";
    for (const { frame, text } of ticks(scale)) {
      const x = Math.round(scale.x(frame));
      context.fillRect(x, AXIS - 5, 1, 5);
      if (x + 4 + context.measureText(text).width < scale.width) context.fillText(text, x + 4, AXIS / 2);
    }
  }

  #drawOverview(ink) {
    const overviewScale = new Scale(0, Math.max(state.nFrames, 1), this.field.clientWidth);
    const context = resizeCanvas(this.overview, overviewScale.width, OVERVIEW);
    const tracks = this.lanes.filter((lane) => lane.track);
    const shown = tracks.find((lane) => lane.track.name === state.active) ?? tracks[0] ?? this.lanes[0];
    const disagreement = this.lanes.find((lane) => lane.kind === "disagreement");
    for (const [lane, top, height] of [[shown, 4, disagreement ? 16 : 20], [disagreement, 22, 4]]) {
      if (!lane) continue;
      context.fillStyle = ink.ground;
      context.fillRect(0, top, overviewScale.width, height);
      const tile = this.tiles.find(lane, this.tiles.coarsest, 0);
      if (tile) paintTile(context, { ...lane, top, height, small: true }, tile, 0, state.nFrames, overviewScale, ink);
    }
    const [left, right] = [overviewScale.x(state.from), overviewScale.x(state.to)];
    context.fillStyle = ink.veil;
    context.fillRect(0, 0, left, OVERVIEW);
    context.fillRect(right, 0, overviewScale.width - right, OVERVIEW);
    context.strokeStyle = ink.text;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 3), OVERVIEW - 1);
  }

  /** Draw the playhead, the selection and the behavior that is being marked. */
  #drawCursor() {
    this.#stale.cursor = false;
    const [scale, ink] = [this.#scale, themeColors()];
    const context = resizeCanvas(this.cursor, scale.width, this.#height);
    const { in: first, out: last } = state.mark;
    if (state.selection) {
      context.fillStyle = ink.selection;
      context.fillRect(scale.x(first), 0, scale.x(last) - scale.x(first), this.#height);
    }
    context.fillStyle = ink.accent;
    for (const edge of [first, last]) if (edge !== null) context.fillRect(Math.round(scale.x(edge)) - 1, 0, 2, this.#height);
    const observed = this.lanes.find((lane) => lane.kind === "observed");
    if (observed) paintObserved(context, { ...observed, bare: true }, watching.pending, scale, ink);
    const activeLanes = this.lanes.filter((lane) => lane.track?.name === state.active && ["ribbon", "rows"].includes(lane.kind));
    const laneOf = (subject) => activeLanes.find((l) => (l.subject || null) === subject) ?? activeLanes[0];
    for (const { index, name, start, stop, behavior, subject, cleared } of state.pending) {
      const lane = laneOf(subject);
      if (!lane || name !== state.active || index !== state.recording.index) continue;
      const [top, height] = behavior === null ? [lane.top, lane.height] : band(lane, behavior);
      const left = scale.x(start);
      context.fillStyle = cleared || state.behaviors[behavior].background ? ink.ground : state.behaviors[behavior].color;
      if (start === stop) context.fillRect(left - 3, top + height / 2 - 3, 6, 6);
      else context.fillRect(left, top, Math.max(scale.x(stop) - left, 2), height);
    }
    for (const { behavior, start, subject } of state.running) {
      const lane = laneOf(subject);
      if (!lane) continue;
      const [left, right] = [scale.x(Math.min(start, state.frame)), scale.x(Math.max(start, state.frame))];
      const [top, height] = band(lane, behavior);
      context.globalAlpha = 0.6;
      context.fillStyle = state.behaviors[behavior].color;
      context.fillRect(left, top, Math.max(right - left, 3), height);
      context.globalAlpha = 1;
    }
    if (state.loop) {
      context.fillStyle = ink.accent;
      context.fillRect(scale.x(state.loop[0]), 0, scale.x(state.loop[1]) - scale.x(state.loop[0]), 3);
    }
    context.fillStyle = ink.playhead;
    context.fillRect(Math.round(scale.x(state.frame + 0.5)) - 0.5, 0, 1.5, this.#height);
  }
}

customElements.define("eb-timeline", Timeline);

function label(lane) {
  const name = make("span", { className: "name", title: lane.hint ?? (lane.sublabel ? `${lane.label} · ${lane.sublabel}` : lane.label) }, lane.label);
  const row = make("div", { className: `label ${lane.kind}` }, name);
  const range = lane.signal ? `${short(lane.signal.low)} … ${short(lane.signal.high)}` : null;
  if (lane.sublabel ?? range) row.append(make("span", { className: "sub" }, lane.sublabel ?? range));
  if (lane.track?.name === state.active && !["stack", "observed"].includes(lane.kind)) row.classList.add("active");
  if (lane.height < TWO_LINES) row.classList.add("low");
  row.style.top = `${lane.top}px`;
  row.style.height = `${lane.height}px`;
  return row;
}

const short = (number) => String(Number(number.toPrecision(2)));

function nearFirst(indices, level) {
  const middle = (state.from + state.to) / 2 / (BINS * 2 ** level) - 0.5;
  return [...indices].sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
}
