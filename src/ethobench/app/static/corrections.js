// Editing of labels. Edits are drawn at once and saved in order. One that cannot be saved, because the disk is full or the server does
// not respond, is kept and repeated; one that the server refuses is removed, and the page shows what is saved.

import { showMessage } from "./dom.js";
import { fetchJson, postJson } from "./server.js";
import { state } from "./state.js";
import { watching } from "./watching.js";

const RETRY_DELAY = 5000; // milliseconds
const MAX_OVERLAY = 3000; // milliseconds that a saved edit is still drawn from the state of the page

let queue = Promise.resolve();
const jobs = new Set(); // edits that are not saved yet
const revisions = new Map(); // by recording and correction, as the server last stated it
const otherTabs = new BroadcastChannel("ethobench");
let retry = null; // repeats a failed request at once

state.addEventListener("recording", () => {
  for (const { kind, name, revision } of state.tracks) {
    if (kind === "correction" && ![...jobs].some((job) => job.index === state.recording.index && job.name === name)) {
      revisions.set(`${state.recording.index}/${name}`, revision);
    }
  }
});
otherTabs.addEventListener("message", ({ data: { index, name } }) => {
  if (state.recording?.index === index && !jobs.size) refresh(index, name).catch(() => {});
});
addEventListener("beforeunload", (event) => {
  if (jobs.size || state.running.length) event.preventDefault();
});

/** Start a correction of the recording under an annotator's name, from a copy of a track or from scratch. */
export async function start(name, copy, subjects = []) {
  const index = state.recording.index;
  const response = await postJson(`recordings/${index}/start`, { name, copy, subjects });
  if (state.recording.index !== index) return;
  state.updateTrack(response.track, response.disagreement, response.subjects);
  state.activate(response.track);
  showSavedTime();
}

/** Repeat failed requests now. */
export function retryNow() {
  retry?.();
}

/** Mark the selected frames with a behavior; without a selection, start or end it at the playhead. */
export function press(code) {
  if (!isCorrecting()) return;
  const { point } = state.behaviors[code];
  if (point) send([markAt(state.frame, state.frame, code)]);
  else if (state.selection) {
    const [start, stop] = state.selection;
    send([...clearPickedBout(), markAt(start, stop, code)]);
    state.set({ mark: { in: null, out: null }, bout: null });
  } else toggle(code);
}

/** In hold mode, start a behavior when its key is pressed during playback. Returns whether the key was handled. */
export function pressAndHold(code, key) {
  if (state.coding !== "hold" || !state.playing || !state.activeTrack || state.selection || state.behaviors[code].point) return false;
  if (!state.running.some((r) => r.key === key)) toggle(code, key);
  return true;
}

/** In hold mode, end the behavior of a key that is released. */
export function release(key) {
  const held = state.running.filter((r) => r.key === key);
  if (held.length) endRunning(held);
}

function toggle(code, key = null) {
  const { subject, target, frame } = state;
  const mine = state.running.filter((r) => r.subject === subject);
  const same = mine.find((r) => r.behavior === code);
  const excluded = state.excludedBy(code);
  const ended = same ? [same] : mine.filter((r) => excluded === true || (excluded && excluded.includes(state.behaviors[r.behavior].name)));
  endRunning(ended);
  if (!same) state.set({ running: [...state.running, { behavior: code, start: frame, subject, target, key }] });
}

/** End behaviors at the playhead, and save them; all that run by default. */
export function endRunning(ended = state.running) {
  if (!ended.length) return;
  const edits = ended.map(({ behavior, start: begin, subject, target }) => {
    const [start, stop] = [Math.min(begin, state.frame), Math.max(begin, state.frame)];
    return mark({ start, stop: Math.max(stop, start + 1), behavior, subject, target });
  });
  state.set({ running: state.running.filter((r) => !ended.includes(r)) });
  send(edits);
}

/** Clear the selected frames or the selected bout. */
export function erase() {
  if (!isCorrecting()) return;
  if (state.running.length) return state.set({ running: state.running.filter((r) => r.subject !== state.subject) });
  const { bout } = state;
  const isPoint = bout && bout.start === bout.stop;
  if (!state.selection && !isPoint) return showMessage("Select frames (I and O) or click a bout to clear it.");
  const [start, stop] = isPoint ? [bout.start, bout.stop + 1] : state.selection;
  const picked = bout?.track === state.active ? bout : null;
  const isOverlapping = !state.exclusive || state.behaviors.some((b) => b.group);
  const behavior = picked && (isOverlapping || isPoint) ? state.behaviors[picked.behavior].name : null;
  send([{ kind: "clear", start, stop: Math.min(stop, state.nFrames), subject: subjectOf(bout), behavior }]);
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
      showUnsaved(error.message);
      return false;
    }
  };
  if (leaving) return report();
  queue = queue.then(report);
  return queue;
}

