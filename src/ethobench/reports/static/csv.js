// Download of figures as CSV files, generated in the page.

import { element } from "./dom.js";
import { rowsOf, spansOf } from "./data.js";

function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  // spreadsheets execute text that starts like a formula
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function tableOf(figure, group) {
  if (figure.kind === "raster") return boutsOf(figure, group);
  const names = figure.columns.map((column) => column.name);
  return [names, rowsOf(figure).map((row) => names.map((name) => row[name]))];
}

function boutsOf(figure, group) {
  const names = ["recording", "individual", "annotator", "subject", "target", "behavior", "start_frame", "stop_frame", "start_s", "stop_s"];
  const rows = [];
  for (const { id, individual, rate, lanes } of figure.recordings) {
    for (const lane of lanes) {
      for (const track of lane.tracks) {
        const { start, stop } = spansOf(track.runs);
        const who = [id, individual, lane.name, lane.subject, track.target, group.behaviors[track.behavior].name];
        start.forEach((frame, k) => rows.push([...who, frame, stop[k], +(frame / rate).toFixed(6), +(stop[k] / rate).toFixed(6)]));
      }
    }
  }
  return [names, rows];
}

export function download(name, [columns, rows]) {
  const text = [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n");
  const address = URL.createObjectURL(new Blob([`${text}\r\n`], { type: "text/csv;charset=utf-8" }));
  element("a", { href: address, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
