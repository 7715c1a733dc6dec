// Playback: by the clock of the video where it has a picture, else by that of the browser.

import { state } from "./state.js";

export const SPEEDS = [0.1, 0.25, 0.5, 1, 1.5, 2, 4, 8, 16, 32];
const MAX_VIDEO_SPEED = 16; // browsers play no video faster
const MAX_DRIFT = 0.1; // seconds of playback between two cameras

class Player {
  video = null; // that of the first camera, while a recording with a video is open
  others = []; // those of the other cameras
  clock = null; // {rate, times}: start of each frame in seconds if the frame rate of the video varies, else null
  #position = 0;
  #last = 0;

  constructor() {
    state.addEventListener("frame", () => {
      if (state.byPlayer) return;
      this.#position = state.frame;
      this.show();
    });
    state.addEventListener("recording", () => {
      if (!state.recording) this.pause();
    });
  }

  /** The time of the middle of a frame in seconds from the start of the recording. */
  timeOf(frame) {
    const { rate, times } = this.clock ?? { rate: state.rate, times: null };
    if (!times) return (frame + 0.5) / rate;
    const last = times.length - 1;
    const at = Math.min(Math.max(Math.floor(frame), 0), last);
    const end = at < last ? times[at + 1] : times[last] + 1 / rate;
    return (times[at] + end) / 2 + Math.max(frame - last, 0) / rate;
  }

  /** The frame at a time in seconds from the start of the recording. */
  frameAt(time) {
    const { rate, times } = this.clock ?? { rate: state.rate, times: null };
    if (!times || time >= times.at(-1)) return Math.floor((time - (times?.at(-1) ?? 0)) * rate + 1e-3) + (times ? times.length - 1 : 0);
    let [low, high] = [0, times.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time + 1e-3) low = middle;
      else high = middle;
    }
    return low;
  }

  /** Show exactly the current frame in all cameras. */
  show() {
    for (const video of this.#videos) {
      const time = this.timeOf(this.#position) + video.offset;
      video.classList.toggle("outside", !isInside(video, time));
      video.currentTime = Math.max(time, 0);
    }
  }

  toggle() {
    if (state.playing) this.pause();
    else this.play();
  }

  play() {
    if (!state.recording) return;
    if (state.frame >= state.nFrames - 1) state.seek(0);
    this.#position = state.frame;
    this.#last = performance.now();
    state.set({ playing: true });
    this.#applySpeed();
    this.#follow();
    requestAnimationFrame((now) => this.#tick(now));
  }

  pause() {
    for (const video of this.#videos) video.pause();
    if (!state.playing) return;
    state.set({ playing: false });
    this.#position = state.frame;
    this.show();
  }

  /** Choose the next higher or lower speed. */
  faster(up = true) {
    const speed = SPEEDS[SPEEDS.indexOf(state.speed) + (up ? 1 : -1)];
    if (speed) this.setSpeed(speed);
  }

  /** Play at a speed; a video at most at 16×. */
  setSpeed(speed) {
    state.set({ speed });
    this.#applySpeed();
  }

  get #videos() {
    return [this.video, ...this.others].filter(Boolean);
  }

  #applySpeed() {
    if (this.video && state.speed > MAX_VIDEO_SPEED) state.set({ speed: MAX_VIDEO_SPEED });
    for (const video of this.#videos) video.playbackRate = state.speed;
  }

  /** Start the videos that have a picture at the current position, stop the others, and correct the drift of the other cameras. */
  #follow() {
    for (const video of this.#videos) {
      const time = this.timeOf(this.#position) + video.offset;
      const inside = isInside(video, time);
      video.classList.toggle("outside", !inside);
      if (!inside) video.pause();
      else if (video.paused) {
        if (Math.abs(video.currentTime - time) > MAX_DRIFT / 2) video.currentTime = time;
        video.play().catch((error) => {
          if (error.name === "NotSupportedError" && this.video === video) this.video = null; // it must not stop the clock
        });
      } else if (video !== this.video && !video.seeking && Math.abs(video.currentTime - time) > MAX_DRIFT * Math.max(state.speed, 1)) {
        video.currentTime = time;
      }
    }
  }

  /** Play the loop from its start. */
  #again() {
    state.seek(state.loop[0]);
    requestAnimationFrame((next) => this.#tick(next));
  }

  #tick(now) {
    if (!state.playing) return;
    const { video } = this;
    const elapsed = ((now - this.#last) / 1000) * state.rate * state.speed;
    this.#last = now;
    if (video && !video.paused && !video.ended) this.#position = this.frameAt(video.currentTime - video.offset);
    else this.#position += elapsed;
    if (state.loop && (this.#position >= state.loop[1] || this.#position < state.loop[0])) return this.#again();
    state.seek(Math.floor(this.#position), { byPlayer: true });
    state.byPlayer = false;
    const isOver = video?.ended && !state.signals?.poses && !state.signals?.lanes.length; // else the recording goes on without the video
    if (this.#position >= state.nFrames - 1 || isOver) return this.pause();
    this.#follow();
    requestAnimationFrame((next) => this.#tick(next));
  }
}

/** Whether a video has a picture at a time; unknown while it is loaded. */
function isInside(video, time) {
  return time >= 0 && !(time >= video.duration);
}

export const player = new Player();