/** Change values of the selected bout: start, stop, behavior, subject, target, modifiers or comment. */
export function changeBout(values) {
  const bout = editableBout();
  if (!bout) return;
  const code = values.behavior === undefined ? bout.behavior : state.behaviors.findIndex((b) => b.name === values.behavior);
  send([{ kind: "change", ...describe(bout), to: values, exclusive: state.excludedBy(code) }]);
  const changed = { ...bout, ...values, behavior: code, lane: `track/${bout.track}/${values.subject ?? bout.subject ?? ""}` };
  state.set({ bout: changed, mark: { in: changed.start, out: changed.stop } });
}

/** Move the start or stop of the selected bout by frames. */
export function nudge(edge, by) {
  const bout = editableBout();
  if (!bout) return;
  const isPoint = bout.start === bout.stop;
  const moved = { start: bout.start, stop: bout.stop, [edge]: bout[edge] + by };
  if (isPoint) moved.start = moved.stop = bout.start + by;
  if (moved.start < 0 || moved.stop > state.nFrames || (!isPoint && moved.stop <= moved.start)) return;
  changeBout(moved);
  state.seek(edge === "start" || isPoint ? moved.start : moved.stop - 1, { byStep: true });
}

/** Split the selected bout at the playhead. */
export function split() {
  const bout = editableBout();
  if (!bout) return;
  if (state.frame <= bout.start || state.frame >= bout.stop) return showMessage("Move the playhead into the bout to split it there.");
  send([{ kind: "split", ...describe(bout), at: state.frame }]);
  state.set({ bout: { ...bout, start: state.frame }, mark: { in: state.frame, out: bout.stop } });
}

/** Merge the selected bout with the next or previous one of the same behavior. */
export function merge(forward = true) {
  const bout = editableBout();
  if (!bout) return;
  send([{ kind: "merge", ...describe(bout), forward, exclusive: state.excludedBy(bout.behavior) }]);
  state.set({ bout: null, mark: { in: null, out: null } });
}

/** Copy the selected bout, of any track, to the correction and the focal subject. */
export async function copyBout() {
  if (!isCorrecting()) return;
  const { bout } = state;
  if (!bout) return showMessage("Click a bout, or press Enter at one, to copy it.");
  const details = await fetchDetails(bout);
  const target = bout.target === state.subject ? null : bout.target;
  const edit = mark({ ...bout, subject: state.subject ?? null, target });
  send([{ ...edit, modifiers: details?.modifiers ?? "", comment: details?.comment ?? "" }]);
  showMessage(`Copied to ${state.subject ?? state.active}.`);
}

/** The details of a bout, with modifiers and comment; null if it does not exist anymore. */
export function fetchDetails({ track, start, stop, behavior, subject }) {
  return fetchJson(`recordings/${state.recording.index}/bout`, { track, start, stop, behavior, subject: subject ?? "" });
}

/** Add (subject null), rename, or remove (name null) an animal. */
export function changeSubject(subject, name) {
  if (!isCorrecting()) return;
  send([{ kind: "subject", subject, name }]);
}

/** Move the start or stop of a bout of the correction to a frame. An adjacent bout shrinks or grows with it. */
export function moveBorder({ bout, frame: old, fixed, neighbor }, frame) {
  if (!isCorrecting() || frame === old) return;
  const grows = Math.abs(frame - fixed) > Math.abs(old - fixed) && frame > fixed === old > fixed;
  const [first, last] = [Math.min(frame, old), Math.max(frame, old)];
  const [start, stop] = [Math.min(frame, fixed), Math.max(frame, fixed)];
  if (grows) send([mark({ ...bout, start: first, stop: last })]);
  else if (neighbor) send([mark({ ...neighbor, start: first, stop: last })]);
  else if (stop > start) send([{ kind: "change", ...describe(bout), to: { start, stop }, exclusive: state.excludedBy(bout.behavior) }]);
  else send([{ kind: "clear", start: bout.start, stop: bout.stop, behavior: state.behaviors[bout.behavior].name, subject: bout.subject }]);
  state.set({ bout: null });
}

/** Undo or redo the last edit. */
export function undo(again = false) {
  if (!isCorrecting()) return;
  if (state.running.length && !again) return state.set({ running: [] });
  post(again ? "redo" : "undo", {});
}

function isCorrecting() {
  if (state.activeTrack) return true;
  showMessage("No correction is open. Press E to start one.");
  return false;
}

/** The selected bout if it belongs to the correction. */
function editableBout() {
  if (!isCorrecting()) return null;
  if (state.bout?.track === state.active) return state.bout;
  showMessage("Click a bout of the correction, or press Enter at one, to edit it.");
  return null;
}

