"""From what a user hands in to the cases that are scored; everything that does not fit is refused in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from ethobench.core import Annotation, Dataset, Ethogram, Prediction
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, Note, NotFoundError
from ethobench.metrics.cases import Case
from ethobench.metrics.consensus import consensus
from ethobench.metrics.labels import find_label_mismatches
from ethobench.metrics.suites import Suite

Scored: TypeAlias = Annotation | Prediction
Pairs: TypeAlias = Mapping[str, tuple[Scored, Annotation]]
SINGLE = "recording"
ALL = "all"


def make_pairs(
    pred: Scored | Mapping[str, Any],
    truth: Scored | Mapping[str, Scored] | Dataset | None,
    individuals: Mapping[str, str] | None,
    annotator: str | None,
) -> tuple[dict[str, tuple[Scored, Annotation]], dict[str, str], dict[str, Mapping[str, Any]]]:
    """Return pairs by recording, the recordings' individuals, and their metadata."""
    if isinstance(truth, Dataset):
        return _against_dataset(_as_mapping(pred, truth), truth, annotator)
    if isinstance(pred, Mapping) and truth is None:
        pairs = {str(name): _pair(name, value) for name, value in pred.items()}
    elif isinstance(pred, Mapping) and isinstance(truth, Mapping):
        guesses, truths = ({str(name): side for name, side in given.items()} for given in (pred, truth))
        missing = sorted({*guesses} ^ {*truths})
        if missing:
            raise MismatchError(f"these recordings are on one side only: {', '.join(missing)}")
        pairs = {name: (_checked(guesses[name], name), _annotation(truths[name], name)) for name in guesses}
    elif isinstance(pred, Mapping) or isinstance(truth, Mapping) or truth is None:
        raise EthobenchError("score takes a prediction and a truth, a mapping of recordings to such pairs, or predictions and a Dataset")
    else:
        pairs = {SINGLE: (_checked(pred, SINGLE), _annotation(truth, SINGLE))}
    if not pairs:
        raise EthobenchError("there is nothing to score")
    unknown = sorted({*map(str, individuals or {})} - {*pairs})
    if unknown:
        raise NotFoundError(f"individuals are named for recordings that are not scored: {', '.join(unknown)}")
    return pairs, {name: str((individuals or {}).get(name, name)) for name in pairs}, {}


def make_case(
    name: str,
    individual: str,
    pred: Scored,
    truth: Annotation,
    suite: Suite,
    *,
    behaviors: Iterable[str] | str | None,
    tracks: str,
    both: bool,
    metadata: Mapping[str, Any],
) -> Case:
    """Bring both sides to one clock length and one ethogram, or say why that cannot be."""
    guess = _decoded(pred, suite) if isinstance(pred, Prediction) else pred
    where = "" if name == SINGLE else f"recording {name!r}: "
    if guess.rate != truth.rate:
        raise MismatchError(f"{where}the prediction runs at {guess.rate:g} Hz, the truth at {truth.rate:g} Hz; resample one of them first")
    if guess.n_frames != truth.n_frames:
        if not suite.lengths:
            raise MismatchError(
                f"{where}the prediction has {guess.n_frames} frames, the truth {truth.n_frames}; crop or extend one of them first"
            )
        length = max(guess.n_frames, truth.n_frames)
        guess, truth = (_lengthen(side, length) for side in (guess, truth))
    ethogram = _common_ethogram(guess, truth, suite, behaviors, where)
    guess, truth = (_fit(side, ethogram) for side in (guess, truth))
    probabilities = _columns(pred, ethogram) if isinstance(pred, Prediction) else None
    return Case(name, individual, guess, truth, probabilities, _merge(guess, truth, tracks), both, suite.fill_background, metadata)


def _decoded(pred: Prediction, suite: Suite) -> Annotation:
    """Return the annotation to score; where the suite defines whether behaviors exclude each other, that holds."""
    return pred.annotation if suite.exclusive is None else pred.decoded(exclusive=suite.exclusive)


