// Jumps to disagreements, uncertain bouts, and starts and stops of bouts.

import { showMessage } from "./dom.js";
import { comparedTracks } from "./lanes.js";
import { fetchJson } from "./server.js";
import { state } from "./state.js";

let uncertain = { key: "", bouts: [], at: -1 };

/** Select the next (or previous) interval in which the visible tracks disagree. */
export async function toDisagreement(forward = true) {
  const among = comparedTracks().map((track) => track.name);
  if (among.length < 2) return showMessage("There is only one track to compare.");
  const frame = forward ? state.frame : Math.max(state.mark.in ?? state.frame, 0);
  const interval = await fetchJson(`recordings/${state.recording.index}/next`, { frame, forward: forward ? 1 : 0, among });
  if (!interval) return showMessage(forward ? "No disagreement after this." : "No disagreement before this.");
  select(interval.start, interval.stop);
}

/** Go to the next start or stop of a bout in the correction, or in the first visible track. */
export async function toBorder(forward = true) {
  const track = state.activeTrack ?? state.tracks.find((t) => state.isShown(t));
  if (!track) return;
  const interval = await fetchJson(`recordings/${state.recording.index}/next`, { frame: state.frame, forward: forward ? 1 : 0, border: track.name });
  if (interval) state.seek(interval.start);
}

/** Go to the least certain bout of a model, then to the second, and so on. */
export async function toUncertain(forward = true) {
  const shown = state.tracks.filter((track) => state.isShown(track)).map((track) => `${track.name}@${track.revision}`);
  const key = [state.recording.index, ...shown].join("\n");
  if (uncertain.key !== key) {
    const bouts = await fetchJson(`recordings/${state.recording.index}/uncertain`);
    uncertain = { key, bouts: bouts.filter((bout) => state.tracks.some((t) => t.name === bout.track && state.isShown(t))), at: -1 };
  }
  if (!uncertain.bouts.length) return showMessage("No visible track has probabilities.");
  uncertain.at = (uncertain.at + (forward ? 1 : -1) + uncertain.bouts.length) % uncertain.bouts.length;
  const { start, stop, behavior, track, certainty } = uncertain.bouts[uncertain.at];
  select(start, stop);
  const name = state.behaviors[behavior].name;
  showMessage(`${uncertain.at + 1} of ${uncertain.bouts.length}: ${track} is ${Math.round(certainty * 100)} % certain of “${name}”`);
}

/** Select the bout at the playhead in the correction, or in the first visible track that has one. */
export async function pickBout() {
  const boutsByTrack = await fetchJson(`recordings/${state.recording.index}/at`, { frame: state.frame });
  const shown = state.tracks.filter((track) => state.isShown(track)).map((track) => track.name);
  const name = [state.active, ...shown].find((n) => n && shown.includes(n) && boutsByTrack[n]?.length);
  if (!name) return showMessage("No bout at the playhead.");
  const bouts = boutsByTrack[name];
  const { start, stop, behavior, subject, target } = bouts.find((bout) => bout.subject === state.subject) ?? bouts[0];
  const lane = `track/${name}/${subject ?? ""}`;
  state.set({ bout: { lane, track: name, start, stop, behavior, subject, target }, mark: { in: start, out: stop } });
}

/** Select frames and scroll to them. */
export function select(start, stop) {
  state.scrollTo(start, stop);
  state.seek(start);
  state.set({ mark: { in: start, out: stop }, bout: null });
}
