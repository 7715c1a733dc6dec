// Zones of the arena: drawn over the video or the poses, moved and reshaped with the mouse, or edited as numbers. Every change is saved
// at once, in the folder of labels; zones of the user's own zones.csv are shown, and not changed.

import { make, showMessage } from "./dom.js";
import { fetchJson, postJson } from "./server.js";
import { state } from "./state.js";

const SVG = "http://www.w3.org/2000/svg";
const MIN_DRAG = 4; // pixels of the screen; a shorter drag is a click
const CLOSE = 10; // pixels of the screen around the first corner, in which a click closes the polygon
const COLORS = 4; // of zones, see viewer.css
const HINTS = {
  rectangle: "Drag from one corner to the opposite one.",
  circle: "Drag from the center to the border.",
  polygon: "Click the corners; click the first one again, or press Enter, to close it.",
};

export class Zones {
  #loaded = { revision: "", file: "", recording: "", zones: [], fixed: [] };
  #drawing = null; // the zone that is drawn: {shape, points}
  #tool = null; // the shape that the next drag or click draws
  #selected = null;
  #undo = [];
  #index = -1;
  #scale = 1; // pixels of the screen per pixel of the image

  constructor(stage) {
    this.stage = stage;
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("class", "zones");
    this.tools = make("div", { className: "zone-tools", hidden: true, role: "region", ariaLabel: "Zones" });
    this.svg.addEventListener("pointerdown", (event) => this.#press(event));
    this.svg.addEventListener("pointermove", (event) => this.#preview(event));
    document.addEventListener("keydown", (event) => this.#keys(event), { capture: true });
    new ResizeObserver(() => this.#draw()).observe(this.svg);
    state.addEventListener("recording", () => this.#load());
  }

  get isOpen() {
    return !this.tools.hidden;
  }

  /** Whether the open recording has a picture or poses to draw on. */
  get isPossible() {
    return Boolean(this.box);
  }

  /** Show where the picture is: its coordinates [x0, y0, x1, y1], and the element that it fills; null if there is none. */
  place(box, element, pad) {
    this.box = box;
    this.svg.classList.toggle("nothing", !box);
    document.getElementById("zones").disabled = !box;
    if (!box) return;
    this.svg.setAttribute("viewBox", `${box[0]} ${box[1]} ${box[2] - box[0] || 1} ${box[3] - box[1] || 1}`);
    const [outer, inner] = [this.stage, element].map((each) => each.getBoundingClientRect());
    const [left, top, width, height] = [inner.left - outer.left, inner.top - outer.top, inner.width, inner.height];
    Object.assign(this.svg.style, { left: `${left + pad}px`, top: `${top + pad}px`, width: `${width - 2 * pad}px`, height: `${height - 2 * pad}px` });
    this.#draw();
  }

  /** Open or close the tools. */
  toggle(isOpen = !this.isOpen) {
    if (isOpen && !this.isPossible) return showMessage("Zones are drawn on a video or on poses; this recording has neither.");
    this.tools.hidden = !isOpen;
    this.svg.classList.toggle("editing", isOpen);
    this.stage.classList.toggle("zoning", isOpen);
    this.stage.redraw();
    document.getElementById("zones").setAttribute("aria-pressed", String(isOpen));
    if (!isOpen) [this.#tool, this.#drawing, this.#selected] = [null, null, null];
    this.#fill();
    this.#draw();
    if (isOpen) this.tools.querySelector("button")?.focus();
    else document.activeElement?.blur();
  }

  async #load() {
    const { index } = state.recording;
    if (index === this.#index) return;
    this.#index = index;
    [this.#undo, this.#selected, this.#drawing] = [[], null, null];
    try {
      const loaded = await fetchJson(`recordings/${index}/zones`);
      if (index === this.#index) this.#loaded = loaded;
    } catch (error) {
      this.#loaded = { revision: "", file: "", recording: "", zones: [], fixed: [] };
      showMessage(error.message, true);
    }
    this.#fill();
    this.#draw();
  }

  /** The drawn zones of this recording. */
  get #zones() {
    const { zones, recording } = this.#loaded;
    return zones.filter((zone) => zone.recording === recording || (!zone.recording && !zones.some((z) => z.name === zone.name && z.recording === recording)));
  }

  /** Save changed zones; returns whether they were saved. */
  async #save(zones, { undo = true } = {}) {
    const before = this.#loaded.zones;
    this.#loaded = { ...this.#loaded, zones };
    this.#draw();
    try {
      const { revision, zones: saved } = await postJson("zones", { revision: this.#loaded.revision, zones });
      this.#loaded = { ...this.#loaded, revision, zones: saved };
      if (undo) this.#undo.push(before);
      const chosen = this.#selected && saved.find((zone) => zone.name === this.#selected.name && zone.recording === this.#selected.recording);
      this.#selected = chosen ?? null;
      this.#say("");
    } catch (error) {
      this.#loaded = { ...this.#loaded, zones: before };
      this.#selected = null;
      if (error.status === 409) this.#loaded = await fetchJson(`recordings/${this.#index}/zones`).catch(() => this.#loaded);
      this.#say(error.message);
      this.#fill();
      this.#draw();
      return false;
    }
    this.#fill();
    this.#draw();
    return true;
  }

  #replace(zone, changed) {
    this.#selected = changed;
    return this.#save(this.#loaded.zones.flatMap((other) => (other === zone ? [changed].filter(Boolean) : [other])));
  }

  #say(text) {
    if (this.problem) this.problem.textContent = text;
    this.failure = text;
  }

  // The list

  #fill() {
    if (!this.isOpen) return this.tools.replaceChildren();
    const draw = Object.keys(HINTS).map((shape) => {
      const button = make("button", { type: "button", ariaPressed: String(this.#tool === shape) }, shape);
      button.addEventListener("click", () => this.#choose(this.#tool === shape ? null : shape));
      return button;
    });
    const undo = make("button", { type: "button", className: "quiet", disabled: !this.#undo.length }, "Undo");
    undo.addEventListener("click", () => this.#save(this.#undo.pop(), { undo: false }));
    const close = make("button", { type: "button", className: "quiet", ariaLabel: "Close the zones" }, "Close");
    close.addEventListener("click", () => this.toggle(false));
    this.problem = make("p", { className: "dialog-error", role: "alert" }, this.failure ?? "");
    const rows = [...this.#zones.map((zone) => this.#row(zone)), ...this.#loaded.fixed.map(fixedRow)];
    const empty = make("p", { className: "hint" }, "No zones yet. Choose a shape, then draw it on the picture.");
    const hint = this.#tool ? HINTS[this.#tool] : "Drag a zone to move it, or its corners to reshape it.";
    this.tools.replaceChildren(
      make("h2", {}, "Zones", make("span", {}, undo, close)),
      make("p", { className: "shapes" }, ...draw),
      rows.length ? make("ul", {}, ...rows) : empty,
      ...(rows.length || this.#tool ? [make("p", { className: "hint" }, hint)] : []),
      this.problem,
      make("p", { className: "hint file" }, `Saved in ${this.#loaded.file}`),
    );
  }

  #row(zone) {
    const name = make("input", { value: zone.name, maxLength: 100, ariaLabel: "Name of the zone", autocomplete: "off", dir: "auto" });
    name.addEventListener("change", () => name.value.trim() && this.#replace(zone, { ...zone, name: name.value.trim() }));
    const everywhere = make("option", { value: "" }, "all recordings");
    const scope = make("select", { ariaLabel: `Recordings of ${zone.name}` }, everywhere, make("option", { value: this.#loaded.recording }, "this recording"));
    scope.value = zone.recording;
    scope.addEventListener("change", () => this.#replace(zone, { ...zone, recording: scope.value }));
    const points = make("input", { value: textOf(zone), ariaLabel: `Coordinates of ${zone.name} in pixels`, className: "points", autocomplete: "off" });
    points.title = { polygon: "corners: x y; x y; x y", rectangle: "opposite corners: x y; x y", circle: "center and radius: x y; r" }[zone.shape];
    points.addEventListener("change", () => this.#replace(zone, { ...zone, coordinates: points.value }));
    const remove = make("button", { type: "button", className: "quiet", ariaLabel: `Delete ${zone.name}` }, "✕");
    remove.addEventListener("click", () => this.#replace(zone, null));
    const row = make("li", { className: zone === this.#selected ? "selected" : "" }, name, scope, remove, points);
    row.addEventListener("focusin", () => {
      if (this.#selected === zone) return;
      this.#selected = zone;
      for (const other of this.tools.querySelectorAll("li")) other.classList.toggle("selected", other === row);
      this.#draw();
    });
    return row;
  }

  #choose(shape) {
    [this.#tool, this.#drawing] = [shape, null];
    this.svg.classList.toggle("drawing", Boolean(shape));
    this.#fill();
    this.#draw();
  }

  // Pointer and keys

  #at(event) {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return [round(x), round(y)];
  }

  #press(event) {
    if (!this.isOpen || event.button > 0) return;
    event.preventDefault();
    document.activeElement?.blur(); // saves a field that is being edited
    const start = this.#at(event);
    if (this.#tool === "polygon") return this.#corner(start);
    if (this.#tool) return this.#drag(event, (now) => (this.#drawing = { shape: this.#tool, points: [start, now] }), () => this.#finish());
    const { zone: number, handle } = event.target.dataset;
    const zone = this.#zones[Number(number)];
    if (number === undefined || !zone) {
      this.#selected = null;
      this.#fill();
      return this.#draw();
    }
    this.#selected = zone;
    this.#fill();
    let changed = zone;
    const move = (now) => {
      changed = handle === undefined ? moved(zone, now[0] - start[0], now[1] - start[1]) : reshaped(zone, Number(handle), now);
      this.#moving = [zone, changed];
    };
    this.#drag(event, move, () => {
      this.#moving = null;
      if (changed !== zone) this.#replace(zone, changed);
    });
    this.#draw();
  }

  #moving = null; // the zone that is dragged, and how it is now

  /** Follow the pointer until it is released. */
  #drag(event, move, end) {
    const from = [event.clientX, event.clientY];
    let isDrag = false;
    this.svg.setPointerCapture(event.pointerId);
    const follow = (next) => {
      isDrag ||= Math.hypot(next.clientX - from[0], next.clientY - from[1]) >= MIN_DRAG;
      if (!isDrag) return;
      move(this.#at(next));
      this.#draw();
    };
    const stop = () => {
      this.svg.removeEventListener("pointermove", follow);
      if (isDrag) end();
      this.#draw();
    };
    this.svg.addEventListener("pointermove", follow);
    this.svg.addEventListener("pointerup", stop, { once: true });
    this.svg.addEventListener("lostpointercapture", () => this.svg.removeEventListener("pointermove", follow), { once: true });
  }

  #corner(point) {
    const points = this.#drawing?.points ?? [];
    if (points.length >= 3 && distance(points[0], point) * this.#scale < CLOSE) return this.#finish();
    if (!points.length || distance(points.at(-1), point) * this.#scale >= MIN_DRAG) this.#drawing = { shape: "polygon", points: [...points, point] };
    this.#draw();
  }

  #preview(event) {
    if (this.#drawing?.shape !== "polygon") return;
    this.#drawing.next = this.#at(event);
    this.#draw();
  }

  /** Save the zone that was drawn, with a name to change. */
  async #finish() {
    const { shape, points } = this.#drawing ?? { points: [] };
    this.#drawing = null;
    if (shape === "polygon" && points.length < 3) return this.#say("A polygon needs three corners.");
    const coordinates = shape === "circle" ? [points[0], [round(distance(...points))]] : points;
    const used = new Set([...this.#loaded.zones, ...this.#loaded.fixed].map((zone) => zone.name));
    const number = Array.from({ length: used.size + 1 }, (_, i) => i + 1).find((i) => !used.has(`zone ${i}`));
    const zone = { name: `zone ${number}`, shape, coordinates, unit: "px", recording: "" };
    this.#selected = zone;
    this.#tool = null;
    this.svg.classList.remove("drawing");
    if (await this.#save([...this.#loaded.zones, zone])) this.tools.querySelector("li.selected input")?.select();
    else this.#fill();
  }

  #keys(event) {
    if (!this.isOpen || document.querySelector("dialog[open]")) return;
    const isTyping = event.target.matches?.("input, select, textarea");
    if (event.key === "Escape") {
      if (isTyping) event.target.blur();
      else if (this.#drawing || this.#tool) this.#choose(null);
      else this.toggle(false);
    } else if (event.key === "Enter" && isTyping && this.tools.contains(event.target)) event.target.blur();
    else if (event.key === "Enter" && this.#drawing) this.#finish();
    else if (["Delete", "Backspace"].includes(event.key) && !isTyping && this.#selected) this.#replace(this.#selected, null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Drawing

  #draw() {
    if (!this.box) return;
    this.#scale = this.svg.getScreenCTM()?.a || 1;
    const children = this.#loaded.fixed.map((zone) => this.#shape(zone, { fixed: true }));
    this.#zones.forEach((zone, number) => {
      const shown = this.#moving?.[0] === zone ? this.#moving[1] : zone;
      children.push(this.#shape(shown, { number, selected: zone === this.#selected }));
    });
    if (this.#drawing) children.push(this.#sketch(this.#drawing));
    this.svg.replaceChildren(...children.filter(Boolean));
  }

  #shape(zone, { number = 0, selected = false, fixed = false }) {
    const points = cornersOf(zone);
    if (!points) return null; // its coordinates are text that the server checks
    const group = svg("g", { class: `zone color-${(number % COLORS) + 1}${selected ? " selected" : ""}${fixed ? " fixed" : ""}` });
    const link = fixed ? {} : { "data-zone": number };
    const outline = zone.shape === "circle"
      ? svg("circle", { cx: points[0][0], cy: points[0][1], r: zone.coordinates[1][0], ...link })
      : svg("polygon", { points: points.join(" "), ...link });
    const [x, y] = zone.shape === "circle" ? [points[0][0], points[0][1] - zone.coordinates[1][0]] : top(points);
    const label = svg("text", { x: x + 6 / this.#scale, y: y + 15 / this.#scale, "font-size": 12 / this.#scale, "stroke-width": 3 / this.#scale });
    label.textContent = zone.name;
    group.append(outline, label);
    if (selected && this.isOpen) {
      for (const [handle, [cx, cy]] of handlesOf(zone).entries()) group.append(svg("circle", { class: "handle", cx, cy, r: 5 / this.#scale, ...link, "data-handle": handle }));
    }
    return group;
  }

  #sketch({ shape, points, next }) {
    const group = svg("g", { class: "zone sketch" });
    if (shape === "circle") group.append(svg("circle", { cx: points[0][0], cy: points[0][1], r: distance(...points) }));
    else if (shape === "rectangle") group.append(svg("polygon", { points: cornersOf({ shape, coordinates: points }).join(" ") }));
    else {
      group.append(svg("polyline", { points: [...points, ...(next ? [next] : [])].join(" ") }));
      for (const [cx, cy] of points) group.append(svg("circle", { class: "handle", cx, cy, r: 4 / this.#scale }));
    }
    return group;
  }
}

function fixedRow(zone) {
  return make("li", { className: "fixed", title: "Of your own zones.csv; not changed here" }, make("span", { dir: "auto" }, zone.name), make("small", {}, "your zones.csv"));
}

/** The corners of a polygon or rectangle, or the center of a circle; null if the coordinates are text. */
function cornersOf({ shape, coordinates }) {
  if (typeof coordinates === "string") return null;
  if (shape !== "rectangle") return shape === "circle" ? [coordinates[0]] : coordinates;
  const [[x0, y0], [x1, y1]] = coordinates;
  return [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
}

/** The points by which a zone is reshaped. */
function handlesOf(zone) {
  if (zone.shape !== "circle") return cornersOf(zone);
  const [[x, y], [r]] = zone.coordinates;
  return [[x + r, y]];
}

function reshaped(zone, handle, now) {
  const coordinates = zone.coordinates.map((point) => [...point]);
  if (zone.shape === "circle") coordinates[1] = [Math.max(round(distance(coordinates[0], now)), 0.1)];
  else if (zone.shape === "polygon") coordinates[handle] = now;
  else {
    coordinates[handle === 1 || handle === 2 ? 1 : 0][0] = now[0];
    coordinates[handle >= 2 ? 1 : 0][1] = now[1];
  }
  return { ...zone, coordinates };
}

function moved(zone, dx, dy) {
  const count = zone.shape === "circle" ? 1 : zone.coordinates.length;
  const shift = ([x, y]) => [round(x + dx), round(y + dy)];
  return { ...zone, coordinates: zone.coordinates.map((point, i) => (i < count ? shift(point) : point)) };
}

function textOf({ coordinates }) {
  return coordinates.map((point) => point.map((value) => Number(value.toFixed(2))).join(" ")).join("; ");
}

/** The corner at the top left, beside which the name is written. */
function top(points) {
  return points.reduce((best, point) => (point[0] + point[1] < best[0] + best[1] ? point : best));
}

function distance([x0, y0], [x1, y1]) {
  return Math.hypot(x1 - x0, y1 - y0);
}

function round(value) {
  return Math.round(value * 10) / 10;
}

function svg(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
