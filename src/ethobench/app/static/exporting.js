// The dialog that exports clips of bouts, grids, overlay videos and timelines.

import { buttons, openDialog, showError } from "./dialogs.js";
import { make, showMessage } from "./dom.js";
import { ProgressBar } from "./jobs.js";
import { download, postJson } from "./server.js";
import { state } from "./state.js";

const CHOICES = [
  ["bout", "the selected bout (MP4)"],
  ["clips", "one clip for each bout (ZIP of MP4)"],
  ["grid", "a grid of clips for each behavior (MP4)"],
  ["overlay", "the complete recording with labels (MP4)"],
  ["svg", "timeline (SVG)"],
  ["pdf", "timeline (PDF)"],
];
const TIMELINES = ["svg", "pdf"];

/** Ask what to export, show the progress, and download. */
export function openClipsDialog() {
  const canShow = state.recording.cameras.length > 0 || Boolean(state.signals?.poses);
  const isPossible = ([value]) => (TIMELINES.includes(value) || canShow) && (value !== "bout" || state.bout);
  const what = choice("what", CHOICES.filter(isPossible));
  const shown = state.tracks.filter((track) => state.isShown(track));
  const track = choice("track", shown.map(({ name }) => [name, name]));
  track.value = state.bout?.track ?? state.active ?? track.value;
  const names = state.behaviors.filter((b) => !b.background && !b.hidden).map((b) => b.name);
  const behavior = choice("behavior", [["", "all behaviors"], ...names.map((name) => [name, name])]);
  const margin = make("input", { type: "number", name: "margin", min: 0, max: 60, step: 0.1, value: 1, required: true });
  const max = make("input", { type: "number", name: "max", min: 1, max: 500, value: 16, required: true });
  const [poses, labels, time, all] = ["poses", "labels", "time", "all"].map((name) => make("input", { type: "checkbox", name }));
  labels.checked = time.checked = true;
  poses.checked = Boolean(state.signals?.poses);
  const rows = {
    track: make("label", {}, "Track", track),
    behavior: make("label", {}, "Behavior", behavior),
    margin: make("label", {}, "Seconds before and after each bout", margin),
    max: make("label", {}, "At most this many bouts of each behavior, drawn at random", max),
    all: make("label", { className: "check" }, all, " bouts of all recordings"),
    drawn: make("div", { className: "checks" }, ...[[poses, "poses"], [labels, "labels"], [time, "time"]].map(([box, text]) => make("label", { className: "check" }, box, ` ${text}`))),
  };
  const update = () => {
    const isTimeline = TIMELINES.includes(what.value);
    const several = ["clips", "grid"].includes(what.value);
    rows.track.hidden = isTimeline || what.value === "overlay" || what.value === "bout";
    rows.behavior.hidden = rows.max.hidden = !several;
    rows.all.hidden = !several || state.project.recordings.length < 2;
    rows.margin.hidden = isTimeline || what.value === "overlay";
    rows.drawn.hidden = isTimeline;
  };
  what.addEventListener("change", update);
  update();
  const progress = new ProgressBar();
  progress.element.hidden = true;
  const dialog = openDialog("Export clips and timelines", make("label", {}, "Export", what), ...Object.values(rows), progress.element, buttons("Export"));
  dialog.addEventListener("close", () => progress.stop());
  dialog.addEventListener("submit", async (event) => {
    event.preventDefault();
    const submit = dialog.querySelector(".primary");
    submit.disabled = true;
    showError(dialog, "");
    const { index } = state.recording;
    const tracks = shown.map(({ name }) => name);
    try {
      if (TIMELINES.includes(what.value)) await save(dialog, `recordings/${index}/timeline`, { format: what.value, track: tracks });
      else {
        const style = { poses: poses.checked, labels: labels.checked, time: time.checked };
        const chosen = what.value === "overlay" ? { tracks } : { track: track.value, behavior: behavior.value || null, all: all.checked && !rows.all.hidden };
        const body = { what: what.value, margin: Number(margin.value), max: Number(max.value), ...style, ...chosen, bout: namedBout() };
        progress.element.hidden = false;
        const job = await progress.follow(await postJson(`recordings/${index}/clips`, body));
        if (job.state === "cancelled") showError(dialog, "Cancelled.");
        else await save(dialog, `jobs/${job.job}/file`, {});
      }
    } catch (error) {
      showError(dialog, error.message);
    }
    progress.element.hidden = true;
    submit.disabled = false;
  });
}

/** Download the timeline of the shown tracks; `seconds` are the first and the last to draw. Errors become a message. */
export async function downloadTimeline(format, seconds) {
  const track = state.tracks.filter((t) => state.isShown(t)).map(({ name }) => name);
  if (!track.length) return showMessage("There are no labels to draw.");
  try {
    await save(null, `recordings/${state.recording.index}/timeline`, { format, track, start: seconds[0], stop: seconds[1] });
  } catch (error) {
    showMessage(error.message, true);
  }
}

async function save(dialog, path, query) {
  const { name, notes } = await download(path, query);
  dialog?.close();
  showMessage([`${name} was downloaded.`, ...notes].join(" "), notes.length > 0);
}

function namedBout() {
  const { bout } = state;
  return bout && { start: bout.start, stop: bout.stop, behavior: state.behaviors[bout.behavior].name, subject: bout.subject ?? null };
}

function choice(name, options) {
  return make("select", { name }, ...options.map(([value, text]) => make("option", { value }, text)));
}
