"""`score`: read the inputs, align predictions with truths, and return `Scores`.

Inputs are annotations in memory, arrays of frames (`ethobench.metrics.frame_arrays`), a dataset, or paths. Paths are matched by recording
as `ethobench.datasets.collate` defines it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from ethobench.core import Annotation, Dataset, Ethogram, Prediction, Recording
from ethobench.core.errors import EthobenchError, MismatchError, Note, NotFoundError, ReadWarning
from ethobench.core.messages import Message, Option
from ethobench.datasets import load_dataset
from ethobench.datasets.collate import CollatedPairs, RecordingPair, collate_pairs, equalize_lengths
from ethobench.datasets.loose_files import is_dataset
from ethobench.datasets.match_file import Match, describe_unmatched, list_names
from ethobench.metrics.alignment import ALL, SINGLE, Unaligned, align, join_ethograms
from ethobench.metrics.array_inputs import convert_score_arrays, has_score_arrays
from ethobench.metrics.bootstrap import RESAMPLES
from ethobench.metrics.label_mismatches import label_notes
from ethobench.metrics.majority import consensus
from ethobench.metrics.pairs import AlignedPair
from ethobench.metrics.scores import Scores
from ethobench.metrics.suites import Suite, suites

CONSENSUS = "consensus"
MABE2025 = "mabe2025"
MAX_NAMES = 5  # names that a message lists
SIDES = ("the prediction", "the truth")


def score(
    pred: Annotation | Prediction | ArrayLike | Mapping[str, Any] | str | Path,
    truth: Annotation | Prediction | ArrayLike | Mapping[str, Any] | Dataset | str | Path | None = None,
    *,
    suite: str = "ethobench",
    individuals: Mapping[str, str] | None = None,
    annotator: str | None = None,
    behaviors: Ethogram | Iterable[str] | str | None = None,
    tracks: str = "auto",
    resamples: int = RESAMPLES,
    seed: int = 0,
    rate: float | None = None,
    rename: Mapping[str, str] | None = None,
    match: Match | None = None,
    entry: str | None = None,
    exclusive: bool | None = None,
    options: Mapping[str, Any] | None = None,
    metadata: Any = None,
) -> Scores:
    """Score predictions against a truth.

    Parameters
    ----------
    pred : Annotation, Prediction, array, mapping or path
        One prediction; or recordings to ``(prediction, truth)``; or recordings to predictions, with `truth` a
        Dataset or a mapping of truths; or a file or folder, with `truth` a path or a Dataset.

        An array, list, pandas Series or DataFrame has one row for each frame: integer codes or names of behaviors ``(n_frames,)``, 0 and 1
        ``(n_frames, n_behaviors)``, or probabilities of the same shape. -1, NaN and None (in all columns) are unobserved frames, and
        empty text is a frame without behavior. The columns of a DataFrame are behaviors.
    truth : Annotation, array, mapping, Dataset or path, optional
        What the predictions are compared with. A path is a file, a folder, or a study with a ``recordings.csv``.
    suite : str
        Whose definitions: ``"ethobench"``, ``"banos"``, ``"bebe"``, ``"calms21"``, ``"mabe2025"`` or ``"rodentbench"``.
    individuals : mapping, optional
        Recordings to individuals; intervals resample individuals. By default each recording is an individual.
    annotator : str, optional
        Whose annotation is the truth, if there are several: a name, ``"consensus"`` or ``"all"``. For paths and datasets. Names the
        annotator of files that name none.
    behaviors : iterable of str or Ethogram, optional
        Score only these; ``"all"`` scores every behavior of either side. For arrays of codes, 0 and 1, or probabilities: the names, in the
        order of codes or columns. An Ethogram may name a background.
    tracks : {"auto", "merge"}
        ``"auto"`` scores subjects separately if both sides name them, ``"merge"`` pools them.
    resamples : int
        Number of bootstrap resamples for intervals (at most 1,000 for histograms); 0 for no intervals.
    seed : int
        Random seed of the resampling.
    rate : float, optional
        Frames per second of arrays, and of files that do not state it.
    rename : mapping of str to str, optional
        Behaviors in files to rename, old name to new name.
    match : mapping, pairs or path, optional
        Names of files or recordings that belong together although they differ: predictions to truths, or a CSV file with the columns
        ``left`` (predictions) and ``right`` (truths).
    entry : str, optional
        Read only this observation, channel or recording of files. A side that does not have it is read completely if each of its files
        has one recording.
    exclusive : bool, optional
        Whether the behaviors of arrays of probabilities exclude each other. Default: yes if all rows sum to 1.
    options : mapping of str to object, optional
        Options for reading files, such as ``{"label": "behaviour"}``. Each is passed to the formats that have it.
    metadata : path, DataFrame or mapping, optional
        For suite ``mabe2025``: lab and labeled behaviors of each video, as the columns ``video_id, lab_id, behaviors_labeled`` of a table
        or as a mapping of recordings to ``{"lab": ..., "behaviors_labeled": [...]}``. In this suite `pred` and `truth` may also be a
        submission and a solution, as files or DataFrames.

    Returns
    -------
    Scores
        Notes of the readers are issued as `ReadWarning`.

    See Also
    --------
    agreement : compare annotators with each other.
    ceiling : compare a model with the agreement of annotators.

    Examples
    --------
    >>> truth = Annotation.from_frames([0, 0, 1, 1], ["rest", "run"], rate=1)
    >>> pred = Annotation.from_frames([0, 0, 0, 1], ["rest", "run"], rate=1)
    >>> scores = score(pred, truth)
    >>> round(scores.overall["f1"], 3), scores.behaviors["run"]["recall"]
    (0.733, 0.5)

    Arrays need a frame rate and the names of their codes or columns. Several recordings are dicts; with five or more, scores have
    intervals:

    >>> scores = score([0, 0, 0, 1], [0, 0, 1, -1], rate=1, behaviors=["rest", "run"])
    >>> round(scores.behaviors["rest"]["precision"], 3)
    0.667
    >>> labels = {f"mouse{k}": ["rest", "run"] * k + ["run"] * 9 for k in range(6)}
    >>> scores = score({name: ["rest", *frames[1:]] for name, frames in labels.items()}, labels, rate=1)
    >>> scores.headline_table()["f1"].to_dict()
    {'all': '0.980 [0.65, 1.00]', 'rest': '0.968 [0.48, 1.00]', 'run': '0.993 [0.90, 1.00]'}
    >>> probabilities = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]]
    >>> score(probabilities, [[1, 0], [1, 0], [0, 1], [0, 1]], rate=1, behaviors=["rest", "run"]).overall["map"]
    1.0

    Files are scored as the command ``ethobench score`` does it:

    >>> from ethobench import write_annotation
    >>> for name, annotation in {"pred": pred, "truth": truth}.items():
    ...     _ = write_annotation(annotation, folder / name / "mouse1.csv")
    >>> round(score(folder / "pred", folder / "truth").overall["f1"], 3)
    0.733
    """
    chosen = suites[suite]
    if metadata is not None and suite != MABE2025:
        raise EthobenchError(f"`metadata` is an option of suite {MABE2025!r}, not of {suite!r}")
    if suite == MABE2025 and is_submission(pred, truth):
        unused: dict[str, Any] = {
            "behaviors": behaviors,
            "annotator": annotator,
            "individuals": individuals,
            "rate": rate,
            "rename": rename,
        }
        unused |= {"match": match, "entry": entry, "exclusive": exclusive, "options": options, "tracks": tracks.removeprefix("auto")}
        return _score_submission(pred, truth, metadata, unused, resamples=resamples, seed=seed)
    if isinstance(behaviors, Iterable) and not isinstance(behaviors, (str, Ethogram)):
        behaviors = list(behaviors)
    if not isinstance(pred, (str, Path)) and has_score_arrays(pred, truth):
        pred, truth = convert_score_arrays(pred, truth, rate=rate, behaviors=behaviors, exclusive=exclusive)
        rate = exclusive = None
    if isinstance(behaviors, Ethogram):
        behaviors = list(behaviors.names)
    if exclusive is not None:
        raise EthobenchError("`exclusive` is an option for arrays of probabilities; a Prediction states it itself")
    if isinstance(pred, (str, Path)):
        files = read_score_files(pred, truth, annotator=annotator, rate=rate, rename=rename, match=match, entry=entry, options=options)
        for note in files.notes:
            warnings.warn(str(note), ReadWarning, stacklevel=2)
        pred, truth = files.predictions, files.dataset
    elif match is not None or entry is not None or options:
        raise EthobenchError("`match`, `entry` and `options` are options for files; name the recordings of annotations and arrays alike")
    elif rate is not None or rename:
        raise EthobenchError(
            "`rate` is an option for files and arrays, and `rename` for files; resample or rename annotations before scoring"
        )
    recordings = _pair_inputs(pred, truth, individuals, annotator)
    recordings = _with_metadata(recordings, metadata)
    recordings = [chosen.prepare(recording) for recording in recordings]
    pairs = [align(recording, chosen, behaviors=behaviors, tracks=tracks) for recording in recordings]
    notes = chosen.notes(recordings) + _prediction_notes(recordings, chosen)
    if isinstance(truth, Dataset):
        notes += _missing_notes(recordings, truth)
    notes += _label_notes(recordings, behaviors)
    return score_pairs(pairs, chosen, resamples=resamples, seed=seed, notes=notes)


def is_submission(pred: Any, truth: Any) -> bool:
    """Return whether the inputs are tables of the MABe 2025 challenge: a file or DataFrame with all predicted bouts, and their truth."""
    from ethobench.formats.mabe2025_tables import is_bout_table

    return is_bout_table(pred) and (is_bout_table(truth) or isinstance(truth, Dataset) or _is_dataset_path(truth))


def _is_dataset_path(truth: Any) -> bool:
    return isinstance(truth, (str, Path)) and is_dataset(Path(truth))


def _score_submission(pred: Any, truth: Any, metadata: Any, unused: Mapping[str, Any], **options: Any) -> Scores:
    from ethobench.metrics.suites.mabe2025 import score_submission

    if names := [name for name, value in unused.items() if value]:
        raise EthobenchError(Message("a submission of MABe 2025 is scored as it is; omit ", *_enumerate([Option(n) for n in names])))
    if _is_dataset_path(truth):
        truth = load_dataset(truth)
    return score_submission(pred, truth, metadata, **options)


def _enumerate(items: Sequence[Any]) -> list[Any]:
    return [text for k, item in enumerate(items) for text in ((", ", item) if k else (item,))]


def _with_metadata(recordings: Sequence[Unaligned], metadata: Any) -> list[Unaligned]:
    """Add lab and labeled behaviors to recordings."""
    if metadata is None:
        return list(recordings)
    from ethobench.metrics.suites.mabe2025 import LABELED_KEY, video_metadata

    videos = video_metadata(metadata)
    missing = [r.id for r in recordings if r.id not in videos]
    if missing:
        raise NotFoundError(f"`metadata` has no recording {list_names(missing)}")
    labels = {r.id: {"lab": videos[r.id].lab, LABELED_KEY: videos[r.id].entries} for r in recordings}
    return [replace(r, metadata={**r.metadata, **labels[r.id]}) for r in recordings]


def score_pairs(
    pairs: Sequence[AlignedPair], suite: Suite, *, resamples: int = RESAMPLES, seed: int = 0, notes: Iterable[Note] = ()
) -> Scores:
    """Score aligned pairs; their ethograms are joined by name, and unobserved behaviors are not scored."""
    joined, ethogram, unobserved = join_ethograms(pairs, suite)
    scores = Scores(suite, ethogram, {pair.id: pair.individual for pair in joined}, pairs=joined, resamples=resamples, seed=seed)
    skipped = [Note(f"never observed, so not scored: {', '.join(unobserved)}")] if unobserved else []
    scores.notes = [*notes, *skipped, *scores.notes]
    return scores


@dataclass(frozen=True)
class ScoreFiles:
    """Predictions and truths read from files, for `score`.

    Attributes
    ----------
    predictions : dict
        Recordings to ``(prediction, truth)``; or recordings to predictions if the truth is a `dataset`.
    dataset : Dataset, optional
        The study that the truth path names.
    notes : tuple of Note
        What the readers repaired, which recordings were matched other than by equal names, and which lengths were adjusted.
    """

    predictions: dict[str, Any]
    dataset: Dataset | None = None
    notes: tuple[Note, ...] = ()


def read_score_files(
    pred: str | Path,
    truth: Any,
    *,
    annotator: str | None = None,
    rate: float | None = None,
    rename: Mapping[str, str] | None = None,
    match: Match | None = None,
    entry: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> ScoreFiles:
    """Read a prediction and a truth from files, folders or a study, and match them by recording.

    Parameters
    ----------
    pred : path
        A file, or a folder of files.
    truth : path or Dataset
        A file, a folder, a study with a ``recordings.csv``, the name of a dataset, or a dataset in memory.
    annotator, rate, rename, match, entry, options
        As in `score`.
    """
    rename = dict(rename or {})
    if not isinstance(truth, (str, Path, Dataset)):
        raise EthobenchError(f"the prediction is a path, so the truth must be a path or a Dataset, not {type(truth).__name__}")
    if isinstance(truth, Dataset) or is_dataset(Path(truth)):
        return _read_against_dataset(Path(pred), truth, annotator, rate, rename, match, entry, options)
    named = None if annotator in (ALL, CONSENSUS) else annotator
    matched = collate_pairs(pred, truth, rate=rate, rename=rename, match=match, entry=entry, annotator=named, options=options)
    if matched.only_predictions or not matched.pairs:
        sides = ((pred, matched.only_predictions), (truth, matched.only_references))
        raise EthobenchError(Message("recording names do not match: ", describe_unmatched(sides, entries=True)))
    pairs: dict[str, Any] = {}
    notes = _note_unscored(matched)
    for name, pair in matched.pairs.items():
        prediction = _only_annotation(pair.predictions, name, "score them one at a time, from separate files (ethobench convert)")
        for suffix, reference in _references(pair.references, annotator, name).items():
            pairs[f"{name}@{suffix}" if suffix else name] = _equalize(prediction, reference, name, pair, notes)
    return ScoreFiles(pairs, None, _reader_notes(matched, notes))


def _read_against_dataset(
    pred: Path,
    truth: str | Path | Dataset,
    annotator: str | None,
    rate: float | None,
    rename: Mapping[str, str],
    match: Match | None,
    entry: str | None,
    options: Mapping[str, Any] | None,
) -> ScoreFiles:
    data = truth if isinstance(truth, Dataset) else load_dataset(truth, rename=rename, check_rename=False)
    matched = collate_pairs(pred, data, rate=rate, rename=rename, check_rename=False, match=match, entry=entry, options=options)
    missing = {old: new for old, new in rename.items() if old not in matched.labels}
    if missing and not isinstance(truth, Dataset):
        load_dataset(truth, rename=missing)  # raises an error if the study does not have these behaviors either
    if matched.only_predictions:
        dataset = data.source or data.name if isinstance(truth, Dataset) else truth
        if not matched.only_references:
            unknown, available = list_names(matched.only_predictions), list_names([r.id for r in data if r.annotations])
            raise NotFoundError(f"{dataset} has no annotated recording {unknown}. Available: {available}")
        sides = ((pred, matched.only_predictions), (dataset, matched.only_references))
        raise NotFoundError(Message(f"{dataset} has no annotated recording of these names: ", describe_unmatched(sides)))
    predictions: dict[str, Any] = {}
    notes = _note_unscored(matched)
    for name, pair in matched.pairs.items():
        prediction = _only_annotation(pair.predictions, name, "score them one at a time, from separate files (ethobench convert)")
        if annotator not in (ALL, CONSENSUS):
            reference = data[name].annotation(annotator)
            if reference.n_frames > prediction.n_frames:
                prediction, _ = _equalize(prediction, reference, name, pair, notes)
        predictions[name] = prediction
    return ScoreFiles(predictions, data, _reader_notes(matched, notes))


def _note_unscored(matched: CollatedPairs) -> list[Note]:
    """Return a note about annotated recordings without a prediction."""
    names = matched.only_references
    total = len(names) + len(matched.pairs)
    message = f"{len(names)} of {total} annotated recordings have no prediction and are not scored: {list_names(names)}"
    return [Note(message, code="unscored-recordings")] if names else []


def _reader_notes(matched: CollatedPairs, notes: Iterable[Note]) -> tuple[Note, ...]:
    return (*matched.reader_notes, *matched.notes, *notes)


def _equalize(
    prediction: Annotation, reference: Annotation, name: str, pair: RecordingPair, notes: list[Note]
) -> tuple[Annotation, Annotation]:
    """Make both sides equally long if their clocks agree and the difference is small or the length of one is not stated."""
    if prediction.rate != reference.rate:
        return prediction, reference
    stated = [side for side, is_stated in zip(SIDES, pair.stated_lengths, strict=True) if is_stated]
    sides, more_notes = equalize_lengths(dict(zip(SIDES, (prediction, reference), strict=True)), name, stated=stated, any_difference=False)
    notes += more_notes
    return sides[SIDES[0]], sides[SIDES[1]]


def _references(annotations: Mapping[str, Annotation], annotator: str | None, name: str) -> dict[str, Annotation]:
    """Return the truths of a recording by suffix of its name: all annotators, the consensus, the named one, or the only one."""
    if annotator == ALL:
        return dict(annotations)
    if annotator == CONSENSUS:
        return {"": consensus(annotations)}
    if annotator is not None:
        return {"": Recording(name, annotations=annotations).annotation(annotator)}
    return {"": _only_annotation(annotations, name, Message("name one with ", Option("annotator")))}


def _only_annotation(annotations: Mapping[str, Annotation], name: str, advice: str) -> Annotation:
    if len(annotations) > 1:
        raise EthobenchError(Message(f"{name!r} has several annotators ({', '.join(annotations)}); ", advice))
    return next(iter(annotations.values()))


def _pair_inputs(pred: Any, truth: Any, individuals: Mapping[str, str] | None, annotator: str | None) -> list[Unaligned]:
    """Pair each prediction with its truth."""
    if isinstance(truth, Dataset):
        return _pair_with_dataset(pred, truth, annotator)
    if isinstance(pred, Mapping) and truth is None:
        pairs = {str(name): _checked_pair(name, value) for name, value in pred.items()}
    elif isinstance(pred, Mapping) and isinstance(truth, Mapping):
        predictions, truths = ({str(name): value for name, value in mapping.items()} for mapping in (pred, truth))
        unmatched = sorted({*predictions} ^ {*truths})
        if unmatched:
            raise MismatchError(f"these recordings have only a prediction or only a truth: {', '.join(unmatched)}")
        pairs = {name: (_checked(predictions[name], name), _annotation(truths[name], name)) for name in predictions}
    elif isinstance(pred, Mapping) or isinstance(truth, Mapping) or truth is None:
        raise EthobenchError("score takes a prediction and a truth, a mapping of recordings to such pairs, or predictions and a Dataset")
    else:
        pairs = {SINGLE: (_checked(pred, SINGLE), _annotation(truth, SINGLE))}
    if not pairs:
        raise EthobenchError("nothing to score: there are no recordings")
    owners = {str(name): str(individual) for name, individual in (individuals or {}).items()}
    unknown = sorted({*owners} - {*pairs})
    if unknown:
        raise NotFoundError(f"`individuals` names recordings that are not scored: {', '.join(unknown)}")
    return [Unaligned(name, owners.get(name, name), *pair) for name, pair in pairs.items()]


def _pair_with_dataset(pred: Any, data: Dataset, annotator: str | None) -> list[Unaligned]:
    if not isinstance(pred, Mapping):
        if len(data) != 1:
            raise EthobenchError(f"{data.name or 'the dataset'} has {len(data)} recordings: pass predictions as a mapping of recording ids")
        pred = {data.recordings[0].id: pred}
    groups, recordings = data.groups(), []
    for name, prediction in pred.items():
        recording = data[name]
        if annotator == ALL:
            truths = {f"{name}@{annotator_name}": truth for annotator_name, truth in recording.annotations.items()}
        elif annotator == CONSENSUS:
            truths = {name: consensus(recording.annotations)}
        else:
            truths = {name: recording.annotation(annotator)}
        checked = _checked(prediction, name)
        recordings += [Unaligned(key, groups[name], checked, truth, recording.metadata) for key, truth in truths.items()]
    if not recordings:
        raise EthobenchError("nothing to score: there are no recordings")
    return recordings


def _checked_pair(name: object, value: Any) -> tuple[Annotation | Prediction, Annotation]:
    if not isinstance(value, tuple) or len(value) != 2:
        raise EthobenchError(f"recording {name!r}: expected a pair (prediction, truth), got {type(value).__name__}")
    return _checked(value[0], name), _annotation(value[1], name)


def _checked(value: Any, name: object) -> Annotation | Prediction:
    if isinstance(value, (Annotation, Prediction)):
        return value
    expected = "an Annotation, a Prediction or an array of frames"
    raise EthobenchError(f"recording {name!r}: expected {expected}, got {type(value).__name__}; read_annotation reads files")


def _annotation(value: Any, name: object) -> Annotation:
    checked = _checked(value, name)
    return checked.annotation if isinstance(checked, Prediction) else checked


def _prediction_notes(recordings: Sequence[Unaligned], suite: Suite) -> list[Note]:
    """Return what had to be inferred about predictions, once for each kind, with the number of recordings it concerns."""
    if suite.exclusive is not None:
        return []
    messages = Counter(note.message for r in recordings if isinstance(r.pred, Prediction) for note in r.pred.notes)
    total = len(recordings)
    return [Note(message if count == total else f"{count} of {total} recordings: {message}") for message, count in messages.items()]


def _missing_notes(recordings: Sequence[Unaligned], data: Dataset) -> list[Note]:
    """Note the annotated recordings of a dataset that have no prediction."""
    ids = {recording.id for recording in recordings}
    missing = [r.id for r in data if r.annotations and r.id not in ids and f"{r.id}@{next(iter(r.annotations))}" not in ids]
    if not missing:
        return []
    return [Note(f"{len(missing)} of {len(data)} recordings have no prediction: {', '.join(missing[:MAX_NAMES])}")]


def _label_notes(recordings: Sequence[Unaligned], behaviors: Iterable[str] | str | None) -> list[Note]:
    """Note labels that only the predictions or only the truths use: probably different names of the same behaviors."""
    sides = {
        r.id: dict(zip(SIDES, (r.pred.annotation if isinstance(r.pred, Prediction) else r.pred, r.truth), strict=True)) for r in recordings
    }
    chosen = None if behaviors is None or behaviors == ALL else [behaviors] if isinstance(behaviors, str) else behaviors
    return label_notes(sides, chosen)
