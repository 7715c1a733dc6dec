"""The output folder of `ethobench annotate`: annotations, raw replies, and a table of outcomes."""

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
from ethobench.core.files import write_text
from ethobench.core.messages import Message, Option
from ethobench.core.names import shorten
from ethobench.formats import formats, write_recordings
from ethobench.mllm.annotate import FAILED, AnnotationOutcome, RecordingRequests
from ethobench.mllm.cache import CHECKSUM, FORMAT_VERSION, check_format_version, reply_checksum, verify_replies, write_ascii_json
from ethobench.mllm.runner import RequestResult

ANSWERS_FOLDER, OUTCOME_TABLE = "answers", "outcomes.csv"
MAX_STEM_BYTES = 220  # file systems allow 255 bytes including the suffix
COLUMNS = ("recording", "state", "repairs", "reasons", "questions", "cached", "input_tokens", "output_tokens", "dollars")


class OutputFolder:
    """A folder of results. A file that was changed after it was written is never replaced.

    Parameters
    ----------
    root : Path
    format : str
        Format of the annotations.
    annotator : str
        Name of the annotator in the annotations.
    """

    def __init__(self, root: Path, format: str, annotator: str) -> None:
        self.root, self.format, self.annotator = root, formats[format], annotator
        if not self.format.can_write or "annotations" not in self.format.contents:
            problem = f"{self.format.title} cannot be written with annotations; choose another format with "
            raise EthobenchError(Message(problem, Option("format", flag="--to")))

    def annotation_path(self, recording: str) -> Path:
        """Return the path of a recording's annotation."""
        return self.root / f"{_stem(recording)}{self.format.suffixes[0]}"

    def _answers_path(self, recording: str) -> Path:
        return self.root / ANSWERS_FOLDER / f"{_stem(recording)}.json"

    def is_done(self, recording: RecordingRequests) -> bool:
        """Whether the folder holds the annotation and all replies for exactly these requests.

        Raises
        ------
        EthobenchError
            If it holds an annotation from other requests, or one that was changed.
        """
        path = self.annotation_path(recording.recording)
        answers = _read_answers(self._answers_path(recording.recording))
        if path.exists() and (answers is None or answers.get("written") != _digest(path)):
            raise EthobenchError(f"{path} was changed after it was written and is not replaced; move it or choose another folder")
        same = answers is not None and [row["key"] for row in answers["answers"]] == [request.key for request in recording.requests]
        if path.exists() and not same:
            raise EthobenchError(f"{path} was written with other settings; choose another folder")
        return same and path.exists() and all(row["reply"] is not None for row in answers["answers"])  # type: ignore[index]

    def write(
        self, requests: RecordingRequests, results: Sequence[RequestResult], annotation: Annotation, outcome: AnnotationOutcome
    ) -> list[Note]:
        """Write the raw replies, then the annotation unless it failed. Return notes on what the format cannot store."""
        path = self._answers_path(requests.recording)
        content = {**_answers_content(requests, results), "outcome": asdict(outcome)}
        write_ascii_json(path, content)
        if outcome.state == FAILED:
            return []
        recording = Recording(requests.recording, annotations={self.annotator: annotation})
        annotation_path = self.annotation_path(requests.recording)
        notes = write_recordings([recording], annotation_path, self.format.name, overwrite=True)
        write_ascii_json(path, {**content, "written": _digest(annotation_path)})
        return notes

    def write_table(self) -> Path:
        """Write the outcomes of all recordings in the folder to ``outcomes.csv``."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(COLUMNS)
        for file in sorted((self.root / ANSWERS_FOLDER).glob("*.json")):
            outcome = (_read_answers(file) or {}).get("outcome") or {}
            writer.writerow([_cell(outcome.get(name)) for name in COLUMNS])
        write_text(self.root / OUTCOME_TABLE, lines.getvalue(), overwrite=True)
        return self.root / OUTCOME_TABLE


def _stem(recording: str) -> str:
    """Return the file name of a recording without suffix: its id, shortened if needed."""
    return shorten(recording, MAX_STEM_BYTES)


def _answers_content(recording: RecordingRequests, results: Sequence[RequestResult]) -> dict[str, Any]:
    """Return the raw replies for a recording in the form that the provider ``replay`` reads."""
    by_key = {result.request.key: result for result in results}
    rows = []
    for request in recording.requests:
        result = by_key[request.key]
        reply = None if result.reply is None else {**vars(result.reply), "raw": {}}
        row = {"key": request.key, "window": list(request.window), "reply": reply, "error": result.error}
        rows.append({**row, CHECKSUM: reply_checksum(row)})
    return {"ethobench": "answers", "format_version": FORMAT_VERSION, "recording": recording.recording, "answers": rows}


def _read_answers(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = content.get("format_version")
        _ = [(row["key"], row["reply"]) for row in content["answers"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FormatError(path, "not a file of replies written by ethobench annotate; move it or choose another folder") from None
    check_format_version(path, version)
    verify_replies(path, content["answers"])
    return content


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def _cell(value: Any) -> str:
    """Return the text of a table cell. Text that a spreadsheet would run as a formula gets a leading apostrophe."""
    if isinstance(value, dict):
        value = ", ".join(f"{key} {count}" for key, count in value.items())
    elif isinstance(value, list):
        value = "; ".join(map(str, value))
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(("=", "+", "@", "-")) else text
