// Formatting of numbers.

const MINUS = "\u2212";

export function fixed(value, digits) {
  const rounded = Number(value.toFixed(digits)) + 0; // no negative zero
  return rounded.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", MINUS);
}

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  return fixed(value, Number.isInteger(value) && size >= 1 ? 0 : size >= 100 ? 0 : size >= 10 ? 1 : digits);
}

export function signed(value, digits = 3) {
  return Number(value.toFixed(digits)) > 0 ? `+${number(value, digits)}` : number(value, digits);
}

export function percent(share) {
  if (share === null || share === undefined) return "–";
  if (share > 0 && share < 0.0005) return "<0.1 %";
  return `${fixed(100 * share, share > 0 && share < 0.0995 ? 1 : 0)} %`;
}

// Digits needed to distinguish two neighboring ticks.
export function digitsOf(step) {
  return Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
}

export function clock(seconds, step = 1) {
  const digits = step < 1 ? digitsOf(step) : 0;
  const rounded = Number(Math.max(0, seconds).toFixed(digits));
  const hours = Math.floor(rounded / 3600);
  const minutes = Math.floor((rounded % 3600) / 60);
  const rest = (rounded % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}
