"""Log of the repairs in an answer: a count per kind, and the first example of each."""

from __future__ import annotations

from collections.abc import Mapping

from ethobench.core.errors import Note

REPAIR_KINDS = {
    "fence": "the JSON was in a Markdown code fence",
    "prose": "the JSON was surrounded by other text",
    "truncated": "the answer is cut off: the incomplete segment is dropped, the time after the last segment is unobserved",
    "syntax": "not valid JSON: complete segments were read one by one",
    "several": "several answers: the longest is used, the last one of equals",
    "shape": "unexpected structure, or an element that is not a segment",
    "duplicate_key": "duplicate key in an object: the last value is used",
    "key": "unexpected field name",
    "missing": "missing time: taken from the neighboring segment",
    "incomplete": "segment without behavior or times: dropped",
    "number": "number of seconds written as text",
    "time": "unexpected time format",
    "unreadable": "time that cannot be read: segment dropped",
    "label": "unexpected spelling of a behavior",
    "unknown_label": "unknown behavior: segment dropped",
    "negative": "segment starts before the video: cut",
    "beyond": "segment ends after the video: cut or dropped",
    "reversed": "segment ends before it starts: dropped",
    "empty": "segment without duration: dropped",
    "duplicate": "duplicate segment: dropped",
    "overlap": "overlapping segments: the one listed first keeps the time",
    "unordered": "segments not in order of time: sorted",
}
MAX_EXAMPLE_CHARS = 60


class RepairLog:
    """Counts of repairs by kind, and the first example of each kind as text."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._examples: dict[str, str] = {}

    def add(self, kind: str, example: object = None, count: int = 1) -> None:
        """Count repairs of one kind. `example` is untrusted text of a model, and is stored escaped and shortened."""
        if kind not in REPAIR_KINDS:
            raise KeyError(kind)
        if count:
            self.counts[kind] = self.counts.get(kind, 0) + count
            self._examples.setdefault(kind, "" if example is None else shorten(example))

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add the counts of another answer."""
        for kind, count in counts.items():
            self.add(kind, count=count)

    def by_kind(self) -> dict[str, int]:
        """Return the counts in the order of `REPAIR_KINDS`."""
        return {kind: self.counts[kind] for kind in REPAIR_KINDS if kind in self.counts}

    def notes(self) -> tuple[Note, ...]:
        """Return one note per kind."""
        notes = []
        for kind, count in self.by_kind().items():
            example = f", first {self._examples[kind]}" if self._examples[kind] else ""
            notes.append(Note(f"{REPAIR_KINDS[kind]} ({count}x{example})", code=kind))
        return tuple(notes)


def shorten(value: object) -> str:
    """Return a value of a model's answer as one line, escaped and shortened."""
    limit = MAX_EXAMPLE_CHARS
    text = repr(value[: 2 * limit] if isinstance(value, str) else type(value) if isinstance(value, (dict, list)) else value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
