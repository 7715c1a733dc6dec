// Tiles of the timeline: asked for when they come into sight, kept, and replaced when a track changes.

import { say } from "./dom.js";
import { ask } from "./server.js";

export const STRETCHES = 512;
const KEPT = 600;
const AT_ONCE = 4;

/** The tiles of one recording. */
export class Tiles {
  #recordingIndex;
  #nFrames;
  #arrived;
  #tiles = new Map();
  #wanted = [];
  #underWay = 0;
  #closed = false;

  constructor(recordingIndex, nFrames, arrived) {
    this.#recordingIndex = recordingIndex;
    this.#nFrames = nFrames;
    this.#arrived = arrived;
  }

  /** Forget everything; answers that are still to come are not wanted any more. */
  close() {
    this.#closed = true;
    this.#tiles.clear();
    this.#wanted = [];
  }

  /** The level at which the whole recording is one tile. */
  get coarsest() {
    return Math.max(0, Math.ceil(Math.log2(Math.max(this.#nFrames, 1) / STRETCHES)));
  }

  /** The level whose stretches are at most as wide as a pixel. */
  levelFor(framesPerPixel) {
    return Math.min(Math.max(0, Math.floor(Math.log2(framesPerPixel))), this.coarsest);
  }

  /** The numbers of the tiles of a level that hold some of these frames. */
  between(level, from, to) {
    const width = STRETCHES * 2 ** level;
    const last = Math.max(Math.ceil(Math.min(to, this.#nFrames) / width) - 1, 0);
    const found = [];
    for (let index = Math.max(Math.floor(from / width), 0); index <= last; index++) found.push(index);
    return found;
  }

  /** What is there of a lane's tile: its own content, perhaps an older one, or else that of a coarser tile. */
  find(lane, level, index) {
    for (let up = 0; level + up <= this.coarsest; up++) {
      const at = Math.floor(index / 2 ** up);
      const content = this.#tiles.get(`${level + up}/${at}`)?.get(lane.id);
      if (content?.data) return { content, level: level + up, index: at };
    }
    return null;
  }

  /** Ask for what is missing of some lanes in some tiles, [level, index] each, in this order; what was wanted before is forgotten. */
  want(lanes, places) {
    this.#wanted = [];
    for (const [level, index] of places) {
      const there = this.#tiles.get(`${level}/${index}`);
      const missing = lanes.filter((lane) => there?.get(lane.id)?.asked !== lane.version);
      if (missing.length) this.#wanted.push({ level, index, lanes: missing });
    }
    this.#next();
  }

  #next() {
    while (this.#wanted.length && this.#underWay < AT_ONCE) {
      const { level, index, lanes } = this.#wanted.shift();
      this.#underWay++;
      this.#fetch(level, index, lanes).finally(() => {
        this.#underWay--;
        this.#next();
      });
    }
  }

  async #fetch(level, index, lanes) {
    const tile = this.#tile(level, index);
    for (const lane of lanes) tile.set(lane.id, { version: null, data: null, ...tile.get(lane.id), asked: lane.version });
    try {
      const found = await ask(`recordings/${this.#recordingIndex}/tiles`, { level, index, lane: lanes.map((lane) => lane.query) });
      if (this.#closed) return;
      lanes.forEach((lane, i) => tile.set(lane.id, { version: lane.version, asked: lane.version, data: unpack(found[i]) }));
      this.#arrived(level, index);
    } catch (error) {
      if (!this.#closed) say(error.message, true);
    }
  }

  #tile(level, index) {
    const key = `${level}/${index}`;
    const tile = this.#tiles.get(key) ?? new Map();
    this.#tiles.delete(key);
    this.#tiles.set(key, tile); // now the youngest
    for (const old of this.#tiles.keys()) {
      if (this.#tiles.size <= KEPT) break;
      if (!old.startsWith(`${this.coarsest}/`)) this.#tiles.delete(old); // the coarsest stands in for all that is missing
    }
    return tile;
  }
}

function unpack(data) {
  for (const name of ["shares", "low", "high", "mean"]) {
    if (typeof data[name] === "string") data[name] = Uint8Array.from(atob(data[name]), (letter) => letter.charCodeAt(0));
  }
  return data;
}
