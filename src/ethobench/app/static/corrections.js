// Editing of labels. The server saves every edit before it responds, so the page always shows what is saved.

import { showMessage } from "./dom.js";
import { fetchJson, postJson } from "./server.js";
import { state } from "./state.js";
import { watching } from "./watching.js";

let queue = Promise.resolve();

/** Start a correction of the recording under an annotator's name, from a copy of a track or from scratch. */
export async function start(name, copy) {
  const index = state.recording.index;
  const { track, disagreement } = await postJson(`recordings/${index}/start`, { name, copy });
  if (state.recording.index !== index) return;
  state.updateTrack(track, disagreement);
  state.activate(track);
  showSavedTime();
}

/** Mark the selected frames with a behavior; without a selection, start or end it at the playhead. */
export function press(code) {
  if (!isCorrecting()) return;
  const behavior = state.behaviors[code];
  if (behavior.point) send([markAt(state.frame, state.frame, code)]);
  else if (state.selection) {
    const [start, stop] = state.selection;
    send([...clearPickedBout(), markAt(start, stop, code)]);
    state.set({ mark: { in: null, out: null }, bout: null });
  } else if (state.running) {
    const { behavior: running, start } = state.running;
    const stop = Math.max(state.frame, start + 1);
    send([markAt(start, stop, running)]);
    const ended = running === code;
    state.set({ running: ended ? null : { behavior: code, start: state.frame } });
  } else state.set({ running: { behavior: code, start: state.frame } });
}

/** Clear the selected frames or the selected bout. */
export function erase() {
  if (!isCorrecting()) return;
  if (state.running) return state.set({ running: null });
  if (!state.selection) return showMessage("Select frames (I and O) or click a bout to clear it.");
  const [start, stop] = state.selection;
  const subject = subjectOf(state.bout);
  const bout = state.bout?.track === state.active ? state.bout : null;
  const behavior = bout && !state.exclusive ? state.behaviors[bout.behavior].name : null;
  send([{ kind: "clear", start, stop: bout && start === stop ? stop + 1 : stop, subject, behavior }]);
  state.set({ mark: { in: null, out: null }, bout: null });
}

/** Mark the selected frames as unobserved, and clear their bouts. */
export function hide() {
  if (!isCorrecting()) return;
  if (!state.selection) return showMessage("Select frames first (I and O).");
  const [start, stop] = state.selection;
  watching.forget(start, stop);
  send([{ kind: "hide", start, stop }]);
  state.set({ mark: { in: null, out: null }, bout: null });
}

/** Mark the selected frames, or the entire recording, as watched or not watched. Bouts are kept, and their frames stay observed. */
export function markWatched(watched = true) {
  if (!isCorrecting()) return;
  const [start, stop] = state.selection ?? [0, state.nFrames];
  if (!watched) watching.forget(start, stop);
  send([{ kind: watched ? "observe" : "unobserve", start, stop, subject: state.subject }]);
  const extent = state.selection ? "The selection" : "The entire recording";
  showMessage(`${extent} is marked as ${watched ? "watched" : "not watched; frames with bouts stay observed"}.`);
}

/** Report watched frames: after the edits in the queue or, if the page is about to close, at once. Returns whether they were saved. */
export function reportWatched({ index, name, subject, spans }, leaving) {
  const report = async () => {
    try {
      const { track, disagreement } = await postJson(`recordings/${index}/watch`, { track: name, subject, spans }, { keepalive: true });
      if (state.recording.index === index) state.updateObserved(track, disagreement);
      showSavedTime();
      return true;
    } catch (error) {
      document.getElementById("saved").textContent = "not saved";
      showMessage(error.message, true);
      return false;
    }
  };
  if (leaving) return report();
  queue = queue.then(report);
  return queue;
}

/** Move the start or stop of a bout of the correction to a frame. An adjacent bout shrinks or grows with it. */
export function moveBorder({ bout, frame: old, fixed, neighbor }, frame) {
  if (!isCorrecting() || frame === old) return;
  const grows = Math.abs(frame - fixed) > Math.abs(old - fixed) && frame > fixed === old > fixed;
  const [first, last] = [Math.min(frame, old), Math.max(frame, old)];
  if (grows) send([markLike(bout, first, last)]);
  else if (neighbor) send([markLike(neighbor, first, last)]);
  else {
    const { name } = state.behaviors[bout.behavior];
    const [start, stop] = [Math.min(frame, fixed), Math.max(frame, fixed)];
    const cleared = { kind: "clear", start: bout.start, stop: bout.stop, behavior: name, subject: bout.subject };
    send(stop > start ? [cleared, markLike(bout, start, stop)] : [cleared]);
  }
  state.set({ bout: null });
}

/** An edit that marks other frames with the behavior, subject and target of a bout. */
function markLike({ behavior, subject, target }, start, stop) {
  const targetName = target >= 0 ? state.recording.subjects[target] : null;
  const { exclusive } = state;
  return { kind: "mark", start, stop, behavior: state.behaviors[behavior].name, subject: subject || null, target: targetName, exclusive };
}

/** Undo or redo the last edit. */
export function undo(again = false) {
  if (!isCorrecting()) return;
  if (state.running && !again) return state.set({ running: null });
  post(again ? "redo" : "undo", (track) => ({ revision: track.revision }));
}

function isCorrecting() {
  if (state.activeTrack) return true;
  showMessage("No correction is open. Press E to start one.");
  return false;
}

function markAt(start, stop, code) {
  const { subject, target, exclusive } = state;
  return { kind: "mark", start, stop, behavior: state.behaviors[code].name, subject, target, exclusive };
}

/** Where behaviors may overlap, a selected bout that gets another behavior loses its old one. */
function clearPickedBout() {
  const { bout } = state;
  if (!bout || bout.track !== state.active || state.exclusive) return [];
  return [{ kind: "clear", start: bout.start, stop: bout.stop, behavior: state.behaviors[bout.behavior].name, subject: subjectOf(bout) }];
}

/** The subject of an edit: that of the clicked lane, else the chosen one. */
function subjectOf(bout) {
  if (bout) return bout.subject;
  return state.subject ?? (state.recording.subjects.length ? "" : null);
}

function send(edits) {
  post("edit", (track) => ({ revision: track.revision, edits }));
}

/** Send an edit after the previous ones were saved, with the revision that they resulted in. */
function post(action, body) {
  watching.flush();
  const { index } = state.recording;
  const name = state.active;
  document.getElementById("saved").textContent = "saving…";
  queue = queue.then(async () => {
    const track = state.tracks.find((t) => t.name === name);
    if (state.recording.index !== index || !track) return;
    try {
      const response = await postJson(`recordings/${index}/${action}`, { track: name, ...body(track) });
      if (state.recording.index === index) state.updateTrack(response.track, response.disagreement);
      showSavedTime();
    } catch (error) {
      document.getElementById("saved").textContent = "not saved";
      showMessage(error.message, true);
      if (error.status === 409) await refresh(index, name).catch(() => {}); // the message above states the error
    }
  });
}

/** Show a correction as the server has it; another window may have changed it. */
async function refresh(index, name) {
  const { tracks, disagreement } = await fetchJson(`recordings/${index}`);
  const track = tracks.find((t) => t.name === name);
  if (track && state.recording.index === index) state.updateTrack(track, disagreement);
}

function showSavedTime() {
  document.getElementById("saved").textContent = `saved ${new Date().toTimeString().slice(0, 8)}`;
}
