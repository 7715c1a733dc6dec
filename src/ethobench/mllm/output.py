"""The folder that `annotate` fills: annotations, raw answers, and a table of what became of each video."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ethobench.core import Annotation, Recording
from ethobench.core.errors import EthobenchError, FormatError, Note
from ethobench.core.files import atomic_path
from ethobench.core.names import shorten
from ethobench.formats import formats, write_recordings
from ethobench.mllm.annotate import FAILED, AnnotationOutcome, RecordingRequests, replies_to_json
from ethobench.mllm.cache import verify_replies, write_json
from ethobench.mllm.runner import RequestResult

ANSWERS, TABLE = "answers", "outcomes.csv"
MAX_STEM = 220  # bytes; file systems hold 255 with the suffix
COLUMNS = ("recording", "state", "repairs", "reasons", "questions", "cached", "input_tokens", "output_tokens", "dollars")


class OutputFolder:
    """Where results go. A file that somebody has changed since it was written is left alone.

    Parameters
    ----------
    root : Path
    format : str
        Of the annotations.
    annotator : str
        What the annotator is called in them.
    """

    def __init__(self, root: Path, format: str, annotator: str) -> None:
        self.root, self.format, self.annotator = root, formats[format], annotator
        if not self.format.can_write or "annotations" not in self.format.contents:
            raise EthobenchError(f"{self.format.title} holds no annotations that can be written; choose another --to")

    def place(self, recording: str) -> Path:
        """Return where a recording's annotation lies or would lie."""
        return self.root / f"{_stem(recording)}{self.format.suffixes[0]}"

    def _answers(self, recording: str) -> Path:
        return self.root / ANSWERS / f"{_stem(recording)}.json"

    def is_done(self, assignment: RecordingRequests) -> bool:
        """Whether the answers to just these questions are here already, all of them.

        Raises
        ------
        EthobenchError
            If there is an annotation made from other questions, or changed since.
        """
        path = self.place(assignment.recording)
        kept = self._kept(assignment.recording)
        if path.exists() and (kept is None or kept.get("written") != _digest(path)):
            raise EthobenchError(f"{path} is not as this command left it, and is left alone; move it away or choose another --out")
        same = kept is not None and [row["key"] for row in kept["answers"]] == [request.key for request in assignment.requests]
        if path.exists() and not same:
            raise EthobenchError(f"{path} was made from other questions; choose another --out")
        return same and path.exists() and all(row["reply"] is not None for row in kept["answers"])  # type: ignore[index]

    def write(self, assignment: RecordingRequests, asked: Sequence[RequestResult], annotation: Annotation, outcome: AnnotationOutcome) -> list[Note]:
        """Write raw answers, then the annotation if there is one; return what its format cannot hold."""
        kept = json.loads(replies_to_json(assignment, asked))
        place = self._answers(assignment.recording)
        write_json(place, {**kept, "outcome": asdict(outcome)})
        if outcome.state == FAILED:
            return []
        recording = Recording(assignment.recording, annotations={self.annotator: annotation})
        path = self.place(assignment.recording)
        notes = write_recordings([recording], path, self.format.name, overwrite=True)
        write_json(place, {**kept, "outcome": asdict(outcome), "written": _digest(path)})
        return notes

    def write_table(self) -> Path:
        """Write what became of all videos that were asked about into this folder."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(COLUMNS)
        for file in sorted((self.root / ANSWERS).glob("*.json")):
            outcome = (_read_answers(file) or {}).get("outcome") or {}
            writer.writerow([_cell(outcome.get(name)) for name in COLUMNS])
        with atomic_path(self.root / TABLE, overwrite=True) as temporary:
            temporary.write_text(lines.getvalue(), encoding="utf-8", newline="\n")
        return self.root / TABLE

    def _kept(self, recording: str) -> dict[str, Any] | None:
        return _read_answers(self._answers(recording))


def _stem(recording: str) -> str:
    """Name the files of a recording: by the recording, unless that is too long with the suffixes of our formats."""
    return shorten(recording, MAX_STEM)


def _read_answers(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _ = [(row["key"], row["reply"]) for row in kept["answers"]]
    except (ValueError, KeyError, TypeError):
        raise FormatError(path, "these are no answers that this command kept; move them away or choose another --out") from None
    verify_replies(path, kept["answers"])
    return kept


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def _cell(value: Any) -> str:
    """Write a cell; text that a spreadsheet would take for a formula is kept from being one."""
    if isinstance(value, dict):
        value = ", ".join(f"{key} {count}" for key, count in value.items())
    elif isinstance(value, list):
        value = "; ".join(map(str, value))
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(("=", "+", "@", "-")) else text
