// Line charts: precision and recall, reliability, learning curves.

import { horizontalAxis, verticalAxis } from "./axes.js";
import { behaviorColor, seriesColor } from "./colors.js";
import { grouped } from "./data.js";
import { drawing, element, painted, shape } from "./dom.js";
import { digitsOf, fixed, number } from "./format.js";
import { legend, measureOf, wirePanels } from "./panels.js";
import { extent, linear } from "./scale.js";
import { explained } from "./tooltip.js";

const LEFT = 52;
const BOTTOM = 40;
const LARGEST = 420;

export function wireCurves(figure, group, container) {
  wirePanels({ figure, group, container, narrowest: 340, draw: drawCurves });
}

function drawCurves(rows, { figure, group, shown, width, name }) {
  const { encode, options } = figure;
  const square = options.unit_square;
  const wide = Math.min(width, square ? LARGEST : width);
  const height = square ? wide - LEFT + BOTTOM : 280;
  const domain = square ? [0, 1] : null;
  const measured = "measure" in (shown[0] ?? {}) ? measureOf(figure, shown[0].measure) : null;
  const x = linear(extent(shown.map((row) => row[encode.x]), domain), [LEFT, wide - 12]);
  const heights = shown.flatMap((row) => [row[encode.y], row[encode.low] ?? null, row[encode.high] ?? null]);
  const y = linear(extent(heights, domain ?? measured?.range), [height - BOTTOM, 8]);
  const picture = drawing(wide, height, `${figure.title}${name ? `, ${name}` : ""}`);
  const middle = { x: (LEFT + wide - 12) / 2, y: (8 + height - BOTTOM) / 2 };
  const decimal = (scale) => (value) => fixed(value, digitsOf(scale.step(5)));
  picture.append(
    horizontalAxis(x, x.ticks(5), decimal(x), { top: 8, bottom: height - BOTTOM, label: options.axis ?? encode.x, middle: middle.x }),
    verticalAxis(y, y.ticks(5), decimal(y), { left: LEFT, right: wide - 12, label: measured?.label ?? encode.y, middle: middle.y }),
  );
  if (options.diagonal) picture.append(shape("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  const lines = [...grouped(rows, encode.line)];
  const colorOf = (line, k) => (encode.line === "behavior" ? behaviorColor(group, line) : seriesColor(k + 1));
  lines.forEach(([line, points], k) => drawLine(picture, points, { encode, x, y, color: colorOf(line, k), line }));
  const entries = lines.map(([line, points], k) => ({
    label: encode.note ? `${line} ${number(points[0][encode.note])}` : line,
    color: colorOf(line, k),
  }));
  return element("div", {}, picture, legend(entries));
}

function drawLine(picture, points, { encode, x, y, color, line }) {
  const defined = points.filter((row) => row[encode.x] !== null && row[encode.y] !== null);
  const path = (column) => defined.map((row) => `${x(row[encode.x]).toFixed(1)} ${y(row[column]).toFixed(1)}`);
  if (encode.low && defined.every((row) => row[encode.low] !== null)) {
    picture.append(painted(shape("path", { class: "band", d: `M${path(encode.high).join("L")}L${path(encode.low).reverse().join("L")}Z` }), color));
  }
  picture.append(painted(shape("path", { class: "curve", d: `M${path(encode.y).join("L")}` }), color));
  const largest = encode.size ? Math.max(...defined.map((row) => row[encode.size])) : 1;
  for (const row of defined) {
    const size = encode.size ? 2 + 5 * Math.sqrt(row[encode.size] / largest) : 3;
    const dot = painted(shape("circle", { class: defined.length > 40 ? "sensor" : "dot", cx: x(row[encode.x]), cy: y(row[encode.y]), r: defined.length > 40 ? 6 : size }), color);
    const more = encode.size ? `, ${number(row[encode.size])} ${encode.size}` : "";
    explained(dot, [line, [color, `${encode.x} ${number(row[encode.x])}, ${encode.y} ${number(row[encode.y])}${more}`]]);
    picture.append(dot);
  }
}