/** The fields that identify a bout on the server. */
function describe({ start, stop, behavior, subject, target }) {
  return { start, stop, behavior: state.behaviors[behavior].name, subject: subject || null, target: target || null };
}

/** An edit that marks frames with a behavior. */
function mark(bout) {
  return { kind: "mark", ...describe(bout), exclusive: state.excludedBy(bout.behavior) };
}

function markAt(start, stop, behavior) {
  const { subject, target } = state;
  return mark({ start, stop, behavior, subject, target });
}

/** Where behaviors may overlap, a selected bout that gets another behavior loses its old one. */
function clearPickedBout() {
  const { bout } = state;
  if (!bout || bout.track !== state.active || (state.exclusive && !state.behaviors.some((b) => b.group))) return [];
  return [{ kind: "clear", start: bout.start, stop: bout.stop, behavior: state.behaviors[bout.behavior].name, subject: subjectOf(bout) }];
}

/** The subject of an edit: that of the clicked lane, else the chosen one. */
function subjectOf(bout) {
  if (bout) return bout.subject;
  return state.subject ?? (state.recording.subjects.length ? "" : null);
}

function send(edits) {
  post("edit", { edits }, edits);
}

/** Draw edits at once, and send them after the previous ones were saved, with the revision that those resulted in. */
function post(action, body, edits = []) {
  watching.flush();
  const { index } = state.recording;
  const name = state.active;
  const drawn = edits.filter(({ kind }) => ["mark", "clear", "hide"].includes(kind)).map((edit) => overlay(edit, index, name));
  const job = { index, name };
  jobs.add(job);
  if (drawn.length) state.set({ pending: [...state.pending, ...drawn] });
  document.getElementById("saved").textContent = "saving…";
  queue = queue.then(async () => {
    try {
      const response = await untilSaved(`recordings/${index}/${action}`, () => ({ track: name, revision: revisions.get(`${index}/${name}`), ...body }));
      const { track, disagreement, subjects } = response;
      revisions.set(`${index}/${name}`, track.revision);
      for (const item of drawn) item.revision = track.revision;
      setTimeout(() => dropOverlay(drawn), MAX_OVERLAY);
      if (state.recording.index === index) state.updateTrack(track, disagreement, subjects);
      otherTabs.postMessage({ index, name });
      jobs.delete(job);
      if (!jobs.size) showSavedTime();
    } catch (error) {
      jobs.delete(job);
      dropOverlay(drawn);
      document.getElementById("saved").textContent = "not saved";
      showMessage(error.message, true);
      if (error.status === 409) await refresh(index, name).catch(() => {}); // the message above states the error
    }
  });
}

/** Repeat a request until the server has answered it; errors other than those of disk and network are thrown. */
async function untilSaved(path, body) {
  for (;;) {
    try {
      const response = await postJson(path, body());
      document.getElementById("retry").hidden = true;
      return response;
    } catch (error) {
      if (error.status && error.status < 500) throw error;
      showUnsaved(error.message);
      await new Promise((again) => {
        retry = again;
        setTimeout(again, RETRY_DELAY);
      });
    }
  }
}

function overlay({ kind, start, stop, behavior, subject }, index, name) {
  const code = behavior === null || behavior === undefined ? null : state.behaviors.findIndex((b) => b.name === behavior);
  return { index, name, start, stop, behavior: code, cleared: kind !== "mark", subject: subject || null, revision: null };
}

function dropOverlay(drawn) {
  if (drawn.length) state.set({ pending: state.pending.filter((item) => !drawn.includes(item)) });
}

/** Show a correction as the server has it; another window may have changed it, or the ethogram. */
export async function refresh(index, name) {
  const recording = await fetchJson(`recordings/${index}`);
  const track = recording.tracks.find((t) => t.name === name);
  if (!track) return;
  revisions.set(`${index}/${name}`, track.revision);
  if (state.recording.index !== index) return;
  if (recording.behaviors.join("\n") !== state.behaviors.map((b) => b.name).join("\n")) {
    state.set({ project: await fetchJson("project") });
    document.dispatchEvent(new CustomEvent("ethogram", { detail: { recording } }));
  } else state.updateTrack(track, recording.disagreement, recording.subjects);
}

function showUnsaved(message) {
  const count = jobs.size;
  document.getElementById("saved").textContent = count > 1 ? `${count} edits not saved` : "not saved";
  document.getElementById("retry").hidden = !count;
  showMessage(count ? `${message}; trying again every 5 seconds` : message, true);
}

function showSavedTime() {
  if (jobs.size) return;
  const messageBar = document.getElementById("message");
  if (messageBar.textContent.includes("trying again")) messageBar.textContent = "";
  document.getElementById("saved").textContent = `saved ${new Date().toTimeString().slice(0, 8)}`;
}
