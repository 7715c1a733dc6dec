// The stage: the video and the keypoints of the animals, over the video or alone.

import { resizeCanvas, themeColors } from "./canvas.js";
import { make, showMessage } from "./dom.js";
import { ProgressBar } from "./jobs.js";
import { player } from "./player.js";
import { address, fetchBytes, fetchJson, postJson } from "./server.js";
import { state } from "./state.js";
import { applyFilter, posesShown } from "./video_settings.js";
import { Zones } from "./zones.js";

const CHUNK = 1024;
const MAX_CHUNKS = 12;
const TRAIL = 1.5; // seconds
const FLOATS = 3; // x, y, confidence
const PAD = 10; // pixels around poses without a video

class Stage extends HTMLElement {
  #chunks = new Map();
  #recordingIndex = -1;
  #drawing = false;

  connectedCallback() {
    this.canvas = make("canvas", { role: "img", ariaLabel: "Keypoints at the playhead" });
    this.note = make("p", { className: "note", hidden: true });
    this.views = make("div", { className: "views" });
    this.zones = new Zones(this);
    this.append(this.views, this.canvas, this.note, this.zones.svg, this.zones.tools);
    document.addEventListener("videosettings", () => {
      applyFilter(this);
      this.redraw();
    });
    state.watch(["recording", "signals"], () => this.#change());
    state.addEventListener("frame", () => this.redraw());
    document.addEventListener("themechange", () => this.redraw());
    new ResizeObserver(() => this.redraw()).observe(this);
  }

  #change() {
    const { recording } = state;
    if (!recording) return;
    if (recording.index !== this.#recordingIndex) {
      this.#recordingIndex = recording.index;
      this.#chunks.clear();
      this.#openCameras(recording);
    }
    const note = recording.locked || recording.video_note;
    this.note.textContent = note;
    this.note.hidden = !note;
    this.hidden = !recording.video && !state.signals?.poses && !note;
    if (this.hidden) this.zones.place(null);
    this.redraw();
  }

  /** Show the videos of all cameras; their codecs and the clock of the frames follow later. */
  async #openCameras(recording) {
    for (const video of this.views.querySelectorAll("video")) video.removeAttribute("src"); // stops loading
    this.views.replaceChildren();
    Object.assign(player, { video: null, others: [], clock: null });
    if (!recording.cameras.length) return;
    this.cameras = recording.cameras.map((camera, number) => ({ ...camera, number }));
    this.cameras.forEach((camera) => {
      camera.view = make("div", { className: "view" });
      this.views.append(camera.view);
      this.#play(camera);
    });
    const { index } = recording;
    try {
      const { rate, irregular, cameras, notes } = await fetchJson(`recordings/${index}/cameras`);
      const times = irregular ? new Float64Array(await fetchBytes(`recordings/${index}/frame_times`)) : null;
      if (index !== this.#recordingIndex) return;
      player.clock = { rate, times };
      this.cameras.forEach((camera, number) => {
        camera.info = cameras[number];
        if (camera.failed) this.#offerConversion(camera);
      });
      if (notes.length) this.note.title = notes.join(" ");
      if (!state.playing) player.show();
    } catch (error) {
      showMessage(error.message, true);
    }
  }

  /** Show the video of a camera, or its converted version. */
  #play(camera, converted = false) {
    const index = this.#recordingIndex;
    const query = `camera=${camera.number}${converted ? "&converted=1" : ""}`;
    const source = address(`recordings/${index}/video?${query}`);
    const video = make("video", { src: source, muted: true, playsInline: true, preload: "auto", disablePictureInPicture: true });
    video.offset = camera.offset;
    video.addEventListener("loadedmetadata", () => {
      if (!video.videoWidth) return this.#fail(camera, video); // only its sound can be played
      if (!state.playing) player.show();
      this.redraw();
    });
    video.addEventListener("error", () => this.#fail(camera, video));
    if (camera.number === 0) player.video = video;
    else player.others.push(video);
    camera.failed = false;
    camera.view.replaceChildren(video);
    applyFilter(this);
  }

