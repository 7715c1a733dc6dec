// Distributions side by side: the first source as an area, the others as outlines.

import { horizontalAxis, verticalAxis } from "./axes.js";
import { behaviorColor, seriesColor } from "./colors.js";
import { grouped, levelsOf } from "./data.js";
import { drawing, painted, shape } from "./dom.js";
import { digitsOf, fixed, number } from "./format.js";
import { wirePanels } from "./panels.js";
import { linear, logarithmic } from "./scale.js";
import { explained } from "./tooltip.js";

const LEFT = 40;
const TOP = 8;
const BOTTOM = 40;
const HEIGHT = 200;

export function wireHistograms(figure, group, container) {
  const entries = (shown) => {
    const painter = painterOf(figure, group, shown);
    const named = painter.levels.map((label) => ({ label, color: painter.color(label), mark: painter.isArea(label) ? "" : "line" }));
    return named.length > 1 ? named : [];
  };
  wirePanels({ figure, group, container, narrowest: 280, draw: drawHistogram, entries });
}

// The first source is an area; if there is only one other, or only one at all, it has the color of the behavior.
function painterOf({ encode, options }, group, shown) {
  const levels = levelsOf(shown, encode.series);
  const isArea = (series) => series === (options.area ?? levels[0]);
  const color = (series, behavior) => {
    if (isArea(series) && levels.length > 1) return "var(--area)";
    if (levels.length > 2) return seriesColor(levels.indexOf(series));
    return behavior === undefined ? "var(--ink)" : behaviorColor(group, behavior);
  };
  return { levels, isArea, color };
}

function drawHistogram(rows, { figure, group, shown, width, name }) {
  const painter = painterOf(figure, group, shown);
  const { encode, options } = figure;
  const inside = shown.filter((row) => row[encode.low] !== null && row[encode.high] !== null);
  const ends = [Math.min(...inside.map((row) => row[encode.low])), Math.max(...inside.map((row) => row[encode.high]))];
  const x = (options.log ? logarithmic : linear)(ends, [LEFT, width - 8]);
  const mine = rows.filter((row) => inside.includes(row));
  const y = linear([0, Math.max(1, ...mine.map((row) => row[encode.count]))], [HEIGHT - BOTTOM, TOP]);
  const picture = drawing(width, HEIGHT, `${figure.title}, ${name}`);
  const ticks = options.log ? x.ticks() : x.ticks(4);
  const format = options.log ? (value) => `${fixed(value, digitsOf(value))} s` : (value) => fixed(value, digitsOf(x.step(4)));
  const counts = y.ticks(3).filter(Number.isInteger);
  picture.append(
    verticalAxis(y, counts, (value) => fixed(value, 0), { left: LEFT, right: width - 8 }),
    horizontalAxis(x, ticks, format, { top: TOP, bottom: HEIGHT - BOTTOM, label: options.axis, middle: (LEFT + width - 8) / 2 }),
  );
  const sensors = new Map();
  for (const [series, bins] of grouped(mine, encode.series)) {
    const color = painter.color(series, name);
    const steps = bins.flatMap((row) => [row[encode.low], row[encode.high]].map((edge) => `${x(edge).toFixed(1)} ${y(row[encode.count]).toFixed(1)}`));
    const [from, to] = [x(bins[0][encode.low]), x(bins.at(-1)[encode.high])];
    const closed = `M${from} ${y(0)}L${steps.join("L")}L${to} ${y(0)}`;
    picture.append(painted(shape("path", { class: painter.isArea(series) ? "area" : "outline", d: closed }), color));
    for (const row of bins) {
      if (!sensors.has(row[encode.low])) sensors.set(row[encode.low], { row, lines: [] });
      sensors.get(row[encode.low]).lines.push([color, `${series} ${number(row[encode.count])}`]);
    }
  }
  if (options.zero) picture.append(shape("line", { class: "zero", x1: x(0), x2: x(0), y1: TOP, y2: HEIGHT - BOTTOM }));
  for (const { row, lines } of sensors.values()) {
    const [from, to] = [x(row[encode.low]), x(row[encode.high])];
    const sensor = shape("rect", { class: "sensor", x: from, y: TOP, width: to - from, height: HEIGHT - BOTTOM - TOP });
    picture.append(explained(sensor, [`${number(row[encode.low], 2)} to ${number(row[encode.high], 2)} s`, ...lines]));
  }
  return withBeyond(picture, rows, encode, width);
}

function withBeyond(picture, rows, encode, width) {
  const beyond = (column) => rows.filter((row) => row[column] === null).reduce((total, row) => total + row[encode.count], 0);
  const [below, above] = [beyond(encode.low), beyond(encode.high)];
  if (below) picture.append(shape("text", { class: "note", x: LEFT + 2, y: TOP + 10 }, `← ${below} earlier`));
  if (above) picture.append(shape("text", { class: "note", x: width - 10, y: TOP + 10, "text-anchor": "end" }, `${above} later →`));
  return picture;
}
