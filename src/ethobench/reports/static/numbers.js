// The numbers of a figure: as a download, or as a table.

import { download, tableOf } from "./csv.js";
import { element } from "./dom.js";
import { number } from "./format.js";

const MOST_ROWS = 400;

export function wireNumbers(figure, group, container) {
  const button = container.querySelector("button.csv");
  button.addEventListener("click", () => download(`${group.title ? `${group.id}-` : ""}${figure.id}`, tableOf(figure, group)));
  button.hidden = false;
  const details = container.querySelector("details.numbers");
  if (!details) return;
  details.hidden = false;
  details.addEventListener("toggle", () => {
    if (details.open && !details.querySelector("table")) details.append(...asTable(tableOf(figure, group)));
  });
}

function asTable([columns, rows]) {
  const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
  const body = rows.slice(0, MOST_ROWS).map((row) =>
    element("tr", {}, ...row.map((value) => element("td", { class: typeof value === "number" ? "number" : null }, typeof value === "number" ? number(value) : (value ?? "–")))),
  );
  const table = element("div", { class: "scroll" }, element("table", { class: "plain" }, element("thead", {}, head), element("tbody", {}, ...body)));
  const rest = rows.length - body.length;
  return rest > 0 ? [table, element("p", { class: "definition" }, `${rest.toLocaleString("en")} more rows are in the CSV.`)] : [table];
}
