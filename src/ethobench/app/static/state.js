// The state of the page. Setting a field dispatches an event with its name; components listen to the fields that they show.

import { colorsOf } from "./palette.js";
import { annotatorName, identify } from "./server.js";

const MIN_FRAMES = 8;

class State extends EventTarget {
  project = null; // summary of the project, from the server
  recording = null; // summary of the open recording, from the server
  signals = null; // its lanes of signals and its poses
  behaviors = []; // its ethogram, with a color and a key for each behavior
  frame = 0;
  from = 0; // the visible range in frames; may be fractional
  to = 1;
  mark = { in: null, out: null }; // the selected frames
  bout = null; // the selected bout: {lane, track, start, stop, behavior, subject, target}, with names of subject and target
  running = []; // behaviors that were started and not ended yet: {behavior, start, subject, target}
  pending = []; // edits that are drawn before the server has confirmed them: {index, name, start, stop, behavior, subject, revision}
  coding = localStorage.getItem("coding") ?? "toggle"; // whether a key starts and ends a behavior, or is held down
  loop = null; // frames that are played again and again: [start, stop]
  review = null; // the suggestion of the teacher that is reviewed: {item}
  blind = false; // whether other annotators and models are hidden
  active = null; // the name of the correction that is edited
  labeler = null; // under whose name corrections are edited, also in the recordings that are opened next
  subject = null;
  target = null;
  exclusive = true;
  hidden = new Set(); // names of tracks that are neither shown nor compared
  motion = null; // the progress of the motion energy, while it is computed
  playing = false;
  speed = 1;

  /** Set fields, and dispatch an event for each. */
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

  /** Move the playhead to a frame, and scroll to it. `byPlayer` during playback, `byStep` for a small step; otherwise it is a jump. */
  seek(frame, { follow = true, byPlayer = false, byStep = false } = {}) {
    const at = Math.min(Math.max(Math.round(frame), 0), Math.max(this.nFrames - 1, 0));
    Object.assign(this, { byPlayer, byStep });
    if (at !== this.frame) this.set({ frame: at });
    Object.assign(this, { byPlayer: false, byStep: false });
    if (follow && (at < this.from || at >= this.to)) {
      const span = this.to - this.from;
      this.setView(byPlayer ? at - span * 0.05 : at - span / 2, span);
    }
  }

  /** Set the visible range. */
  setView(from, span) {
    const width = Math.min(Math.max(span, MIN_FRAMES), Math.max(this.nFrames, MIN_FRAMES));
    const first = Math.min(Math.max(from, 0), Math.max(this.nFrames - width, 0));
    if (first !== this.from || first + width !== this.to) this.set({ from: first, to: first + width });
  }

  /** Zoom around a frame; a factor below 1 zooms in. */
  zoom(factor, around = this.frame) {
    const span = Math.min(Math.max((this.to - this.from) * factor, MIN_FRAMES), Math.max(this.nFrames, MIN_FRAMES));
    const share = (around - this.from) / (this.to - this.from);
    this.setView(around - share * span, span);
  }

  /** Scroll and zoom to frames, with a margin. */
  scrollTo(start, stop) {
    const span = Math.max((stop - start) * 6, this.rate * 8, MIN_FRAMES);
    if (start < this.from || stop > this.to || stop - start < (this.to - this.from) / 40) this.setView((start + stop) / 2 - span / 2, span);
  }

  /** Edit a correction. It decides whether behaviors exclude each other and name a subject; while it is empty, the other tracks do. */
  activate(track) {
    if (track) identify({ annotator: (this.labeler = track.name) });
    const references = track?.bouts ? [track] : this.tracks;
    const unlabeled = references.every((t) => !t.bouts);
    const first = unlabeled && track?.named.length > 1 ? track.named[0] : (references.flatMap((t) => t.subjects)[0] ?? null);
    const subject = references.some((t) => t.unnamed && t.bouts) ? null : first;
    this.set({ active: track?.name ?? null, exclusive: references.every((t) => t.exclusive), subject, target: null, running: [] });
  }

  /** The observed frames of the active correction for the chosen subject: {share, spans}; null without a correction. */
  get observed() {
    const observed = this.activeTrack?.observed;
    return observed ? (observed.subjects[this.subject] ?? observed) : null;
  }

  /** Update the observed frames of a track. */
  updateObserved(summary, disagreement) {
    const track = this.tracks.find(({ name }) => name === summary.name);
    if (!track || track.revision !== summary.revision) return;
    Object.assign(track, { watches: summary.watches, observed: summary.observed });
    this.recording.disagreement = disagreement;
    this.dispatchEvent(new Event("observed"));
  }

  /** Whether a track may be shown: in blind mode only the annotator's own. The server sends no other, except before the mode changes. */
  isAllowed(track) {
    return !this.blind || track.name === annotatorName();
  }

  /** Whether a track is shown. */
  isShown(track) {
    return this.isAllowed(track) && !this.hidden.has(track.name);
  }

  /** The behaviors that marking a behavior removes: those of its group or, without groups, all (true) or none (false). */
  excludedBy(code) {
    const { group, background } = this.behaviors[code];
    if (!this.behaviors.some((b) => b.group)) return this.exclusive;
    if (background) return true;
    return this.behaviors.filter((b) => b.background || (group && b.group === group && b.code !== code)).map((b) => b.name);
  }

  /** Replace the summary of a track. */
  updateTrack(summary, disagreement, subjects = this.recording.subjects) {
    const tracks = this.tracks.filter((track) => track.name !== summary.name);
    const index = this.tracks.findIndex((track) => track.name === summary.name);
    tracks.splice(index < 0 ? tracks.length : index, 0, summary);
    this.set({ recording: { ...this.recording, tracks, disagreement, subjects } });
  }
}

export const state = new State();

/** Add colors and keys to the behaviors of an ethogram; a behavior without a key gets the next free digit. */
export function withColorsAndKeys(behaviors) {
  const colors = colorsOf(behaviors, document.documentElement.dataset.theme);
  const explicitKeys = new Set(behaviors.filter((b) => !b.hidden).map((b) => b.key).filter((key) => key.length === 1));
  const usedKeys = new Set();
  const digits = [..."123456789"].filter((digit) => !explicitKeys.has(digit));
  return behaviors.map((behavior, code) => {
    const hasOwnKey = behavior.key.length === 1 && behavior.key !== " " && !usedKeys.has(behavior.key);
    const key = behavior.hidden ? "" : hasOwnKey ? behavior.key : (digits.shift() ?? "");
    usedKeys.add(key);
    return { ...behavior, code, color: colors[code], key };
  });
}
