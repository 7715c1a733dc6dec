// Dot plots on a common scale: values by row, with intervals, several sources or every individual.

import { horizontalAxis, labelWidth, rowLabel } from "./axes.js";
import { behaviorColor, seriesColor } from "./colors.js";
import { grouped, levelsOf } from "./data.js";
import { drawing, painted, shape } from "./dom.js";
import { digitsOf, fixed, number, percent, signed } from "./format.js";
import { behaviorLabel, measureOf, wirePanels } from "./panels.js";
import { extent, linear } from "./scale.js";
import { explained } from "./tooltip.js";

const ROW = 30;
const NOTE = 150;
const AIR = 10;
const MARKS = ["ring", "disc", "square", "diamond"];

export function wireDots(figure, group, container) {
  const { series } = figure.encode;
  const entries = (shown) => (series ? levelsOf(shown, series) : []).map((label, k) => ({ label, color: seriesColor(k), mark: MARKS[k % MARKS.length] }));
  wirePanels({ figure, group, container, narrowest: 430, draw: drawDots, entries });
}

function markAt(index, x, y, size) {
  const kind = MARKS[index % MARKS.length];
  if (kind === "square") return shape("rect", { class: "dot", x: x - size + 1, y: y - size + 1, width: 2 * size - 2, height: 2 * size - 2 });
  const half = size + 1;
  if (kind === "diamond") return shape("path", { class: "dot", d: `M${x} ${y - half}l${half} ${half}l${-half} ${half}l${-half} ${-half}z` });
  return shape("circle", { class: kind === "ring" ? "dot hollow" : "dot", cx: x, cy: y, r: size });
}

function drawDots(rows, { figure, group, shown, width, name }) {
  const { encode, options } = figure;
  const names = encode.series ? levelsOf(shown, encode.series) : [];
  const ofBehavior = encode.y === "behavior";
  const levels = levelsOf(shown, encode.y).filter((level) => rows.some((row) => row[encode.y] === level));
  const labels = levels.map((level) => (ofBehavior ? behaviorLabel(level) : level));
  const left = labelWidth(labels);
  const right = width - (encode.note ? NOTE : AIR + 4);
  const height = ROW * levels.length + 34;
  const values = shown.flatMap((row) => [row[encode.x], row[encode.low] ?? null, row[encode.high] ?? null]);
  const range = options.percent ? [0, Math.max(...values) * 1.06] : extent(encode.note ? shown.map((row) => row[encode.x]) : values, chosenRange(figure, shown));
  const x = linear(range, [left + AIR, right]);
  const count = Math.max(2, Math.min(5, (right - left) / 55));
  const format = options.percent ? percent : (value) => fixed(value, digitsOf(x.step(count)));
  const picture = drawing(width, height, `${figure.title}${name ? `, ${name}` : ""}`);
  picture.append(horizontalAxis(x, x.ticks(count), format, { top: 2, bottom: height - 28 }));
  levels.forEach((level, k) => {
    const y = ROW * k + ROW / 2 + 2;
    const color = ofBehavior && level !== "" ? behaviorColor(group, level) : null;
    picture.append(shape("line", { class: "row", x1: left + AIR, x2: right, y1: y, y2: y }), rowLabel(labels[k], y, left, color));
    const mine = rows.filter((row) => row[encode.y] === level && row[encode.x] !== null);
    drawRow(picture, mine, { figure, x, y, names, color: encode.color ? (color ?? "var(--ink)") : null, right, label: labels[k] });
  });
  return picture;
}

function chosenRange(figure, shown) {
  const { range } = shown.length && "measure" in shown[0] ? measureOf(figure, shown[0].measure) : { range: null };
  return range;
}

function drawRow(picture, rows, { figure, x, y, names, color, right, label }) {
  const { encode, options } = figure;
  const small = encode.small ? rows.filter((row) => row[encode.small] !== "") : [];
  const large = encode.small ? rows.filter((row) => row[encode.small] === "") : rows;
  const format = options.percent ? percent : number;
  small.forEach((row, k) => {
    const offset = (((k * 7) % 11) / 11 - 0.5) * 12;
    const dot = painted(shape("circle", { class: "dot small", cx: x(row[encode.x]), cy: y + offset, r: 3 }), color);
    picture.append(explained(dot, [row[encode.small], [color, `${label} ${format(row[encode.x])}`]]));
  });
  if (options.connect && large.length > 1) {
    const ends = large.map((row) => x(row[encode.x]));
    picture.append(shape("line", { class: "link", x1: Math.min(...ends), x2: Math.max(...ends), y1: y, y2: y }));
  }
  const several = encode.series && encode.low && large.length > 1;
  [...grouped(large, encode.series ?? "")].forEach(([series, marks]) => {
    const index = encode.series ? names.indexOf(series) : 1;
    const paint = color ?? seriesColor(index);
    const at = several ? y + (index - (names.length - 1) / 2) * 6 : y;
    for (const row of marks) {
      const lines = [label, [paint, `${encode.series ? `${series} ` : ""}${format(row[encode.x])}${between(row, encode)}`]];
      if (!encode.note && row[encode.low] !== null && row[encode.low] !== undefined) {
        picture.append(painted(shape("line", { class: "interval", x1: x(row[encode.low]), x2: x(row[encode.high]), y1: at, y2: at }), paint));
      }
      picture.append(explained(painted(markAt(index, x(row[encode.x]), at, 5), paint), lines));
      if (encode.note) picture.append(noteOf(row, encode.note, right, y));
    }
  });
}

function between(row, { low, high, note }) {
  return note || row[low] === null || row[low] === undefined ? "" : ` (${number(row[low])} to ${number(row[high])})`;
}

function noteOf(row, [value, low, high], right, y) {
  if (row[value] === null) return shape("g");
  const text = `${signed(row[value])}${row[low] === null ? "" : ` [${signed(row[low], 2)}, ${signed(row[high], 2)}]`}`;
  return shape("text", { class: "note", x: right + 12, y: y + 4 }, text);
}
