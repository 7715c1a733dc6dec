// The confusion matrix.

import { CHARACTER, labelWidth, rowLabel } from "./axes.js";
import { behaviorColor } from "./colors.js";
import { levelsOf } from "./data.js";
import { drawing, shape, shortened } from "./dom.js";
import { number, percent } from "./format.js";
import { wirePanels } from "./panels.js";
import { explained } from "./tooltip.js";

const WIDEST = 92;
const HEIGHT = 40;
const LOWEST = 22;
const TOTAL = 76;

export function wireMatrix(figure, group, container) {
  wirePanels({ figure, group, container, narrowest: 460, draw: drawMatrix });
}

function drawMatrix(rows, { figure, group, width, name }) {
  const { encode } = figure;
  const names = levelsOf(rows, encode.y);
  const left = labelWidth(names, 150);
  const cell = Math.min(WIDEST, (width - left - TOTAL) / names.length);
  const high = Math.max(LOWEST, Math.min(HEIGHT, cell));
  const slanted = Math.max(...names.map((text) => text.length)) * CHARACTER > cell - 2;
  const top = slanted ? 78 : 44;
  const height = top + high * names.length + 6;
  const picture = drawing(width, height, `${figure.title}${name ? `, ${name}` : ""}`);
  picture.append(shape("text", { class: "axis-label", x: left, y: 12 }, "predicted →"), shape("text", { class: "axis-label", x: 0, y: top - 8 }, "true ↓"));
  picture.append(shape("text", { class: "axis-label", x: left + cell * names.length + TOTAL, y: top - 8, "text-anchor": "end" }, "frames"));
  names.forEach((text, k) => {
    const x = left + cell * (k + 0.5);
    const turn = slanted ? `translate(${x - 4} ${top - 8}) rotate(-38)` : `translate(${x} ${top - 8})`;
    const label = shape("text", { transform: turn, "text-anchor": slanted ? "start" : "middle" }, shape("title", {}, text), shortened(text, 13));
    picture.append(label, rowLabel(text, top + high * (k + 0.5), left, behaviorColor(group, text)));
  });
  const totals = new Map(names.map((text) => [text, 0]));
  for (const row of rows) {
    const [i, j] = [names.indexOf(row[encode.y]), names.indexOf(row[encode.x])];
    totals.set(row[encode.y], totals.get(row[encode.y]) + row[encode.total]);
    picture.append(...drawCell(row, { encode, x: left + cell * j, y: top + high * i, cell, high, right: i === j }));
  }
  names.forEach((text, k) => {
    const at = { class: "note", x: left + cell * names.length + TOTAL, y: top + high * (k + 0.5) + 4, "text-anchor": "end" };
    picture.append(shape("text", at, number(totals.get(text))));
  });
  return picture;
}

function drawCell(row, { encode, x, y, cell, high, right }) {
  const share = row[encode.value];
  const box = shape("rect", { class: `cell ${right ? "right" : "wrong"}`, x: x + 1, y: y + 1, width: cell - 2, height: high - 2, rx: 3 });
  box.style.setProperty("--share", `${Math.round(100 * (share ?? 0))}%`);
  explained(box, [`${row[encode.y]} → ${row[encode.x]}`, ["transparent", `${percent(share)}, ${number(row[encode.total])} frames`]]);
  if (share === null || cell < 34) return [box];
  const strong = share > 0.75 ? " strong" : share < 0.005 ? " faint" : "";
  return [box, shape("text", { class: `cell-text${strong}`, x: x + cell / 2, y: y + high / 2 + 4, "text-anchor": "middle" }, percent(share))];
}
