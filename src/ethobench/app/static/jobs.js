// Work of the server in the background: exports and conversions, with progress and a button to cancel.

import { make } from "./dom.js";
import { fetchJson, postJson } from "./server.js";

const INTERVAL = 300; // milliseconds between requests

/** Wait until a job has ended; returns it. Errors of the job are thrown. */
export async function follow(job, onProgress = () => {}) {
  let current = job;
  while (["waiting", "running"].includes(current.state)) {
    onProgress(current);
    await new Promise((done) => setTimeout(done, INTERVAL));
    current = await fetchJson(`jobs/${current.job}`);
  }
  if (current.state === "failed") throw new Error(current.error);
  return current;
}

/** A bar that shows the progress of a job, with a button to cancel it. */
export class ProgressBar {
  constructor() {
    this.text = make("span", { className: "stage" });
    this.bar = make("progress", { max: 1, value: 0 });
    this.cancel = make("button", { type: "button", className: "quiet" }, "Cancel");
    this.element = make("div", { className: "progress", role: "status" }, this.bar, this.text, this.cancel);
    this.cancel.addEventListener("click", () => this.stop());
  }

  /** Show a job until it has ended; returns it. */
  async follow(job) {
    this.number = job.job;
    const ended = await follow(job, ({ stage, fraction, state }) => {
      this.bar.value = fraction;
      this.text.textContent = state === "waiting" ? "waiting" : `${stage} ${Math.floor(fraction * 100)} %`;
    });
    this.number = null;
    return ended;
  }

  /** Cancel the job, if there is one. */
  async stop() {
    if (this.number) await postJson(`jobs/${this.number}/cancel`, {}).catch(() => {});
  }
}
