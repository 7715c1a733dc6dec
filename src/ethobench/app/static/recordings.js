// The list of recordings, with search and sorting.

import { start } from "./corrections.js";
import { clockTime, make, percent, showMessage } from "./dom.js";
import { annotatorName } from "./server.js";
import { state } from "./state.js";

const ORDERS = {
  "as listed": () => 0,
  "most disagreement": (a, b) => (b.disagreement ?? -1) - (a.disagreement ?? -1),
  "name": (a, b) => a.id.localeCompare(b.id, undefined, { numeric: true }),
  "longest": (a, b) => b.n_frames / b.rate - a.n_frames / a.rate,
  "not corrected yet": (a, b) => a.corrected - b.corrected,
};

class Recordings extends HTMLElement {
  connectedCallback() {
    this.search = make("input", { type: "search", placeholder: "Search   /", ariaLabel: "Search recordings" });
    const options = Object.keys(ORDERS).map((name) => make("option", { value: name }, name));
    this.order = make("select", { ariaLabel: "Sort recordings" }, ...options);
    this.list = make("ol", {});
    this.count = make("span", { className: "count" });
    this.append(make("div", { className: "tools" }, this.search, make("label", {}, "Sort ", this.order), this.count), this.list);
    this.search.addEventListener("input", () => this.#fill());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.list.querySelector("button")?.click();
      if (event.key === "Escape") this.search.blur();
    });
    this.order.addEventListener("change", () => this.#fill());
    state.addEventListener("project", () => this.#fill());
    for (const name of ["recording", "observed"]) state.addEventListener(name, () => this.#updateSummary());
  }

  /** Open the next or previous recording of the list. */
  step(by) {
    const buttons = [...this.list.querySelectorAll("button")];
    const at = buttons.findIndex((button) => button.getAttribute("aria-current") === "true");
    buttons[at + by]?.click();
  }

  /** Go to the next frames that the annotator has not observed: of this recording, else of the next one that is not fully observed. */
  async toUnlabeled() {
    const name = state.active ?? annotatorName();
    if (!name) return showMessage("Press E to start labeling first.");
    const gap = state.observed && nextGap(state.observed.spans, state.frame);
    if (gap !== null && gap !== undefined) return state.seek(gap);
    const { recordings } = state.project;
    const order = recordings.map((_, i) => (state.recording.index + 1 + i) % recordings.length);
    const index = order.find((i) => (recordings[i].observed_by[name] ?? 0) < 1 && recordings[i].n_frames && i !== state.recording.index);
    if (index === undefined) return showMessage("Everything is labeled: all frames of all recordings are observed.");
    const subjects = state.activeTrack?.named ?? [];
    await new Promise((done) => document.dispatchEvent(new CustomEvent("open", { detail: { index, done } })));
    if (state.recording.locked || state.activeTrack) return;
    try {
      await start(name, null, subjects);
    } catch (error) {
      showMessage(error.message, true);
    }
  }

  #fill() {
    const { recordings } = state.project;
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = recordings
      .map((recording, index) => ({ ...recording, index }))
      .filter((r) => words.every((word) => `${r.id} ${r.individual}`.toLowerCase().includes(word)))
      .sort((a, b) => ORDERS[this.order.value](a, b) || a.index - b.index);
    const maxDisagreement = Math.max(...recordings.map((r) => r.disagreement ?? 0), 1e-9);
    this.list.replaceChildren(...matches.map((recording) => item(recording, maxDisagreement)));
    this.count.textContent = matches.length === recordings.length ? `${matches.length}` : `${matches.length} of ${recordings.length}`;
    this.#markCurrent();
  }

  /** Update the list after a change of the open recording. */
  #updateSummary() {
    if (!state.recording || !state.project) return;
    const summary = state.project.recordings[state.recording.index];
    const shares = state.tracks.filter((track) => track.kind === "correction" && state.isAllowed(track)).map((track) => track.observed.share);
    const [corrected, observed] = [shares.length, shares.length ? Math.max(...shares) : null];
    const { disagreement } = state.recording;
    for (const track of state.tracks) if (track.kind === "correction") summary.observed_by[track.name] = track.observed.share;
    if (summary.corrected !== corrected || summary.observed !== observed || summary.disagreement !== disagreement) {
      Object.assign(summary, { corrected, observed, disagreement });
      this.#fill();
    }
    this.#markCurrent();
  }

  #markCurrent() {
    for (const button of this.list.querySelectorAll("button")) {
      const current = Number(button.dataset.index) === state.recording?.index;
      if (current) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }
}

customElements.define("eb-recordings", Recordings);

/** The first frame after a frame, else of the recording, that is in none of the spans; null if all are. */
function nextGap(spans, frame) {
  const gaps = [0, ...spans.map(([, stop]) => stop)].filter((edge) => edge < state.nFrames && !spans.some(([a, b]) => a <= edge && edge < b));
  return gaps.find((edge) => edge > frame) ?? gaps[0] ?? null;
}

function item(recording, maxDisagreement) {
  const { id, individual, n_frames: length, rate, disagreement, corrected, observed, index } = recording;
  const facts = [length ? clockTime(length, rate, 0) : "unknown length"];
  if (individual !== id) facts.unshift(individual);
  if (corrected) facts.push(observed < 1 ? `${percent(observed)} observed` : "✓ corrected");
  const name = make("span", { className: "id", title: id }, id);
  const button = make("button", { type: "button" }, name, make("span", { className: "facts" }, facts.join(" · ")));
  button.dataset.index = index;
  if (disagreement !== null) {
    const bar = make("span", { className: "bar" });
    bar.style.width = `${(disagreement / maxDisagreement) * 100}%`;
    const percent = `${(disagreement * 100).toFixed(1)} %`;
    const share = make("span", { className: "share", title: `tracks differ in ${percent} of the frames` }, percent);
    button.append(share, make("span", { className: "rail" }, bar));
  }
  button.addEventListener("click", () => document.dispatchEvent(new CustomEvent("open", { detail: { index } })));
  return make("li", {}, button);
}
