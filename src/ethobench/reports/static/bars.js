// Stacked bars: the composition of a total, row by row.

import { horizontalAxis, labelWidth, rowLabel } from "./axes.js";
import { behaviorColor, partColor } from "./colors.js";
import { grouped } from "./data.js";
import { drawing, painted, shape } from "./dom.js";
import { digitsOf, fixed, number, percent } from "./format.js";
import { behaviorLabel, wirePanels } from "./panels.js";
import { linear } from "./scale.js";
import { explained } from "./tooltip.js";

const ROW = 32;
const BAR = 20;
const TOTAL = 74;
const LEGIBLE = 40;

export function wireBars(figure, group, container) {
  const entries = () => figure.options.parts.map((label, k) => ({ label, color: partColor(k, figure.options.palette) }));
  wirePanels({ figure, group, container, narrowest: 460, draw: drawBars, entries });
}

function drawBars(rows, { figure, group, shown, width, name }) {
  const { encode, options } = figure;
  const ofBehavior = encode.y === "behavior";
  const bars = [...grouped(rows, encode.y)];
  const labels = bars.map(([level]) => (ofBehavior ? behaviorLabel(level) : level));
  const left = labelWidth(labels);
  const height = ROW * bars.length + 32;
  const totals = [...grouped(shown, encode.facet).values()].flatMap((facet) => [...grouped(facet, encode.y).values()].map((bar) => sum(bar, encode.x)));
  const most = options.percent ? 1 : Math.max(...totals) || 1;
  const x = linear([0, most], [left + 10, width - TOTAL]);
  const format = options.percent ? percent : (value) => fixed(value, digitsOf(x.step(4)));
  const picture = drawing(width, height, `${figure.title}${name ? `, ${name}` : ""}`);
  picture.append(horizontalAxis(x, x.ticks(4), format, { top: 2, bottom: height - 28 }));
  bars.forEach(([level, parts], k) => {
    const y = ROW * k + ROW / 2 + 2;
    const color = ofBehavior && level !== "" ? behaviorColor(group, level) : null;
    picture.append(rowLabel(labels[k], y, left, color));
    let from = 0;
    for (const row of parts) {
      const value = row[encode.x] ?? 0;
      if (value > 0) picture.append(...drawPart(row, { figure, x, y, from, value, label: labels[k] }));
      from += value;
    }
    const total = `${number(sum(parts, encode.total), 1)} ${options.unit}`;
    picture.append(shape("text", { class: "note", x: width, y: y + 4, "text-anchor": "end" }, total));
  });
  return picture;
}

function drawPart(row, { figure, x, y, from, value, label }) {
  const { encode, options } = figure;
  const index = options.parts.indexOf(row[encode.part]);
  const color = partColor(index, options.palette);
  const start = x(from);
  const length = Math.max(x(from + value) - start, 0.5);
  const bar = painted(shape("rect", { class: "paint part", x: start, y: y - BAR / 2, width: length, height: BAR }), color);
  const text = options.percent ? percent(value) : `${number(value, 1)} ${options.unit}`;
  const more = options.percent ? ` (${number(row[encode.total], 1)} ${options.unit})` : "";
  explained(bar, [label, [color, `${row[encode.part]} ${text}${more}`]]);
  if (!options.percent || length < LEGIBLE) return [bar];
  return [bar, painted(shape("text", { class: "inside", x: start + length / 2, y: y + 4, "text-anchor": "middle" }, text), `var(--on-part-${index})`)];
}

function sum(rows, column) {
  return rows.reduce((total, row) => total + (row[column] ?? 0), 0);
}
