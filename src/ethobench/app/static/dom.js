// Creating elements. Text is never parsed as HTML, so names from files cannot inject markup.

/** Create an element with properties and children (elements or text). */
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
  const wholeSeconds = Math.floor(seconds + 1e-9);
  const [h, m, s] = [Math.floor(wholeSeconds / 3600), Math.floor(wholeSeconds / 60) % 60, wholeSeconds % 60];
  const rest = digits ? (seconds - wholeSeconds).toFixed(digits).slice(1).replace("-", "") : "";
  const two = (number) => String(number).padStart(2, "0");
  return `${h ? `${h}:${two(m)}` : m}:${two(s)}${rest.startsWith(".") || !rest ? rest : `.${"9".repeat(digits)}`}`;
}

/** A length in seconds with three significant digits. */
export function duration(frames, rate) {
  const seconds = frames / rate;
  return seconds < 60 ? `${Number(seconds.toPrecision(3))} s` : clockTime(frames, rate, 0);
}

/** A share in percent, rounded down; shares below 1 % but above 0 are shown as "< 1 %". */
export function percent(share) {
  if (share > 0 && share < 0.01) return "< 1 %";
  return `${Math.floor(share * 100 + 1e-9)} %`;
}

/** An integer with thin spaces between thousands. */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** The form of a phrase for a number, such as plural(n, "# bout", "# bouts"); # is the number. */
export function plural(number, one, other) {
  return (number === 1 ? one : other).replace("#", grouped(number));
}

/** Show a message in the status bar; errors stay until the next message. */
export function showMessage(text, isError = false) {
  const messageBar = document.getElementById("message");
  messageBar.textContent = text;
  messageBar.classList.toggle("error", isError);
  clearTimeout(showMessage.timer);
  if (!isError) showMessage.timer = setTimeout(() => (messageBar.textContent = ""), 5000);
}
