// The mouse on the timeline: click to move the playhead and select a bout, drag to scroll, Shift-drag to select, wheel to zoom,
// and drag the start or stop of a bout of the correction to move it.

import { Scale } from "./canvas.js";
import { moveBorder } from "./corrections.js";
import { clockTime } from "./dom.js";
import { state } from "./state.js";
import { BINS } from "./tiles.js";

const BORDER_TOLERANCE = 5; // pixels
const DRAG_THRESHOLD = 3; // pixels

/** Handles mouse events of the lanes of a timeline. */
export class Pointing {
  #timeline;
  #field;

  constructor(timeline) {
    this.#timeline = timeline;
    this.#field = timeline.field;
    this.#field.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.#field.addEventListener("pointerdown", (event) => this.#press(event));
    pinching(this.#field, (factor, x) => state.zoom(factor, this.#scale.frame(x)));
    this.#field.addEventListener("pointermove", (event) => this.#hover(event));
    this.#field.addEventListener("pointerleave", () => (timeline.tip.hidden = true));
    this.#field.addEventListener("dblclick", (event) => this.#zoomToBout(event));
  }

  get #scale() {
    return new Scale(state.from, state.to, this.#field.clientWidth);
  }

  #wheel(event) {
    event.preventDefault();
    const pixels = event.deltaMode === 1 ? 16 : 1;
    const sideways = event.deltaX || (event.shiftKey ? event.deltaY : 0);
    if (sideways) state.setView(state.from + (sideways * pixels) / this.#scale.perFrame, state.to - state.from);
    else state.zoom(Math.exp(Math.min(Math.max(event.deltaY * pixels, -240), 240) / 300), this.#scale.frame(event.offsetX));
  }

  #press(event) {
    if (event.button !== 0 || !event.isPrimary) return;
    const [scale, bout, border] = [this.#scale, this.#boutAt(event), this.#borderAt(event)];
    const [startX, from, span] = [event.offsetX, state.from, state.to - state.from];
    const startFrame = Math.round(scale.frame(startX));
    let moved = false;
    const move = (now) => {
      const dx = now.clientX - event.clientX;
      moved ||= Math.abs(dx) > DRAG_THRESHOLD;
      if (!moved || now.pointerId !== event.pointerId) return;
      const frame = Math.min(Math.max(Math.round(scale.frame(startX + dx)), 0), state.nFrames);
      if (border) state.set({ mark: ordered(frame, border.fixed) });
      else if (event.shiftKey) state.set({ mark: ordered(startFrame, frame), bout: null });
      else state.setView(from - dx / scale.perFrame, span);
    };
    const release = () => {
      this.#field.removeEventListener("pointermove", move);
      if (!moved) this.#click(scale.frame(startX), bout);
      else if (border) {
        const { in: start, out: stop } = state.mark;
        state.set({ mark: { in: null, out: null } });
        moveBorder(border, start === border.fixed ? stop : start);
      }
    };
    this.#field.setPointerCapture(event.pointerId);
    this.#field.addEventListener("pointermove", move);
    this.#field.addEventListener("pointerup", release, { once: true });
    this.#field.addEventListener("pointercancel", () => this.#field.removeEventListener("pointermove", move), { once: true });
  }

  #click(frame, bout) {
    state.seek(Math.floor(frame), { follow: false });
    state.set({ bout, mark: bout ? { in: bout.start, out: bout.stop } : { in: null, out: null } });
  }

  #zoomToBout(event) {
    const bout = this.#boutAt(event);
    if (bout) state.setView(bout.start - (bout.stop - bout.start), Math.max((bout.stop - bout.start) * 3, state.rate));
  }

