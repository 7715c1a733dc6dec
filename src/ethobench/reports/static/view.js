// The interval of time that all ethograms show.

const SHORTEST = 0.5;

export class View {
  constructor(duration, changed) {
    this.duration = duration;
    this.changed = changed;
    this.start = 0;
    this.stop = duration;
  }

  get span() {
    return this.stop - this.start;
  }

  get isWhole() {
    return this.span >= this.duration;
  }

  show(start, span) {
    const length = Math.min(Math.max(span, Math.min(SHORTEST, this.duration)), this.duration);
    this.start = Math.min(Math.max(start, 0), this.duration - length);
    this.stop = this.start + length;
    this.changed();
  }

  // `at` is the position that stays fixed, as a share of the width.
  zoom(factor, at = 0.5) {
    const span = Math.min(Math.max(this.span * factor, Math.min(SHORTEST, this.duration)), this.duration);
    this.show(this.start + (this.span - span) * at, span);
  }

  pan(share) {
    this.show(this.start + share * this.span, this.span);
  }

  reset() {
    this.show(0, this.duration);
  }
}