  /** Remove a video that the browser cannot play; keypoints and signals can still be labeled. */
  #fail(camera, video) {
    if (!video.isConnected) return;
    if (player.video === video) {
      player.video = null;
      showMessage("The browser cannot play this video. Until it is converted, playback counts as watched only with keypoints or signals.", true);
    }
    player.others = player.others.filter((other) => other !== video);
    video.remove();
    camera.failed = true;
    this.#offerConversion(camera);
    this.redraw();
  }

  #offerConversion(camera) {
    const { info } = camera;
    if (info?.converted && !camera.tried) {
      camera.tried = true;
      return this.#play(camera, true);
    }
    const codec = info?.codec ? ` (${info.codec})` : "";
    const text = info?.error || `The browser cannot play ${camera.name}${codec}.`;
    const box = make("div", { className: "unplayable" }, make("p", {}, text));
    if (info && !info.error && !camera.tried) {
      const button = make("button", { type: "button", className: "primary" }, "Convert for this browser");
      button.addEventListener("click", () => this.#convert(camera, box));
      box.append(button, make("p", { className: "hint" }, "A copy in H.264 is saved in the cache; the file itself is not changed."));
    }
    camera.view.replaceChildren(box);
  }

  async #convert(camera, box) {
    const index = this.#recordingIndex;
    const progress = new ProgressBar();
    box.replaceChildren(make("p", {}, `Converting ${camera.name}`), progress.element);
    try {
      const job = await progress.follow(await postJson(`recordings/${index}/convert`, { camera: camera.number }));
      if (index !== this.#recordingIndex) return;
      if (job.state === "cancelled") return this.#offerConversion(camera);
      camera.tried = true;
      this.#play(camera, true);
      showMessage([`${camera.name} is converted.`, ...job.notes].join(" "), job.notes.length > 0);
    } catch (error) {
      box.replaceChildren(make("p", {}, error.message));
    }
  }

  /** Draw again, soon. */
  redraw() {
    if (this.#drawing || this.hidden) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#draw();
    });
  }

  #draw() {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!width || !height) return;
    const context = resizeCanvas(this.canvas, width, height);
    const poses = state.signals?.poses;
    this.#placeZones(poses);
    if (!poses || state.frame >= poses.n_frames) return;
    if (player.video && !player.video.classList.contains("outside") && !posesShown()) return;
    const ink = themeColors();
    const placement = this.#placement(poses, width, height);
    if (!player.video || player.video.classList.contains("outside")) {
      context.strokeStyle = ink.line;
      context.lineWidth = 1;
      context.strokeRect(placement.left, placement.top, placement.width, placement.height);
    }
    const points = this.#frame(state.frame, poses);
    if (!points) return;
    if (!poses.individuals.some((_, who) => middleOf(points, who, poses))) {
      context.fillStyle = ink.faint;
      context.font = ink.font;
      context.fillText("no keypoints in this frame", placement.left + 10, placement.top + 18);
    }
    poses.individuals.forEach((name, who) => {
      const color = ink.animals[who % ink.animals.length];
      this.#drawTrail(context, who, poses, placement, color);
      drawAnimal(context, points, who, poses, placement, color, name);
    });
    this.#frame(Math.min(state.frame + CHUNK / 2, poses.n_frames - 1), poses); // load the next chunk in advance
  }

  /** Zones are drawn on the picture of the first camera or, without one, on the arena of the poses. */
  #placeZones(poses) {
    const { video } = player;
    const view = this.views.firstElementChild;
    if (video?.videoWidth && view) this.zones.place([0, 0, video.videoWidth, video.videoHeight], view, 0);
    else this.zones.place(poses ? poses.box : null, view ?? this.canvas, PAD);
  }

  /** Position of the arena on the stage, and the scale of coordinates. */
  #placement(poses, width, height) {
    const { video } = player;
    const view = this.views.firstElementChild; // keypoints belong to the first camera
    if (view) [width, height] = [view.clientWidth, view.clientHeight];
    const box = video?.videoWidth ? [0, 0, video.videoWidth, video.videoHeight] : poses.box;
    const pad = video ? 0 : PAD;
    const scale = Math.min((width - 2 * pad) / (box[2] - box[0] || 1), (height - 2 * pad) / (box[3] - box[1] || 1));
    const [w, h] = [(box[2] - box[0]) * scale, (box[3] - box[1]) * scale];
    const [left, top] = [(width - w) / 2, (height - h) / 2];
    return { left, top, width: w, height: h, x: (x) => left + (x - box[0]) * scale, y: (y) => top + (y - box[1]) * scale };
  }

  /** The coordinates of one frame (animals, keypoints, FLOATS) as a flat array; null while they are loaded. */
  #frame(frame, poses) {
    const index = Math.floor(frame / CHUNK);
    const chunk = this.#chunks.get(index);
    if (chunk === undefined) this.#fetch(index);
    if (!chunk) return null;
    const size = poses.individuals.length * poses.keypoints.length * FLOATS;
    return chunk.subarray((frame - index * CHUNK) * size, (frame - index * CHUNK + 1) * size);
  }

  async #fetch(index) {
    const recordingIndex = this.#recordingIndex;
    this.#chunks.set(index, null);
    for (const old of this.#chunks.keys()) if (this.#chunks.size > MAX_CHUNKS && Math.abs(old - index) > 2) this.#chunks.delete(old);
    try {
      const bytes = await fetchBytes(`recordings/${recordingIndex}/poses`, { start: index * CHUNK, stop: (index + 1) * CHUNK });
      if (recordingIndex === this.#recordingIndex) this.#chunks.set(index, new Float32Array(bytes));
    } catch (error) {
      showMessage(error.message, true);
    }
    this.redraw();
  }

  #drawTrail(context, who, poses, placement, color) {
    const count = Math.min(Math.round(TRAIL * state.rate), 200);
    context.beginPath();
    let down = false;
    for (let frame = Math.max(state.frame - count, 0); frame <= state.frame; frame += Math.max(Math.floor(count / 40), 1)) {
      const points = this.#chunks.get(Math.floor(frame / CHUNK)) ? this.#frame(frame, poses) : null;
      const middle = points && middleOf(points, who, poses);
      if (!middle) down = false;
      else {
        if (down) context.lineTo(placement.x(middle[0]), placement.y(middle[1]));
        else context.moveTo(placement.x(middle[0]), placement.y(middle[1]));
        down = true;
      }
    }
    context.globalAlpha = 0.35;
    context.strokeStyle = color;
    context.lineWidth = 1.5;
    context.stroke();
    context.globalAlpha = 1;
  }
}

