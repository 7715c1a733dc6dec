"""Storage of replies: a cache by request, and checksums of stored replies. A reply is stored before it is parsed, so none is lost."""

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
FORMAT_VERSION = 1


class ReplyCache:
    """Raw replies in a folder, one file per request, named by the key of the request.

    Parameters
    ----------
    root : Path, optional
        Default: ``answers`` in Ethobench's cache folder.
    """

    def __init__(self, root: str | Path | None = None) -> None:
        self.root = Path(root) if root is not None else cache_folder() / "answers"
        self._warned = False

    def path(self, key: str) -> Path:
        """Return the path of the file for a request."""
        return self.root / key[:2] / f"{key}.json"

    def get(self, request: Request) -> Reply | None:
        """Return the stored reply to a request; None if there is none.

        A file that is damaged, or whose reply does not match its checksum, is renamed to ``*.damaged`` with a `ReadWarning` and counts as
        missing. A reply without a checksum is returned with a `ReadWarning`, issued once per cache.

        Raises
        ------
        FormatError
            If the file has an unknown format version.
        """
        path = self.path(request.key)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            reply_fields, version = content["reply"], content.get("format_version")
            if version == FORMAT_VERSION:
                reply = Reply(**reply_fields)
                if CHECKSUM in content and content[CHECKSUM] != checksum({"key": request.key, "reply": reply_fields}):
                    raise ValueError("the reply does not match its checksum")
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            path.replace(path.with_suffix(".damaged"))
            self._warn(f"{path}: damaged reply ({error}); renamed to {path.stem}.damaged, the request is sent again")
            return None
        check_format_version(path, version)
        if CHECKSUM not in content and not self._warned:
            self._warned = True
            self._warn(f"{self.root}: replies without a checksum cannot be verified")
        return reply

    def put(self, request: Request, reply: Reply) -> Path:
        """Store a reply and return the path of its file."""
        path, fields = self.path(request.key), asdict(reply)
        content = {"format_version": FORMAT_VERSION, "request": request.identity(), "recording": request.recording, "reply": fields}
        write_ascii_json(path, {**content, CHECKSUM: checksum({"key": request.key, "reply": fields})})
        return path

    def _warn(self, message: str) -> None:
        warnings.warn(message, ReadWarning, stacklevel=3)


def check_format_version(path: Path, version: object) -> None:
    """Raise a `FormatError` if a file with stored replies has an unknown format version."""
    if version != FORMAT_VERSION:
        message = f"format_version {version!r} is not supported, this version of ethobench reads {FORMAT_VERSION}; use another folder"
        raise FormatError(path, message)


def checksum(value: Any) -> str:
    """Return the SHA-256 of a value as it is after a round trip through JSON."""
    plain = json.loads(json.dumps(value, default=dict))
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


def reply_checksum(row: Mapping[str, Any]) -> str:
    """Return the checksum of one row of an answer file: the key of the request, its window and the reply."""
    return checksum({name: row.get(name) for name in ("key", "window", "reply")})


def verify_replies(path: Path, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Verify the checksums of the rows of an answer file.

    Returns
    -------
    bool
        Whether all rows have a checksum.

    Raises
    ------
    FormatError
        If a row does not match its checksum.
    """
    for row in rows:
        if CHECKSUM in row and row[CHECKSUM] != reply_checksum(row):
            message = f'a reply does not match its checksum: restore the file, or remove "{CHECKSUM}" from the row to use it unverified'
            raise FormatError(path, message, f"window {row.get('window')}")
    return all(CHECKSUM in row for row in rows)


def write_ascii_json(path: Path, content: Any) -> None:
    """Write a JSON file atomically. It is ASCII, since replies may hold lone surrogates, which UTF-8 cannot encode."""
    write_text(path, json.dumps(content, indent=1, default=dict), overwrite=True)
