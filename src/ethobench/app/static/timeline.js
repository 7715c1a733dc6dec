// The timeline: an overview of the whole recording, an axis, and the lanes below it.

import { inks, Scale, sized, ticks } from "./canvas.js";
import { make } from "./dom.js";
import { layLanes } from "./lanes.js";
import { band, paintObserved, paintTile } from "./painting.js";
import { dragging, Pointing } from "./pointing.js";
import { state } from "./state.js";
import { STRETCHES, Tiles } from "./tiles.js";
import { watching } from "./watching.js";

const AXIS = 22;
const OVERVIEW = 28;
const TWO_LINES = 32; // pixels that a label of two lines needs

class Timeline extends HTMLElement {
  lanes = [];
  tiles = null;
  #height = 0;
  #recordingIndex = -1;
  #stale = { lanes: false, cursor: false };

  connectedCallback() {
    const canvas = (className, ariaLabel) => make("canvas", { className, role: "img", ariaLabel });
    this.overview = canvas("overview", "The whole recording; drag to move the part in sight");
    this.axis = canvas("axis", "Time; drag to move the playhead");
    this.canvas = canvas("lanes", "Tracks, probabilities and signals over time");
    this.canvas.tabIndex = 0;
    this.cursor = make("canvas", { className: "cursor", ariaHidden: "true" });
    this.labels = make("div", { className: "labels" });
    this.field = make("div", { className: "field" }, this.canvas, this.cursor);
    this.scroller = make("div", { className: "scroller" }, this.labels, this.field);
    this.tip = make("div", { className: "tip", hidden: true, role: "tooltip" });
    const strip = (canvas) => make("div", { className: "strip" }, make("div", { className: "gutter" }), canvas);
    this.append(strip(this.overview), strip(this.axis), this.scroller, this.tip);
    new Pointing(this);
    dragging(this.axis, (x, byStep) => state.seek(this.#scale.frame(x), { follow: false, byStep }));
    dragging(this.overview, (x) => {
      const span = state.to - state.from;
      state.look((x / this.field.clientWidth) * state.nFrames - span / 2, span);
    });
    new ResizeObserver(() => this.#relay()).observe(this.scroller);
    state.watch(["recording", "signals", "hidden", "active", "observed"], () => this.#relay());
    state.watch(["from", "to", "bout", "behaviors"], () => this.#redraw());
    state.addEventListener("subject", () => this.#relay());
    for (const name of ["frame", "mark", "running", "watched"]) state.addEventListener(name, () => this.#point());
    document.addEventListener("themechange", () => this.#redraw());
  }

  get #scale() {
    return new Scale(state.from, state.to, this.field.clientWidth);
  }

  /** Lay the lanes out anew; a new recording gets new tiles. */
  #relay() {
    if (!state.recording) return;
    if (state.recording.index !== this.#recordingIndex) {
      this.tiles?.close();
      this.tiles = new Tiles(state.recording.index, state.nFrames, () => this.#redraw());
      this.#recordingIndex = state.recording.index;
    }
    const room = this.scroller.clientHeight;
    const { lanes, height } = layLanes(room);
    this.lanes = lanes;
    this.#height = Math.max(height, room - 1);
    this.style.setProperty("--scrollbar", `${this.scroller.offsetWidth - this.scroller.clientWidth}px`);
    this.canvas.style.height = this.cursor.style.height = this.labels.style.height = `${this.#height}px`;
    this.labels.replaceChildren(...lanes.map(label));
    this.#redraw();
  }

  #redraw() {
    if (!this.#stale.lanes) requestAnimationFrame(() => this.#draw());
    this.#stale.lanes = true;
  }

  #point() {
    if (!this.#stale.cursor && !this.#stale.lanes) requestAnimationFrame(() => this.#drawCursor());
    this.#stale.cursor = true;
  }

  #draw() {
    this.#stale.lanes = false;
    if (!this.tiles || !this.field.clientWidth) return;
    const [scale, ink, { tiles, lanes }] = [this.#scale, inks(), this];
    const context = sized(this.canvas, scale.width, this.#height);
    context.font = ink.font;
    context.fillStyle = ink.grid;
    for (const { frame } of ticks(scale)) context.fillRect(Math.round(scale.x(frame)), 0, 1, this.#height);
    const level = tiles.levelFor(1 / scale.perFrame);
    const indices = tiles.between(level, state.from, state.to);
    for (const lane of lanes) this.#drawLane(context, lane, level, indices, scale, ink);
    this.#drawAxis(scale, ink);
    this.#drawOverview(ink);
    this.#drawCursor();
    const whole = [tiles.coarsest, 0]; // stands in for whatever is missing later, so it comes first
    const tiled = lanes.filter((lane) => lane.query);
    const there = tiled.every((lane) => tiles.find(lane, ...whole));
    const near = nearFirst(indices, level).map((index) => [level, index]);
    tiles.want(tiled, there ? [...near, whole] : [whole, ...near]);
  }

  #drawLane(context, lane, level, indices, scale, ink) {
    if (lane.kind === "observed") return paintObserved(context, lane, state.observed.spans, scale, ink);
    if (lane.kind !== "trace") {
      context.fillStyle = ink.ground;
      context.fillRect(0, lane.top, Math.min(scale.x(state.nFrames), scale.width), lane.height);
    }
    const step = STRETCHES * 2 ** level;
    for (const index of indices) {
      const found = this.tiles.find(lane, level, index);
      if (found) paintTile(context, lane, found, index * step, Math.min((index + 1) * step, state.nFrames), scale, ink);
    }
    if (lane.track?.name === state.active && ["ribbon", "rows"].includes(lane.kind)) {
      context.strokeStyle = ink.accent;
      context.lineWidth = 1.5;
      context.strokeRect(-2, lane.top - 1.5, scale.width + 4, lane.height + 3);
    }
  }

  #drawAxis(scale, ink) {
    const context = sized(this.axis, scale.width, AXIS);
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
    const whole = new Scale(0, Math.max(state.nFrames, 1), this.field.clientWidth);
    const context = sized(this.overview, whole.width, OVERVIEW);
    const tracks = this.lanes.filter((lane) => lane.track);
    const shown = tracks.find((lane) => lane.track.name === state.active) ?? tracks[0] ?? this.lanes[0];
    const differing = this.lanes.find((lane) => lane.kind === "disagreement");
    for (const [lane, top, height] of [[shown, 4, differing ? 16 : 20], [differing, 22, 4]]) {
      if (!lane) continue;
      context.fillStyle = ink.ground;
      context.fillRect(0, top, whole.width, height);
      const found = this.tiles.find(lane, this.tiles.coarsest, 0);
      if (found) paintTile(context, { ...lane, top, height, small: true }, found, 0, state.nFrames, whole, ink);
    }
    const [left, right] = [whole.x(state.from), whole.x(state.to)];
    context.fillStyle = ink.veil;
    context.fillRect(0, 0, left, OVERVIEW);
    context.fillRect(right, 0, whole.width - right, OVERVIEW);
    context.strokeStyle = ink.text;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 3), OVERVIEW - 1);
  }

  /** The playhead, the selection and the behavior that is being marked, above everything else. */
  #drawCursor() {
    this.#stale.cursor = false;
    const [scale, ink] = [this.#scale, inks()];
    const context = sized(this.cursor, scale.width, this.#height);
    const { in: first, out: last } = state.mark;
    if (state.selection) {
      context.fillStyle = ink.selection;
      context.fillRect(scale.x(first), 0, scale.x(last) - scale.x(first), this.#height);
    }
    context.fillStyle = ink.accent;
    for (const edge of [first, last]) if (edge !== null) context.fillRect(Math.round(scale.x(edge)) - 1, 0, 2, this.#height);
    const observed = this.lanes.find((lane) => lane.kind === "observed");
    if (observed) paintObserved(context, { ...observed, bare: true }, watching.pending, scale, ink);
    context.fillStyle = ink.accent;
    const mine = this.lanes.filter((lane) => lane.track?.name === state.active && ["ribbon", "rows"].includes(lane.kind));
    const lane = mine.find((l) => l.subject === state.subject) ?? mine[0];
    if (state.running && lane) {
      const left = scale.x(state.running.start);
      const [top, height] = band(lane, state.running.behavior);
      context.globalAlpha = 0.6;
      context.fillStyle = state.behaviors[state.running.behavior].color;
      context.fillRect(left, top, Math.max(scale.x(state.frame) - left, 3), height);
      context.globalAlpha = 1;
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
  const middle = (state.from + state.to) / 2 / (STRETCHES * 2 ** level) - 0.5;
  return [...indices].sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
}
