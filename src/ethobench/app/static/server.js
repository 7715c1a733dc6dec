// Asking the server. The token is the first part of every path, so addresses are built from this file's own.

const ROOT = new URL("../api/", import.meta.url);

export class ServerError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

/** Ask for JSON; an error that the server explains is thrown with its words. */
export async function ask(path, query = {}) {
  return (await request(path, query)).json();
}

/** Ask for bytes. */
export async function askBytes(path, query = {}) {
  return (await request(path, query)).arrayBuffer();
}

/** Change something. */
export async function change(path, body, options = {}) {
  const sent = { ...options, method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await request(path, {}, sent)).json();
}

/** Fetch a file and hand it to the browser's downloads; returns what its format could not hold. */
export async function download(path, query) {
  const response = await request(path, query);
  const name = decodeURIComponent(response.headers.get("content-disposition").split("''")[1]);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  return { name, notes: JSON.parse(decodeURIComponent(response.headers.get("x-ethobench-notes"))) };
}

/** The address of something that an element loads by itself. */
export function address(path) {
  return new URL(path, ROOT).href;
}

async function request(path, query, options = {}) {
  const url = new URL(path, ROOT);
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) url.searchParams.append(name, one);
  }
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("the viewer's server does not answer; is `ethobench view` still running?");
  }
  if (!response.ok) {
    const told = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
    throw new ServerError(told.error, response.status);
  }
  return response;
}
