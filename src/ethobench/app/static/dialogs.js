// Dialogs: start a correction, export a track, and list the keys.

import { start } from "./corrections.js";
import { make, showMessage } from "./dom.js";
import { openEthogramEditor, reloadProject } from "./ethogram.js";
import { openClipsDialog } from "./exporting.js";
import { HELP } from "./keyboard.js";
import { annotatorName, download, identify, postJson } from "./server.js";
import { state } from "./state.js";

/** Ask for a name and a track to copy, then start a correction, or continue an existing one. */
export function openCorrectDialog() {
  if (state.recording.locked) return showMessage(state.recording.locked, true);
  if (!state.behaviors.some((behavior) => !behavior.hidden)) return openEthogramEditor({ welcome: true, done: openCorrectDialog });
  const corrections = state.tracks.filter((track) => track.kind === "correction");
  const isLabeled = state.tracks.length > 0;
  const name = make("input", { name: "annotator", required: true, maxLength: 60, placeholder: "e.g. your name", autocomplete: "off" });
  name.value = annotatorName();
  const copies = (state.blind ? [] : state.tracks).map((track) => make("option", { value: `copy ${track.name}` }, `a copy of ${track.name}`));
  const from = make("select", { name: "from" }, ...copies, make("option", { value: "" }, "nothing (label from scratch)"));
  const resume = corrections.map((track) => {
    const button = make("button", { type: "button" }, `Continue as ${track.name}`);
    button.addEventListener("click", () => {
      state.activate(track);
      dialog.close();
    });
    return button;
  });
  const animals = make("input", { name: "animals", placeholder: "e.g. mouse 1, mouse 2", autocomplete: "off", dir: "auto" });
  animals.value = state.recording.subjects.length ? "" : (localStorage.getItem("animals") ?? "");
  const naming = make("label", {}, "Animals, separated by commas (empty if there is only one)", animals);
  const updateNaming = () => (naming.hidden = state.recording.subjects.length > 0 || from.value !== ""); // a copy has the animals of its track
  from.addEventListener("change", updateNaming);
  updateNaming();
  const startFrom = make("label", {}, "Start from", from);
  startFrom.hidden = !copies.length;
  const dialog = openDialog(
    isLabeled ? "Correct this recording" : "Label this recording",
    make("p", {}, "Every edit is saved at once, under a new annotator. Existing annotations are never changed."),
    make("p", {}, "Frames that you play or step through while labeling count as observed. Frames that you skip do not."),
    resume.length ? make("p", { className: "resume" }, ...resume) : null,
    make("label", {}, "Save as annotator", name),
    startFrom,
    naming,
    buttons("Start"),
  );
  dialog.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const subjects = naming.hidden ? [] : animals.value.split(",").map((text) => text.trim()).filter(Boolean);
      await startOrContinue(name.value.trim(), from.value ? from.value.slice("copy ".length) : null, subjects);
      if (!naming.hidden) localStorage.setItem("animals", animals.value);
      dialog.close();
    } catch (error) {
      showError(dialog, error.message);
    }
  });
}

/** Start a correction. A blind page does not list corrections; whoever enters the name of one continues it. */
async function startOrContinue(name, copy, subjects) {
  const before = annotatorName();
  identify({ annotator: name });
  try {
    if (state.blind && name !== before) await reloadProject();
    const mine = state.tracks.find((track) => track.kind === "correction" && track.name === name);
    if (state.blind && mine) state.activate(mine);
    else await start(name, copy, subjects);
  } catch (error) {
    identify({ annotator: before });
    throw error;
  }
}

