// The list of behaviors with colors, keys and definitions; the subject and target to label; and the share that is observed.

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
    state.addEventListener("observed", () => this.#showObserved());
    state.addEventListener("mark", () => this.#showSelection());
  }

  #fill() {
    const used = new Set(state.tracks.flatMap((track) => track.occurring));
    const occurs = ({ occurs, code }) => occurs || used.has(code);
    const [shown, never] = [state.behaviors.filter(occurs), state.behaviors.filter((behavior) => !occurs(behavior))];
    const nothing = shown.every((behavior) => behavior.background); // labelling from scratch: show all behaviors
    const chips = make("div", { className: "chips" }, ...(nothing ? state.behaviors : shown).map(chipOf));
    if (never.length && !nothing) chips.append(neverAnnotated(never));
    this.chosen = make("output", { className: "chosen" });
    this.replaceChildren(chips, ...this.#choices(), this.watching, this.chosen);
    this.#markRunning();
    this.#showObserved();
    this.#showSelection();
  }

  #choices() {
    if (!state.activeTrack) return [];
    const controls = [];
    const subjects = state.recording.subjects;
    if (subjects.length) {
      controls.push(chooser("Subject", subjects, state.subject, (subject) => state.set({ subject })));
      controls.push(chooser("Target", subjects, state.target, (target) => state.set({ target })));
    }
    const box = make("input", { type: "checkbox", checked: state.exclusive });
    box.addEventListener("change", () => state.set({ exclusive: box.checked }));
    controls.push(make("label", { title: "Marking a behavior clears the other behaviors of the animal in these frames" }, box, " one at a time"));
    return controls;
  }

  #showObserved() {
    this.watching.hidden = !state.observed;
    if (!state.observed) return;
    const ofSubject = state.subject ? ` of ${state.subject}` : "";
    this.observed.textContent = `observed ${percent(state.observed.share)}`;
    this.observed.title = `Share of the recording${ofSubject} that is observed: played, stepped through, labelled or marked as watched`;
  }

  #showSelection() {
    const [name, description] = state.selection ? ["selection", "the selection"] : ["all", "the entire recording"];
    this.watched.textContent = `${name} watched`;
    this.watched.title = `Mark ${description} as watched (W)`;
    this.unwatched.textContent = "not watched";
    this.unwatched.title = `Mark ${description} as not watched; bouts are kept (Shift-W)`;
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
    button.blur(); // so that the space bar still starts and stops playback
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

/** Behaviors that no track contains: a line of names, or chips for labelling while a correction is open. */
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
