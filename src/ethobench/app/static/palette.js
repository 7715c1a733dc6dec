// The colors of behaviors, for light and dark pages, as in the report. Each has a contrast of at least 3:1 to the page, and they are
// distinguishable with all common kinds of color blindness.

const COLORS = {
  light: ["#244bbf", "#9b461c", "#34a496", "#6b3162", "#b68313", "#b578e8", "#067e93", "#72261f"],
  dark: ["#6999fd", "#cc6a1a", "#86ecd2", "#9e5c8c", "#e5b71a", "#775ad8", "#72c9ea", "#f1838b"],
};
const BACKGROUND = { light: "#aab2ba", dark: "#69727c" };
const LANE = { light: "#eaecee", dark: "#2a2f36" };

/**
 * Return the color of each behavior of an ethogram. The server chose it (Occurrence.color_indices, as for the
 * report): the most frequent behaviors get the first colors; from the ninth on they are paler. The background is gray.
 * A color that was chosen in the ethogram editor is used as it is.
 */
export function colorsOf(behaviors, theme) {
  const base = COLORS[theme];
  return behaviors.map(({ color: index, custom }) => {
    if (index === null) return BACKGROUND[theme];
    if (custom) return custom;
    const color = base[index % base.length];
    return index < base.length ? color : mixed(color, LANE[theme]);
  });
}

/** Black or white, whichever is legible on a color. */
export function textColorOn(color) {
  const [r, g, b] = rgb(color).map((channel) => (channel / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.3 ? "#111111" : "#ffffff";
}

/** Red, green and blue of a color, each from 0 to 255. */
export function rgb(color) {
  return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
}

const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });

function mixed(color, ground) {
  pixel.fillStyle = `color-mix(in oklab, ${color} 55%, ${ground})`;
  pixel.fillRect(0, 0, 1, 1);
  const channels = [...pixel.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  return `#${channels.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
}
