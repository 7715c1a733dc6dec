// The list of behaviors with colors, keys and definitions; the subject and target to label; and the share that is observed.

import { changeSubject, markWatched, press } from "./corrections.js";
import { openCorrectDialog, openDialog, buttons } from "./dialogs.js";
import { make, percent } from "./dom.js";
import { setCoding } from "./keyboard.js";
import { state } from "./state.js";

class Behaviors extends HTMLElement {
  connectedCallback() {
    this.observed = make("output", { className: "observed" });
    this.watched = marker(true);
    this.unwatched = marker(false);
    this.watching = make("div", { className: "watching" }, this.observed, this.watched, this.unwatched);
    state.watch(["behaviors", "active", "recording", "subject", "target", "exclusive", "coding", "blind"], () => this.#fill());
    state.addEventListener("running", () => this.#markRunning());
    state.addEventListener("observed", () => this.#showObserved());
    state.addEventListener("mark", () => this.#showSelection());
  }

  #fill() {
    const used = new Set(state.tracks.flatMap((track) => track.occurring));
    const occurs = ({ occurs, code }) => occurs || used.has(code);
    const offered = state.behaviors.filter((behavior) => !behavior.hidden);
    const [shown, never] = [offered.filter(occurs), offered.filter((behavior) => !occurs(behavior))];
    const hasOthers = state.tracks.some((track) => track.kind !== "correction" && state.isShown(track));
    const nothing = !hasOthers || shown.every((behavior) => behavior.background); // labeling from scratch: show all behaviors
    const chips = make("div", { className: "chips" }, ...(nothing ? offered : shown).map(chipOf));
    if (never.length && !nothing) chips.append(neverAnnotated(never));
    this.replaceChildren(chips, make("div", { className: "choices" }, ...this.#choices(), this.watching));
    this.#markRunning();
    this.#showObserved();
    this.#showSelection();
  }

  #choices() {
    if (!state.activeTrack) return [];
    const subjects = state.recording.subjects;
    const animals = make("button", { type: "button", title: "Name the animals" }, subjects.length ? "Animals…" : "Name animals…");
    animals.addEventListener("click", openAnimalsDialog);
    const controls = [];
    if (subjects.length) {
      controls.push(chooser("Subject", subjects, state.subject, (subject) => state.set({ subject }), "S, or Shift and a digit"));
      controls.push(chooser("Target", subjects, state.target, (target) => state.set({ target }), "R"));
    }
    controls.push(animals);
    const coding = make("select", { title: "How keys mark behaviors while playing (H)" });
    coding.append(make("option", { value: "toggle" }, "press to start and end"), make("option", { value: "hold" }, "hold while it lasts"));
    coding.value = state.coding;
    coding.addEventListener("change", () => setCoding(coding.value));
    controls.push(make("label", {}, "Keys ", coding));
    if (state.behaviors.some((b) => b.group)) controls.push(make("span", { className: "between" }, "groups exclude each other"));
    else {
      const box = make("input", { type: "checkbox", checked: state.exclusive });
      box.addEventListener("change", () => state.set({ exclusive: box.checked }));
      controls.push(make("label", { title: "Marking a behavior clears the other behaviors of the animal in these frames" }, box, " one at a time"));
    }
    return controls;
  }

  #showObserved() {
    this.watching.hidden = !state.observed;
    if (!state.observed) return;
    const ofSubject = state.subject ? ` of ${state.subject}` : "";
    this.observed.textContent = `observed ${percent(state.observed.share)}`;
    this.observed.title = `Share of the recording${ofSubject} that is observed: played, stepped through, labeled or marked as watched`;
  }

  #showSelection() {
    const [name, description] = state.selection ? ["selection", "the selection"] : ["all", "the entire recording"];
    this.watched.textContent = `${name} watched`;
    this.watched.title = `Mark ${description} as watched (W)`;
    this.unwatched.textContent = "not watched";
    this.unwatched.title = `Mark ${description} as not watched; bouts are kept (Shift-W)`;
  }

  #markRunning() {
    for (const chip of this.querySelectorAll(".chip")) {
      const code = Number(chip.dataset.code);
      chip.classList.toggle("running", state.running.some((r) => r.behavior === code && r.subject === state.subject));
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
  chip.ariaDisabled = String(!state.activeTrack);
  chip.dataset.code = behavior.code;
  chip.addEventListener("click", () => (state.activeTrack ? press(behavior.code) : openCorrectDialog()));
  return chip;
}

/** Behaviors that no track contains: a line of names, or chips for labeling while a correction is open. */
function neverAnnotated(behaviors) {
  const names = behaviors.map(({ name }) => name).join(", ");
  const rest = state.activeTrack ? behaviors.map(chipOf) : [names];
  return make("span", { className: "never", title: `never annotated: ${names}` }, "never annotated: ", ...rest);
}

/** Add, rename and remove animals of the correction. */
function openAnimalsDialog() {
  const list = make("div", { className: "animals" });
  const fields = state.activeTrack.named.map((name) => nameField(name));
  const add = make("button", { type: "button" }, "Add animal");
  add.addEventListener("click", () => {
    fields.push(nameField(null));
    list.append(fields.at(-1));
    fields.at(-1).focus();
  });
  list.append(...fields);
  const text = "Clear a name to remove an animal that has no bouts. Shift and a digit chooses the focal animal.";
  const dialog = openDialog("Animals", make("p", {}, text), list, make("p", { className: "resume" }, add), buttons("Save"));
  if (!fields.length) add.click();
  dialog.addEventListener("submit", () => {
    for (const input of fields) {
      const [old, name] = [input.dataset.name ?? null, input.value.trim() || null];
      if (old !== name) changeSubject(old, name);
    }
    const names = fields.map((input) => input.value.trim()).filter(Boolean);
    localStorage.setItem("animals", names.join(", "));
    if (state.subject === null && names.length) state.set({ subject: names[0] });
    else if (!names.includes(state.subject)) state.set({ subject: names[0] ?? null });
  });
}

function nameField(name) {
  const input = make("input", { value: name ?? "", maxLength: 60, ariaLabel: "Name of the animal", autocomplete: "off", dir: "auto" });
  if (name !== null) input.dataset.name = name;
  return input;
}

function chooser(label, names, chosen, choose, keys) {
  const options = [make("option", { value: "" }, "–"), ...names.map((name) => make("option", { value: name }, name))];
  const list = make("select", { title: `${label} (${keys})` }, ...options);
  list.value = chosen ?? "";
  list.addEventListener("change", () => {
    choose(list.value || null);
    document.querySelector("canvas.lanes").focus({ preventScroll: true }); // so that keys mark behaviors again
  });
  return make("label", {}, `${label} `, list);
}
