// The panel: labels of every track at the playhead, suggestions of what to label next, and notes of the readers.

import { changeBout, copyBout, erase, fetchDetails, merge, split } from "./corrections.js";
import { openDrawDialog } from "./dialogs.js";
import { clockTime, duration, make, plural, showMessage } from "./dom.js";
import { select } from "./jumps.js";
import { setBlind, toggleLoop } from "./keyboard.js";
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
    this.bout = make("section", { className: "details", hidden: true });
    this.nextSection = make("section", {}, make("h2", {}, "Label next", refresh), this.next);
    this.blind = make("button", { type: "button", className: "quiet" });
    this.blind.addEventListener("click", () => setBlind(!state.blind));
    this.agreement = make("section", { className: "agreement" });
    this.append(
      this.bout,
      make("section", {}, make("h2", {}, "At the playhead", this.blind), this.now),
      make("section", {}, make("eb-teacher")),
      this.nextSection,
      this.agreement,
      this.noteSection,
    );
    state.watch(["bout", "recording", "active"], () => this.#showBout());
    state.watch(["project", "active", "blind", "recording"], () => this.#showAgreement());
    state.watch(["frame", "recording", "hidden", "active", "observed", "blind"], () => this.#scheduleUpdate());
    state.addEventListener("recording", () => this.#showNotes());
    for (const name of ["project", "blind"]) state.addEventListener(name, () => setTimeout(() => this.suggest(), SUGGESTION_DELAY));
  }

  /** Request suggestions of what to label next. */
  async suggest() {
    if (state.blind) return;
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
    const nothing = make("li", { className: "empty" }, "Suggestions need probabilities of a model, or two tracks that differ.");
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
      const shown = state.tracks.filter((track) => state.isAllowed(track));
      if (state.recording.index === index) this.now.replaceChildren(...shown.map((track) => row(track, boutsByTrack[track.name])));
    } catch (error) {
      showMessage(error.message, true);
    }
    this.#waiting = false;
    if (state.frame !== requestedFrame || state.recording.index !== index) this.#scheduleUpdate();
  }

  /** Edit the details of the selected bout. */
  editBout() {
    if (!state.bout) return showMessage("Click a bout, or press Enter at one, to edit it.");
    this.bout.querySelector("select:not(:disabled), input:not(:disabled)")?.focus();
  }

  async #showBout() {
    const { bout } = state;
    if (!bout || !state.recording) return (this.bout.hidden = true);
    const details = await fetchDetails(bout).catch(() => null);
    if (state.bout !== bout) return;
    this.bout.hidden = !details;
    if (details) this.bout.replaceChildren(...boutDetails(bout, details));
  }

  #showAgreement() {
    const { project } = state;
    if (!project) return;
    this.nextSection.hidden = state.blind;
    this.blind.textContent = state.blind ? "blind" : "hide others";
    this.blind.title = "Hide other annotators and models (V)";
    this.blind.ariaPressed = String(state.blind);
    const draw = make("button", { type: "button", className: "quiet" }, "Draw…");
    draw.title = "Draw a random subset that all annotators label";
    draw.addEventListener("click", () =>
      openDrawDialog((subset) => {
        project.subset = subset;
        this.#showAgreement();
      }),
    );
    const content = [make("h2", {}, "Agreement", draw)];
    if (project.subset) content.push(this.#subset(project.subset));
    const names = [...new Set([...project.annotators, ...state.tracks.map((track) => track.name)])];
    if (!state.blind && names.length > 1) content.push(agreementForm(names, Boolean(project.subset)));
    else if (!project.subset) content.push(make("p", { className: "hint" }, "Draw a random subset to measure how well annotators agree."));
    this.agreement.replaceChildren(...content);
  }

  #subset({ segments, seed }) {
    const rows = segments.map((segment) => {
      const { id, rate, n_frames: length } = state.project.recordings[segment.recording];
      const facts = segment.stop - segment.start >= length ? "all" : `${clockTime(segment.start, rate, 0)} · ${duration(segment.stop - segment.start, rate)}`;
      const isDone = segment.recording === state.recording?.index && isObserved(segment);
      const text = [make("span", { className: "id" }, id), make("span", { className: "facts" }, facts)];
      const button = make("button", { type: "button" }, ...text, make("span", { className: "share" }, isDone ? "✓" : ""));
      button.addEventListener("click", () => this.#go(segment));
      return make("li", {}, button);
    });
    const title = `Random subset (seed ${seed}), listed in agreement.csv of the corrections`;
    return make("ol", { className: "next subset", title }, ...rows);
  }

  #showNotes() {
    const notes = [...(state.recording?.notes ?? []), ...(state.project?.notes ?? [])];
    this.noteSection.hidden = !notes.length;
    this.notes.replaceChildren(...notes.map((note) => make("li", {}, note)));
  }
}

customElements.define("eb-panel", Panel);