customElements.define("eb-stage", Stage);

function point(points, who, keypoint, poses) {
  const at = (who * poses.keypoints.length + keypoint) * FLOATS;
  return Number.isNaN(points[at]) ? null : [points[at], points[at + 1], points[at + 2]];
}

function middleOf(points, who, poses) {
  const visible = poses.keypoints.map((_, k) => point(points, who, k, poses)).filter(Boolean);
  return visible.length ? [0, 1].map((axis) => visible.reduce((sum, p) => sum + p[axis], 0) / visible.length) : null;
}

function drawAnimal(context, points, who, poses, placement, color, name) {
  context.strokeStyle = context.fillStyle = color;
  context.lineWidth = 2.5;
  context.lineCap = "round";
  for (const bone of poses.bones) {
    const [a, b] = bone.map((k) => point(points, who, k, poses));
    if (!a || !b) continue;
    context.beginPath();
    context.moveTo(placement.x(a[0]), placement.y(a[1]));
    context.lineTo(placement.x(b[0]), placement.y(b[1]));
    context.stroke();
  }
  poses.keypoints.forEach((_, k) => {
    const p = point(points, who, k, poses);
    if (!p) return;
    context.globalAlpha = Number.isNaN(p[2]) ? 1 : Math.max(Math.min(p[2], 1), 0.25);
    context.beginPath();
    context.arc(placement.x(p[0]), placement.y(p[1]), k === 0 ? 4.5 : 3, 0, 2 * Math.PI);
    context.fill();
    context.globalAlpha = 1;
  });
  const middle = middleOf(points, who, poses);
  if (middle && poses.individuals.length > 1) {
    context.font = themeColors().font;
    context.fillText(name, placement.x(middle[0]) + 12, placement.y(middle[1]) - 12);
  }
}
