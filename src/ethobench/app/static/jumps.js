// Going to what deserves a look: disagreements, doubtful bouts, borders, suggestions.

import { say } from "./dom.js";
import { comparedTracks } from "./lanes.js";
import { ask } from "./server.js";
import { state } from "./state.js";

let doubtful = { key: "", bouts: [], at: -1 };

/** Go to the next (or previous) stretch in which the tracks in sight disagree, and select it. */
export async function toDisagreement(forward = true) {
  const among = comparedTracks().map((track) => track.name);
  if (among.length < 2) return say("There is only one track, so nobody disagrees.");
  const frame = forward ? state.frame : Math.max(state.mark.in ?? state.frame, 0);
  const found = await ask(`recordings/${state.recording.index}/next`, { frame, forward: forward ? 1 : 0, among });
  if (!found) return say(forward ? "No disagreement after this." : "No disagreement before this.");
  select(found.start, found.stop);
}

/** Go to the next border of the bouts of the correction, or of the first track in sight. */
export async function toBorder(forward = true) {
  const track = state.activeTrack ?? state.tracks.find((t) => !state.hidden.has(t.name));
  if (!track) return;
  const found = await ask(`recordings/${state.recording.index}/next`, { frame: state.frame, forward: forward ? 1 : 0, border: track.name });
  if (found) state.seek(found.start);
}

/** Go to the bout that a model is least certain of, then to the second, and so on. */
export async function toDoubtful(forward = true) {
  const shown = state.tracks.filter((track) => !state.hidden.has(track.name)).map((track) => `${track.name}@${track.revision}`);
  const key = [state.recording.index, ...shown].join("\n");
  if (doubtful.key !== key) {
    const bouts = await ask(`recordings/${state.recording.index}/uncertain`);
    doubtful = { key, bouts: bouts.filter((bout) => !state.hidden.has(bout.track)), at: -1 };
  }
  if (!doubtful.bouts.length) return say("No track in sight tells how certain its bouts are.");
  doubtful.at = (doubtful.at + (forward ? 1 : -1) + doubtful.bouts.length) % doubtful.bouts.length;
  const { start, stop, behavior, track, certainty } = doubtful.bouts[doubtful.at];
  select(start, stop);
  const name = state.behaviors[behavior].name;
  say(`${doubtful.at + 1} of ${doubtful.bouts.length}: ${track} is ${Math.round(certainty * 100)} % certain of “${name}”`);
}

/** Select the bout at the playhead in the correction, or in the first track in sight that has one. */
export async function pickBout() {
  const said = await ask(`recordings/${state.recording.index}/at`, { frame: state.frame });
  const names = [state.active, ...state.tracks.map((track) => track.name)].filter((name) => name && !state.hidden.has(name));
  const name = names.find((n) => said[n]?.length);
  if (!name) return say("No bout at the playhead.");
  const [{ start, stop, behavior, subject }] = said[name];
  const lane = `track/${name}/${subject ?? ""}`;
  state.set({ bout: { lane, track: name, start, stop, behavior, subject, target: -1 }, mark: { in: start, out: stop } });
}

/** Select a stretch and bring it into sight. */
export function select(start, stop) {
  state.show(start, stop);
  state.seek(start);
  state.set({ mark: { in: start, out: stop }, bout: null });
}