function isObserved({ start, stop }) {
  return Boolean(state.observed?.spans.some(([first, last]) => first <= start && stop <= last));
}

/** Two annotators to compare, and a table of their agreement. */
function agreementForm(names, hasSubset) {
  const choose = (chosen, label) => {
    const list = make("select", { ariaLabel: label }, ...names.map((name) => make("option", { value: name }, name)));
    list.value = chosen;
    return list;
  };
  const first = choose(state.active ?? names[0], "First annotator");
  const second = choose(names.find((name) => name !== first.value), "Second annotator");
  const subset = make("input", { type: "checkbox", checked: hasSubset });
  const result = make("div", { ariaLive: "polite" });
  const compare = make("button", { type: "button" }, "Compare");
  compare.addEventListener("click", async () => {
    try {
      const query = { first: first.value, second: second.value, subset: subset.checked ? 1 : 0 };
      result.replaceChildren(agreementTable(await fetchJson("agreement", query)));
    } catch (error) {
      result.replaceChildren(make("p", { className: "hint" }, error.message));
    }
  });
  const only = hasSubset ? make("label", { className: "check" }, subset, " drawn subset only") : null;
  return make("div", { className: "pair" }, first, second, compare, only, result);
}

function agreementTable({ rows, frames, recordings }) {
  if (!rows.length) return make("p", { className: "hint" }, "There are no frames that both have observed.");
  const number = (value) => (value === null ? "–" : value.toFixed(2));
  const cells = rows.map(({ behavior, kappa, agreement }) =>
    make("tr", {}, make("td", {}, behavior || "all behaviors"), make("td", {}, number(kappa)), make("td", {}, agreement === null ? "–" : `${Math.round(agreement * 100)} %`)),
  );
  const head = make("tr", {}, ...["behavior", "κ", "equal"].map((text) => make("th", { scope: "col" }, text)));
  const title = plural(
    recordings,
    `Cohen's kappa in ${frames} frames of # recording that both observed`,
    `Cohen's kappa in ${frames} frames of # recordings that both observed`,
  );
  const caption = make("caption", {}, title);
  return make("table", { className: "kappa" }, caption, make("thead", {}, head), make("tbody", {}, ...cells));
}

/** The fields and actions of the selected bout. */
function boutDetails(bout, details) {
  const editable = bout.track === state.active;
  const behavior = state.behaviors[bout.behavior];
  const dot = make("span", { className: behavior.point ? "dot point" : "dot" });
  dot.style.background = behavior.color;
  const times = bout.start === bout.stop ? clockTime(bout.start, state.rate) : `${clockTime(bout.start, state.rate)} – ${clockTime(bout.stop, state.rate)} · ${duration(bout.stop - bout.start, state.rate)}`;
  const heading = make("p", { className: "bout" }, dot, make("strong", { dir: "auto" }, behavior.name), make("small", {}, times));
  const subjects = state.recording.subjects;
  const list = (label, name) => {
    const options = ["", ...subjects].map((subject) => make("option", { value: subject }, subject || "–"));
    const select = make("select", { disabled: !editable }, ...options);
    select.value = details[name] ?? "";
    select.addEventListener("change", () => changeBout({ [name]: select.value || null }));
    return make("label", {}, label, select);
  };
  const text = (label, name) => {
    const input = make("input", { value: details[name], maxLength: 2000, disabled: !editable, autocomplete: "off", dir: "auto" });
    input.addEventListener("change", () => changeBout({ [name]: input.value }));
    input.addEventListener("keydown", (event) => ["Enter", "Escape"].includes(event.key) && input.blur());
    return make("label", {}, label, input);
  };
  const fields = [...(subjects.length ? [list("Subject", "subject"), list("Target", "target")] : []), text("Modifiers", "modifiers"), text("Comment", "comment")];
  const act = (label, title, run, needsEditing = true) => {
    const button = make("button", { type: "button", title, disabled: needsEditing && !editable }, label);
    button.addEventListener("click", () => {
      run();
      button.blur();
    });
    return button;
  };
  const actions = [
    act("Loop", "Play this bout again and again (L)", toggleLoop, false),
    act("Copy", "Copy to the focal animal of the correction (Y)", copyBout, false),
    act("Find similar", "Segments of all recordings that resemble this bout", () => document.querySelector("eb-teacher").findSimilar(), false),
    act("Split", "Split at the playhead (K)", split),
    act("Join ◂", "Join with the previous bout (Shift-J)", () => merge(false)),
    act("Join ▸", "Join with the next bout (J)", () => merge()),
    act("Delete", "Delete (Del)", erase),
  ];
  const title = make("h2", {}, editable ? "Selected bout" : `Bout of ${bout.track}`);
  return [title, heading, ...fields, make("p", { className: "tools" }, ...actions)];
}

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
  button.addEventListener("click", () => {
    state.labeler = null;
    state.activate(editing ? null : track);
  });
  return button;
}
