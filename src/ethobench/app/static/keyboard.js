// Keys. While a correction is open, keys of behaviors take precedence over commands; Alt and a letter is always a command.

import { copyBout, erase, hide, markWatched, merge, nudge, press, pressAndHold, release, split, undo } from "./corrections.js";
import { showMessage } from "./dom.js";
import { openCorrectDialog, openExportDialog, openKeysDialog } from "./dialogs.js";
import { openEthogramEditor, reloadProject } from "./ethogram.js";
import { pickBout, toBorder, toDisagreement, toUncertain } from "./jumps.js";
import { player } from "./player.js";
import { identify } from "./server.js";
import { state } from "./state.js";

export const HELP = [
  ["Play and move", [
    [["space"], "play, pause"],
    [["←", "→"], "one frame; with Shift one second, with Ctrl ten"],
    [["↑", "↓"], "faster, slower"],
    [[",", "."], "previous, next start or stop of a bout"],
    [["Home", "End"], "first, last frame"],
    [["PgUp", "PgDn"], "one screen back, forward"],
    [["L"], "loop the selection or the selected bout"],
    [["M"], "next recording; with Shift the previous one"],
  ]],
  ["Find", [
    [["D"], "next disagreement; with Shift the previous one"],
    [["C"], "least certain bout, then the next one"],
    [["N"], "next suggestion"],
    [["Shift N"], "next unlabeled frames, also of the next recordings"],
    [["/"], "search recordings"],
  ]],
  ["View", [
    [["+", "−"], "zoom; also the wheel"],
    [["F"], "show all"],
    [["Shift drag"], "select"],
    [["V"], "blind: hide other annotators and models"],
    [["Z"], "draw zones of the arena"],
    [["X"], "export"],
    [["?"], "these keys"],
  ]],
  ["Label", [
    [["E"], "start or continue to label or correct"],
    [["B"], "edit the behaviors"],
    [["H"], "keys start and end a behavior, or are held down while playing"],
    [["Shift 1", "…", "9"], "focal animal; Shift 0 for none"],
    [["S"], "next focal animal; with Shift the previous one"],
    [["R"], "next target; with Shift none"],
    [["I", "["], "set the start of the selection"],
    [["O", "]"], "set its end"],
    [["Enter"], "select the bout at the playhead"],
    [["key of a behavior"], "mark the selection; without one, start or end at the playhead"],
    [["Delete"], "clear the selection"],
    [["W"], "mark the selection, or all, as watched; with Shift as not watched"],
    [["U"], "mark the selection as unobserved and clear its bouts"],
    [["Ctrl Z"], "undo; with Shift redo"],
    [["Esc"], "clear the selection marks"],
  ]],
  ["Teacher", [
    [["T"], "train on what is labeled; again to cancel"],
    [["Q"], "next suggestion to review; skips the current one"],
    [["Enter"], "accept the suggestion, with the frames that are selected"],
    [["Delete"], "reject it"],
    [["key of a behavior"], "accept it as another behavior"],
  ]],
  ["Selected bout", [
    [["K"], "split at the playhead"],
    [["J"], "join with the next bout; with Shift with the previous one"],
    [["{", "}"], "start one frame earlier, later"],
    [["<", ">"], "stop one frame earlier, later"],
    [["Y"], "copy to the focal animal of the correction"],
    [["Shift Enter"], "edit target, modifiers and comment"],
  ]],
];

const teacher = () => document.querySelector("eb-teacher");
const seconds = (count) => Math.max(Math.round(count * state.rate), 1);

const COMMANDS = {
  " ": () => player.toggle(),
  ArrowLeft: (e) => state.seek(state.frame - step(e), { byStep: true }),
  ArrowRight: (e) => state.seek(state.frame + step(e), { byStep: true }),
  ArrowUp: () => player.faster(true),
  ArrowDown: () => player.faster(false),
  Home: () => state.seek(0),
  End: () => state.seek(state.nFrames - 1),
  PageUp: () => page(-1),
  PageDown: () => page(1),
  ",": () => toBorder(false),
  ".": () => toBorder(true),
  i: () => setEdge("in", state.frame),
  "[": () => setEdge("in", state.frame),
  o: () => setEdge("out", state.frame + 1),
  "]": () => setEdge("out", state.frame + 1),
  t: () => teacher().toggleTraining(),
  q: () => teacher().next(),
  Enter: (e) => (state.review && !e.shiftKey ? teacher().accept() : e.shiftKey ? document.querySelector("eb-panel").editBout() : pickBout()),
  k: () => split(),
  j: (e) => merge(!e.shiftKey),
  "{": () => nudge("start", -1),
  "}": () => nudge("start", 1),
  "<": () => nudge("stop", -1),
  ">": () => nudge("stop", 1),
  y: () => copyBout(),
  b: () => openEthogramEditor(),
  h: () => setCoding(state.coding === "hold" ? "toggle" : "hold"),
  l: () => toggleLoop(),
  s: (e) => nextSubject(e.shiftKey ? -1 : 1),
  r: (e) => nextTarget(e.shiftKey),
  v: () => setBlind(!state.blind),
  Delete: () => (state.review ? teacher().reject() : erase()),
  Backspace: () => (state.review ? teacher().reject() : erase()),
  w: (e) => markWatched(!e.shiftKey),
  u: (e) => (e.shiftKey ? markWatched() : hide()),
  d: (e) => toDisagreement(!e.shiftKey),
  c: (e) => toUncertain(!e.shiftKey),
  n: (e) => (e.shiftKey ? document.querySelector("eb-recordings").toUnlabeled() : document.querySelector("eb-panel").step()),
  m: (e) => document.querySelector("eb-recordings").step(e.shiftKey ? -1 : 1),
  e: () => openCorrectDialog(),
  x: () => openExportDialog(),
  z: () => document.querySelector("eb-stage").zones.toggle(),
  "/": () => document.querySelector("eb-recordings input").focus(),
  "?": () => openKeysDialog(),
  "+": () => state.zoom(0.5),
  "=": () => state.zoom(0.5),
  "-": () => state.zoom(2),
  f: () => state.setView(0, state.nFrames),
  Escape: () => state.set({ mark: { in: null, out: null }, bout: null, running: [], loop: null, review: null }),
};

