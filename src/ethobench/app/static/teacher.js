// The teacher: train on what is labeled, see the quality, review suggested bouts, find similar ones, and name clusters.

import { openClusters } from "./clusters.js";
import { refresh } from "./corrections.js";
import { buttons, openCorrectDialog, openDialog, showError } from "./dialogs.js";
import { clockTime, duration, make, plural, showMessage } from "./dom.js";
import { select } from "./jumps.js";
import { annotatorName, fetchJson, postJson, saveBlob } from "./server.js";
import { state } from "./state.js";

const POLL_INTERVAL = 1000; // milliseconds while something is running
const QUEUE_LENGTH = 20;
const BUSY = { preparing: "computing features", training: "training", evaluating: "measuring quality" };

class Teacher extends HTMLElement {
  #status = null;
  #queue = [];
  #timer = null;

  connectedCallback() {
    this.train = button("Train", "Train on what is labeled so far (T)", () => this.toggleTraining());
    this.bar = make("progress", { max: 1, hidden: true, ariaLabel: "Progress of the teacher" });
    this.stage = make("p", { className: "hint", role: "status" });
    this.quality = make("div", { className: "quality" });
    this.item = make("div", { className: "review", hidden: true });
    this.reviewButton = button("Review (Q)", "Go to the suggestion with the largest expected gain (Q)", () => this.next());
    this.clusterButton = button("Clusters…", "Candidate behaviors: groups of similar segments", () => this.#openClusters());
    this.saveButton = button("Save model…", "Save the trained model as a folder, for ethobench predict", () => this.#saveModel());
    this.videos = button("", "Without poses, the teacher learns from the motion in the videos (T)", () => this.#useVideos());
    this.stop = button("Cancel", "Cancel", () => this.#useVideos("cancel"));
    this.tools = make("p", { className: "tools" }, this.reviewButton, this.clusterButton, this.saveButton);
    this.source = make("p", { className: "tools" }, this.videos, this.stop);
    this.append(make("h2", {}, "Teacher", this.train), this.bar, this.stage, this.source, this.quality, this.tools, this.item);
    state.watch(["blind", "project"], () => this.#follow());
    state.addEventListener("review", () => this.#showItem());
    for (const name of ["mark", "recording", "behaviors"]) state.addEventListener(name, () => state.review && this.#showItem());
  }

  /** Start a training, or cancel the one that runs. */
  async toggleTraining() {
    if (state.blind) return showMessage("Models are hidden in blind mode.");
    if (this.#status?.state === "unavailable" && this.#status.videos) return this.#useVideos();
    try {
      const isTraining = ["training", "evaluating"].includes(this.#status?.state);
      const body = isTraining ? {} : { annotators: state.active ? [state.active] : [] };
      this.#show(await postJson(`teacher/${isTraining ? "cancel" : "train"}`, body));
      this.#poll();
    } catch (error) {
      showMessage(error.message, true);
    }
  }

  /** Compute features of the videos, or cancel that. */
  async #useVideos(path = "videos") {
    try {
      this.#show(await postJson(`teacher/${path}`, {}));
      this.#poll();
    } catch (error) {
      showMessage(error.message, true);
    }
  }

  /** Go to the next suggestion; one that was not decided is skipped. */
  async next() {
    if (state.blind) return showMessage("Suggestions are hidden in blind mode.");
    try {
      if (state.review) await this.#decide("skipped");
      if (!this.#queue.length) {
        const query = { n: QUEUE_LENGTH, ...(annotator() ? { annotator: annotator() } : {}) };
        this.#queue = (await fetchJson("teacher/review", query)).map((item) => ({ ...item, origin: item.kind === "cluster" ? "cluster" : "teacher" }));
      }
      await this.#goToFirst("Nothing to review. Label a few bouts, then train (T).");
    } catch (error) {
      showMessage(error.message, true);
    }
  }

  /** Accept the suggestion; if its frames or its behavior were changed, they are saved as changed. */
  async accept(behavior = null) {
    const { item } = state.review;
    const [start, stop] = state.selection ?? [item.start, item.stop];
    const isAdjusted = behavior !== null || start !== item.start || stop !== item.stop;
    await this.#decideAndGoOn(isAdjusted ? "adjusted" : "accepted", { ...item, start, stop, behavior: behavior ?? item.behavior });
  }

  /** Reject the suggestion: the behavior does not occur in these frames. */
  async reject() {
    await this.#decideAndGoOn("rejected");
  }

  /** Review the segments that resemble the selected frames or bout most. */
  async findSimilar() {
    const bout = state.bout ?? (state.selection && { start: state.selection[0], stop: state.selection[1], behavior: null, subject: state.subject });
    if (!bout) return showMessage("Select a bout, or frames (I and O), to find similar ones.");
    const behavior = state.behaviors[bout.behavior ?? 0].name;
    try {
      const body = { recording: state.recording.index, start: bout.start, stop: bout.stop, n: QUEUE_LENGTH, subject: bout.subject || null };
      const segments = await postJson("teacher/similar", body);
      this.#queue = segments.map((s) => ({ ...s, behavior, target: null, probability: probabilityOf(s), kind: "predicted", origin: "similar", reason: "similar" }));
      await this.#goToFirst("No similar segments.");
    } catch (error) {
      showMessage(error.message, true);
    }
  }

  async #decideAndGoOn(decision, adjusted = null) {
    if (!annotator()) return openCorrectDialog();
    try {
      if (await this.#decide(decision, adjusted)) await this.#goToFirst("All suggestions are reviewed. Train again (T) for new ones.");
    } catch (error) {
      showMessage(error.message, true);
    }
  }

  async #decide(decision, adjusted = null) {
    const { item } = state.review;
    const { recording, start, stop, behavior, subject, target, probability, kind, origin } = item;
    const body = { recording, annotator: annotator(), decision, origin, bout: { start, stop, behavior, subject, target, probability, kind } };
    if (decision === "adjusted") body.adjusted = { start: adjusted.start, stop: adjusted.stop, behavior: adjusted.behavior, subject, target };
    if (decision !== "skipped" || annotator()) {
      await postJson("teacher/review", { ...body, annotator: annotator() ?? "reviewer", exclusive: state.exclusive });
    }
    this.#queue = this.#queue.filter((other) => other !== item);
    state.set({ review: null, mark: { in: null, out: null }, bout: null });
    if (decision !== "skipped" && recording === state.recording.index) {
      await refresh(recording, annotator());
      if (!state.active) state.activate(state.tracks.find((track) => track.name === annotator()) ?? null);
    }
    return true;
  }

  async #goToFirst(none) {
    const [item] = this.#queue;
    if (!item) return showMessage(none);
    if (state.recording.index !== item.recording) {
      await new Promise((done) => document.dispatchEvent(new CustomEvent("open", { detail: { index: item.recording, done } })));
    }
    select(item.start, item.stop);
    state.set({ review: { item } });
  }

  /** Follow the teacher; not on a blind page, from which the server hides it. */
  #follow() {
    this.hidden = state.blind;
    if (!state.project) return;
    if (state.blind) [this.#status, this.#queue] = [null, []];
    else if (!this.#status) this.#poll();
  }

  async #poll() {
    clearTimeout(this.#timer);
    if (state.blind) return;
    try {
      const before = this.#status?.trainings;
      this.#show(await fetchJson("teacher"));
      if (this.#status.trainings > before) await this.#useTraining(); // not of a page that was opened after the training
    } catch {
      return; // the page says elsewhere that the server does not respond
    }
    if (this.#status.state in BUSY) this.#timer = setTimeout(() => this.#poll(), POLL_INTERVAL);
  }

  /** Show the new predictions. */
  async #useTraining() {
    this.#queue = [];
    const { index } = state.recording;
    const recording = await fetchJson(`recordings/${index}`);
    if (state.recording.index === index) state.set({ recording });
    document.querySelector("eb-panel").suggest();
    showMessage(`Trained in ${this.#status.seconds?.toFixed(1)} s. Press Q to review what would help most.`);
  }

  #show(status) {
    this.#status = status;
    const isBusy = status.state in BUSY;
    const isEmbedding = status.state === "preparing" && status.videos > 0;
    const isPossible = status.state !== "unavailable" && !isEmbedding; // otherwise the recordings have nothing to learn from
    this.train.hidden = this.tools.hidden = this.quality.hidden = !isPossible;
    this.videos.hidden = isBusy || !status.videos;
    this.videos.textContent = plural(status.videos, "Compute features of the video", "Compute features of # videos");
    this.stop.hidden = !isEmbedding;
    this.source.hidden = this.videos.hidden && this.stop.hidden;
    this.bar.hidden = !isBusy;
    this.bar.value = status.progress;
    this.stage.textContent = isBusy ? `${BUSY[status.state]}${status.stage ? `: ${status.stage}` : ""}` : status.message ? `${sentence(status.message)}.` : "";
    this.stage.hidden = !this.stage.textContent;
    const isTraining = ["training", "evaluating"].includes(status.state);
    this.train.textContent = isTraining ? "Cancel" : status.trainings ? "Train again" : "Train";
    this.train.title = isTraining ? "Cancel the training (T)" : "Train on what is labeled so far (T)";
    this.#showQuality(status);
    this.saveButton.hidden = !status.trainings;
    this.reviewButton.disabled = !status.trainings && !status.queued && !this.#queue.length;
  }

  #showQuality({ quality, history, trainings }) {
    if (!quality) {
      const text = trainings ? "" : "Label a few bouts, then train. The predictions become a track; the quality is measured on held-out recordings.";
      return this.quality.replaceChildren(...(text ? [make("p", { className: "hint" }, text)] : []));
    }
    const { f1, bout_f1: boutF1, withheld, split, labeled_bouts: bouts, advice, behaviors } = quality;
    const number = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));
    const facts = withheld
      ? make("p", { className: "hint" }, `${sentence(withheld)}.`)
      : make("p", {}, make("strong", {}, `F1 ${number(f1)}`), ` frames · ${number(boutF1)} bouts`);
    const note = make("p", { className: "hint" }, `${bouts} labeled bouts${withheld ? "" : `, held out by ${split}`}. ${advice ? `${sentence(advice)}.` : ""}`);
    const rows = (behaviors ?? []).map((b) => make("tr", {}, make("td", { dir: "auto" }, b.name ?? b.behavior), make("td", {}, number(b.f1)), make("td", {}, number(b.bout_f1))));
    const head = make("tr", {}, ...["F1", "frames", "bouts"].map((text) => make("th", { scope: "col" }, text)));
    const table = rows.length && !withheld ? make("table", { className: "kappa" }, make("thead", {}, head), make("tbody", {}, ...rows)) : null;
    this.quality.replaceChildren(...[facts, sparkline(history ?? []), note, table].filter(Boolean));
  }

  #showItem() {
    const { review } = state;
    this.item.hidden = !review;
    if (!review) return this.item.replaceChildren();
    const { item } = review;
    const behavior = state.behaviors.find((b) => b.name === item.behavior);
    const dot = make("span", { className: "dot" });
    dot.style.background = behavior?.color ?? "";
    const { rate } = state.project.recordings[item.recording];
    const facts = `${clockTime(item.start, rate)} · ${duration(item.stop - item.start, rate)} · ${Math.round((item.probability ?? 0) * 100)} %`;
    const [start, stop] = state.selection ?? [item.start, item.stop];
    const isAdjusted = start !== item.start || stop !== item.stop;
    const name = `${item.subject ? `${item.subject}: ` : ""}${item.behavior}`;
    const heading = make("p", { className: "bout" }, dot, make("strong", { dir: "auto" }, name), make("small", {}, facts));
    const accept = button(isAdjusted ? "Accept adjusted" : "Accept", "Accept (Enter); set other frames with I and O, or press the key of another behavior", () => this.accept());
    accept.append(make("kbd", {}, "⏎"));
    const reject = button("Reject", "Reject (Delete)", () => this.reject());
    reject.append(make("kbd", {}, "Del"));
    const skip = button("Skip", "Skip (Q)", () => this.next());
    skip.append(make("kbd", {}, "Q"));
    const rest = make("p", { className: "hint" }, [item.reason, `${this.#queue.length} to review`].filter(Boolean).join(" · "));
    if (!this.item.childElementCount) requestAnimationFrame(() => this.item.scrollIntoView({ block: "nearest" }));
    this.item.replaceChildren(heading, make("p", { className: "tools" }, accept, reject, skip), rest);
  }

  /** Ask for a name, then save the model of the last training. */
  #saveModel() {
    const name = make("input", { name: "model", required: true, maxLength: 60, value: `${state.project.name} ${this.#status.trainings}`, autocomplete: "off", dir: "auto" });
    const dialog = openDialog(
      "Save the model",
      make("p", {}, "The folder is a normal model: ethobench predict annotates other recordings with it, and CARD.md describes it."),
      make("label", {}, "Name of the folder", name),
      buttons("Save"),
    );
    name.select();
    dialog.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const { folder } = await postJson("teacher/save", { name: name.value });
        dialog.close();
        showMessage(`Saved in ${folder}`);
      } catch (error) {
        showError(dialog, error.message);
      }
    });
  }

  #openClusters() {
    if (!annotator()) return openCorrectDialog();
    openClusters(annotator(), () => (this.reviewButton.disabled = false));
  }
}