def inferred(pairs: Pairs, suite: Suite) -> list[Note]:
    """Return what had to be inferred about predictions, once for each kind, with the number of recordings it concerns."""
    if suite.exclusive is not None:
        return []
    messages = Counter(note.message for pred, _ in pairs.values() if isinstance(pred, Prediction) for note in pred.notes)
    total = len(pairs)
    return [Note(message if count == total else f"{count} of {total} recordings: {message}") for message, count in messages.items()]


def _as_mapping(pred: Any, data: Dataset) -> Mapping[str, Scored]:
    if isinstance(pred, Mapping):
        return pred
    if len(data) == 1:
        return {data.recordings[0].id: pred}
    raise EthobenchError(f"{data.name or 'the dataset'} has {len(data)} recordings: give predictions as a mapping of recording ids")


def _against_dataset(
    pred: Mapping[str, Scored], data: Dataset, annotator: str | None
) -> tuple[dict[str, tuple[Scored, Annotation]], dict[str, str], dict[str, Mapping[str, Any]]]:
    groups = data.groups()
    pairs: dict[str, tuple[Scored, Annotation]] = {}
    individuals, metadata = {}, {}
    for name, guess in pred.items():
        recording = data[name]
        if annotator == ALL:
            truths = {f"{name}@{who}": truth for who, truth in recording.annotations.items()}
        elif annotator == "consensus":
            truths = {name: consensus(recording.annotations)}
        else:
            truths = {name: recording.annotation(annotator)}
        for key, truth in truths.items():
            pairs[key] = (_checked(guess, name), truth)
            individuals[key], metadata[key] = groups[name], recording.metadata
    if not pairs:
        raise EthobenchError("there is nothing to score")
    return pairs, individuals, metadata


def _pair(name: object, value: Any) -> tuple[Scored, Annotation]:
    if not isinstance(value, tuple) or len(value) != 2:
        raise EthobenchError(f"recording {name!r}: a pair of prediction and truth is expected, not {type(value).__name__}")
    return _checked(value[0], name), _annotation(value[1], name)


def _checked(side: Any, name: object) -> Scored:
    if isinstance(side, (Annotation, Prediction)):
        return side
    hint = (
        "Annotation.from_frames makes one of frames"
        if isinstance(side, (np.ndarray, list)) or hasattr(side, "columns")
        else "read_annotation reads one"
    )
    raise EthobenchError(f"recording {name!r}: an Annotation or a Prediction is scored, not {type(side).__name__}; {hint}")


def _annotation(side: Any, name: object) -> Annotation:
    checked = _checked(side, name)
    return checked.annotation if isinstance(checked, Prediction) else checked


def _lengthen(side: Annotation, length: int) -> Annotation:
    """Make a side longer; the frames added count as looked at, since published scorers do not know of others."""
    if side.n_frames == length:
        return side
    added = iv.intervals([side.n_frames], [length])
    return side.extend(length).with_observed(side.observed.apply(lambda seen: iv.union_all([seen, added])))


def _common_ethogram(guess: Annotation, truth: Annotation, suite: Suite, behaviors: Iterable[str] | str | None, where: str) -> Ethogram:
    mine, theirs = truth.ethogram.background_name, guess.ethogram.background_name
    known = guess.ethogram
    if mine is not None and theirs is not None and theirs not in truth.ethogram:
        known = known.rename({theirs: mine})
    joined = truth.ethogram.join(known)
    if behaviors is not None and behaviors != ALL:
        names = [behaviors] if isinstance(behaviors, str) else list(behaviors)
        if not names:
            raise EthobenchError("there is nothing to score: no behavior was named")
        return joined.restrict(names)
    if behaviors == ALL or suite.labels:
        return joined
    background = {truth.ethogram.background_name, guess.ethogram.background_name}
    extra = [n for n in guess.ethogram.names if n not in truth.ethogram and n not in background]
    lacking = [n for n in truth.ethogram.names if n not in guess.ethogram and n not in background]
    if extra or lacking:
        mismatches = find_label_mismatches({"": {"the prediction": guess, "the truth": truth}})
        hints = "".join(f" {m}." for m in mismatches if m.counterpart)
        told = [f"the prediction has {', '.join(map(repr, extra))}, which the truth does not know"] if extra else []
        told += [f"the prediction does not know {', '.join(map(repr, lacking))}"] if lacking else []
        raise MismatchError(
            f"{where}behaviors differ: {'; '.join(told)}.{hints} Name those to score with behaviors=, or score behaviors='all'"
        )
    return joined


