// Ethogram rasters that zoom and pan together.

import { behaviorColor, partColor } from "./colors.js";
import { firstAfter } from "./data.js";
import { drawing, element, painted, shape } from "./dom.js";
import { clock } from "./format.js";
import { layout, paint } from "./lanes.js";
import { behaviorLabel, legend } from "./panels.js";
import { clockStep, multiples } from "./scale.js";
import { onThemeChange } from "./theme.js";
import { hideTooltip, showTooltip } from "./tooltip.js";
import { View } from "./view.js";

const AXIS = 26;
const BESIDE = 12; // longer names are placed above their lanes
const KEYS = {
  ArrowLeft: (view) => view.pan(-0.15),
  ArrowRight: (view) => view.pan(0.15),
  PageUp: (view) => view.pan(-0.9),
  PageDown: (view) => view.pan(0.9),
  Home: (view) => view.show(0, view.span),
  End: (view) => view.show(view.duration, view.span),
  "+": (view) => view.zoom(0.7),
  "=": (view) => view.zoom(0.7),
  "-": (view) => view.zoom(1 / 0.7),
  0: (view) => view.reset(),
};

export function wireRaster(figure, group, container) {
  const duration = Math.max(0.001, ...figure.recordings.map((recording) => recording.n_frames / recording.rate));
  let requested = false;
  const view = new View(duration, () => {
    if (!requested) requestAnimationFrame(draw);
    requested = true;
  });
  const shown = element("output", { "aria-live": "polite" });
  const axis = element("div", { class: "time-axis" });
  const cursor = element("div", { class: "cursor", hidden: "" });
  const recordings = figure.recordings.map((recording) => makeRecording(recording, figure, group));
  const stage = element("div", { class: "stage" }, axis, ...recordings.map(({ box }) => box), cursor);
  const help = "Drag to move. Click, then turn the wheel to zoom, or hold Ctrl. Keys: ← → move, + − zoom, 0 everything.";
  const names = figure.recordings.flatMap(({ id, individual, lanes }) => [id, individual, ...lanes.map((lane) => laneName(lane))]);
  const stacked = names.some((name) => name.length > BESIDE);
  const raster = element("div", { class: stacked ? "raster stacked" : "raster", tabindex: "0", role: "application", "aria-label": `Ethograms. ${help}` }, stage);
  container.replaceChildren(
    legend(group.behaviors.filter(({ occurs }) => occurs).map(({ name }) => ({ label: behaviorLabel(name), color: behaviorColor(group, name) }))),
    element("div", { class: "bar" }, ...buttons(view), shown, element("span", { class: "hint" }, help)),
    raster,
    errorLegend(figure),
  );

  function draw() {
    requested = false;
    const { width } = axis.getBoundingClientRect();
    if (!width) return;
    for (const { recording, rows, canvas } of recordings) {
      paint(canvas, rows, recording, view, width, devicePixelRatio);
      canvas.style.height = `${rows.height}px`;
    }
    axis.replaceChildren(timeAxis(view, width));
    const step = clockStep(view.span, 20);
    shown.textContent = `${clock(view.start, step)} – ${clock(view.stop, step)}`;
  }

  const under = (event) => {
    const { left, width } = axis.getBoundingClientRect();
    return { share: (event.clientX - left) / width, x: event.clientX - stage.getBoundingClientRect().left, width };
  };

  raster.addEventListener("keydown", (event) => {
    if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    KEYS[event.key](view);
  });
  // Scrolling the page must not zoom, so zooming with the wheel needs a click before, or Ctrl.
  raster.addEventListener(
    "wheel",
    (event) => {
      const { share } = under(event);
      if (!(event.ctrlKey || event.metaKey || raster.contains(document.activeElement)) || share < 0) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) view.pan(event.deltaX / 800);
      else view.zoom(Math.exp(event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), Math.min(share, 1));
    },
    { passive: false },
  );
  let grip = null;
  raster.addEventListener("pointerdown", (event) => {
    const { share } = under(event);
    if (event.button !== 0 || share < 0) return;
    grip = view.start + share * view.span;
    raster.setPointerCapture(event.pointerId);
  });
  raster.addEventListener("pointermove", (event) => {
    const { share, x } = under(event);
    if (grip !== null) view.show(grip - share * view.span, view.span);
    const inside = share >= 0 && share <= 1;
    cursor.hidden = !inside;
    cursor.style.left = `${x}px`;
    const lines = inside && grip === null ? linesAt(recordings, event, view.start + share * view.span, group) : null;
    if (lines) showTooltip(lines, event.clientX, event.clientY);
    else hideTooltip();
  });
  const release = () => {
    grip = null;
  };
  raster.addEventListener("pointerup", release);
  raster.addEventListener("pointercancel", release);
  raster.addEventListener("pointerleave", () => {
    cursor.hidden = true;
    hideTooltip();
  });
  raster.addEventListener("dblclick", (event) => view.zoom(0.4, under(event).share));
  new ResizeObserver(() => view.changed()).observe(axis);
  onThemeChange(() => draw());
}

