// The list of recordings, with search and sorting.

import { clockTime, make, percent } from "./dom.js";
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
    const shares = state.tracks.filter((track) => track.kind === "correction").map((track) => track.observed.share);
    const [corrected, observed] = [shares.length, shares.length ? Math.max(...shares) : null];
    const { disagreement } = state.recording;
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