def _fit(side: Annotation, ethogram: Ethogram) -> Annotation:
    """Express one side in the common ethogram; backgrounds of other names become the common one."""
    own = side.ethogram.background_name
    if own is not None and ethogram.background_name not in (None, own) and own not in ethogram:
        side = side.rename({own: str(ethogram.background_name)})
    if own is not None and own not in ethogram:
        side = side.restrict([n for n in side.ethogram.names if n != own])
    kept = _without_others(side, ethogram)
    return kept if kept.ethogram == ethogram else kept.with_ethogram(ethogram)


def _columns(pred: Prediction, ethogram: Ethogram) -> Any:
    """Bring probabilities into the order of the common ethogram; behaviors that the model does not know have 0."""
    names = pred.ethogram.names
    if names == ethogram.names:
        return pred.probabilities[:, : len(names)]
    columns = np.zeros((pred.n_frames, len(ethogram)), dtype=pred.probabilities.dtype)
    for code, behavior in enumerate(ethogram):
        if behavior.name in names:
            columns[:, code] = pred.probabilities[:, names.index(behavior.name)]
    return columns


def _merge(guess: Annotation, truth: Annotation, tracks: str) -> bool:
    """Decide whether subjects are pooled: if asked, or where one side names none."""
    if tracks not in ("auto", "merge"):
        raise EthobenchError(f"tracks are scored 'auto' (apart where both sides name subjects) or 'merge', not {tracks!r}")
    names_nobody = [not ((side.subject >= 0).any() or (side.target >= 0).any()) for side in (guess, truth)]
    return tracks == "merge" or all(names_nobody) or any(names_nobody)


def join_cases(cases: list[Case], suite: Suite) -> tuple[list[Case], Ethogram, list[str]]:
    """Bring cases into one ethogram without the behaviors that nobody looked for, and return those too."""
    ethogram = Ethogram([])
    for case in cases:
        ethogram = ethogram.join(case.ethogram)
    looked_at = [name for name in ethogram.names if any(_looked_at(case, name, suite) for case in cases)]
    if not looked_at and not suite.labels:
        raise EthobenchError("there is nothing to score: nobody looked for any behavior in any frame")
    unseen = [name for name in ethogram.names if name not in looked_at]
    ethogram = ethogram.restrict(looked_at)
    return [case if case.ethogram == ethogram else _refit(case, ethogram) for case in cases], ethogram, unseen


def _looked_at(case: Case, name: str, suite: Suite) -> bool:
    """Whether anybody looked for a behavior in a recording; suites that know nothing of that take all that is not excepted."""
    observed = case.truth.observed
    if suite.labels and not observed.tracks:
        return True
    return bool(iv.total(observed.of(name))) or any(iv.total(w) for t, w in observed.tracks.items() if t.behavior == name)


def _refit(case: Case, ethogram: Ethogram) -> Case:
    """Express a case in another ethogram; behaviors that it lacks are left out."""
    probabilities = None
    if case.probabilities is not None:
        probabilities = np.zeros((len(case.probabilities), len(ethogram)), dtype=case.probabilities.dtype)
        for code, behavior in enumerate(case.ethogram):
            if behavior.name in ethogram:
                probabilities[:, ethogram.code(behavior.name)] = case.probabilities[:, code]
    pred, truth = (_without_others(side, ethogram).with_ethogram(ethogram) for side in (case.pred, case.truth))
    return replace(case, pred=pred, truth=truth, probabilities=probabilities)


def _without_others(side: Annotation, ethogram: Ethogram) -> Annotation:
    known = [b for b in side.ethogram.names if b in ethogram]
    return side if len(known) == len(side.ethogram) else side.restrict(known)