customElements.define("eb-teacher", Teacher);

/** The name under which decisions are saved. */
function annotator() {
  return state.active ?? (annotatorName() || null);
}

/** A text of the server with a capital letter, as the beginning of a sentence. */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1).replace(/\.$/, "");
}

function probabilityOf({ similarity }) {
  return Math.min(Math.max(similarity ?? 0.5, 0), 1);
}

/** A small curve of the F1 of frames over trainings, with a button to download it. */
function sparkline(history) {
  const values = history.map((row) => row.f1).filter((value) => typeof value === "number");
  if (values.length < 2) return null;
  const [width, height] = [100, 32];
  const points = values.map((value, i) => `${(i / (values.length - 1)) * width},${30 - value * 28}`).join(" ");
  const label = `F1 of frames over ${values.length} trainings, last ${values.at(-1).toFixed(2)}`;
  const picture = drawn("svg", { viewBox: `0 0 ${width} ${height}`, class: "sparkline", role: "img", preserveAspectRatio: "none", "aria-label": label });
  picture.append(drawn("polyline", { points }));
  const save = button("Download SVG", "Download this curve as SVG", () => downloadCurve(values));
  save.className = "quiet";
  return make("div", { className: "curve" }, picture, save);
}

/** Download the F1 of frames over trainings as a chart with axes. */
function downloadCurve(values) {
  const [x, y] = [(i) => 40 + (i / (values.length - 1)) * 260, (value) => 140 - value * 120];
  const chart = drawn("svg", { viewBox: "0 0 320 180", width: 320, height: 180, "font-family": "sans-serif", "font-size": 11 });
  const text = (content, attributes) => Object.assign(drawn("text", { fill: "#333", ...attributes }), { textContent: content });
  for (const value of [0, 0.5, 1]) {
    chart.append(drawn("line", { x1: 40, x2: 300, y1: y(value), y2: y(value), stroke: "#ddd" }), text(String(value), { x: 34, y: y(value) + 4, "text-anchor": "end" }));
  }
  chart.append(
    drawn("polyline", { points: values.map((value, i) => `${x(i)},${y(value)}`).join(" "), fill: "none", stroke: "#244bbf", "stroke-width": 2 }),
    ...values.map((value, i) => drawn("circle", { cx: x(i), cy: y(value), r: 3, fill: "#244bbf" })),
    text("1", { x: x(0), y: 156, "text-anchor": "middle" }),
    text(String(values.length), { x: 300, y: 156, "text-anchor": "middle" }),
    text("training", { x: 170, y: 172, "text-anchor": "middle" }),
    text("held-out F1 of frames", { x: 6, y: 12 }),
  );
  saveBlob(new Blob([new XMLSerializer().serializeToString(chart)], { type: "image/svg+xml" }), "teacher.svg");
}

function drawn(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function button(text, title, run) {
  const element = make("button", { type: "button", title }, text);
  element.addEventListener("click", () => {
    run();
    element.blur(); // so that the space bar still starts and stops playback
  });
  return element;
}
