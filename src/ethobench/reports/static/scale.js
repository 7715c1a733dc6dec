// Scales: values to pixels, and ticks.

const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

export function niceStep(span, count) {
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / power;
  return (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power;
}

export function clockStep(span, count) {
  const rough = span / count;
  return rough < 1 ? niceStep(span, count) : (CLOCK_STEPS.find((step) => step >= rough) ?? niceStep(span, count));
}

export function multiples(low, high, step) {
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => (first + k) * step);
}

export function linear([low, high], [from, to]) {
  const span = high - low || 1;
  const scale = (value) => from + ((value - low) / span) * (to - from);
  scale.step = (count) => niceStep(span, count);
  scale.ticks = (count) => multiples(low, high, scale.step(count));
  return scale;
}

export function logarithmic([low, high], [from, to]) {
  const scale = linear([Math.log10(low), Math.log10(high)], [from, to]);
  const mapped = (value) => scale(Math.log10(value));
  mapped.ticks = () => multiples(Math.ceil(Math.log10(low)), Math.floor(Math.log10(high)), 1).map((power) => 10 ** power);
  return mapped;
}

// A range that contains all values, with a margin unless it is fixed.
export function extent(values, fixed) {
  if (fixed) return fixed;
  const defined = values.filter((value) => value !== null);
  const low = Math.min(...defined, Infinity);
  const high = Math.max(...defined, -Infinity);
  if (low > high) return [0, 1];
  const air = (high - low || Math.abs(high) || 1) * 0.06;
  return [low >= 0 && low - air < 0 ? 0 : low - air, high + air];
}
