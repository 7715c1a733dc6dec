"""Workers of a batch prediction: predict one recording, and write its annotation."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethobench.core import Annotation, Prediction
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, Note, PathExistsError
from ethobench.core.files import rename_to_new, sync_folder, temporary_folder
from ethobench.features.identity_swaps import identity_swap_notes
from ethobench.formats import write_recordings
from ethobench.models import load_model
from ethobench.models.adapt import with_rate
from ethobench.models.audit import LoggedPrediction, hash_file, write_entry
from ethobench.models.held_out import predict_or_held_out
from ethobench.models.saving import read_card
from ethobench.runs.leases import StoreError
from ethobench.runs.prediction_store import PredictionJob, PredictionOptions, PredictionStore
from ethobench.runs.worker import WorkerOptions, run_leased, use_data_folder

if TYPE_CHECKING:
    from ethobench.models import Model


def run_prediction(values: dict[str, Any], root: str, options: WorkerOptions) -> tuple[str, str]:
    """Predict one recording and write its annotation; see `ethobench.runs.worker.run_job`."""
    job = PredictionJob.from_dict(values)
    store = PredictionStore(root, [job])

    def work() -> None:
        use_data_folder(options.data)
        _predict(job, store)

    return run_leased(job, store, options.run, work)


def _predict(job: PredictionJob, store: PredictionStore) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        model = load_for_prediction(job.model, job.model_digest, job.options)
        stamp = job.input.stamp()
        recording, keypoints = job.input.read(job.options.rate, job.options.options)
        recording = with_rate(recording, model.rate)
        adapted = model.adapt(recording, keypoints)
        annotate = partial(model.annotate, adapted)
        predicted, origin = predict_or_held_out(model, recording, annotate, use_out_of_fold=job.options.uses_out_of_fold)
    annotation = predicted.annotation if isinstance(predicted, Prediction) else predicted
    messages = dict.fromkeys(str(warning.message).replace(f"recording {recording.id!r}", "the recording") for warning in caught)
    notes = [*adapted.notes, *identity_swap_notes(recording), *map(Note, messages)]
    annotated = adapted.copy(annotations={model.name: annotation}, signals=None, features=None)

    def entry_of(path: Path, losses: Sequence[Note]) -> LoggedPrediction:
        return LoggedPrediction(
            job.file,
            hash_file(path),
            recording.id,
            Path(job.model).name,
            job.model_digest,
            **dataclasses.asdict(origin.match),
            out_of_fold=origin.out_of_fold,
            split=origin.split,
            key=job.key,
            input=job.input.path,
            input_stamp=stamp,
            input_digest=job.input.digest(),
            bouts=len(annotation),
            seconds=annotation.n_frames / annotation.rate,
            unobserved_seconds=_unobserved_frames(annotation) / annotation.rate,
            notes=tuple(dict.fromkeys([*notes, *losses])),
        )

    try:
        with temporary_folder(store.log / "tmp") as folder:
            path = folder / job.file
            losses = write_recordings([annotated], path, job.options.to)
            write_entry(store.root, entry_of(path, losses))
            if job.options.overwrite:
                path.replace(store.root / job.file)
            else:
                rename_to_new(path, store.root / job.file)
            sync_folder(store.root)
    except PathExistsError:
        raise
    except OSError as error:
        raise StoreError(f"{store.root}: annotations cannot be written to this folder ({error.strerror})") from None
    (store.log / "failed" / f"{job.file}.txt").unlink(missing_ok=True)


def load_for_prediction(folder: str, digest: str, options: PredictionOptions) -> Model:
    """Load a model with the options of a prediction, once in each process.

    Parameters
    ----------
    folder, digest : str
        Folder of the model, and hash of its files, which must not have changed.
    options : PredictionOptions
    """
    return _load_cached(folder, digest, json.dumps(dataclasses.asdict(options), sort_keys=True))


@lru_cache(maxsize=2)
def _load_cached(folder: str, digest: str, options_text: str) -> Model:
    options = PredictionOptions(**json.loads(options_text))
    if model_digest(Path(folder)) != digest:
        raise EthobenchError(f"the model {folder} has changed since the command started; run it again")
    model = load_model(folder, allow_network=options.allow_network, **options.external)
    if options.style:
        styles = getattr(model, "styles", ())
        if options.style not in styles:
            available = f"it has the styles of {', '.join(styles)}" if styles else "it has no styles (train with condition=annotator)"
            raise EthobenchError(f"this model cannot annotate in the style of {options.style!r}: {available}")
        model.style = options.style
    if options.min_confidence is not None:
        if model.name != "auto":
            raise EthobenchError(f"min_confidence needs model 'auto'; model {model.name!r} does not abstain")
        model.set_params(min_confidence=options.min_confidence)
    return model


def model_digest(folder: Path) -> str:
    """Return the hash of the files of a saved model, from its card."""
    return str(read_card(folder).get("digest", ""))


def _unobserved_frames(annotation: Annotation) -> int:
    return annotation.n_frames - iv.total(annotation.observed.of_any())
