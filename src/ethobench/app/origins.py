"""Where the labels of a correction come from: a log of a reviewer's decisions about suggested bouts.

``origins.jsonl`` in the folder of corrections has one JSON object per line. Lines are only ever appended, each with a single write, so that
several viewers can share a folder and a viewer that is killed loses nothing but the line it was writing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ethobench.core.errors import FormatError
from ethobench.core.files import sync_folder

FILE_NAME = "origins.jsonl"
FORMAT_VERSION = 1
ACCEPTED, ADJUSTED, REJECTED, SKIPPED = "accepted", "adjusted", "rejected", "skipped"
TEACHER, SIMILAR, CLUSTER = "teacher", "similar", "cluster"
MAX_BYTES = 200_000_000


@dataclass(frozen=True)
class Origin:
    """A reviewer's decision about a suggested bout.

    Attributes
    ----------
    recording, annotator : str
    start, stop : int
        Half-open frames of the bout as the reviewer labeled it; of a rejected bout, as it was suggested.
    behavior : str
    subject, target : str, optional
    decision : {"accepted", "adjusted", "rejected"}
    origin : {"teacher", "similar", "cluster"}
        What suggested it.
    suggested : mapping, optional
        Frames and behavior as suggested, if they were adjusted.
    probability : float, optional
        Of the suggested bout.
    training : int, optional
        Number of the training that suggested it.
    time : str
        When it was decided, in UTC.
    """

    recording: str
    annotator: str
    start: int
    stop: int
    behavior: str
    subject: str | None = None
    target: str | None = None
    decision: str = ACCEPTED
    origin: str = TEACHER
    suggested: Mapping[str, Any] | None = None
    probability: float | None = None
    training: int | None = None
    time: str = ""


class Origins:
    """The log of decisions in a folder of corrections.

    Parameters
    ----------
    folder : Path
        The folder of corrections.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def add(self, decisions: Sequence[Origin]) -> None:
        """Append decisions; they are on disk when this returns."""
        if not decisions:
            return
        now = datetime.now(UTC).isoformat(timespec="seconds")
        lines = [json.dumps({"format_version": FORMAT_VERSION, **_stated(each, now)}, ensure_ascii=False) for each in decisions]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        try:
            size = os.fstat(handle).st_size
            torn = size > 0 and _last_byte(handle, size) != b"\n"  # a viewer was killed while it wrote a line
            os.write(handle, (("\n" if torn else "") + "\n".join(lines) + "\n").encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        if is_new:
            sync_folder(self.path.parent)

    def load(self) -> list[Origin]:
        """Return all decisions; damaged lines are skipped.

        Raises
        ------
        FormatError
            If a decision has another format version.
        """
        names = {f.name for f in fields(Origin)}
        decisions: list[Origin] = []
        try:
            if self.path.stat().st_size > MAX_BYTES:
                return decisions
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return decisions
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if not isinstance(row, dict) or "format_version" not in row:
                continue
            if row["format_version"] != FORMAT_VERSION:
                message = f"format version {row['format_version']!r} is not supported, only {FORMAT_VERSION}; update ethobench"
                raise FormatError(self.path, message, f"line {number}")
            if type(row.get("start")) is type(row.get("stop")) is int:
                with suppress(TypeError):
                    decisions.append(Origin(**{name: value for name, value in row.items() if name in names}))
        return decisions


def _stated(decision: Origin, now: str) -> dict[str, Any]:
    values = {name: value for name, value in asdict(decision).items() if value is not None}
    return {**values, "time": decision.time or now}


def _last_byte(handle: int, size: int) -> bytes:
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1)
