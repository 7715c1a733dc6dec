"""What the jobs of a run predicted, by recording and model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.formats import read_quietly
from ethobench.runs import Job
from ethobench.runs.perform import EXCLUSIVE

PREDICTIONS, PROBABILITIES = "predictions.parquet", "probabilities.parquet"
CERTAIN = 255


def predictions_of(jobs: Sequence[tuple[Job, Path]]) -> dict[str, dict[str, Prediction | Annotation]]:
    """Read the predictions of finished jobs of one dataset: recordings to models to what they say.

    A model is called by its name, followed by the setting where that is not the full data, and by the job's key where two
    jobs would be called the same.
    """
    found: dict[str, dict[str, Prediction | Annotation]] = {}
    for job, folder in jobs:
        if not (folder / PREDICTIONS).is_file():
            continue
        name = job.model if job.setting == "full" else f"{job.model} ({job.setting})"
        decoded = {r.id: r.annotation() for r in read_quietly(folder / PREDICTIONS, "tidy_parquet")}
        kept = _probabilities(folder / PROBABILITIES, decoded) if (folder / PROBABILITIES).is_file() else {}
        for recording, annotation in decoded.items():
            models = found.setdefault(recording, {})
            models[name if name not in models else f"{name} {job.key[:6]}"] = kept.get(recording, annotation)
    return found


def _probabilities(path: Path, decoded: dict[str, Annotation]) -> dict[str, Prediction]:
    """Read probabilities that were kept as bytes; a column without a name is the background that the ethogram does not name.

    Frames that could not be predicted are null in the table, and NaN in the result.
    """
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    names = [name for name in table.column_names if name != "recording"]
    owner = table.column("recording").to_pandas().to_numpy()
    values = np.column_stack([table.column(name).to_numpy() for name in names]).astype(np.float32) / CERTAIN
    exclusive = (table.schema.metadata or {}).get(EXCLUSIVE.encode()) == b"true"
    found = {}
    for recording, annotation in decoded.items():
        rows = values[owner == recording]
        behaviors = [name for name in names if name]
        background = annotation.ethogram.background_name
        ethogram = Ethogram(behaviors, background if background in behaviors else None)
        if len(rows) == annotation.n_frames:
            shown = annotation.with_ethogram(ethogram)
            found[recording] = Prediction(rows, ethogram, annotation.rate, annotation=shown, exclusive=exclusive)
    return found
