// The panel: labels of every track at the playhead, suggestions of what to label next, and notes of the readers.

import { clockTime, duration, make, showMessage } from "./dom.js";
import { select } from "./jumps.js";
import { fetchJson } from "./server.js";
import { state } from "./state.js";
import { watching } from "./watching.js";

const SUGGESTION_DELAY = 400; // milliseconds; the tracks are drawn first
const UPDATE_INTERVAL = 80; // milliseconds between requests while the playhead moves

class Panel extends HTMLElement {
  #waiting = false;
  #suggested = [];
  #viewed = new Set();

  connectedCallback() {
    this.now = make("ul", { className: "now" });
    this.next = make("ol", { className: "next" });
    this.notes = make("ul", { className: "notes" });
    const refresh = make("button", { type: "button", className: "quiet" }, "Refresh");
    refresh.addEventListener("click", () => this.suggest());
    this.noteSection = make("section", {}, make("h2", {}, "Notes"), this.notes);
    this.append(
      make("section", {}, make("h2", {}, "At the playhead"), this.now),
      make("section", {}, make("h2", {}, "Label next", refresh), this.next),
      this.noteSection,
    );
    state.watch(["frame", "recording", "hidden", "active", "observed"], () => this.#scheduleUpdate());
    state.addEventListener("recording", () => this.#showNotes());
    state.addEventListener("project", () => setTimeout(() => this.suggest(), SUGGESTION_DELAY));
  }

  /** Request suggestions of what to label next. */
  async suggest() {
    try {
      this.#suggested = await fetchJson("suggestions");
    } catch (error) {
      return showMessage(error.message, true);
    }
    this.#fillNext();
  }

  /** Go to the first suggestion that was not viewed yet. */
  async step() {
    const index = this.#suggested.findIndex((_, i) => !this.#viewed.has(key(this.#suggested[i])));
    const none = this.#suggested.length ? "All suggestions were viewed; refresh for more." : "No suggestions.";
    if (index < 0) return showMessage(none);
    await this.#go(this.#suggested[index]);
  }

  async #go(suggestion) {
    this.#viewed.add(key(suggestion));
    this.#fillNext();
    if (state.recording?.index !== suggestion.recording) {
      await new Promise((done) => document.dispatchEvent(new CustomEvent("open", { detail: { index: suggestion.recording, done } })));
    }
    select(suggestion.start, suggestion.stop);
  }

  #fillNext() {
    const rows = this.#suggested.map((suggestion) => {
      const { id, rate } = state.project.recordings[suggestion.recording];
      const { start, stop, uncertainty } = suggestion;
      const title = "uncertainty of the models and disagreement of the annotators";
      const button = make(
        "button",
        { type: "button", className: this.#viewed.has(key(suggestion)) ? "viewed" : "" },
        make("span", { className: "id" }, id),
        make("span", { className: "facts" }, `${clockTime(start, rate, 0)} · ${duration(stop - start, rate)}`),
        make("span", { className: "share", title }, `${Math.round(uncertainty * 100)} %`),
      );
      button.addEventListener("click", () => this.#go(suggestion));
      return make("li", {}, button);
    });
    const nothing = make("p", { className: "empty" }, "Suggestions need probabilities of a model, or two tracks that differ.");
    this.next.replaceChildren(...(rows.length ? rows : [nothing]));
  }

  #scheduleUpdate() {
    if (this.#waiting || !state.recording) return;
    this.#waiting = true;
    setTimeout(() => this.#fillNow(), UPDATE_INTERVAL);
  }

  async #fillNow() {
    const { index } = state.recording;
    const requestedFrame = state.frame;
    try {
      const boutsByTrack = await fetchJson(`recordings/${index}/at`, { frame: requestedFrame });
      if (state.recording.index === index) this.now.replaceChildren(...state.tracks.map((track) => row(track, boutsByTrack[track.name])));
    } catch (error) {
      showMessage(error.message, true);
    }
    this.#waiting = false;
    if (state.frame !== requestedFrame || state.recording.index !== index) this.#scheduleUpdate();
  }

  #showNotes() {
    const notes = [...(state.recording?.notes ?? []), ...(state.project?.notes ?? [])];
    this.noteSection.hidden = !notes.length;
    this.notes.replaceChildren(...notes.map((note) => make("li", {}, note)));
  }
}

customElements.define("eb-panel", Panel);

const key = ({ recording, start }) => `${recording} ${start}`;

function row(track, bouts) {
  const name = make("span", { className: "track", title: `${track.name}: ${track.bouts} bouts` }, track.name);
  const labels = make("span", { className: "track-labels" });
  const watched = track.name === state.active && watching.pending.some(([start, stop]) => start <= state.frame && state.frame < stop);
  if (!bouts && !watched) labels.append(make("em", {}, "not observed"));
  else if (!bouts?.length) labels.append(make("em", {}, state.behaviors.find((b) => b.background)?.name ?? "nothing"));
  for (const { behavior, subject, start, stop } of bouts ?? []) {
    const dot = make("span", { className: "dot" });
    dot.style.background = state.behaviors[behavior].color;
    const text = `${subject ? `${subject}: ` : ""}${state.behaviors[behavior].name}`;
    labels.append(make("span", { className: "bout" }, dot, text, make("small", {}, duration(stop - start, state.rate))));
  }
  return make("li", {}, make("div", { className: "head" }, shownBox(track), name, editButton(track)), labels);
}

function shownBox(track) {
  const box = make("input", { type: "checkbox", checked: !state.hidden.has(track.name), ariaLabel: `Show and compare ${track.name}` });
  box.title = "Show and compare this track";
  box.addEventListener("change", () => {
    const hidden = new Set(state.hidden);
    if (box.checked) hidden.delete(track.name);
    else hidden.add(track.name);
    state.set({ hidden });
  });
  return box;
}

function editButton(track) {
  if (track.kind !== "correction") return null;
  const editing = track.name === state.active;
  const button = make("button", { type: "button", className: "quiet", ariaPressed: String(editing) }, editing ? "✎ editing" : "edit");
  button.addEventListener("click", () => state.activate(editing ? null : track));
  return button;
}
