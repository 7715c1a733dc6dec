// Starts the first two requests while the modules of the page are loaded. It is a classic script, because modules run later; and not
// a preload, because headers say who labels, and whether the page is blind. A new tab starts with both as they were set last.

{
  for (const name of ["annotator", "blind"]) sessionStorage.setItem(name, sessionStorage.getItem(name) ?? localStorage.getItem(name) ?? "");
  const root = new URL("../api/", document.currentScript.src);
  const headers = { "x-ethobench-annotator": encodeURIComponent(sessionStorage.getItem("annotator")), "x-ethobench-blind": sessionStorage.getItem("blind") };
  const addresses = ["project", `recordings/${Number(location.hash.slice(1)) || 0}`].map((path) => new URL(path, root).href);
  window.firstRequests = new Map(addresses.map((address) => [address, fetch(address, { headers })]));
  for (const request of window.firstRequests.values()) request.catch(() => {}); // main.js shows the error
}
