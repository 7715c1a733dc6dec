// Tiles of the timeline: requested when they become visible, cached, and replaced when a track changes.

import { showMessage } from "./dom.js";
import { fetchJson } from "./server.js";

export const BINS = 512;
const MAX_TILES = 600;
const MAX_REQUESTS = 4;

/** The tiles of one recording. */
export class Tiles {
  #recordingIndex;
  #nFrames;
  #onArrival;
  #tiles = new Map();
  #queue = [];
  #active = 0;
  #closed = false;

  constructor(recordingIndex, nFrames, onArrival) {
    this.#recordingIndex = recordingIndex;
    this.#nFrames = nFrames;
    this.#onArrival = onArrival;
  }

  /** Clear the cache, and ignore pending responses. */
  close() {
    this.#closed = true;
    this.#tiles.clear();
    this.#queue = [];
  }

  /** The level at which one tile covers the entire recording. */
  get coarsest() {
    return Math.max(0, Math.ceil(Math.log2(Math.max(this.#nFrames, 1) / BINS)));
  }

  /** The level with bins at most as wide as a pixel. */
  levelFor(framesPerPixel) {
    return Math.min(Math.max(0, Math.floor(Math.log2(framesPerPixel))), this.coarsest);
  }

  /** The indices of the tiles of a level that overlap with a range of frames. */
  between(level, from, to) {
    const width = BINS * 2 ** level;
    const last = Math.max(Math.ceil(Math.min(to, this.#nFrames) / width) - 1, 0);
    const indices = [];
    for (let index = Math.max(Math.floor(from / width), 0); index <= last; index++) indices.push(index);
    return indices;
  }

  /** The cached content of a tile of a lane, possibly outdated; else that of a coarser tile; else null. */
  find(lane, level, index) {
    for (let up = 0; level + up <= this.coarsest; up++) {
      const at = Math.floor(index / 2 ** up);
      const content = this.#tiles.get(`${level + up}/${at}`)?.get(lane.id);
      if (content?.data) return { content, level: level + up, index: at };
    }
    return null;
  }

  /** Request the missing data of lanes in tiles, [level, index] each, in this order. Replaces the queue of earlier requests. */
  request(lanes, tiles) {
    this.#queue = [];
    for (const [level, index] of tiles) {
      const tile = this.#tiles.get(`${level}/${index}`);
      const missing = lanes.filter((lane) => tile?.get(lane.id)?.requested !== lane.version);
      if (missing.length) this.#queue.push({ level, index, lanes: missing });
    }
    this.#next();
  }

  #next() {
    while (this.#queue.length && this.#active < MAX_REQUESTS) {
      const { level, index, lanes } = this.#queue.shift();
      this.#active++;
      this.#fetch(level, index, lanes).finally(() => {
        this.#active--;
        this.#next();
      });
    }
  }

  async #fetch(level, index, lanes) {
    const tile = this.#tile(level, index);
    for (const lane of lanes) tile.set(lane.id, { version: null, data: null, ...tile.get(lane.id), requested: lane.version });
    try {
      const response = await fetchJson(`recordings/${this.#recordingIndex}/tiles`, { level, index, lane: lanes.map((lane) => lane.query) });
      if (this.#closed) return;
      lanes.forEach((lane, i) => tile.set(lane.id, { version: lane.version, requested: lane.version, data: unpack(response[i]) }));
      this.#onArrival(level, index);
    } catch (error) {
      if (!this.#closed) showMessage(error.message, true);
    }
  }

  #tile(level, index) {
    const key = `${level}/${index}`;
    const tile = this.#tiles.get(key) ?? new Map();
    this.#tiles.delete(key);
    this.#tiles.set(key, tile); // now the most recently used
    for (const old of this.#tiles.keys()) {
      if (this.#tiles.size <= MAX_TILES) break;
      if (!old.startsWith(`${this.coarsest}/`)) this.#tiles.delete(old); // the coarsest tile replaces all missing ones
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
