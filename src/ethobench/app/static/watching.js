// Frames that are played or stepped through while labeling count as observed. They are reported to the server about once a second.

import { reportWatched } from "./corrections.js";
import { player } from "./player.js";
import { state } from "./state.js";

const REPORT_INTERVAL = 1000; // milliseconds between reports
const RETRY_DELAY = 5000; // milliseconds until a failed report is repeated
const MAX_SPANS = 100; // in one report
const MAX_STALL = 2; // seconds of playback between two drawn frames; frames that pass while the page is blocked are not watched

/** Frames that were watched: {index, name, subject, spans}, where spans are [start, stop) and name is that of the correction. */
class Watching {
  #batch = null; // not reported yet
  #sent = new Set(); // sent, without a response yet
  #failed = []; // refused by the server
  #last = null; // the previous frame
  #timer = null;

  constructor() {
    state.addEventListener("frame", () => this.#move());
    state.addEventListener("playing", () => {
      this.#last = state.frame;
      if (!state.playing) this.flush();
    });
    for (const name of ["active", "subject"]) {
      state.addEventListener(name, () => {
        this.#last = state.frame;
        this.flush();
      });
    }
    document.addEventListener("visibilitychange", () => {
      this.#last = null;
      if (document.hidden) this.flush({ leaving: true });
    });
    addEventListener("pagehide", () => this.flush({ leaving: true }));
  }

  /** Spans of the active correction and subject that the server has not confirmed yet. */
  get pending() {
    return this.#unconfirmed.filter(isActive).flatMap((batch) => batch.spans);
  }

  get #unconfirmed() {
    return [...this.#failed, ...this.#sent, this.#batch].filter(Boolean);
  }

  /** Report the frames watched since the last report. */
  flush({ leaving = false } = {}) {
    clearTimeout(this.#timer);
    this.#timer = null;
    const batches = [...this.#failed, this.#batch].filter((batch) => batch?.spans.length);
    [this.#failed, this.#batch] = [[], null];
    for (const batch of batches) this.#send(batch, leaving);
  }

  /** Drop unsaved reports of these frames, because they are now marked as not watched. */
  forget(start, stop) {
    for (const batch of this.#unconfirmed.filter(isActive)) {
      const around = ([first, last]) => [[first, Math.min(last, start)], [Math.max(first, stop), last]];
      batch.spans = batch.spans.flatMap(around).filter(([first, last]) => first < last);
    }
  }

  async #send(batch, leaving) {
    this.#sent.add(batch);
    const saved = await reportWatched(batch, leaving);
    this.#sent.delete(batch);
    if (saved) return;
    this.#failed.push(batch);
    this.#timer ??= setTimeout(() => this.flush(), RETRY_DELAY);
  }

  #move() {
    const [before, now] = [this.#last, state.frame];
    this.#last = now;
    if (before === null || document.hidden || !state.activeTrack || !isVisible()) return;
    const played = state.byPlayer && now > before && now - before <= Math.max(MAX_STALL * state.rate * state.speed, 1);
    const stepped = state.byStep && Math.abs(now - before) <= Math.max(Math.round(state.rate), 1);
    if (played || stepped) this.#add(Math.min(before, now), Math.max(before, now) + 1);
  }

  #add(start, stop) {
    if (this.#batch && !isActive(this.#batch)) this.flush();
    this.#batch ??= { index: state.recording.index, name: state.active, subject: state.subject, spans: [] };
    const last = this.#batch.spans.at(-1);
    if (last && start <= last[1] && stop >= last[0]) Object.assign(last, [Math.min(start, last[0]), Math.max(stop, last[1])]);
    else this.#batch.spans.push([start, stop]);
    if (this.#batch.spans.length >= MAX_SPANS) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), REPORT_INTERVAL);
    state.dispatchEvent(new Event("watched"));
  }
}

/** Whether anything is visible. Without a video that the browser can play, playback does not count as watching. */
function isVisible() {
  const { recording, signals } = state;
  return Boolean(player.video || signals?.poses || signals?.lanes.length) || !(recording.video || recording.video_note);
}

function isActive({ index, name, subject }) {
  return index === state.recording?.index && name === state.active && subject === state.subject;
}

export const watching = new Watching();
