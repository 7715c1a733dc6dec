"""Annotators side by side: one example for each of them, so that a model may learn from all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ethobench.core import Dataset, Recording
from ethobench.core.errors import NotFoundError
from ethobench.core.folds import ORIGIN


def by_annotator(data: Dataset) -> Dataset:
    """Return one recording for each recording and annotator; its metadata name the ``annotator``."""
    parts = [
        recording.copy(id=f"{recording.id}|{name}", annotations={name: annotation}, metadata={**_of(recording), "annotator": name})
        for recording in data
        for name, annotation in recording.annotations.items()
    ]
    if not parts:
        raise NotFoundError("no recording has an annotation to learn from")
    return replace(data, recordings=tuple(parts), folds={}, splits={})


def _of(recording: Recording) -> dict[str, Any]:
    return {ORIGIN: recording.id, **recording.metadata}