function buttons(view) {
  const buttons = [
    ["−", "Zoom out", () => view.zoom(1 / 0.6)],
    ["+", "Zoom in", () => view.zoom(0.6)],
    ["Everything", "Show everything", () => view.reset()],
  ];
  return buttons.map(([text, label, act]) => {
    const button = element("button", { type: "button", "aria-label": label }, text);
    button.addEventListener("click", act);
    return button;
  });
}

function errorLegend({ options, recordings }) {
  if (!recordings.some(({ lanes }) => lanes.some((lane) => lane.errors.length))) return "";
  const key = legend(options.kinds.map((label, k) => ({ label, color: partColor(k) })));
  key.prepend(element("li", { class: "legend-head" }, "errors"));
  return key;
}

function laneName({ name, subject }) {
  return subject ? `${name} · ${subject}` : name;
}

function makeRecording(recording, figure, group) {
  const rows = layout(recording, figure, group);
  const canvas = element("canvas", { role: "img", "aria-label": `Ethogram of ${recording.id}` });
  const labels = element("div", { class: "lane-labels", "aria-hidden": "true" });
  for (const lane of recording.lanes) {
    const { from, to } = rows.rows.find((row) => row.lane === lane);
    const label = element("span", { class: lane.role, title: laneName(lane) }, laneName(lane));
    label.style.height = `${to - from}px`;
    label.style.top = `${from}px`;
    labels.append(label);
  }
  const name = element("div", { class: "recording-name", title: recording.id }, recording.id);
  if (recording.individual !== recording.id) name.append(element("span", { class: "muted" }, recording.individual));
  return { recording, rows, canvas, box: element("div", { class: "recording" }, name, labels, canvas) };
}

function timeAxis(view, width) {
  const step = clockStep(view.span, Math.max(2, width / 90));
  const picture = drawing(width, AXIS, "Time");
  const group = shape("g", { class: "axis" });
  for (const tick of multiples(view.start, view.stop, step)) {
    const x = ((tick - view.start) / view.span) * width;
    group.append(shape("line", { x1: x, x2: x, y1: AXIS - 7, y2: AXIS - 2 }));
    const anchor = x < 16 ? "start" : x > width - 16 ? "end" : "middle";
    group.append(shape("text", { x, y: AXIS - 11, "text-anchor": anchor }, clock(tick, step)));
  }
  const from = (view.start / view.duration) * width;
  const span = (view.span / view.duration) * width;
  picture.append(
    group,
    shape("rect", { class: "track", x: 0, y: AXIS - 2, width, height: 2 }),
    painted(shape("rect", { class: "paint", x: from, y: AXIS - 2, width: Math.max(span, 3), height: 2 }), "var(--accent)"),
  );
  return picture;
}

// The behaviors in every lane of the recording under the pointer at a time.
function linesAt(recordings, event, seconds, group) {
  const hovered = recordings.find(({ canvas }) => {
    const { top, bottom } = canvas.getBoundingClientRect();
    return event.clientY >= top && event.clientY <= bottom;
  });
  if (!hovered) return null;
  const { recording, rows } = hovered;
  const frame = Math.floor(seconds * recording.rate);
  if (frame >= recording.n_frames) return null;
  const lines = [`${recording.id} · ${clock(seconds, 0.01)} · frame ${frame.toLocaleString("en")}`];
  for (const lane of recording.lanes) {
    const who = laneName(lane);
    const laneRows = rows.rows.filter((row) => row.lane === lane);
    const here = laneRows.flatMap((row) => row.tracks).flatMap((track) => {
      const at = isAt(track.spans, frame);
      return at < 0 ? [] : [{ ...track, seconds: (track.spans.stop[at] - track.spans.start[at]) / recording.rate }];
    });
    const shown = here.filter((track) => !track.kind);
    for (const { color, behavior, target, seconds: length } of shown) {
      lines.push([color, `${who}: ${group.behaviors[behavior].name}${target ? ` → ${target}` : ""}, ${length.toFixed(2)} s`]);
    }
    if (!shown.length) lines.push(["var(--lane)", `${who}: ${isAt(laneRows[0].unobserved, frame) < 0 ? "no behavior" : "unobserved"}`]);
    for (const { color, kind } of here.filter((track) => track.kind)) lines.push([color, `error: ${kind}`]);
  }
  return lines;
}

function isAt(spans, frame) {
  const k = firstAfter(spans, frame);
  return k < spans.start.length && spans.start[k] <= frame ? k : -1;
}
