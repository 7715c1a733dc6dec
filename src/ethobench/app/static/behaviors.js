// The behaviors: colours, keys, definitions; who does it, where animals are named; and how much counts as observed.

import { markWatched, press } from "./corrections.js";
import { clockTime, duration, make, percent } from "./dom.js";
import { state } from "./state.js";

class Behaviors extends HTMLElement {
  connectedCallback() {
    this.observed = make("output", { className: "observed" });
    this.watched = marker(true);
    this.unwatched = marker(false);
    this.watching = make("div", { className: "watching" }, this.observed, this.watched, this.unwatched);
    state.watch(["behaviors", "active", "recording", "subject", "exclusive"], () => this.#fill());
    state.addEventListener("running", () => this.#markRunning());
    state.addEventListener("observed", () => this.#tellObserved());
    state.addEventListener("mark", () => this.#tellSelection());
  }

  #fill() {
    const used = new Set(state.tracks.flatMap((track) => track.occurring));
    const occurs = ({ occurs, code }) => occurs || used.has(code);
    const [shown, never] = [state.behaviors.filter(occurs), state.behaviors.filter((behavior) => !occurs(behavior))];
    const nothing = shown.every((behavior) => behavior.background); // labelled from scratch, all are on offer
    const chips = make("div", { className: "chips" }, ...(nothing ? state.behaviors : shown).map(chipOf));
    if (never.length && !nothing) chips.append(neverAnnotated(never));
    this.chosen = make("output", { className: "chosen" });
    this.replaceChildren(chips, ...this.#choices(), this.watching, this.chosen);
    this.#markRunning();
    this.#tellObserved();
    this.#tellSelection();
  }

  #choices() {
    if (!state.activeTrack) return [];
    const found = [];
    const subjects = state.recording.subjects;
    if (subjects.length) {
      found.push(chooser("Subject", subjects, state.subject, (subject) => state.set({ subject })));
      found.push(chooser("Target", subjects, state.target, (target) => state.set({ target })));
    }
    const box = make("input", { type: "checkbox", checked: state.exclusive });
    box.addEventListener("change", () => state.set({ exclusive: box.checked }));
    found.push(make("label", { title: "Marking a behavior ends what else the animal does in these frames" }, box, " one at a time"));
    return found;
  }

  #tellObserved() {
    this.watching.hidden = !state.observed;
    if (!state.observed) return;
    const whose = state.subject ? ` of ${state.subject}` : "";
    this.observed.textContent = `observed ${percent(state.observed.share)}`;
    this.observed.title = `Share of the recording${whose} that counts as observed: played, stepped through, labelled or marked as watched`;
  }

  #tellSelection() {
    const [what, long] = state.selection ? ["selection", "the selection"] : ["all", "the whole recording"];
    this.watched.textContent = `${what} watched`;
    this.watched.title = `Mark ${long} as watched (W)`;
    this.unwatched.textContent = "not watched";
    this.unwatched.title = `Mark ${long} as not watched; bouts stay as they are (Shift-W)`;
    const { in: first, out: last } = state.mark;
    const [a, b] = [first, last].map((edge) => (edge === null ? "…" : clockTime(edge, state.rate)));
    const length = state.selection ? ` · ${duration(last - first, state.rate)}` : "";
    this.chosen.textContent = first === null && last === null ? "" : `${a} – ${b}${length}`;
  }

  #markRunning() {
    for (const chip of this.querySelectorAll(".chip")) {
      chip.classList.toggle("running", Number(chip.dataset.code) === state.running?.behavior);
    }
  }
}

customElements.define("eb-behaviors", Behaviors);

function marker(watched) {
  const button = make("button", { type: "button" });
  button.addEventListener("click", () => {
    markWatched(watched);
    button.blur(); // so that the space bar keeps playing
  });
  return button;
}

function chipOf(behavior) {
  const dot = make("span", { className: behavior.point ? "dot point" : "dot" });
  dot.style.background = behavior.color;
  const chip = make("button", { type: "button", className: "chip", title: behavior.definition || behavior.name }, dot, behavior.name);
  if (behavior.key) chip.append(make("kbd", {}, behavior.key));
  chip.disabled = !state.activeTrack;
  chip.dataset.code = behavior.code;
  chip.addEventListener("click", () => press(behavior.code));
  return chip;
}

/** The behaviors that no track has: one line of names, or chips to label with while a correction is open. */
function neverAnnotated(behaviors) {
  const names = behaviors.map(({ name }) => name).join(", ");
  const rest = state.activeTrack ? behaviors.map(chipOf) : [names];
  return make("span", { className: "never", title: `never annotated: ${names}` }, "never annotated: ", ...rest);
}

function chooser(label, names, chosen, choose) {
  const options = [make("option", { value: "" }, "–"), ...names.map((name) => make("option", { value: name }, name))];
  const list = make("select", {}, ...options);
  list.value = chosen ?? "";
  list.addEventListener("change", () => choose(list.value || null));
  return make("label", {}, `${label} `, list);
}
