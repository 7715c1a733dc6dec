// The ethogram editor: add, rename, merge, delete and reorder behaviors; keys, colors, definitions and groups.

import { openDialog, showError } from "./dialogs.js";
import { make, plural, showMessage } from "./dom.js";
import { colorsOf } from "./palette.js";
import { fetchJson, postJson } from "./server.js";
import { state } from "./state.js";

const MAX_FILE = 11_000_000; // bytes of an imported file

/** Open the editor; `done` is called after the behaviors were saved. */
export async function openEthogramEditor({ done = null, welcome = false } = {}) {
  try {
    new Editor(await fetchJson("ethogram"), done, welcome);
  } catch (error) {
    showMessage(error.message, true);
  }
}

class Editor {
  constructor(loaded, done, welcome) {
    this.done = done;
    this.list = make("tbody");
    this.undo = make("button", { type: "button" }, "Undo last change");
    this.file = make("input", { type: "file", hidden: true, ariaLabel: "File to import behaviors from" });
    const add = action("Add behavior", () => this.#add());
    const load = action("Import…", () => this.file.click(), "Behaviors of a file of any format that Ethobench reads");
    const columns = ["Order and color", "Behavior", "Key", "Type", "Group", "Definition", "Bouts, merge, delete"];
    const headings = columns.map((text) => make("th", { scope: "col" }, make("span", {}, text)));
    const table = make("table", { className: "ethogram" }, make("thead", {}, make("tr", {}, ...headings)), this.list);
    const intro = welcome
      ? "Which behaviors do you want to label? Write one per line: its name, and the key that marks it."
      : "Changes apply to all recordings. Labels of a renamed or merged behavior are renamed with it.";
    this.where = make("p", { className: "hint" });
    this.save = make("button", { className: "primary" }, welcome ? "Start labeling" : "Save");
    const cancel = action("Cancel", () => this.dialog.close());
    const errorText = make("span", { className: "dialog-error", role: "alert" });
    this.dialog = openDialog(
      welcome ? "What to label" : "Behaviors",
      make("p", {}, intro),
      make("div", { className: "table" }, table),
      make("p", { className: "resume" }, add, load, this.file, this.undo),
      this.where,
      make("p", { className: "buttons" }, errorText, cancel, this.save),
    );
    this.dialog.classList.add("wide");
    this.file.addEventListener("change", () => this.#import());
    this.undo.addEventListener("click", () => this.#undo());
    this.dialog.addEventListener("keydown", (event) => this.#keys(event));
    this.dialog.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    this.#show(loaded);
    if (!this.rows.length) this.#add();
    else this.list.querySelector(".name")?.focus();
  }

  #show(loaded) {
    this.loaded = loaded;
    this.rows = loaded.behaviors.map((behavior) => ({ ...behavior, from: [behavior.name] }));
    this.undo.hidden = !loaded.undo;
    this.where.textContent = `Saved in ${loaded.file}. Your own files are not changed.`;
    this.#fill();
  }

  #fill(focus = null) {
    const shown = this.rows.map((row) => ({ ...row, color: row.background ? null : (row.palette ?? 0), custom: row.color }));
    const colors = colorsOf(shown, document.documentElement.dataset.theme);
    this.list.replaceChildren(...this.rows.map((row, i) => this.#row(row, i, colors[i])));
    if (focus) this.list.children[focus.index]?.querySelector(focus.selector)?.focus();
  }

  #row(row, index, color) {
    const picker = make("input", { type: "color", value: color, ariaLabel: `Color of ${row.name || "the behavior"}`, title: "Color" });
    picker.disabled = row.background;
    picker.addEventListener("input", () => (row.color = picker.value));
    const name = field(row, "name", { className: "name", placeholder: "e.g. groom", maxLength: 100, ariaLabel: "Name" });
    const key = field(row, "key", { className: "key", maxLength: 1, placeholder: "·", ariaLabel: `Key of ${row.name}` });
    const group = field(row, "group", { className: "group", maxLength: 60, ariaLabel: `Group of ${row.name}` });
    group.placeholder = "–";
    group.title = "Behaviors of one group exclude each other; those without a group may overlap with all";
    const definition = field(row, "definition", { className: "definition", maxLength: 2000, ariaLabel: `Definition of ${row.name}` });
    definition.placeholder = "how to recognize it";
    const kinds = { state: "state", point: "point", background: "background" };
    const kind = make("select", { ariaLabel: `Type of ${row.name}` }, ...Object.keys(kinds).map((k) => make("option", { value: k }, k)));
    kind.title = "state: has a duration; point: an event without duration; background: none of the others";
    kind.value = row.background ? "background" : row.point ? "point" : "state";
    kind.addEventListener("change", () => {
      for (const other of this.rows) if (kind.value === "background") other.background = false;
      Object.assign(row, { point: kind.value === "point", background: kind.value === "background" });
      this.#fill({ index, selector: "select" });
    });
    const merge = make("select", { className: "merge", ariaLabel: `Merge ${row.name} into another behavior`, title: "Merge into another behavior" });
    merge.append(make("option", { value: "" }, "merge…"));
    this.rows.forEach((other, i) => i !== index && other.name && merge.append(make("option", { value: i }, `into ${other.name}`)));
    merge.disabled = merge.options.length < 2;
    merge.addEventListener("change", () => this.#merge(index, Number(merge.value)));
    const remove = row.hidden
      ? action("show", () => this.#set(row, { hidden: false }), "Offer this behavior for labeling again")
      : action("✕", () => this.#remove(index), row.fixed ? "Hide: files of yours contain this behavior" : "Delete");
    remove.ariaLabel = row.hidden ? `Show ${row.name}` : `Delete ${row.name || "this behavior"}`;
    const bouts = row.bouts + row.fixed_bouts;
    const count = make("span", { className: "count", title: "bouts" }, bouts ? `${bouts}` : "");
    const cells = [
      [orderButtons(() => this.#move(index, -1), () => this.#move(index, 1)), picker],
      [name],
      [key],
      [kind],
      [group],
      [definition],
      [count, merge, remove],
    ].map((content) => make("td", {}, make("div", {}, ...content)));
    return make("tr", { className: row.hidden ? "hidden-behavior" : "" }, ...cells);
  }

  #set(row, fields) {
    Object.assign(row, fields);
    this.#fill();
  }

  #add(values = {}) {
    const used = this.rows.map((row) => row.palette ?? -1);
    const blank = { name: "", key: "", definition: "", group: "", color: "", point: false, background: false, hidden: false };
    this.rows.push({ ...blank, bouts: 0, fixed_bouts: 0, fixed: false, from: [], palette: Math.max(-1, ...used) + 1, ...values });
    this.#fill({ index: this.rows.length - 1, selector: ".name" });
  }

  #move(index, by) {
    const to = index + by;
    if (to < 0 || to >= this.rows.length) return;
    [this.rows[index], this.rows[to]] = [this.rows[to], this.rows[index]];
    this.#fill({ index: to, selector: by < 0 ? ".order button" : ".order button + button" });
  }

  #merge(index, into) {
    const [row, target] = [this.rows[index], this.rows[into]];
    target.from = [...target.from, ...row.from];
    target.bouts += row.bouts;
    target.fixed_bouts += row.fixed_bouts;
    target.fixed ||= row.fixed;
    this.rows.splice(index, 1);
    this.#fill();
  }

  #remove(index) {
    const row = this.rows[index];
    if (row.fixed) return this.#set(row, { hidden: true });
    this.rows.splice(index, 1);
    this.#fill({ index: Math.min(index, this.rows.length - 1), selector: ".name" });
  }

  /** Enter goes to the next row, Ctrl-Enter saves, Alt with an arrow moves a row. */
  #keys(event) {
    const index = [...this.list.children].findIndex((row) => row.contains(event.target));
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.#save();
    else if (event.key === "Enter" && event.target.matches("tbody input")) {
      if (index === this.rows.length - 1) this.#add();
      else this.list.children[index + 1].querySelector(".name").focus();
    } else if (event.altKey && event.key === "ArrowUp" && index >= 0) this.#move(index, -1);
    else if (event.altKey && event.key === "ArrowDown" && index >= 0) this.#move(index, 1);
    else return;
    event.preventDefault();
  }

  async #save() {
    const rows = this.rows.filter((row) => row.name.trim() || row.from.length);
    const kept = new Set(rows.flatMap((row) => row.from));
    const deleted = this.loaded.behaviors.filter((b) => !kept.has(b.name) && b.bouts);
    const confirmed = Object.fromEntries(deleted.map((b) => [b.name, b.bouts]));
    if (deleted.length && !(await confirmDeletion(deleted))) return;
    try {
      const answer = await postJson("ethogram", { revision: this.loaded.revision, behaviors: rows, confirmed });
      await this.#close(answer);
    } catch (error) {
      await this.#fail(error);
    }
  }

  async #undo() {
    try {
      const answer = await postJson("ethogram/undo", { revision: this.loaded.revision });
      this.#show(answer);
      await reloadProject();
      if (answer.warnings.length) showError(this.dialog, answer.warnings.join(" "));
    } catch (error) {
      await this.#fail(error);
    }
  }

