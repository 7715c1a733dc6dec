// Draws every figure of the page into the element that the template reserves for it.

import { wireBars } from "./bars.js";
import { wireCurves } from "./curves.js";
import { report } from "./data.js";
import { wireDots } from "./dots.js";
import { wireHistograms } from "./histograms.js";
import { wireMatrix } from "./matrix.js";
import { wireNumbers } from "./numbers.js";
import { wireRaster } from "./raster.js";
import { wireChart } from "./svg.js";
import { wireTheme } from "./theme.js";

const kinds = { bars: wireBars, curves: wireCurves, dots: wireDots, histograms: wireHistograms, matrix: wireMatrix, raster: wireRaster };

wireTheme(document.getElementById("theme"));
for (const element of document.querySelectorAll("[data-figure]")) {
  const group = report.groups[Number(element.dataset.group)];
  const figure = group.figures[Number(element.dataset.figure)];
  if (figure.kind in kinds) kinds[figure.kind](figure, group, element.querySelector(".drawing"));
  wireNumbers(figure, group, element);
  wireChart(figure, group, element);
}
document.documentElement.dataset.ready = "";
