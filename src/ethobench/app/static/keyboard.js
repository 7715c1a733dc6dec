// Keys. While a correction is open, keys of behaviors take precedence over commands; Alt and a letter is always a command.

import { erase, hide, markWatched, press, undo } from "./corrections.js";
import { showMessage } from "./dom.js";
import { openCorrectDialog, openExportDialog, openKeysDialog } from "./dialogs.js";
import { pickBout, toBorder, toDisagreement, toUncertain } from "./jumps.js";
import { player } from "./player.js";
import { state } from "./state.js";

export const HELP = [
  ["Play and move", [
    [["space"], "play, pause"],
    [["←", "→"], "one frame; with Shift one second, with Ctrl ten"],
    [["↑", "↓"], "faster, slower"],
    [[",", "."], "previous, next start or stop of a bout"],
    [["Home", "End"], "first, last frame"],
    [["PgUp", "PgDn"], "one screen back, forward"],
    [["M"], "next recording; with Shift the previous one"],
  ]],
  ["Find", [
    [["D"], "next disagreement; with Shift the previous one"],
    [["C"], "least certain bout, then the next one"],
    [["N"], "next suggestion"],
    [["/"], "search recordings"],
  ]],
  ["View", [
    [["+", "−"], "zoom; also the wheel"],
    [["F"], "show all"],
    [["Shift drag"], "select"],
    [["X"], "export"],
    [["?"], "these keys"],
  ]],
  ["Correct", [
    [["E"], "start or continue a correction"],
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
];

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
  Enter: () => pickBout(),
  Delete: () => erase(),
  Backspace: () => erase(),
  w: (e) => markWatched(!e.shiftKey),
  u: (e) => (e.shiftKey ? markWatched() : hide()),
  d: (e) => toDisagreement(!e.shiftKey),
  c: (e) => toUncertain(!e.shiftKey),
  n: () => document.querySelector("eb-panel").step(),
  m: (e) => document.querySelector("eb-recordings").step(e.shiftKey ? -1 : 1),
  e: () => openCorrectDialog(),
  x: () => openExportDialog(),
  "/": () => document.querySelector("eb-recordings input").focus(),
  "?": () => openKeysDialog(),
  "+": () => state.zoom(0.5),
  "=": () => state.zoom(0.5),
  "-": () => state.zoom(2),
  f: () => state.setView(0, state.nFrames),
  Escape: () => state.set({ mark: { in: null, out: null }, bout: null, running: null }),
};

/** Listen to keys on the entire page. */
export function listenToKeys() {
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
    const behavior = event.altKey || arrow ? undefined : behaviorOf(event);
    const command = COMMANDS[event.key] ?? COMMANDS[event.key.toLowerCase()] ?? (event.altKey ? COMMANDS[letter(event)] : undefined);
    if (behavior && state.activeTrack) {
      if (!event.repeat) inTurn(() => press(behavior.code));
    } else if (command) inTurn(() => command(event));
    else if (behavior) showMessage(`Press E to start a correction; then this key marks “${behavior.name}”.`);
    else return;
    event.preventDefault();
  });
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
