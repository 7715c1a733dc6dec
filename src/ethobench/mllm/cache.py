"""Answers that were paid for, kept by what was asked; and how they are written so that none is lost."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ethobench.core.files import write_text
from ethobench.formats._cache import cache_folder
from ethobench.mllm.request import Reply, Request


class AnswerCache:
    """Raw answers in a folder, each in a file named by its question's key.

    Parameters
    ----------
    root : Path, optional
        ``answers`` in Ethobench's cache folder unless told.
    """

    def __init__(self, root: str | Path | None = None) -> None:
        self.root = Path(root) if root is not None else cache_folder() / "answers"

    def place(self, key: str) -> Path:
        """Return where an answer lies or would lie."""
        return self.root / key[:2] / f"{key}.json"

    def get(self, request: Request) -> Reply | None:
        """Return the answer to a question; a damaged file is put aside, and the question counts as not asked."""
        path = self.place(request.key)
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))["reply"]
            return Reply(**fields)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            path.replace(path.with_suffix(".damaged"))
            return None

    def put(self, request: Request, reply: Reply) -> Path:
        """Keep an answer, before anybody tries to read it."""
        path = self.place(request.key)
        write_json(path, {"question": request.identity(), "recording": request.recording, "reply": asdict(reply)})
        return path


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file that appears whole or not at all; ASCII only, so that any text of a model can be held."""
    write_text(path, json.dumps(value, indent=1, default=dict), overwrite=True)
