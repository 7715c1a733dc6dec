// What all drawn figures share: selection of values, one panel for each facet, and a redraw when the width changes.

import { grouped, levelsOf, rowsOf } from "./data.js";
import { element, painted } from "./dom.js";

const GAP = 28;

export function measureOf(figure, name) {
  return (figure.options.measures ?? []).find((measure) => measure.name === name) ?? { name, label: name, range: null };
}

export function behaviorLabel(name) {
  return name === "" ? "all behaviors" : name;
}

export function legend(entries) {
  return element(
    "ul",
    { class: "legend" },
    ...entries.map(({ label, color, mark }) =>
      element("li", {}, painted(element("span", { class: `swatch ${mark ?? ""}` }), color), label),
    ),
  );
}

// `draw(rows, context)` returns one panel; `context.shown` has the rows of all panels, for shared scales.
export function wirePanels({ figure, group, container, narrowest, draw, entries }) {
  const rows = rowsOf(figure);
  const { choose = [], facet } = figure.encode;
  const controls = element("div", { class: "controls" });
  const panels = element("div", { class: "panels" });
  const selects = choose.map((column) => {
    const select = element("select", { "data-choose": column });
    controls.append(element("label", {}, `${column[0].toUpperCase()}${column.slice(1)} `, select));
    select.addEventListener("change", render);
    return [column, select];
  });
  const key = element("div");
  container.replaceChildren(...(selects.length ? [controls] : []), key, panels);
  let width = 0;

  function chosenRows() {
    let shown = rows;
    for (const [column, select] of selects) {
      const levels = levelsOf(shown, column);
      const kept = levels.includes(select.value) ? select.value : levels[0];
      const options = levels.map((level) => element("option", { value: level }, column === "measure" ? measureOf(figure, level).label : level));
      select.replaceChildren(...options);
      select.value = kept;
      select.parentElement.hidden = levels.length < 2;
      shown = shown.filter((row) => row[column] === kept);
    }
    return shown;
  }

  function render() {
    const shown = chosenRows();
    const named = entries?.(shown) ?? [];
    key.replaceChildren(...(named.length ? [legend(named)] : []));
    const facets = facet ? [...grouped(shown, facet)] : [["", shown]];
    const columns = Math.max(1, Math.min(facets.length, Math.floor((width + GAP) / (narrowest + GAP))));
    const each = Math.floor((width - GAP * (columns - 1)) / columns);
    const headed = facets.length > 1 || facet === "behavior";
    panels.replaceChildren(
      ...facets.map(([name, facetRows]) => {
        const title = headed ? element("h4", {}, facet === "behavior" ? behaviorLabel(name) : name) : null;
        const panel = element("div", { class: "panel" }, title, draw(facetRows, { figure, group, shown, width: each, name }));
        panel.style.width = `${each}px`;
        return panel;
      }),
    );
  }

  new ResizeObserver(([{ contentRect }]) => {
    const available = Math.floor(contentRect.width);
    if (available > 0 && available !== width) {
      width = available;
      render();
    }
  }).observe(container);
}
