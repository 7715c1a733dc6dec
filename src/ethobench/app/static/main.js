// The entry point of the page: loads the project and opens recordings.

import "./behaviors.js";
import "./panel.js";
import "./recordings.js";
import "./stage.js";
import "./teacher.js";
import "./timeline.js";
import "./transport.js";
import { openCorrectDialog, openExportDialog, openKeysDialog } from "./dialogs.js";
import { endRunning, retryNow } from "./corrections.js";
import { grouped, plural, showMessage } from "./dom.js";
import { listenToDrawers } from "./drawers.js";
import { openEthogramEditor } from "./ethogram.js";
import { icon } from "./icons.js";
import { listenToKeys } from "./keyboard.js";
import { player } from "./player.js";
import { fetchJson, isBlind } from "./server.js";
import { state, withColorsAndKeys } from "./state.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  if (state.recording) state.set({ behaviors: behaviorsOf(state.recording.index) });
  document.dispatchEvent(new Event("themechange"));
}

function behaviorsOf(index) {
  return withColorsAndKeys(state.project.ethograms[state.project.recordings[index].ethogram]);
}

async function open({ index, done, request = fetchJson(`recordings/${index}`) }) {
  try {
    player.pause();
    if (state.recording) endRunning();
    const recording = await request;
    const active = recording.tracks.find((track) => track.kind === "correction" && track.name === state.labeler);
    const nothing = { in: null, out: null };
    state.set({ behaviors: behaviorsOf(index), signals: null, frame: 0, mark: nothing, bout: null, running: [], loop: null, review: null, active: null });
    Object.assign(state, { from: 0, to: Math.max(recording.n_frames, 1) });
    state.set({ recording });
    state.activate(active ?? null);
    document.querySelector("main").classList.toggle("no-frames", !recording.n_frames);
    document.getElementById("correct").disabled = Boolean(recording.locked);
    document.getElementById("correct").textContent = recording.tracks.some((track) => track.kind !== "correction") ? "Correct…" : "Label…";
    if (recording.locked) showMessage(recording.locked, true);
    history.replaceState(null, "", `${location.pathname}${location.search}#${index}`);
    done?.();
    const signals = await fetchJson(`recordings/${index}/signals`);
    if (state.recording.index === index) state.set({ signals });
  } catch (error) {
    showMessage(error.message, true);
  }
}

/** Show the changed ethogram, and the recording with its new tracks. */
function useEthogram({ recording }) {
  const { active, subject, target } = state;
  state.set({ bout: null, running: [], pending: [], behaviors: behaviorsOf(recording.index) });
  state.set({ recording });
  state.set({ active: recording.tracks.some((track) => track.name === active) ? active : null, subject, target });
}

async function begin() {
  setTheme(localStorage.getItem("theme") ?? (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", () => localStorage.getItem("theme") ?? setTheme(dark.matches ? "dark" : "light"));
  document.addEventListener("open", (event) => open(event.detail));
  document.addEventListener("ethogram", (event) => useEthogram(event.detail));
  document.getElementById("behaviors").addEventListener("click", () => openEthogramEditor());
  document.getElementById("retry").addEventListener("click", retryNow);
  document.getElementById("correct").addEventListener("click", openCorrectDialog);
  document.getElementById("export").addEventListener("click", openExportDialog);
  document.getElementById("zones").addEventListener("click", () => document.querySelector("eb-stage").zones.toggle());
  document.getElementById("help").addEventListener("click", openKeysDialog);
  document.getElementById("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    localStorage.setItem("theme", theme);
    setTheme(theme);
  });
  document.getElementById("theme").append(icon("theme"));
  listenToKeys();
  listenToDrawers();
  try {
    const requestedIndex = Number(location.hash.slice(1)) || 0;
    const request = fetchJson(`recordings/${requestedIndex}`);
    request.catch(() => {}); // the number may be that of an older project
    const project = await fetchJson("project");
    state.set({ project, blind: project.blind || isBlind() });
    const { recordings, name, corrections } = project;
    document.title = `${name} – Ethobench`;
    document.getElementById("project").textContent = name;
    const frames = recordings.reduce((sum, r) => sum + r.n_frames, 0);
    const count = plural(recordings.length, "# recording", "# recordings");
    document.getElementById("where").textContent = `${count}, ${grouped(frames)} frames · corrections are saved in ${corrections}`;
    if (requestedIndex < recordings.length) await open({ index: requestedIndex, request });
    else if (recordings.length) await open({ index: 0 });
    else showMessage("The project has no recordings.", true);
    if (state.recording && !state.recording.locked && !state.behaviors.length) openEthogramEditor({ welcome: true, done: openCorrectDialog });
  } catch (error) {
    showMessage(error.message, true);
  }
}

begin();
