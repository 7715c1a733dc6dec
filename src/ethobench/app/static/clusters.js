// The gallery of clusters: segments that resemble each other, with short examples, to name, merge or drop.

import { buttons, openDialog, showError } from "./dialogs.js";
import { clockTime, duration, make, plural, showMessage } from "./dom.js";
import { reloadProject } from "./ethogram.js";
import { select } from "./jumps.js";
import { player } from "./player.js";
import { address, fetchJson, postJson } from "./server.js";
import { state } from "./state.js";

const EXAMPLES = 6; // of each cluster
const MAX_LOADING = 3; // filmstrips that are requested at once, so that other requests do not wait for them
const settings = { n: 12, by: "" };
const drafts = new Map(); // names that are not saved yet, and dropped clusters, by setting and number

/** Open the gallery; `done` is called after segments became suggestions. */
export async function openClusters(annotator, done) {
  try {
    showMessage("Clustering…");
    const clusters = await fetchJson("teacher/clusters", settings);
    showMessage("");
    new Gallery(clusters, annotator, done);
  } catch (error) {
    showMessage(error.message, true);
  }
}

class Gallery {
  constructor(clusters, annotator, done) {
    this.annotator = annotator;
    this.done = done;
    this.clusters = clusters;
    this.loading = new LoadingQueue();
    this.cards = make("div", { className: "clusters" });
    const names = make("datalist", { id: "behavior-names" }, ...state.behaviors.map((b) => make("option", { value: b.name })));
    this.kind = make("select", { name: "as" }, make("option", { value: "suggestions" }, "suggestions to review"), make("option", { value: "labels" }, "labels"));
    this.restore = make("button", { type: "button", className: "quiet" });
    this.restore.addEventListener("click", () => this.#restore());
    this.dialog = openDialog(
      "Clusters",
      make("p", {}, "Segments that resemble each other. Name those that show a behavior; clusters with the same name are merged. Click an example to go there."),
      make("div", { className: "clusters-tools" }, ...this.#settings(), this.restore),
      this.cards,
      names,
      make("label", {}, "Segments of named clusters become", this.kind),
      buttons("Save names"),
    );
    this.dialog.classList.add("wide");
    this.dialog.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    this.dialog.addEventListener("close", () => this.loading.stop());
    this.#fill();
  }

  #settings() {
    const count = make("input", { type: "number", min: 2, max: 60, value: settings.n, ariaLabel: "Number of clusters" });
    const again = () => {
      if (!count.checkValidity()) return count.reportValidity();
      Object.assign(settings, { n: Number(count.value), by: single.checked ? "subject" : "" });
      this.dialog.close();
      openClusters(this.annotator, this.done);
    };
    count.addEventListener("change", again);
    const single = make("input", { type: "checkbox", checked: settings.by === "subject" });
    single.addEventListener("change", again);
    const bySubject = make("label", { className: "check" }, single, " of single animals");
    bySubject.hidden = !(state.signals?.poses?.individuals.length > 1);
    return [make("label", {}, "Clusters ", count), bySubject];
  }

  #fill() {
    const shown = this.clusters.filter((cluster) => !draftOf(cluster).dropped);
    this.cards.replaceChildren(...shown.map((cluster) => this.#card(cluster)));
    const dropped = this.clusters.length - shown.length;
    this.restore.hidden = !dropped;
    this.restore.textContent = `show ${dropped} dropped`;
  }

  #card(cluster) {
    const { number, share, segments, recordings, examples, labeled } = cluster;
    const draft = draftOf(cluster);
    const mix = Object.entries(labeled ?? {}).slice(0, 2).map(([name, part]) => `${Math.round(part * 100)} % ${name}`);
    const counts = [plural(segments, "# segment", "# segments"), plural(recordings, "# recording", "# recordings")];
    const facts = [`${Math.round(share * 100)} % of the time`, ...counts, ...mix].join(" · ");
    const name = make("input", { className: "name", value: draft.name, maxLength: 100, placeholder: "name, e.g. rearing", ariaLabel: `Name of cluster ${number + 1}`, autocomplete: "off", dir: "auto" });
    name.setAttribute("list", "behavior-names");
    const drop = make("button", { type: "button", className: "quiet", title: "Do not show this cluster again", ariaLabel: `Drop cluster ${number + 1}` }, "Drop");
    const card = make(
      "fieldset",
      { className: draft.name ? "named" : "" },
      make("div", { className: "facts-row" }, make("span", { className: "hint" }, facts), drop),
      make("div", { className: "examples" }, ...examples.slice(0, EXAMPLES).map((example) => this.#example(example))),
      name,
    );
    name.addEventListener("input", () => {
      draft.name = name.value;
      card.classList.toggle("named", Boolean(name.value.trim()));
    });
    drop.addEventListener("click", () => {
      Object.assign(draft, { dropped: true, name: "" });
      card.remove();
      this.#fill();
    });
    return card;
  }

  #example({ recording, start, stop, subject }) {
    const { id, rate } = state.project.recordings[recording];
    const text = `${clockTime(start, rate, 0)} · ${duration(stop - start, rate)}`;
    const picture = make("img", { alt: "" });
    const button = make("button", { type: "button", className: "example", title: `${id} ${text}${subject ? `, ${subject}` : ""}`, ariaLabel: `Show ${id} at ${text}` }, picture, make("span", { className: "when" }, text));
    const query = new URLSearchParams({ start, stop, subject: subject ?? "" });
    this.loading.add(picture, address(`recordings/${recording}/strip?${query}`));
    button.addEventListener("click", async () => {
      this.dialog.close();
      if (state.recording.index !== recording) {
        await new Promise((done) => document.dispatchEvent(new CustomEvent("open", { detail: { index: recording, done } })));
      }
      select(start, stop);
      state.set({ loop: [start, stop] });
      player.play();
      showMessage("An example of a cluster is looped; Esc ends it. Names that you typed are kept.");
    });
    return button;
  }

  #restore() {
    for (const cluster of this.clusters) draftOf(cluster).dropped = false;
    this.#fill();
  }

  async #save() {
    const numbers = new Map();
    for (const cluster of this.clusters) {
      const name = draftOf(cluster).name.trim().replace(/\s+/g, " ");
      if (name) numbers.set(name, [...(numbers.get(name) ?? []), cluster.number]);
    }
    if (!numbers.size) return showError(this.dialog, "Name at least one cluster.");
    const totals = { suggested: 0, labeled: 0 };
    try {
      await addBehaviors([...numbers.keys()]);
      for (const [behavior, clusters] of numbers) {
        const answer = await postJson("teacher/clusters", { ...settings, clusters, behavior, annotator: this.annotator, as: this.kind.value });
        for (const name of Object.keys(totals)) totals[name] += answer[name] ?? 0;
        for (const cluster of this.clusters) if (clusters.includes(cluster.number)) draftOf(cluster).name = "";
      }
      const isLabeled = this.kind.value === "labels";
      this.dialog.close();
      await reloadProject();
      if (isLabeled && !state.active) state.activate(state.tracks.find((track) => track.name === this.annotator) ?? null);
      if (!isLabeled) this.done();
      showMessage(isLabeled ? `${totals.labeled} segments were labeled.` : `${totals.suggested} suggestions; press Q to review them.`);
    } catch (error) {
      showError(this.dialog, error.message);
    }
  }
}