/** Ask for a track and a format, then download. */
export function openExportDialog() {
  const tracks = make("select", { name: "track" }, ...state.tracks.map((track) => make("option", { value: track.name }, track.name)));
  tracks.value = state.active ?? tracks.value;
  const writableFormats = state.project.formats;
  const formats = make("select", { name: "format" }, ...writableFormats.map((f) => make("option", { value: f.name }, `${f.title} (${f.suffix})`)));
  formats.value = "tidy";
  const all = make("input", { type: "checkbox" });
  const packing = make("span");
  const several = make("label", { className: "check", hidden: state.project.recordings.length < 2 }, all, " all recordings of this annotator", packing);
  const updateSeveral = () => {
    packing.textContent = writableFormats.find((f) => f.name === formats.value).several ? ", in one file" : ", one file each (ZIP)";
  };
  formats.addEventListener("change", updateSeveral);
  updateSeveral();
  const clips = make("button", { type: "button", name: "clips" }, "Clips, videos, timeline…");
  clips.addEventListener("click", () => openClipsDialog());
  const content = [make("label", {}, "Track", tracks), make("label", {}, "Format", formats), several, make("p", {}, clips)];
  const dialog = openDialog("Export", ...content, buttons("Download"));
  dialog.addEventListener("submit", async (event) => {
    event.preventDefault();
    const query = { track: tracks.value, format: formats.value, all: all.checked && !several.hidden ? 1 : 0 };
    try {
      const { name, notes } = await download(`recordings/${state.recording.index}/export`, query);
      dialog.close();
      showMessage([`${name} was downloaded.`, ...notes].join(" "), notes.length > 0);
    } catch (error) {
      showError(dialog, error.message);
    }
  });
}

/** Ask how many recordings or segments to draw for agreement between annotators. */
export function openDrawDialog(done) {
  const count = make("input", { type: "number", name: "count", min: 1, max: 1000, value: 10, required: true });
  const seconds = make("input", { type: "number", name: "seconds", min: 1, step: "any", value: 60 });
  const entire = make("input", { type: "checkbox" });
  const length = make("label", {}, "Length of a segment, in seconds", seconds);
  entire.addEventListener("change", () => (length.hidden = entire.checked));
  const seed = make("input", { type: "number", name: "seed", min: 0, step: 1, value: 0, required: true });
  const dialog = openDialog(
    "Random subset for agreement",
    make("p", {}, "Draws what all annotators should label independently. The list is saved with the corrections, so everyone gets the same."),
    make("label", {}, "How many", count),
    make("label", { className: "check" }, entire, " entire recordings"),
    length,
    make("label", {}, "Seed of the random draw", seed),
    buttons("Draw"),
  );
  dialog.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = { count: Number(count.value), seed: Number(seed.value), seconds: entire.checked ? null : Number(seconds.value) };
    try {
      const subset = await postJson("subset", body);
      dialog.close();
      done(subset);
    } catch (error) {
      showError(dialog, error.message);
    }
  });
}

/** List the keys. */
export function openKeysDialog() {
  const behaviorKeys = state.behaviors.filter((b) => b.key).map((b) => [[b.key], b.name]);
  const tables = [...HELP, ["Behaviors, while correcting", behaviorKeys]].map(([title, rows]) =>
    make(
      "section",
      {},
      make("h3", {}, title),
      make("dl", {}, ...rows.flatMap(([keys, text]) => [make("dt", {}, ...keys.map((k) => make("kbd", {}, k))), make("dd", {}, text)])),
    ),
  );
  const hint = make("p", {}, "While a correction is open, keys of behaviors take precedence; press Alt with a letter for its command.");
  const dialog = openDialog("Keys", make("div", { className: "keys" }, ...tables), hint, buttons(null));
  dialog.classList.add("wide");
  dialog.scrollTop = 0; // the button at the end has the focus
}

/** Open a modal dialog with a form. */
export function openDialog(title, ...content) {
  document.querySelector("dialog")?.remove();
  const form = make("form", { method: "dialog" }, make("h2", {}, title), ...content.filter(Boolean));
  const dialog = make("dialog", { ariaLabel: title }, form);
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.showModal();
  return dialog;
}

/** A button that submits the form, if any, and one that closes the dialog. */
export function buttons(submitLabel) {
  const cancel = make("button", { type: "button" }, submitLabel ? "Cancel" : "Close");
  cancel.addEventListener("click", () => cancel.closest("dialog").close());
  const errorText = make("span", { className: "dialog-error", role: "alert" });
  return make("p", { className: "buttons" }, errorText, cancel, submitLabel ? make("button", { className: "primary" }, submitLabel) : null);
}

/** Show an error in a dialog. */
export function showError(dialog, text) {
  dialog.querySelector(".dialog-error").textContent = text;
}