  async #close(answer) {
    this.dialog.close();
    await reloadProject();
    if (answer.warnings.length) showMessage(answer.warnings.join(" "), true);
    this.done?.();
  }

  async #fail(error) {
    showError(this.dialog, error.message);
    if (error.status === 409) this.#show(await fetchJson("ethogram"));
  }

  async #import() {
    const [file] = this.file.files;
    this.file.value = "";
    if (!file) return;
    if (file.size > MAX_FILE) return showError(this.dialog, `${file.name} is too large; files up to 11 MB can be imported`);
    try {
      const behaviors = await postJson("ethogram/import", { name: file.name, content: await base64(file) });
      const names = new Set(this.rows.map((row) => row.name));
      const keys = new Set(this.rows.map((row) => row.key));
      this.rows = this.rows.filter((row) => row.name.trim() || row.from.length);
      const hasBackground = this.rows.some((row) => row.background);
      for (const behavior of behaviors.filter(({ name }) => !names.has(name))) {
        const key = keys.has(behavior.key) ? "" : behavior.key;
        this.#add({ ...behavior, key, background: behavior.background && !hasBackground });
      }
      showError(this.dialog, "");
    } catch (error) {
      showError(this.dialog, error.message);
    }
  }
}

/** Load the project again after its ethogram changed, and the open recording with it. */
export async function reloadProject() {
  const project = await fetchJson("project");
  const { index } = state.recording;
  const recording = await fetchJson(`recordings/${index}`);
  state.set({ project });
  document.dispatchEvent(new CustomEvent("ethogram", { detail: { recording } }));
}

