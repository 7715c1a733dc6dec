// The lanes of the timeline: kind, height, and the query for their data.

import { percent } from "./dom.js";
import { state } from "./state.js";

const RIBBON = 24;
const ROW = 9;
const GAP = 5;
const GROUP_GAP = 9;
const TRACE = 44;
const OBSERVED = 12;
const MAX_GROWTH = { ribbon: 1.6, rows: 1.6, stack: 2, lines: 2, trace: 2.4, disagreement: 1, observed: 1 };

/** Lay out the lanes of the open recording from top to bottom; they grow to fill the available height. */
export function layOutLanes(available) {
  const lanes = listLanes();
  const minHeight = lanes.reduce((sum, lane) => sum + lane.height, 0);
  const fixed = stackLanes(lanes) - minHeight;
  const growth = (available - fixed) / minHeight;
  for (const lane of lanes) lane.height = Math.floor(lane.height * Math.max(Math.min(growth, MAX_GROWTH[lane.kind]), 1));
  return { lanes, height: stackLanes(lanes) };
}

/** Place lanes below each other; returns the total height. */
function stackLanes(lanes) {
  let top = 5;
  let group = "";
  for (const lane of lanes) {
    const laneGroup = lane.kind === "trace" ? "trace" : (lane.track?.name ?? lane.kind);
    if (group && laneGroup !== group) top += GROUP_GAP - GAP;
    group = laneGroup;
    lane.top = top;
    top += lane.height + GAP;
  }
  return top;
}

function listLanes() {
  const lanes = [];
  const compared = comparedTracks();
  const names = compared.map((track) => state.tracks.indexOf(track));
  if (compared.length > 1) {
    const version = compared.map((track) => `${track.name}@${versionOf(track)}`).join("\n");
    const query = `disagreement:${names.join(",")}`;
    lanes.push({ id: "disagreement", kind: "disagreement", query, version, label: "disagreement", height: 12 });
  }
  const shown = state.tracks.filter((track) => state.isShown(track));
  const overlapping = shown.some((track) => !track.exclusive); // then all tracks get one row per behavior, so that they can be compared
  const used = new Set(shown.flatMap((track) => track.used));
  const rows = overlapping ? state.behaviors.filter((b) => used.has(b.code) && !b.background).map((b) => b.code) : null;
  state.tracks.forEach((track, index) => {
    if (!state.isShown(track)) return;
    lanes.push(...trackLanes(track, index, rows));
    if (track.name === state.active && state.observed) lanes.push(observedLane(track));
    if (track.probabilities) {
      const kind = track.overlapping ? "lines" : "stack";
      const id = `probability/${track.name}`;
      lanes.push({ id, kind, query: `probability:${index}`, version: versionOf(track), label: "probability", track, height: 38 });
    }
  });
  (state.signals?.lanes ?? []).forEach((signal, index) => {
    if (state.hidden.has(`signal ${index}`)) return;
    const id = `trace/${index}`;
    lanes.push({ id, kind: "trace", query: `trace:${index}`, version: 0, label: signal.label, signal, height: TRACE });
  });
  if (state.signals?.motion && !state.hidden.has("motion")) {
    const signal = state.signals.motion;
    lanes.push({ id: "motion", kind: "trace", query: "motion", version: 0, label: signal.label, signal, height: TRACE });
  }
  return lanes;
}

/** The tracks that are compared: the visible ones, without corrections if at least two others are visible. */
export function comparedTracks() {
  const shown = state.tracks.filter((track) => state.isShown(track));
  const others = shown.filter((track) => track.kind !== "correction");
  return others.length > 1 ? others : shown;
}

/** The observed frames of the correction; drawn from the state of the page, not from tiles. */
function observedLane(track) {
  const label = `observed ${percent(state.observed.share)}`;
  const hint = `Observed${state.subject ? ` of ${state.subject}` : ""}: played, stepped through, labeled or marked as watched`;
  return { id: `observed/${track.name}`, kind: "observed", query: null, label, hint, track, height: OBSERVED };
}

/** A string that changes with every edit of a track. */
function versionOf({ revision, watches }) {
  return `${revision}.${watches}`;
}

function trackLanes(track, index, rows) {
  const subjects = state.recording.subjects;
  const isActive = track.name === state.active;
  const named = isActive ? track.named : track.subjects;
  const split = named.map((name) => ({ name, query: `track:${index}:${subjects.indexOf(name)}` }));
  const hasUnnamed = track.unnamed && (track.bouts || !isActive || state.subject === null);
  if (split.length && hasUnnamed) split.push({ name: "", query: `track:${index}:-1` });
  const subjectLanes = split.length ? split : [{ name: null, query: `track:${index}` }];
  return subjectLanes.map((subjectLane) => ({
    id: `track/${track.name}/${subjectLane.name ?? ""}`,
    kind: rows ? "rows" : "ribbon",
    query: subjectLane.query,
    version: versionOf(track),
    label: track.name,
    sublabel: subjectLane.name === "" ? "no subject" : subjectLane.name,
    subject: subjectLane.name,
    track,
    rows,
    height: rows ? Math.max(rows.length * ROW + 2, RIBBON) : RIBBON,
  }));
}
