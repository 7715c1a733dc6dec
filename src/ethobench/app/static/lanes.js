// The lanes of the timeline: which there are, how high they are, and what to ask the server for.

import { percent } from "./dom.js";
import { state } from "./state.js";

const RIBBON = 24;
const ROW = 9;
const GAP = 5;
const GROUP_GAP = 9;
const TRACE = 44;
const OBSERVED = 12;
const MOST_GROWTH = { ribbon: 1.6, rows: 1.6, stack: 2, lines: 2, trace: 2.4, disagreement: 1, observed: 1 };

/** Lay out the lanes of the recording that is open, from top to bottom; they grow to fill the room there is. */
export function layLanes(room) {
  const lanes = gatherLanes();
  const least = lanes.reduce((sum, lane) => sum + lane.height, 0);
  const fixed = place(lanes) - least;
  const growth = (room - fixed) / least;
  for (const lane of lanes) lane.height = Math.floor(lane.height * Math.max(Math.min(growth, MOST_GROWTH[lane.kind]), 1));
  return { lanes, height: place(lanes) };
}

/** Put lanes below each other; returns where they end. */
function place(lanes) {
  let top = 5;
  let group = "";
  for (const lane of lanes) {
    const own = lane.kind === "trace" ? "trace" : (lane.track?.name ?? lane.kind);
    if (group && own !== group) top += GROUP_GAP - GAP;
    group = own;
    lane.top = top;
    top += lane.height + GAP;
  }
  return top;
}

function gatherLanes() {
  const lanes = [];
  const compared = comparedTracks();
  const names = compared.map((track) => state.tracks.indexOf(track));
  if (compared.length > 1) {
    const version = compared.map((track) => `${track.name}@${versionOf(track)}`).join("\n");
    const query = `disagreement:${names.join(",")}`;
    lanes.push({ id: "disagreement", kind: "disagreement", query, version, label: "disagreement", height: 12 });
  }
  const shown = state.tracks.filter((track) => !state.hidden.has(track.name));
  const overlapping = shown.some((track) => !track.exclusive); // then all get a row for each behavior, so that they compare
  const used = new Set(shown.flatMap((track) => track.used));
  const rows = overlapping ? state.behaviors.filter((b) => used.has(b.code) && !b.background).map((b) => b.code) : null;
  state.tracks.forEach((track, place) => {
    if (state.hidden.has(track.name)) return;
    lanes.push(...trackLanes(track, place, rows));
    if (track.name === state.active && state.observed) lanes.push(observedLane(track));
    if (track.probabilities) {
      const kind = track.overlapping ? "lines" : "stack";
      const id = `probability/${track.name}`;
      lanes.push({ id, kind, query: `probability:${place}`, version: 0, label: "probability", track, height: 38 });
    }
  });
  (state.signals?.lanes ?? []).forEach((signal, place) => {
    if (state.hidden.has(`signal ${place}`)) return;
    const id = `trace/${place}`;
    lanes.push({ id, kind: "trace", query: `trace:${place}`, version: 0, label: signal.label, signal, height: TRACE });
  });
  return lanes;
}

/** The tracks whose differences are shown: those in sight, corrections only where there are too few others. */
export function comparedTracks() {
  const shown = state.tracks.filter((track) => !state.hidden.has(track.name));
  const others = shown.filter((track) => track.kind !== "correction");
  return others.length > 1 ? others : shown;
}

/** What counts as observed in the correction; drawn from what the page knows, not from tiles. */
function observedLane(track) {
  const label = `observed ${percent(state.observed.share)}`;
  const hint = `Observed${state.subject ? ` of ${state.subject}` : ""}: played, stepped through, labelled or marked as watched`;
  return { id: `observed/${track.name}`, kind: "observed", query: null, label, hint, track, height: OBSERVED };
}

/** What changes whenever a track does. */
function versionOf({ revision, watches }) {
  return `${revision}.${watches}`;
}

function trackLanes(track, place, rows) {
  const subjects = state.recording.subjects;
  const split = track.subjects.map((name) => ({ name, query: `track:${place}:${subjects.indexOf(name)}` }));
  if (split.length && track.unnamed) split.push({ name: "", query: `track:${place}:-1` });
  const parts = split.length ? split : [{ name: null, query: `track:${place}` }];
  return parts.map((part) => ({
    id: `track/${track.name}/${part.name ?? ""}`,
    kind: rows ? "rows" : "ribbon",
    query: part.query,
    version: versionOf(track),
    label: track.name,
    sublabel: part.name === "" ? "nobody named" : part.name,
    subject: part.name,
    track,
    rows,
    height: rows ? Math.max(rows.length * ROW + 2, RIBBON) : RIBBON,
  }));
}
