// Settings of the video: brightness, contrast, poses over the video, and the motion energy.

import { make, showMessage } from "./dom.js";
import { follow } from "./jobs.js";
import { fetchJson, postJson } from "./server.js";
import { state } from "./state.js";

const DEFAULTS = { brightness: 100, contrast: 100 }; // percent

/** Percentages that are remembered in the browser. */
function read(name) {
  const value = Number(localStorage.getItem(`video-${name}`));
  return value >= 20 && value <= 400 ? value : DEFAULTS[name];
}

/** Whether poses are drawn over the video. */
export function posesShown() {
  return localStorage.getItem("video-poses") !== "no";
}

/** Apply brightness and contrast to all videos of an element. */
export function applyFilter(element) {
  const [brightness, contrast] = [read("brightness"), read("contrast")];
  const filter = brightness === 100 && contrast === 100 ? "" : `brightness(${brightness}%) contrast(${contrast}%)`;
  for (const video of element.querySelectorAll("video")) video.style.filter = filter;
}

/** A button that opens the settings. */
export class VideoSettings {
  constructor() {
    this.sliders = Object.keys(DEFAULTS).map((name) => slider(name));
    this.poses = make("input", { type: "checkbox", checked: posesShown() });
    this.poses.addEventListener("change", () => {
      localStorage.setItem("video-poses", this.poses.checked ? "yes" : "no");
      changed();
    });
    const reset = make("button", { type: "button", className: "quiet" }, "Reset");
    reset.addEventListener("click", () => this.sliders.forEach(({ set }) => set(100)));
    this.motion = make("button", { type: "button" }, "Motion energy");
    this.motion.title = "Show how much the picture changes over time";
    this.motion.addEventListener("click", () => computeMotion());
    const content = make(
      "div",
      { className: "popover" },
      ...this.sliders.map(({ element }) => element),
      make("label", { className: "check" }, this.poses, " poses over the video"),
      make("div", { className: "row" }, this.motion, reset),
    );
    this.element = make("details", { className: "video-settings" }, make("summary", { title: "Brightness, contrast and motion of the video" }, "video"), content);
    document.addEventListener("pointerdown", (event) => {
      if (!this.element.contains(event.target)) this.element.open = false;
    });
    state.watch(["recording", "signals", "motion"], () => {
      this.element.hidden = !state.recording?.cameras.length;
      this.motion.disabled = Boolean(state.signals?.motion || state.motion);
      this.motion.textContent = state.motion ? `Motion energy ${state.motion}` : "Motion energy";
    });
    state.addEventListener("signals", () => {
      const { signals, recording } = state;
      if (signals && recording.cameras.length && recording.n_frames && !signals.motion && !signals.lanes.length) computeMotion();
    });
  }
}

/** Compute the motion energy in the background, and show it as a lane. */
async function computeMotion() {
  const { index } = state.recording;
  if (computeMotion.index === index) return;
  computeMotion.index = index;
  try {
    const show = (job) => state.recording.index === index && state.set({ motion: `${Math.floor(job.fraction * 100)} %` });
    await follow(await postJson(`recordings/${index}/motion`, {}), show);
    const signals = await fetchJson(`recordings/${index}/signals`);
    if (state.recording.index === index) state.set({ motion: null, signals });
  } catch (error) {
    if (state.recording.index === index) {
      state.set({ motion: null });
      showMessage(`The motion energy cannot be computed: ${error.message}`, true);
    }
  }
  if (computeMotion.index === index) computeMotion.index = null;
}

function slider(name) {
  const input = make("input", { type: "range", min: 40, max: 300, step: 5, value: read(name), name });
  const set = (value) => {
    input.value = value;
    localStorage.setItem(`video-${name}`, value);
    changed();
  };
  input.addEventListener("input", () => set(Number(input.value)));
  return { set, element: make("label", {}, name, input) };
}

function changed() {
  document.dispatchEvent(new Event("videosettings"));
}
