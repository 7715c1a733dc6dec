// A few pictures for buttons, drawn rather than typed, as fonts differ in what signs they have.

const PATHS = {
  play: "M4 2.5v11l9-5.5z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  back: "M4 3h2v10H4zM13 3v10L6.5 8z",
  on: "M10 3h2v10h-2zM3 3v10l6.500-5z",
  undo: "M6.500 2.500 2.500 6l4 3.500V7.200c3 0 5 1.200 6.500 4-.300-4-2.700-6.400-6.500-6.600z",
  redo: "M9.500 2.500 13.500 6l-4 3.500V7.200c-3 0-5 1.200-6.500 4 .300-4 2.700-6.400 6.500-6.600z",
  list: "M2 3h12v2H2zM2 7h12v2H2zM2 11h12v2H2z",
  details: "M2 2.500h12v11H2zM9.500 4v8h3V4z",
  theme: "M8 1.500a6.500 6.500 0 1 0 0 13 6.500 6.500 0 1 0 0-13zM8 3a5 5 0 0 1 0 10z",
};

/** Make a picture of the size of a letter. */
export function icon(name) {
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  picture.setAttribute("viewBox", "0 0 16 16");
  picture.setAttribute("class", "icon");
  picture.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", PATHS[name]);
  path.setAttribute("fill-rule", "evenodd");
  picture.append(path);
  return picture;
}
