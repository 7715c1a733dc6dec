// The data of the page: parsed once, and returned as rows.

export const report = JSON.parse(document.getElementById("report-data").textContent);

// Text columns are stored as levels and indices.
export function rowsOf(figure) {
  const columns = figure.columns.map(({ name, levels, values }) => [name, levels ? values.map((index) => levels[index]) : values]);
  const length = columns.length ? columns[0][1].length : 0;
  return Array.from({ length }, (_, k) => {
    const row = Object.create(null);
    for (const [name, values] of columns) row[name] = values[k];
    return row;
  });
}

export function levelsOf(rows, column) {
  return [...new Set(rows.map((row) => row[column]))];
}

export function grouped(rows, column) {
  const groups = new Map();
  for (const row of rows) {
    if (!groups.has(row[column])) groups.set(row[column], []);
    groups.get(row[column]).push(row);
  }
  return groups;
}

// Sorted spans from gap, length, gap, length, ...
export function spansOf(runs) {
  const start = new Int32Array(runs.length / 2);
  const stop = new Int32Array(runs.length / 2);
  let at = 0;
  for (let k = 0; k < start.length; k++) {
    start[k] = at + runs[2 * k];
    stop[k] = at = start[k] + runs[2 * k + 1];
  }
  return { start, stop };
}

// The first span that ends after a frame.
export function firstAfter(spans, frame) {
  let low = 0;
  let high = spans.stop.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans.stop[middle] > frame) high = middle;
    else low = middle + 1;
  }
  return low;
}
