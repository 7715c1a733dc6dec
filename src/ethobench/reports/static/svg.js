// Download of a chart as an SVG file that other programs can open: all styles are written into the elements, colors as rgb().

import { resolved } from "./colors.js";
import { element, shape } from "./dom.js";

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "fill-opacity", "stroke-opacity"];
const TEXT_STYLES = ["font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "letter-spacing"];
const TEXTS = "h4, .legend li, .lane-labels span, .recording-name";

function plain(color) {
  if (color === "none" || color === "transparent" || color.endsWith(", 0)") || color.endsWith("/ 0)")) return "none";
  return `rgb(${[...resolved(color)].slice(0, 3).join(",")})`;
}

function isShown(node) {
  const { width, height } = node.getBoundingClientRect();
  return width > 0 && height > 0 && getComputedStyle(node).visibility !== "hidden";
}

// Copies the styles that the page computes for an element, and for all in it, into attributes of the copy.
function inline(source, copy) {
  const style = getComputedStyle(source);
  for (const name of source instanceof SVGTextContentElement ? [...STYLES, ...TEXT_STYLES] : STYLES) {
    const value = style.getPropertyValue(name);
    if (value) copy.setAttribute(name, name === "fill" || name === "stroke" ? plain(value) : value);
  }
  for (const name of ["class", "style", "tabindex"]) copy.removeAttribute(name);
  [...source.children].forEach((child, k) => inline(child, copy.children[k]));
}

function textOf(node, origin) {
  const style = getComputedStyle(node);
  const size = parseFloat(style.fontSize);
  const range = document.createRange();
  range.selectNodeContents(node);
  const box = range.getBoundingClientRect();
  const swatch = node.querySelector(".swatch");
  const left = swatch ? swatch.getBoundingClientRect().right + size * 0.4 : box.left;
  const attributes = { x: left - origin.left, y: box.top - origin.top + box.height / 2 + size * 0.35, fill: plain(style.color) };
  return shape("text", { ...attributes, "font-family": style.fontFamily, "font-size": size, "font-weight": style.fontWeight }, node.textContent);
}

function swatchOf(node, origin) {
  const { left, top, width, height } = node.getBoundingClientRect();
  const style = getComputedStyle(node);
  const round = style.borderRadius === "50%" ? width / 2 : parseFloat(style.borderRadius) || 0;
  const ring = parseFloat(style.borderTopWidth) || 0;
  const paint = ring ? { fill: "none", stroke: plain(style.borderTopColor), "stroke-width": ring } : { fill: plain(style.backgroundColor) };
  return shape("rect", { x: left - origin.left, y: top - origin.top, width, height, rx: round, ...paint });
}

// Everything that a chart shows, at its position on the page. Ethograms are drawn on a canvas, which becomes an embedded picture.
export function chartOf(container, title) {
  const origin = container.getBoundingClientRect();
  const size = { width: Math.ceil(origin.width), height: Math.ceil(origin.height) };
  const picture = shape("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}` }, shape("title", {}, title));
  picture.append(shape("rect", { ...size, fill: plain(getComputedStyle(document.body).backgroundColor) }));
  for (const source of container.querySelectorAll("svg")) {
    if (!isShown(source) || source.closest("button")) continue;
    const { left, top } = source.getBoundingClientRect();
    const copy = source.cloneNode(true);
    inline(source, copy);
    for (const [name, value] of [["x", left - origin.left], ["y", top - origin.top], ["role", null], ["aria-label", null]]) {
      if (value === null) copy.removeAttribute(name);
      else copy.setAttribute(name, value);
    }
    picture.append(copy);
  }
  for (const source of container.querySelectorAll("canvas")) {
    if (!isShown(source)) continue;
    const { left, top, width, height } = source.getBoundingClientRect();
    const at = { x: left - origin.left, y: top - origin.top, width, height, preserveAspectRatio: "none" };
    picture.append(shape("image", { ...at, href: source.toDataURL("image/png") }));
  }
  for (const source of container.querySelectorAll(".swatch")) if (isShown(source)) picture.append(swatchOf(source, origin));
  for (const source of container.querySelectorAll(TEXTS)) if (isShown(source)) picture.append(textOf(source, origin));
  return picture;
}

export function wireChart(figure, group, container) {
  const button = container.querySelector("button.svg");
  if (!button) return;
  button.addEventListener("click", () => {
    const text = new XMLSerializer().serializeToString(chartOf(container.querySelector(".drawing"), figure.title));
    const address = URL.createObjectURL(new Blob([`<?xml version="1.0" encoding="UTF-8"?>\n${text}\n`], { type: "image/svg+xml" }));
    element("a", { href: address, download: `${group.title ? `${group.id}-` : ""}${figure.id}.svg` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  });
  button.hidden = false;
}
