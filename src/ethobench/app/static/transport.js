// Controls of playback, jumps and zoom, and the position of the playhead.

import { undo } from "./corrections.js";
import { clockTime, grouped, make } from "./dom.js";
import { icon } from "./icons.js";
import { toDisagreement, toUncertain } from "./jumps.js";
import { player, SPEEDS } from "./player.js";
import { state } from "./state.js";
import { VideoSettings } from "./video_settings.js";

class Transport extends HTMLElement {
  connectedCallback() {
    this.toggle = button("", "Play or pause (space)", () => player.toggle());
    this.speed = make("select", { className: "speed", title: "Speed (↑ ↓)", ariaLabel: "Speed" }, ...SPEEDS.map((speed) => make("option", { value: speed }, `${speed}×`)));
    this.speed.addEventListener("change", () => {
      player.setSpeed(Number(this.speed.value));
      this.speed.blur(); // so that the arrow keys move the playhead again
    });
    this.time = make("output", { className: "time" });
    this.frame = make("output", { className: "frame" });
    this.undo = button(icon("undo"), "Undo (Ctrl-Z)", () => undo());
    this.redo = button(icon("redo"), "Redo (Ctrl-Shift-Z)", () => undo(true));
    this.disagreement = group(
      button("◂", "Previous disagreement (Shift-D)", () => toDisagreement(false)),
      make("span", { className: "between" }, "disagreement"),
      button("▸", "Next disagreement (D)", () => toDisagreement()),
    );
    this.uncertain = group(button("least certain ▸", "Least certain bout (C)", () => toUncertain()));
    const steps = [
      button(icon("back"), "One frame back (←)", () => state.seek(state.frame - 1, { byStep: true })),
      this.toggle,
      button(icon("on"), "One frame on (→)", () => state.seek(state.frame + 1, { byStep: true })),
    ];
    const zooms = [
      button("−", "Zoom out (−)", () => state.zoom(2)),
      button("+", "Zoom in (+)", () => state.zoom(0.5)),
      button("fit", "Fit: show all (F)", () => state.setView(0, state.nFrames)),
    ];
    this.append(
      group(...steps, this.speed),
      group(this.time, this.frame),
      this.disagreement,
      this.uncertain,
      group(this.undo, this.redo),
      group(...zooms),
      new VideoSettings().element,
    );
    state.watch(["frame", "recording"], () => {
      this.time.textContent = clockTime(state.frame, state.rate, 3);
      this.frame.textContent = `frame ${grouped(state.frame)} of ${grouped(state.nFrames)}`;
    });
    state.watch(["playing"], () => this.toggle.replaceChildren(icon(state.playing ? "pause" : "play")));
    state.watch(["speed"], () => (this.speed.value = state.speed));
    state.watch(["active", "recording"], () => {
      this.disagreement.hidden = state.tracks.length < 2;
      this.uncertain.hidden = !state.tracks.some((track) => track.certain);
      this.undo.disabled = !state.activeTrack?.undo;
      this.redo.disabled = !state.activeTrack?.redo;
    });
  }
}

customElements.define("eb-transport", Transport);

function group(...children) {
  return make("div", { className: "group" }, ...children);
}

function button(content, title, action) {
  const element = make("button", { type: "button", title, ariaLabel: title }, content);
  element.addEventListener("click", () => {
    action();
    element.blur(); // so that the space bar still starts and stops playback
  });
  return element;
}
