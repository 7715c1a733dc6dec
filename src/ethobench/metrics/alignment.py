"""Align predictions with truths: one clock, one length, one ethogram. What cannot be aligned is refused with a clear message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Ethogram, Prediction
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError
from ethobench.core.messages import Message, Option
from ethobench.metrics.label_mismatches import find_label_mismatches
from ethobench.metrics.pairs import AlignedPair
from ethobench.metrics.suites import Suite

SINGLE = "recording"  # name of the recording if only one prediction and one truth are passed
ALL = "all"


@dataclass(frozen=True)
class Unaligned:
    """A prediction and the truth of one recording before they are aligned.

    Attributes
    ----------
    id, individual : str
        Names of the recording and of its individual.
    pred : Annotation or Prediction
    truth : Annotation
    metadata : mapping
        Metadata of the recording.
    """

    id: str
    individual: str
    pred: Annotation | Prediction
    truth: Annotation
    metadata: Mapping[str, Any] = field(default_factory=dict)


def align(
    recording: Unaligned,
    suite: Suite,
    *,
    behaviors: Iterable[str] | str | None = None,
    tracks: str = "auto",
    observed_by_both: bool = False,
) -> AlignedPair:
    """Align the prediction and the truth of a recording.

    Parameters
    ----------
    recording : Unaligned
    suite : Suite
        Decides whether lengths and behaviors may differ.
    behaviors : iterable of str, optional
        Behaviors to score; ``"all"`` for every behavior of either side.
    tracks : {"auto", "merge"}
        Whether subjects are scored separately if both sides name them, or always pooled.
    observed_by_both : bool
        Whether only frames that both sides observed count.

    Raises
    ------
    MismatchError
        If frame rates, lengths or behaviors differ.
    """
    pred, truth = recording.pred, recording.truth
    prefix = "" if recording.id == SINGLE else f"recording {recording.id!r}: "
    guess = _decode(pred, suite) if isinstance(pred, Prediction) else pred
    if guess.rate != truth.rate:
        raise MismatchError(f"{prefix}the prediction has {guess.rate:g} Hz, the truth {truth.rate:g} Hz; resample one of them first")
    if guess.n_frames != truth.n_frames:
        if not suite.lengths:
            raise MismatchError(
                f"{prefix}the prediction has {guess.n_frames} frames, the truth {truth.n_frames}; crop or extend one of them first"
            )
        length = max(guess.n_frames, truth.n_frames)
        guess, truth = (_extend(side, length) for side in (guess, truth))
    ethogram = _common_ethogram(guess, truth, suite, behaviors, prefix)
    guess, truth = (_with_ethogram(side, ethogram) for side in (guess, truth))
    return AlignedPair(
        recording.id,
        recording.individual,
        guess,
        truth,
        _reorder_columns(pred.probabilities, pred.ethogram, ethogram) if isinstance(pred, Prediction) else None,
        pool_subjects=_pools_subjects(guess, truth, tracks, suite),
        observed_by_both=observed_by_both,
        fill_background=suite.fill_background,
        metadata=recording.metadata,
    )


def join_ethograms(pairs: Sequence[AlignedPair], suite: Suite) -> tuple[list[AlignedPair], Ethogram, list[str]]:
    """Express pairs in one ethogram.

    Returns
    -------
    pairs : list of AlignedPair
    ethogram : Ethogram
        The behaviors that are observed in at least one recording.
    unobserved : list of str
        The other behaviors.
    """
    ethogram = Ethogram([])
    for pair in pairs:
        ethogram = ethogram.join(pair.ethogram)
    observed = [name for name in ethogram.names if any(_is_observed(pair, name, suite) for pair in pairs)]
    if not observed and not suite.labels:
        raise EthobenchError("nothing to score: no behavior is observed in any frame")
    unobserved = [name for name in ethogram.names if name not in observed]
    ethogram = ethogram.restrict(observed)
    return [pair if pair.ethogram == ethogram else _convert(pair, ethogram) for pair in pairs], ethogram, unobserved


def _decode(pred: Prediction, suite: Suite) -> Annotation:
    """Return the annotation to score. Some suites define whether behaviors exclude each other."""
    return pred.annotation if suite.exclusive is None else pred.decoded(exclusive=suite.exclusive)


def _extend(side: Annotation, length: int) -> Annotation:
    """Extend a side; the added frames count as observed, since the published scorers do not distinguish unobserved frames."""
    if side.n_frames == length:
        return side
    added = iv.intervals([side.n_frames], [length])
    return side.extend(length).with_observed(side.observed.apply(lambda observed: iv.union_all([observed, added])))


def _common_ethogram(guess: Annotation, truth: Annotation, suite: Suite, behaviors: Iterable[str] | str | None, prefix: str) -> Ethogram:
    true_background, pred_background = truth.ethogram.background_name, guess.ethogram.background_name
    pred_ethogram = guess.ethogram
    if true_background is not None and pred_background is not None and pred_background not in truth.ethogram:
        pred_ethogram = pred_ethogram.rename({pred_background: true_background})
    joined = truth.ethogram.join(pred_ethogram)
    if behaviors is not None and behaviors != ALL:
        names = [behaviors] if isinstance(behaviors, str) else list(behaviors)
        if not names:
            raise EthobenchError("nothing to score: `behaviors` is empty")
        return joined.restrict(names)
    if behaviors == ALL or suite.labels:
        return joined
    backgrounds = {true_background, pred_background}
    only_pred = [n for n in guess.ethogram.names if n not in truth.ethogram and n not in backgrounds]
    only_true = [n for n in truth.ethogram.names if n not in guess.ethogram and n not in backgrounds]
    if only_pred or only_true:
        mismatches = find_label_mismatches({"": {"the prediction": guess, "the truth": truth}})
        hints = Message(*(text for m in mismatches if m.counterpart for text in (" ", str(m), ".")))
        differences = [f"only the prediction has {', '.join(map(repr, only_pred))}"] if only_pred else []
        differences += [f"only the truth has {', '.join(map(repr, only_true))}"] if only_true else []
        raise MismatchError(
            Message(
                f"{prefix}behaviors differ: {'; '.join(differences)}.",
                hints,
                " Name the behaviors to score with ",
                Option("behaviors"),
                ", or score ",
                Option("behaviors", "all"),
            )
        )
    return joined


def _with_ethogram(side: Annotation, ethogram: Ethogram) -> Annotation:
    """Express one side in the common ethogram; a background of another name becomes the common background."""
    background = side.ethogram.background_name
    if background is not None and ethogram.background_name not in (None, background) and background not in ethogram:
        side = side.rename({background: str(ethogram.background_name)})
    if background is not None and background not in ethogram:
        side = side.restrict([n for n in side.ethogram.names if n != background])
    restricted = _restrict(side, ethogram)
    return restricted if restricted.ethogram == ethogram else restricted.with_ethogram(ethogram)


def _restrict(side: Annotation, ethogram: Ethogram) -> Annotation:
    shared = [name for name in side.ethogram.names if name in ethogram]
    return side if len(shared) == len(side.ethogram) else side.restrict(shared)


def _reorder_columns(probabilities: NDArray[Any], old: Ethogram, new: Ethogram) -> NDArray[Any]:
    """Return probabilities with columns in the order of another ethogram; 0 for behaviors that the old one lacks."""
    if old.names == new.names:
        return probabilities[:, : len(old)]
    columns = np.zeros((len(probabilities), len(new)), dtype=probabilities.dtype)
    for code, behavior in enumerate(new):
        if behavior.name in old.names:
            columns[:, code] = probabilities[:, old.names.index(behavior.name)]
    return columns


def _pools_subjects(guess: Annotation, truth: Annotation, tracks: str, suite: Suite) -> bool:
    """Return whether subjects are pooled: on request, or if either side names none; some suites require bouts without a name."""
    if tracks not in ("auto", "merge"):
        raise EthobenchError(f"`tracks` must be 'auto' (separate if both sides name subjects) or 'merge', got {tracks!r}")
    sides = [side for side in (guess, truth) if len(side) or not suite.separate_subjects]
    return tracks == "merge" or any(not ((side.subject >= 0).any() or (side.target >= 0).any()) for side in sides)


def _is_observed(pair: AlignedPair, name: str, suite: Suite) -> bool:
    """Return whether a behavior is observed in a recording; suites with free labels count what is not explicitly unobserved."""
    observed = pair.truth.observed
    if suite.labels and not observed.tracks:
        return True
    return bool(iv.total(observed.of(name))) or any(iv.total(w) for t, w in observed.tracks.items() if t.behavior == name)


def _convert(pair: AlignedPair, ethogram: Ethogram) -> AlignedPair:
    """Express a pair in another ethogram; behaviors that this one lacks are dropped."""
    probabilities = None if pair.probabilities is None else _reorder_columns(pair.probabilities, pair.ethogram, ethogram)
    pred, truth = (_restrict(side, ethogram).with_ethogram(ethogram) for side in (pair.pred, pair.truth))
    return replace(pair, pred=pred, truth=truth, probabilities=probabilities)
