// Requests to the server. The token is the first component of every path, so addresses are relative to the address of this file.

const ROOT = new URL("../api/", import.meta.url);

export class ServerError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

/** Fetch JSON; an error of the server is thrown with its message. */
export async function fetchJson(path, query = {}) {
  return (await request(path, query)).json();
}

/** Fetch bytes. */
export async function fetchBytes(path, query = {}) {
  return (await request(path, query)).arrayBuffer();
}

/** Post JSON; returns the response as JSON. */
export async function postJson(path, body, options = {}) {
  const sent = { ...options, method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await request(path, {}, sent)).json();
}

/** Download a file; returns its name, and notes on what its format cannot store. */
export async function download(path, query) {
  const response = await request(path, query);
  const name = decodeURIComponent(response.headers.get("content-disposition").split("''")[1]);
  saveBlob(await response.blob(), name);
  return { name, notes: JSON.parse(decodeURIComponent(response.headers.get("x-ethobench-notes"))) };
}

/** Save a blob as a download. */
export function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** The address of a resource, for elements that load it themselves. */
export function address(path) {
  return new URL(path, ROOT).href;
}

/** The annotator of this tab; empty if there is none yet. */
export function annotatorName() {
  return sessionStorage.getItem("annotator") ?? "";
}

/** Whether this tab is blind: then the server sends nothing of other annotators and of models. */
export function isBlind() {
  return sessionStorage.getItem("blind") === "1";
}

/** Set who labels in this tab, or whether it is blind. Later requests state it, and so do those of tabs that are opened later. */
export function identify({ annotator = annotatorName(), blind = isBlind() }) {
  for (const storage of [sessionStorage, localStorage]) {
    storage.setItem("annotator", annotator);
    storage.setItem("blind", blind ? "1" : "");
  }
}

/** The request of first_requests.js for this address, once. */
function begunRequest(url, options) {
  const request = options.method ? undefined : window.firstRequests?.get(url.href);
  window.firstRequests?.delete(url.href);
  return request;
}

async function request(path, query, options = {}) {
  const url = new URL(path, ROOT);
  for (const [name, value] of Object.entries(query)) {
    for (const item of [value].flat()) url.searchParams.append(name, item);
  }
  const identity = { "x-ethobench-annotator": encodeURIComponent(annotatorName()), "x-ethobench-blind": isBlind() ? "1" : "" };
  let response;
  try {
    response = await (begunRequest(url, options) ?? fetch(url, { ...options, headers: { ...options.headers, ...identity } }));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("the server of the viewer does not respond; check that `ethobench view` is still running");
  }
  if (!response.ok) {
    const body = await response.json().catch(() => ({ error: `the server responded with status ${response.status}` }));
    throw new ServerError(body.error, response.status);
  }
  return response;
}