function draftOf({ number, segments, share }) {
  const key = [settings.n, settings.by, number, segments, share].join("/"); // of another clustering they differ
  if (!drafts.has(key)) drafts.set(key, { name: "", dropped: false });
  return drafts.get(key);
}

/** Loads pictures, a few at a time. */
class LoadingQueue {
  #waiting = [];
  #active = 0;

  add(picture, source) {
    this.#waiting.push([picture, source]);
    this.#next();
  }

  stop() {
    this.#waiting = [];
  }

  #next() {
    while (this.#active < MAX_LOADING && this.#waiting.length) {
      const [picture, source] = this.#waiting.shift();
      this.#active++;
      const end = () => {
        this.#active--;
        this.#next();
      };
      picture.addEventListener("load", () => {
        picture.classList.toggle("strip", picture.naturalWidth > 3 * picture.naturalHeight);
        picture.classList.add("loaded");
        end();
      });
      picture.addEventListener("error", end);
      picture.src = source;
    }
  }
}

/** Add behaviors to the ethogram that are new. */
async function addBehaviors(names) {
  const { revision, behaviors } = await fetchJson("ethogram");
  const added = names.filter((name) => !behaviors.some((b) => b.name === name));
  if (!added.length) return;
  await postJson("ethogram", { revision, behaviors: [...behaviors.map((b) => ({ ...b, from: [b.name] })), ...added.map((name) => ({ name }))] });
}
