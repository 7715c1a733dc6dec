// Keys. While a correction is open the behaviors' keys come first; commands on letters then work with Alt.

import { erase, hide, markWatched, press, undo } from "./corrections.js";
import { say } from "./dom.js";
import { askToCorrect, askToExport, showKeys } from "./dialogs.js";
import { pickBout, toBorder, toDisagreement, toDoubtful } from "./jumps.js";
import { player } from "./player.js";
import { state } from "./state.js";

export const HELP = [
  ["Play and move", [
    [["space"], "play, pause"],
    [["←", "→"], "one frame; with Shift one second, with Ctrl ten"],
    [["↑", "↓"], "faster, slower"],
    [[",", "."], "previous, next border of a bout"],
    [["Home", "End"], "beginning, end"],
    [["PgUp", "PgDn"], "a screen back, on"],
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
    [["E"], "begin to correct, or take it up again"],
    [["I", "["], "set the beginning of the selection"],
    [["O", "]"], "set its end"],
    [["Enter"], "select the bout at the playhead"],
    [["key of a behavior"], "mark the selection; without one, begin and end here"],
    [["Delete"], "clear the selection"],
    [["W"], "mark the selection, or all, as watched; with Shift as not watched"],
    [["U"], "selection was not observed: clear its bouts too"],
    [["Ctrl Z"], "undo; with Shift redo"],
    [["Esc"], "forget the selection"],
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
  c: (e) => toDoubtful(!e.shiftKey),
  n: () => document.querySelector("eb-panel").step(),
  m: (e) => document.querySelector("eb-recordings").step(e.shiftKey ? -1 : 1),
  e: () => askToCorrect(),
  x: () => askToExport(),
  "/": () => document.querySelector("eb-recordings input").focus(),
  "?": () => showKeys(),
  "+": () => state.zoom(0.5),
  "=": () => state.zoom(0.5),
  "-": () => state.zoom(2),
  f: () => state.look(0, state.nFrames),
  Escape: () => state.set({ mark: { in: null, out: null }, bout: null, running: null }),
};

/** Listen to the whole page. */
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
    else if (behavior) say(`Press E to begin to correct; then this key marks “${behavior.name}”.`);
    else return;
    event.preventDefault();
  });
}

let turn = null; // what is under way, if it waits for the server

/** Do what a key asks for after what the keys before it asked for, however fast they are pressed. */
function inTurn(act) {
  const done = turn ? turn.then(act) : act();
  if (!(done instanceof Promise)) return;
  const mine = done.catch((error) => say(error.message, true)).finally(() => {
    if (turn === mine) turn = null;
  });
  turn = mine;
}

/** The behavior with this key; capitals are keys of their own, unless Caps Lock makes them. */
function behaviorOf({ key, shiftKey }) {
  const exact = state.behaviors.find((behavior) => behavior.key === key);
  return exact ?? (shiftKey ? undefined : state.behaviors.find((behavior) => behavior.key && behavior.key === key.toLowerCase()));
}

/** The letter on a key, where Alt makes another sign of it. */
function letter(event) {
  return event.code.startsWith("Key") ? event.code.slice(3).toLowerCase() : "";
}

function step(event) {
  return event.ctrlKey || event.metaKey ? seconds(10) : event.shiftKey ? seconds(1) : 1;
}

function page(by) {
  const span = state.to - state.from;
  state.look(state.from + by * span * 0.9, span);
  state.seek(state.frame + by * span * 0.9);
}

function setEdge(side, frame) {
  const mark = { ...state.mark, [side]: frame };
  if (mark.in !== null && mark.out !== null && mark.out <= mark.in) mark[side === "in" ? "out" : "in"] = null;
  state.set({ mark, bout: null });
}
