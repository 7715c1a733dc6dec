"""Annotators side by side: one example for each of them, so that a model may learn from all."""

from __future__ import annotations

from dataclasses import replace

from ethobench.core import Dataset
from ethobench.core.errors import NotFoundError


def by_annotator(data: Dataset) -> Dataset:
    """Return one recording for each recording and annotator; its metadata name the ``annotator``."""
    parts = [
        recording.copy(
            id=f"{recording.id}|{name}",
            source_id=recording.source_id,
            annotations={name: annotation},
            metadata={**recording.metadata, "annotator": name},
        )
        for recording in data
        for name, annotation in recording.annotations.items()
    ]
    if not parts:
        raise NotFoundError("no recording has an annotation to learn from")
    return replace(data, recordings=tuple(parts), folds={}, splits={})
