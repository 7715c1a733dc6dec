// What is shown. Parts of the page listen for the names of what changed and ask for nothing else.

import { colorsOf } from "./palette.js";

const LEAST_FRAMES = 8;

class State extends EventTarget {
  project = null; // what the server told of everything
  recording = null; // ... and of the recording that is open
  signals = null; // its lanes of signals and its poses
  behaviors = []; // its ethogram, each with a colour and a key
  frame = 0;
  from = 0; // the frames in sight, not always whole
  to = 1;
  mark = { in: null, out: null }; // the selected frames
  bout = null; // the bout that was clicked: {track, start, stop, behavior, subject}
  running = null; // a behavior that was begun and not ended yet: {behavior, start}
  active = null; // the name of the correction that keys change
  subject = null;
  target = null;
  exclusive = true;
  hidden = new Set(); // names of tracks that are not shown, and not compared
  playing = false;
  speed = 1;

  /** Change fields, then tell everyone who listens to them. */
  set(fields) {
    Object.assign(this, fields);
    for (const name of Object.keys(fields)) this.dispatchEvent(new Event(name));
  }

  /** Call a function now and whenever one of these fields changes. */
  watch(names, listener) {
    for (const name of names) this.addEventListener(name, listener);
    listener();
  }

  get nFrames() {
    return this.recording ? this.recording.n_frames : 0;
  }

  get rate() {
    return this.recording ? this.recording.rate : 1;
  }

  get tracks() {
    return this.recording ? this.recording.tracks : [];
  }

  get activeTrack() {
    return this.tracks.find((track) => track.name === this.active) ?? null;
  }

  /** The selected frames as [start, stop), or null. */
  get selection() {
    const { in: first, out: last } = this.mark;
    return first !== null && last !== null && last > first ? [first, last] : null;
  }

  /** Go to a frame, and look there if it is out of sight. `byPlayer` while playing, `byStep` for a small step; else it is a jump. */
  seek(frame, { follow = true, byPlayer = false, byStep = false } = {}) {
    const at = Math.min(Math.max(Math.round(frame), 0), Math.max(this.nFrames - 1, 0));
    Object.assign(this, { byPlayer, byStep });
    if (at !== this.frame) this.set({ frame: at });
    Object.assign(this, { byPlayer: false, byStep: false });
    if (follow && (at < this.from || at >= this.to)) {
      const span = this.to - this.from;
      this.look(byPlayer ? at - span * 0.05 : at - span / 2, span);
    }
  }

  /** Look at a stretch of frames. */
  look(from, span) {
    const width = Math.min(Math.max(span, LEAST_FRAMES), Math.max(this.nFrames, LEAST_FRAMES));
    const first = Math.min(Math.max(from, 0), Math.max(this.nFrames - width, 0));
    if (first !== this.from || first + width !== this.to) this.set({ from: first, to: first + width });
  }

  /** Zoom around a frame; a factor below 1 goes closer. */
  zoom(factor, around = this.frame) {
    const span = Math.min(Math.max((this.to - this.from) * factor, LEAST_FRAMES), Math.max(this.nFrames, LEAST_FRAMES));
    const share = (around - this.from) / (this.to - this.from);
    this.look(around - share * span, span);
  }

  /** Bring a stretch into sight with some room around it. */
  show(start, stop) {
    const span = Math.max((stop - start) * 6, this.rate * 8, LEAST_FRAMES);
    if (start < this.from || stop > this.to || stop - start < (this.to - this.from) / 40) this.look((start + stop) / 2 - span / 2, span);
  }

  /** Let keys change a correction, in its own manner: with subjects where it (or, while it is empty, any track) names them. */
  activate(track) {
    const naming = track?.bouts ? [track] : this.tracks;
    const subject = naming.some((t) => t.unnamed && t.bouts) ? null : (naming.flatMap((t) => t.subjects)[0] ?? null);
    this.set({ active: track?.name ?? null, exclusive: naming.every((t) => t.exclusive), subject, target: null, running: null });
  }

  /** What counts as observed in the active correction, of the subject that is chosen: {share, spans}; null without one. */
  get observed() {
    const observed = this.activeTrack?.observed;
    return observed ? (observed.subjects[this.subject] ?? observed) : null;
  }

  /** Replace what is known of the observed frames of one track; nothing else changes by watching. */
  updateObserved(facts, disagreement) {
    const track = this.tracks.find(({ name }) => name === facts.name);
    if (!track || track.revision !== facts.revision) return;
    Object.assign(track, { watches: facts.watches, observed: facts.observed });
    this.recording.disagreement = disagreement;
    this.dispatchEvent(new Event("observed"));
  }

  /** Replace what is known of one track. */
  updateTrack(facts, disagreement) {
    const tracks = this.tracks.filter((track) => track.name !== facts.name);
    const index = this.tracks.findIndex((track) => track.name === facts.name);
    tracks.splice(index < 0 ? tracks.length : index, 0, facts);
    this.set({ recording: { ...this.recording, tracks, disagreement } });
  }
}

export const state = new State();

/** Give the behaviors of an ethogram their colours and keys: their own key, else the next free digit. */
export function dressed(behaviors) {
  const colors = colorsOf(behaviors, document.documentElement.dataset.theme);
  const taken = new Set(behaviors.map((b) => b.key).filter((key) => key.length === 1));
  const seen = new Set();
  const digits = [..."123456789"].filter((digit) => !taken.has(digit));
  return behaviors.map((behavior, code) => {
    const own = behavior.key.length === 1 && behavior.key !== " " && !seen.has(behavior.key);
    const key = own ? behavior.key : (digits.shift() ?? "");
    seen.add(key);
    return { ...behavior, code, color: colors[code], key };
  });
}
