// Light, dark, or the setting of the system; always light in print.

const root = document.documentElement;
const order = ["auto", "light", "dark"];
const listeners = [];
let chosen = "auto";

function apply(theme) {
  if (theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme;
  for (const redraw of listeners) redraw();
}

export function onThemeChange(redraw) {
  listeners.push(redraw);
}

export function wireTheme(button) {
  const tell = () => {
    button.textContent = { auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" }[chosen];
  };
  button.addEventListener("click", () => {
    chosen = order[(order.indexOf(chosen) + 1) % order.length];
    tell();
    apply(chosen);
  });
  button.hidden = false;
  tell();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(chosen));
  addEventListener("beforeprint", () => apply("light"));
  addEventListener("afterprint", () => apply(chosen));
}