/** Listen to keys on the entire page. */
export function listenToKeys() {
  addEventListener("keyup", (event) => release(event.code));
  addEventListener("blur", () => state.running.filter((r) => r.key).forEach((r) => release(r.key)));
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]") || !state.recording) return;
    if (event.target.matches("input:not([type=checkbox]), select, textarea")) return;
    if (event.key === " " && event.target.matches("button, input")) event.target.blur();
    if ((event.ctrlKey || event.metaKey) && ["z", "y"].includes(event.key.toLowerCase())) {
      inTurn(() => undo(event.shiftKey || event.key.toLowerCase() === "y"));
      return event.preventDefault();
    }
    const arrow = event.key.startsWith("Arrow");
    if ((event.ctrlKey || event.metaKey) && !arrow) return;
    const digit = event.shiftKey && !event.altKey && /^Digit\d$/.test(event.code) ? Number(event.code.slice(5)) : null;
    if (digit !== null && state.activeTrack && !state.behaviors.some((b) => b.key === event.key)) {
      chooseSubject(digit);
      return event.preventDefault();
    }
    const behavior = event.altKey || arrow ? undefined : behaviorOf(event);
    const command = COMMANDS[event.key] ?? COMMANDS[event.key.toLowerCase()] ?? (event.altKey ? COMMANDS[letter(event)] : undefined);
    if (behavior && state.review) inTurn(() => teacher().accept(behavior.name));
    else if (behavior && state.activeTrack) {
      if (!event.repeat && !pressAndHold(behavior.code, event.code)) inTurn(() => press(behavior.code));
    } else if (command) inTurn(() => command(event));
    else if (behavior) showMessage(`Press E to start a correction; then this key marks “${behavior.name}”.`);
    else return;
    event.preventDefault();
  });
}

/** Choose how keys mark behaviors during playback: "toggle" or "hold". */
export function setCoding(coding) {
  localStorage.setItem("coding", coding);
  state.set({ coding });
  showMessage(coding === "hold" ? "While playing, hold a key down for as long as the behavior lasts." : "A key starts a behavior, and ends it when pressed again.");
}

/** Show or hide other annotators and models. */
export function setBlind(blind) {
  if (state.project.blind) return showMessage("The viewer was started with --blind.");
  identify({ blind });
  state.set({ blind, bout: null, review: null });
  reloadProject().catch((error) => showMessage(error.message, true));
  showMessage(blind ? "Blind: other annotators and models are hidden." : "Other annotators and models are shown.");
}

/** Loop the selected frames, or stop looping. */
export function toggleLoop() {
  if (state.loop) return state.set({ loop: null });
  if (!state.selection) return showMessage("Select frames (I and O) or a bout to loop it.");
  state.set({ loop: state.selection });
  state.seek(state.loop[0]);
  if (!state.playing) player.play();
}

function chooseSubject(number) {
  const subject = number ? state.recording.subjects[number - 1] : null;
  if (subject === undefined) return showMessage(`There is no animal ${number}.`);
  state.set({ subject });
}

function nextSubject(by) {
  if (!state.activeTrack) return;
  const choices = [...state.recording.subjects];
  if (!choices.length) return showMessage("No animals are named; add them beside the behaviors.");
  state.set({ subject: choices[(choices.indexOf(state.subject) + by + choices.length) % choices.length] });
}

function nextTarget(none) {
  if (!state.activeTrack) return;
  const choices = [null, ...state.recording.subjects.filter((name) => name !== state.subject)];
  state.set({ target: none ? null : choices[(choices.indexOf(state.target) + 1) % choices.length] });
}

let turn = null; // the action that waits for the server, if any

/** Run the actions of keys in order, even if an earlier one still waits for the server. */
function inTurn(action) {
  const done = turn ? turn.then(action) : action();
  if (!(done instanceof Promise)) return;
  const pending = done.catch((error) => showMessage(error.message, true)).finally(() => {
    if (turn === pending) turn = null;
  });
  turn = pending;
}

/** The behavior with this key. Upper and lower case are different keys, except with Caps Lock. */
function behaviorOf({ key, shiftKey }) {
  const exact = state.behaviors.find((behavior) => behavior.key === key);
  return exact ?? (shiftKey ? undefined : state.behaviors.find((behavior) => behavior.key && behavior.key === key.toLowerCase()));
}

/** The letter of a key, also if Alt changes the character. */
function letter(event) {
  return event.code.startsWith("Key") ? event.code.slice(3).toLowerCase() : "";
}

function step(event) {
  return event.ctrlKey || event.metaKey ? seconds(10) : event.shiftKey ? seconds(1) : 1;
}

function page(by) {
  const span = state.to - state.from;
  state.setView(state.from + by * span * 0.9, span);
  state.seek(state.frame + by * span * 0.9);
}

function setEdge(side, frame) {
  const mark = { ...state.mark, [side]: frame };
  if (mark.in !== null && mark.out !== null && mark.out <= mark.in) mark[side === "in" ? "out" : "in"] = null;
  state.set({ mark, bout: null });
}
