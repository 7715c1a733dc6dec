// Changing labels. Every change goes to the server, which saves it before it answers, so what is seen is what is on the disk.

import { say } from "./dom.js";
import { ask, change } from "./server.js";
import { state } from "./state.js";
import { watching } from "./watching.js";

let queue = Promise.resolve();

/** Begin to correct the recording under a name, from a copy of a track or from nothing. */
export async function start(name, copy) {
  const index = state.recording.index;
  const { track, disagreement } = await change(`recordings/${index}/start`, { name, copy });
  if (state.recording.index !== index) return;
  state.updateTrack(track, disagreement);
  state.activate(track);
  tellSaved();
}

/** Mark the selected frames with a behavior; without a selection, begin or end it at the playhead. */
export function press(code) {
  if (!ready()) return;
  const behavior = state.behaviors[code];
  if (behavior.point) send([marking(state.frame, state.frame, code)]);
  else if (state.selection) {
    const [start, stop] = state.selection;
    send([...unmarking(), marking(start, stop, code)]);
    state.set({ mark: { in: null, out: null }, bout: null });
  } else if (state.running) {
    const { behavior: running, start } = state.running;
    const stop = Math.max(state.frame, start + 1);
    send([marking(start, stop, running)]);
    const ended = running === code;
    state.set({ running: ended ? null : { behavior: code, start: state.frame } });
  } else state.set({ running: { behavior: code, start: state.frame } });
}

/** Clear the selected frames, or the bout that was picked. */
export function erase() {
  if (!ready()) return;
  if (state.running) return state.set({ running: null });
  if (!state.selection) return say("Select frames (I and O) or click a bout to clear it.");
  const [start, stop] = state.selection;
  const subject = subjectOf(state.bout);
  const bout = state.bout?.track === state.active ? state.bout : null;
  const behavior = bout && !state.exclusive ? state.behaviors[bout.behavior].name : null;
  send([{ kind: "clear", start, stop: bout && start === stop ? stop + 1 : stop, subject, behavior }]);
  state.set({ mark: { in: null, out: null }, bout: null });
}

/** Say that the selected frames were not observed; their bouts are cleared. */
export function hide() {
  if (!ready()) return;
  if (!state.selection) return say("Select frames first (I and O).");
  const [start, stop] = state.selection;
  watching.forget(start, stop);
  send([{ kind: "hide", start, stop }]);
  state.set({ mark: { in: null, out: null }, bout: null });
}

/** Mark the selected frames, or the whole recording, as watched or as not watched; bouts stay as they are, and stay observed. */
export function markWatched(watched = true) {
  if (!ready()) return;
  const [start, stop] = state.selection ?? [0, state.nFrames];
  if (!watched) watching.forget(start, stop);
  send([{ kind: watched ? "observe" : "unobserve", start, stop, subject: state.subject }]);
  const what = state.selection ? "The selection" : "The whole recording";
  say(`${what} is marked as ${watched ? "watched" : "not watched; frames with bouts stay observed"}.`);
}

/** Report frames that were watched, in turn with the edits or, when the page may be left, at once; tells whether they were saved. */
export function reportWatched({ index, name, subject, spans }, leaving) {
  const report = async () => {
    try {
      const { track, disagreement } = await change(`recordings/${index}/watch`, { track: name, subject, spans }, { keepalive: true });
      if (state.recording.index === index) state.updateObserved(track, disagreement);
      tellSaved();
      return true;
    } catch (error) {
      document.getElementById("saved").textContent = "not saved";
      say(error.message, true);
      return false;
    }
  };
  if (leaving) return report();
  queue = queue.then(report);
  return queue;
}

/** Move a border of a bout of the correction to a frame; a bout that it touches there gives way, or follows. */
export function moveBorder({ bout, frame: old, fixed, neighbor }, frame) {
  if (!ready() || frame === old) return;
  const grows = Math.abs(frame - fixed) > Math.abs(old - fixed) && frame > fixed === old > fixed;
  const [first, last] = [Math.min(frame, old), Math.max(frame, old)];
  if (grows) send([likeness(bout, first, last)]);
  else if (neighbor) send([likeness(neighbor, first, last)]);
  else {
    const { name } = state.behaviors[bout.behavior];
    const [start, stop] = [Math.min(frame, fixed), Math.max(frame, fixed)];
    const cleared = { kind: "clear", start: bout.start, stop: bout.stop, behavior: name, subject: bout.subject };
    send(stop > start ? [cleared, likeness(bout, start, stop)] : [cleared]);
  }
  state.set({ bout: null });
}

/** A mark like a bout that is there, on other frames. */
function likeness({ behavior, subject, target }, start, stop) {
  const whom = target >= 0 ? state.recording.subjects[target] : null;
  const { exclusive } = state;
  return { kind: "mark", start, stop, behavior: state.behaviors[behavior].name, subject: subject || null, target: whom, exclusive };
}

/** Take the last change back, or repeat it. */
export function undo(again = false) {
  if (!ready()) return;
  if (state.running && !again) return state.set({ running: null });
  post(again ? "redo" : "undo", (track) => ({ revision: track.revision }));
}

function ready() {
  if (state.activeTrack) return true;
  say("Nothing is being corrected: press E to begin.");
  return false;
}

function marking(start, stop, code) {
  const { subject, target, exclusive } = state;
  return { kind: "mark", start, stop, behavior: state.behaviors[code].name, subject, target, exclusive };
}

/** When a picked bout gets another behavior, and behaviors may overlap, its old one goes. */
function unmarking() {
  const { bout } = state;
  if (!bout || bout.track !== state.active || state.exclusive) return [];
  return [{ kind: "clear", start: bout.start, stop: bout.stop, behavior: state.behaviors[bout.behavior].name, subject: subjectOf(bout) }];
}

/** Whose bouts are meant: those of the lane that was clicked, else of the subject that is chosen. */
function subjectOf(bout) {
  if (bout) return bout.subject;
  return state.subject ?? (state.recording.subjects.length ? "" : null);
}

function send(edits) {
  post("edit", (track) => ({ revision: track.revision, edits }));
}

/** Changes go one after the other, each from the state that the last one left. */
function post(what, body) {
  watching.flush();
  const { index } = state.recording;
  const name = state.active;
  document.getElementById("saved").textContent = "saving…";
  queue = queue.then(async () => {
    const track = state.tracks.find((t) => t.name === name);
    if (state.recording.index !== index || !track) return;
    try {
      const told = await change(`recordings/${index}/${what}`, { track: name, ...body(track) });
      if (state.recording.index === index) state.updateTrack(told.track, told.disagreement);
      tellSaved();
    } catch (error) {
      document.getElementById("saved").textContent = "not saved";
      say(error.message, true);
      if (error.status === 409) await refresh(index, name).catch(() => {}); // the message above says what is wrong
    }
  });
}

/** Show a correction as the server has it; another window may have changed it. */
async function refresh(index, name) {
  const { tracks, disagreement } = await ask(`recordings/${index}`);
  const track = tracks.find((t) => t.name === name);
  if (track && state.recording.index === index) state.updateTrack(track, disagreement);
}

function tellSaved() {
  document.getElementById("saved").textContent = `saved ${new Date().toTimeString().slice(0, 8)}`;
}