  #hover(event) {
    if (event.buttons) return;
    const { tip } = this.#timeline;
    const bout = this.#boutAt(event);
    this.#field.style.cursor = this.#borderAt(event) ? "ew-resize" : bout ? "pointer" : "default";
    tip.hidden = !bout;
    if (!bout) return;
    const targetName = bout.target ? ` → ${bout.target}` : "";
    const times = `${clockTime(bout.start, state.rate)} – ${clockTime(bout.stop, state.rate)}`;
    const seconds = ((bout.stop - bout.start) / state.rate).toFixed(2);
    tip.textContent = `${state.behaviors[bout.behavior].name}${targetName} · ${times} · ${seconds} s`;
    const box = this.#timeline.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY - box.top + 16, box.height - tip.offsetHeight - 4)}px`;
  }

  /** The bout under the mouse, if the zoom level shows single bouts. */
  #boutAt(event) {
    return this.#boutsAt(event, 0).at(-1) ?? null;
  }

  /** The bouts under the mouse or at most `slack` pixels away from it. */
  #boutsAt({ offsetX, offsetY }, slack) {
    const { lanes, tiles } = this.#timeline;
    const lane = lanes.find((l) => l.track && offsetY >= l.top && offsetY < l.top + l.height);
    if (!lane || !tiles || !["ribbon", "rows"].includes(lane.kind)) return [];
    const scale = this.#scale;
    const frame = scale.frame(offsetX);
    const level = tiles.levelFor(1 / scale.perFrame);
    const tile = tiles.find(lane, level, Math.floor(frame / (BINS * 2 ** level)));
    const row = lane.rows ? lane.rows[Math.floor(((offsetY - lane.top - 1) / (lane.height - 2)) * lane.rows.length)] : null;
    const near = (tile?.content.data.bouts ?? []).filter(([, start, stop, code]) => {
      const tolerance = (start === stop ? BORDER_TOLERANCE : slack) / scale.perFrame;
      const isShown = lane.rows ? row === code : !state.behaviors[code].background;
      return isShown && frame >= start - tolerance && frame < stop + tolerance;
    });
    return near.map(([index, start, stop, behavior, target]) => {
      const targetName = lane.track.named[target] ?? null;
      return { lane: lane.id, track: lane.track.name, subject: lane.subject, start, stop, behavior, target: targetName, index };
    });
  }

  /** The start or stop under the mouse of a bout of the correction: its frame, the other end of the bout, and the adjacent bout. */
  #borderAt(event) {
    const near = this.#boutsAt(event, BORDER_TOLERANCE).filter((bout) => bout.track === state.active && bout.start < bout.stop);
    const bout = this.#boutsAt(event, 0).find((b) => near.some((n) => n.start === b.start && n.stop === b.stop)) ?? near[0];
    if (!bout) return null;
    const [toStart, toStop] = [bout.start, bout.stop].map((edge) => Math.abs(this.#scale.x(edge) - event.offsetX));
    if (Math.min(toStart, toStop) > BORDER_TOLERANCE) return null;
    const [frame, fixed] = toStart < toStop ? [bout.start, bout.stop] : [bout.stop, bout.start];
    return { bout, frame, fixed, neighbor: near.find((other) => (frame === bout.stop ? other.start : other.stop) === frame) ?? null };
  }
}

/** Call `action(x, isDragging)` when an element is pressed and while the mouse is dragged over it. */
export function dragging(element, action) {
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    action(event.offsetX, false);
  });
  element.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) action(event.offsetX, true);
  });
}

/** Call `action(factor, x)` while two fingers on an element move apart (a factor below 1) or together. */
function pinching(element, action) {
  const fingers = new Map();
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return Math.max(Math.abs(a - b), 20);
  };
  element.addEventListener("pointerdown", ({ pointerType, pointerId, offsetX }) => pointerType === "touch" && fingers.set(pointerId, offsetX));
  element.addEventListener("pointermove", ({ pointerId, offsetX }) => {
    if (!fingers.has(pointerId)) return;
    const before = fingers.size === 2 ? spread() : null;
    fingers.set(pointerId, offsetX);
    if (before) action(before / spread(), [...fingers.values()].reduce((sum, x) => sum + x / 2, 0));
  });
  for (const name of ["pointerup", "pointercancel"]) element.addEventListener(name, ({ pointerId }) => fingers.delete(pointerId));
}

function ordered(a, b) {
  return { in: Math.min(a, b), out: Math.max(a, b) };
}
