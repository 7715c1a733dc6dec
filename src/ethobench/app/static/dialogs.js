// Questions: under which name to correct, what to export; and the list of keys.

import { start } from "./corrections.js";
import { make, say } from "./dom.js";
import { HELP } from "./keyboard.js";
import { download } from "./server.js";
import { state } from "./state.js";

/** Ask for a name and a beginning, then start to correct; a correction that is there is taken up again. */
export function askToCorrect() {
  if (state.recording.locked) return say(state.recording.locked, true);
  const there = state.tracks.filter((track) => track.kind === "correction");
  const name = make("input", { name: "annotator", required: true, maxLength: 60, placeholder: "e.g. your name", autocomplete: "off" });
  name.value = localStorage.getItem("annotator") ?? "";
  const beginnings = state.tracks.map((track) => make("option", { value: `copy ${track.name}` }, `a copy of ${track.name}`));
  const from = make("select", { name: "from" }, ...beginnings, make("option", { value: "" }, "nothing: label from scratch"));
  const resume = there.map((track) => {
    const button = make("button", { type: "button" }, `Go on as ${track.name}`);
    button.addEventListener("click", () => {
      state.activate(track);
      dialog.close();
    });
    return button;
  });
  const dialog = show(
    "Correct this recording",
    make("p", {}, "Corrections are saved as a new annotator with every change; what others annotated is never touched."),
    make("p", {}, "What you play or step through while you label counts as observed; what you jump over does not."),
    resume.length ? make("p", { className: "resume" }, ...resume) : null,
    make("label", {}, "Save as annotator", name),
    make("label", {}, "Begin with", from),
    buttons("Start"),
  );
  dialog.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await start(name.value, from.value ? from.value.slice("copy ".length) : null);
      localStorage.setItem("annotator", name.value);
      dialog.close();
    } catch (error) {
      tell(dialog, error.message);
    }
  });
}

/** Ask for a track and a format, then download. */
export function askToExport() {
  const tracks = make("select", { name: "track" }, ...state.tracks.map((track) => make("option", { value: track.name }, track.name)));
  tracks.value = state.active ?? tracks.value;
  const known = state.project.formats;
  const formats = make("select", { name: "format" }, ...known.map((f) => make("option", { value: f.name }, `${f.title} (${f.suffix})`)));
  formats.value = "tidy";
  const all = make("input", { type: "checkbox" });
  const several = make("label", { className: "check" }, all, " all recordings of this annotator in one file");
  const fit = () => {
    several.hidden = !known.find((f) => f.name === formats.value).several || state.project.recordings.length < 2;
  };
  formats.addEventListener("change", fit);
  fit();
  const dialog = show("Export", make("label", {}, "Track", tracks), make("label", {}, "Format", formats), several, buttons("Download"));
  dialog.addEventListener("submit", async (event) => {
    event.preventDefault();
    const query = { track: tracks.value, format: formats.value, all: all.checked && !several.hidden ? 1 : 0 };
    try {
      const { name, notes } = await download(`recordings/${state.recording.index}/export`, query);
      dialog.close();
      say([`${name} was downloaded.`, ...notes].join(" "), notes.length > 0);
    } catch (error) {
      tell(dialog, error.message);
    }
  });
}

/** Show all keys. */
export function showKeys() {
  const own = state.behaviors.filter((b) => b.key).map((b) => [[b.key], b.name]);
  const tables = [...HELP, ["Behaviors, while correcting", own]].map(([title, rows]) =>
    make(
      "section",
      {},
      make("h3", {}, title),
      make("dl", {}, ...rows.flatMap(([keys, text]) => [make("dt", {}, ...keys.map((k) => make("kbd", {}, k))), make("dd", {}, text)])),
    ),
  );
  const hint = make("p", {}, "While you correct, keys of behaviors come first; commands on letters then also work with Alt.");
  show("Keys", make("div", { className: "keys" }, ...tables), hint, buttons(null));
}

function show(title, ...content) {
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

function buttons(go) {
  const cancel = make("button", { type: "button" }, go ? "Cancel" : "Close");
  cancel.addEventListener("click", () => cancel.closest("dialog").close());
  const told = make("span", { className: "told", role: "alert" });
  return make("p", { className: "buttons" }, told, cancel, go ? make("button", { className: "primary" }, go) : null);
}

function tell(dialog, text) {
  dialog.querySelector(".told").textContent = text;
}