function confirmDeletion(deleted) {
  const counts = deleted.map(({ name, bouts }) => plural(bouts, `# bout of “${name}”`, `# bouts of “${name}”`));
  const list = new Intl.ListFormat("en-GB", { type: "conjunction" }).format(counts);
  const cancel = make("button", { value: "cancel", autofocus: true }, "Keep");
  const agree = make("button", { className: "danger", value: "delete" }, "Delete");
  const text = make("p", {}, `This deletes ${list} from the corrections. It can be undone in this dialog while the viewer runs.`);
  const form = make("form", { method: "dialog" }, make("h2", {}, "Delete labels?"), text, make("p", { className: "buttons" }, cancel, agree));
  const dialog = make("dialog", { ariaLabel: "Delete labels?" }, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      done(dialog.returnValue === "delete");
    });
  });
}

function field(row, name, properties) {
  const input = make("input", { ...properties, value: row[name], autocomplete: "off", dir: "auto" });
  input.addEventListener("input", () => (row[name] = input.value));
  return input;
}

function action(text, run, title = "") {
  const button = make("button", { type: "button", title }, text);
  button.addEventListener("click", run);
  return button;
}

function orderButtons(up, down) {
  const buttons = [action("▲", up, "Move up (Alt-↑)"), action("▼", down, "Move down (Alt-↓)")];
  for (const button of buttons) button.ariaLabel = button.title;
  return make("span", { className: "order" }, ...buttons);
}

async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const pieces = [];
  for (let i = 0; i < bytes.length; i += 32768) pieces.push(String.fromCharCode(...bytes.subarray(i, i + 32768)));
  return btoa(pieces.join(""));
}
