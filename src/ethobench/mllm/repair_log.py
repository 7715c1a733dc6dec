"""X"""

from __future__ import annotations

from collections.abc import Mapping

from ethobench.core.errors import Note

REPAIR_KINDS = {
    "fence": "the JSON stood in a Markdown fence",
    "prose": "there was other text around the JSON",
    "truncated": "the answer breaks off; what was begun last is dropped, and what follows is not observed",
    "syntax": "it is no valid JSON; complete segments were read one by one",
    "several": "there were several answers; the longest counts, the last of equals",
    "shape": "segments were arranged in another way, or something among them is no segment",
    "duplicate_key": "a name stood twice in one object; the last one counts",
    "key": "a field had another name",
    "missing": "a time was missing and follows from the neighbouring segment",
    "incomplete": "a segment without behavior or times is dropped",
    "number": "a number of seconds was written as text",
    "time": "a time was written in an unusual way",
    "unreadable": "a segment is dropped, since a time in it cannot be read",
    "label": "a behavior was written in another way",
    "unknown_label": "a segment is dropped, since its behavior is none of those asked for",
    "negative": "a segment began before the video; cut to its start",
    "beyond": "a segment reached past the end of the video; cut or dropped",
    "reversed": "a segment that ends before it begins is dropped",
    "empty": "a segment without duration is dropped",
    "duplicate": "a segment stood there twice; once is enough",
    "overlap": "segments overlapped; the one listed first keeps the time",
    "unordered": "segments were not listed in the order of time",
}
SHOWN = 60


class RepairLog:
    """Counts repairs by kind, and keeps the first case of each in words."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._first: dict[str, str] = {}

    def add(self, kind: str, case: object = None, count: int = 1) -> None:
        """Count repairs; `case` is what was found, text of a model and so shown escaped and shortened."""
        if kind not in REPAIR_KINDS:
            raise KeyError(kind)
        if count:
            self.counts[kind] = self.counts.get(kind, 0) + count
            self._first.setdefault(kind, "" if case is None else shorten(case))

    def count_all(self, counts: Mapping[str, int]) -> None:
        """Add what was counted elsewhere."""
        for kind, count in counts.items():
            self.add(kind, count=count)

    def by_kind(self) -> dict[str, int]:
        """Return the counts in the order of `REPAIR_KINDS`."""
        return {kind: self.counts[kind] for kind in REPAIR_KINDS if kind in self.counts}

    def notes(self) -> tuple[Note, ...]:
        """Return a note for each kind."""
        told = []
        for kind, count in self.by_kind().items():
            first = f", first {self._first[kind]}" if self._first[kind] else ""
            told.append(Note(f"{REPAIR_KINDS[kind]} ({count}x{first})", kind))
        return tuple(told)


def shorten(value: object) -> str:
    """Show a value of a model's answer on one line, escaped and cut."""
    text = repr(value[: 2 * SHOWN] if isinstance(value, str) else type(value) if isinstance(value, (dict, list)) else value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
