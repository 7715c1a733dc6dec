// Building elements. Text is always set as text, never parsed, so names from files stay names.

/** Make an element: properties, then children (elements or text). */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Frames as a clock time: 1:02:03.456, as short as the recording allows. */
export function clockTime(frame, rate, digits = 2) {
  const seconds = frame / rate;
  const whole = Math.floor(seconds + 1e-9);
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const rest = digits ? (seconds - whole).toFixed(digits).slice(1).replace("-", "") : "";
  const two = (number) => String(number).padStart(2, "0");
  return `${h ? `${h}:${two(m)}` : m}:${two(s)}${rest.startsWith(".") || !rest ? rest : `.${"9".repeat(digits)}`}`;
}

/** A length in seconds with three significant digits. */
export function duration(frames, rate) {
  const seconds = frames / rate;
  return seconds < 60 ? `${Number(seconds.toPrecision(3))} s` : clockTime(frames, rate, 0);
}

/** A share in percent, never rounded up: 100 % is all of it, and what is more than nothing is not 0 %. */
export function percent(share) {
  if (share > 0 && share < 0.01) return "< 1 %";
  return `${Math.floor(share * 100 + 1e-9)} %`;
}

/** A whole number with thin gaps between thousands. */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** Say something in the status bar; errors stay until the next message. */
export function say(text, isError = false) {
  const place = document.getElementById("message");
  place.textContent = text;
  place.classList.toggle("error", isError);
  clearTimeout(say.timer);
  if (!isError) say.timer = setTimeout(() => (place.textContent = ""), 5000);
}
