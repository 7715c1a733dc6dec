// Playback: by the clock of the video if there is one, else by that of the browser.

import { state } from "./state.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32];

class Player {
  video = null; // set by the stage while a recording with a video is open
  #position = 0;
  #last = 0;

  constructor() {
    state.addEventListener("frame", () => {
      if (state.byPlayer) return;
      this.#position = state.frame;
      if (this.video) this.video.currentTime = (state.frame + 0.5) / state.rate;
    });
    state.addEventListener("recording", () => {
      if (!state.recording) this.pause();
    });
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
    this.video?.play().catch(() => (this.video = null)); // a video that the browser cannot play must not stop the clock
    requestAnimationFrame((now) => this.#tick(now));
  }

  pause() {
    this.video?.pause();
    if (!state.playing) return;
    state.set({ playing: false });
    if (this.video) this.video.currentTime = (state.frame + 0.5) / state.rate; // show exactly the current frame
  }

  /** Choose the next higher or lower speed. */
  faster(up = true) {
    const speedIndex = SPEEDS.indexOf(state.speed) + (up ? 1 : -1);
    if (SPEEDS[speedIndex]) state.set({ speed: SPEEDS[speedIndex] });
    this.#applySpeed();
  }

  #applySpeed() {
    if (this.video) this.video.playbackRate = Math.min(Math.max(state.speed, 0.1), 16);
  }

  /** Play the loop from its start. */
  #again() {
    state.seek(state.loop[0]);
    requestAnimationFrame((next) => this.#tick(next));
  }

  #tick(now) {
    if (!state.playing) return;
    if (this.video) this.#position = Math.floor(this.video.currentTime * state.rate + 1e-3);
    else this.#position += ((now - this.#last) / 1000) * state.rate * state.speed;
    this.#last = now;
    if (state.loop && (this.#position >= state.loop[1] || this.#position < state.loop[0])) return this.#again();
    state.seek(Math.floor(this.#position), { byPlayer: true });
    state.byPlayer = false;
    if (this.#position >= state.nFrames - 1 || this.video?.ended) return this.pause();
    requestAnimationFrame((next) => this.#tick(next));
  }
}

export const player = new Player();
