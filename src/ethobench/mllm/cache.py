"""Answers that were paid for, kept by what was asked; and how they are written so that none is lost."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ethobench.core.errors import FormatError, ReadWarning
from ethobench.core.files import write_text
from ethobench.formats.parse_cache import cache_folder
from ethobench.mllm.request import Reply, Request

CHECKSUM = "sha256"


class AnswerCache:
    """Raw answers in a folder, each in a file named by its question's key.

    Parameters
    ----------
    root : Path, optional
        ``answers`` in Ethobench's cache folder unless told.
    """

    def __init__(self, root: str | Path | None = None) -> None:
        self.root = Path(root) if root is not None else cache_folder() / "answers"
        self._is_told = False

    def place(self, key: str) -> Path:
        """Return where an answer lies or would lie."""
        return self.root / key[:2] / f"{key}.json"

    def get(self, request: Request) -> Reply | None:
        """Return the answer to a question.

        An answer that is damaged, or was changed since it was kept, is put aside with a `ReadWarning`, and the question counts as not
        asked. One that an earlier version kept without a checksum is returned with a `ReadWarning`, issued once for each cache.
        """
        path = self.place(request.key)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            reply = Reply(**content["reply"])
            if CHECKSUM in content and content[CHECKSUM] != checksum({"key": request.key, "reply": content["reply"]}):
                raise ValueError("it was changed since it was kept")
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            path.replace(path.with_suffix(".damaged"))
            self._warn(f"{path}: this answer is damaged ({error}); it is put aside as {path.stem}.damaged, and the question is asked again")
            return None
        if CHECKSUM not in content and not self._is_told:
            self._is_told = True
            self._warn(f"{self.root}: some answers were kept by an earlier version, without checksums, and cannot be verified")
        return reply

    def put(self, request: Request, reply: Reply) -> Path:
        """Keep an answer, before anybody tries to read it."""
        path, fields = self.place(request.key), asdict(reply)
        content = {"question": request.identity(), "recording": request.recording, "reply": fields}
        write_json(path, {**content, CHECKSUM: checksum({"key": request.key, "reply": fields})})
        return path

    def _warn(self, message: str) -> None:
        warnings.warn(message, ReadWarning, stacklevel=3)


def checksum(value: Any) -> str:
    """Return the SHA-256 of a value, as it is after being written as JSON and read again."""
    plain = json.loads(json.dumps(value, default=dict))
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


def reply_checksum(row: Mapping[str, Any]) -> str:
    """Return the checksum of one of the answers about a recording: what was asked of which window, and the reply."""
    return checksum({name: row.get(name) for name in ("key", "window", "reply")})


def verify_replies(path: Path, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Check the answers about a recording that were read from a file.

    Returns
    -------
    bool
        Whether all answers have a checksum; those that an earlier version kept have none.

    Raises
    ------
    FormatError
        If an answer was changed since it was kept.
    """
    for row in rows:
        if CHECKSUM in row and row[CHECKSUM] != reply_checksum(row):
            message = f'an answer was changed since it was kept: restore the file, or remove the answer\'s "{CHECKSUM}" to use it as it is'
            raise FormatError(path, message, f"window {row.get('window')}")
    return all(CHECKSUM in row for row in rows)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file that appears whole or not at all; ASCII only, so that any text of a model can be held."""
    write_text(path, json.dumps(value, indent=1, default=dict), overwrite=True)
