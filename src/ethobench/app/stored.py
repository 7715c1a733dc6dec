"""What the jobs of a run predicted, by recording and model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ethobench.core import Annotation, Prediction
from ethobench.models.held_out import PREDICTIONS, read_predictions
from ethobench.runs import Job


def predictions_of(jobs: Sequence[tuple[Job, Path]]) -> dict[str, dict[str, Prediction | Annotation]]:
    """Read the predictions of finished jobs of one dataset: recordings to models to what they say.

    A model is called by its name, followed by the setting where that is not the full data, and by the job's key where two
    jobs would be called the same.
    """
    found: dict[str, dict[str, Prediction | Annotation]] = {}
    for job, folder in jobs:
        if not (folder / PREDICTIONS).is_file():
            continue
        name = job.model if str(job.setting) == "full" else f"{job.model} ({job.setting})"
        for recording, predicted in read_predictions(folder).items():
            models = found.setdefault(recording, {})
            models[name if name not in models else f"{name} {job.key[:6]}"] = predicted
    return found
