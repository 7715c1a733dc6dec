"""Held-out quality of a model that is being taught, and whether more labels would improve it.

Every labeled recording is predicted by models that were trained on other individuals (or on other recordings, if there is one individual).
The same is done with half of the labels. The difference between the two is the gain of the last doubling of the labels; the next doubling
usually gains less. Its interval comes from a bootstrap over individuals or recordings.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Prediction
from ethobench.core import intervals as iv
from ethobench.core.progress import progress_range
from ethobench.core.wording import count_units
from ethobench.metrics.scoring import score
from ethobench.models.base import Model
from ethobench.models.cross_validation import predict_out_of_fold
from ethobench.models.training_examples import TrainingExamples

SUITE = "ethobench"
N_FOLDS = 3
MIN_GROUPS = 2
MIN_GROUPS_FOR_TREND = 3
MIN_BOUTS = 3  # labeled bouts of a behavior, below which its scores are withheld
MIN_BEHAVIOR_GROUPS = 2  # groups with a behavior, below which its scores are withheld
BLOCK_SECONDS = 10.0  # of labels that are kept or dropped together for the learning curve
REPETITIONS = 2  # with different halves of the labels
RESAMPLES = 500
NEGLIGIBLE_GAIN = 0.01  # of F1 per doubling of the labels

Counts = NDArray[np.float64]


@dataclass(frozen=True)
class BehaviorQuality:
    """Held-out scores of one behavior.

    Attributes
    ----------
    behavior : str
    bouts : int
        Labeled bouts.
    f1, bout_f1 : float, optional
        F1 of frames and of bouts; None if withheld.
    withheld : str
        Why there are no scores; empty if there are.
    """

    behavior: str
    bouts: int
    f1: float | None = None
    bout_f1: float | None = None
    withheld: str = ""


@dataclass(frozen=True)
class Quality:
    """Held-out quality after one training.

    Attributes
    ----------
    training : int
        Number of the training, from 1.
    split : {"individual", "recording"}
        What was never in both the training and the test data.
    groups : int
        Number of labeled individuals or recordings.
    labeled_bouts : int
    labeled_seconds : float
        Observed time.
    f1, bout_f1 : float, optional
        Mean over the behaviors that have scores; None if withheld.
    behaviors : tuple of BehaviorQuality
    withheld : str
        Why there are no scores at all; empty if there are.
    gain : float, optional
        Change of the F1 of frames when the labels were doubled, from half of them to all.
    gain_interval : (float, float), optional
        Its 95 % interval.
    more_labels_help : bool, optional
        Whether more labels would improve the model; None if that is not clear.
    advice : str
        The same as a sentence, with the reason.
    seconds : float
        Duration of the evaluation.
    out_of_fold : mapping of example id to Prediction
        Predictions by models that were not trained on the individual or recording.
    """

    training: int
    split: str
    groups: int
    labeled_bouts: int
    labeled_seconds: float
    f1: float | None = None
    bout_f1: float | None = None
    behaviors: tuple[BehaviorQuality, ...] = ()
    withheld: str = ""
    gain: float | None = None
    gain_interval: tuple[float, float] | None = None
    more_labels_help: bool | None = None
    advice: str = ""
    seconds: float = 0.0
    out_of_fold: Mapping[str, Prediction] = field(default_factory=dict, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return all values except predictions, for JSON."""
        values = asdict(replace(self, out_of_fold={}))
        del values["out_of_fold"]
        return values

    def to_evaluation(self) -> dict[str, Any]:
        """Return the scores as the model card states them; empty if they are withheld."""
        if self.withheld:
            return {}
        scored = [b for b in self.behaviors if not b.withheld]
        return {
            "suite": SUITE,
            "split": self.split,
            "unit": f"{self.split}s",
            "n": self.groups,
            "reason": "no intervals, since few labels were used",
            "scores": {"f1": self.f1, "bout_f1": self.bout_f1},
            "behaviors": {b.behavior: {"f1": b.f1, "bout_f1": b.bout_f1} for b in scored},
        }


def measure_quality(model: Model, examples: TrainingExamples, *, by: str, training: int, seed: int = 0) -> Quality:
    """Cross-validate a model on its training examples.

    Parameters
    ----------
    model : Model
        Fitted to the examples; its clones are fitted to parts of them.
    examples : TrainingExamples
    by : {"individual", "recording"}
        What is never in both the training and the test data.
    training : int
        Number of the training.
    seed : int
        Random seed of the labels that are left out for the learning curve.
    """
    start = time.monotonic()
    truths = {name: truth.without_subjects() for name, truth in examples.truths.items()}
    groups = examples.data.groups(by)
    labeled = {group for name, group in groups.items() if iv.total(truths[name].observed.of_any())}
    quality = Quality(
        training=training,
        split=by,
        groups=len(labeled),
        labeled_bouts=sum(_bouts(truths).values()),
        labeled_seconds=sum(iv.total(truth.observed.of_any()) / truth.rate for truth in truths.values()),
    )
    if len(labeled) < MIN_GROUPS:
        reason = f"labels of at least {MIN_GROUPS} recordings are needed to measure quality on recordings that the model was not trained on"
        return replace(quality, withheld=reason, advice="label bouts in another recording", seconds=time.monotonic() - start)
    with progress_range(0.0, 0.5, "held-out quality"):
        predictions = _decoded_out_of_fold(model, examples, examples.truths)
    quality = _with_scores(quality, predictions, truths, groups)
    scored = [b.behavior for b in quality.behaviors if not b.withheld]
    if quality.withheld or len(labeled) < MIN_GROUPS_FOR_TREND:
        advice = quality.withheld or f"label at least {count_units(MIN_GROUPS_FOR_TREND, f'{by}s')} to see whether more labels would help"
    else:
        with progress_range(0.5, 1.0, "learning curve"):
            fewer = []
            for repetition in range(REPETITIONS):
                with progress_range(repetition / REPETITIONS, (repetition + 1) / REPETITIONS):
                    fewer.append(_decoded_out_of_fold(model, examples, thin_labels(examples.truths, seed + repetition)))
        gain, interval = compare_f1(predictions, fewer, truths, groups, scored)
        helps, advice = advise(gain, interval)
        quality = replace(quality, gain=gain, gain_interval=interval, more_labels_help=helps)
    return replace(quality, advice=advice, out_of_fold=predictions, seconds=time.monotonic() - start)


def thin_labels(truths: Mapping[str, Annotation], seed: int = 0) -> dict[str, Annotation]:
    """Return about half of the labels: blocks of observed time are dropped at random, of each behavior at most half.

    Parameters
    ----------
    truths : mapping of id to Annotation
    seed : int
        Random seed.
    """
    random = np.random.default_rng(seed)
    blocks: list[tuple[str, int, int]] = []
    for name, truth in truths.items():
        observed = truth.observed.of_any()
        length = max(1, round(BLOCK_SECONDS * truth.rate))
        for start, stop in zip(observed.start, observed.stop, strict=True):
            edges = np.linspace(start, stop, max(1, -(-int(stop - start) // length)) + 1).astype(int)
            blocks += [(name, int(a), int(b)) for a, b in pairwise(edges) if b > a]
    total = sum(stop - start for _, start, stop in blocks)
    remaining = {code: 0 for truth in truths.values() for code in np.unique(truth.behavior).tolist()}
    inside = [_codes_inside(truths[name], start, stop) for name, start, stop in blocks]
    for codes in inside:
        for code in codes:
            remaining[code] += 1
    minimum = {code: -(-count // 2) for code, count in remaining.items()}
    dropped: dict[str, list[tuple[int, int]]] = {}
    frames = 0
    for index in random.permutation(len(blocks)):
        name, start, stop = blocks[index]
        if frames >= total / 2:
            break
        if all(remaining[code] > minimum[code] for code in inside[index]):
            for code in inside[index]:
                remaining[code] -= 1
            dropped.setdefault(name, []).append((start, stop))
            frames += stop - start
    thinned = dict(truths)
    for name, spans in dropped.items():
        thinned[name] = truths[name].mark_unobserved(iv.intervals([a for a, _ in spans], [b for _, b in spans]))
    return thinned


def compare_f1(
    predictions: Mapping[str, Prediction],
    others: Sequence[Mapping[str, Prediction]],
    truths: Mapping[str, Annotation],
    groups: Mapping[str, str],
    behaviors: list[str],
    seed: int = 0,
) -> tuple[float, tuple[float, float]]:
    """Return the difference in F1 of frames to other predictions, and its 95 % interval from a bootstrap over groups.

    Parameters
    ----------
    predictions : mapping of id to Prediction
    others : sequence of mapping of id to Prediction
        Repetitions of what `predictions` are compared with; their frames are counted together.
    truths : mapping of id to Annotation
    groups : mapping of id to str
    behaviors : list of str
        Over which F1 is averaged.
    seed : int
        Random seed of the bootstrap.
    """
    names = sorted({groups[name] for name in predictions})
    totals = np.zeros((2, len(names), len(behaviors), 3))
    for side, predicted in [(0, predictions), *((1, other) for other in others)]:
        for name, prediction in predicted.items():
            if groups[name] in names:
                totals[side, names.index(groups[name])] += _counts(prediction.annotation, truths[name], behaviors)
    random = np.random.default_rng(seed)
    weights = random.multinomial(len(names), np.full(len(names), 1 / len(names)), size=RESAMPLES).astype(np.float64)
    resampled = [_mean_f1(np.einsum("rg,gbc->rbc", weights, side)) for side in totals]
    difference = resampled[0] - resampled[1]
    low, high = np.nanquantile(difference, [0.025, 0.975]) if np.isfinite(difference).any() else (np.nan, np.nan)
    full, fewer = (float(_mean_f1(side.sum(axis=0)[None])[0]) for side in totals)
    return full - fewer, (float(low), float(high))


def advise(gain: float, interval: tuple[float, float]) -> tuple[bool | None, str]:
    """Return whether more labels would help, None if that is not clear, and the same as a sentence.

    Parameters
    ----------
    gain : float
        Change of the F1 of frames by the last doubling of the labels.
    interval : (float, float)
        Its 95 % interval.

    Examples
    --------
    >>> advise(0.1, (0.05, 0.15))[0], advise(0.0, (-0.01, 0.005))[0], advise(0.1, (-0.1, 0.3))[0]
    (True, False, None)
    """
    low, high = interval
    if not np.isfinite(gain) or not np.isfinite(low) or not np.isfinite(high):
        return None, "too few labels to tell whether more would help"
    effect = f"the last doubling of the labels changed the held-out F1 by {gain:+.2f} (95 % interval {low:+.2f} to {high:+.2f})"
    if high < NEGLIGIBLE_GAIN:
        return False, f"more labels of this kind would hardly help: {effect}"
    if low > 0:
        return True, f"more labels would help: {effect}"
    return None, f"not clear yet whether more labels would help: {effect}"


def _decoded_out_of_fold(model: Model, examples: TrainingExamples, truths: Mapping[str, Annotation]) -> dict[str, Prediction]:
    """Predict every labeled example by models trained on other groups, and decode the predictions."""
    predictions = predict_out_of_fold(model, examples.data, truths, N_FOLDS)
    return {name: prediction if model.decoder is None else model.decoder.apply(prediction) for name, prediction in predictions.items()}


def _with_scores(
    quality: Quality, predictions: Mapping[str, Prediction], truths: Mapping[str, Annotation], groups: Mapping[str, str]
) -> Quality:
    evaluated = {name: truths[name] for name in predictions}
    scores = score({name: p.annotation for name, p in predictions.items()}, evaluated, suite=SUITE, resamples=0, behaviors="all")
    ethogram = next(iter(evaluated.values())).ethogram
    bouts = _bouts(evaluated)
    rows = []
    for code, behavior in enumerate(ethogram):
        if code == ethogram.background or behavior.point or not bouts.get(behavior.name):
            continue
        n_bouts, n_groups = bouts[behavior.name], len({groups[name] for name, truth in evaluated.items() if (truth.behavior == code).any()})
        values = scores.behaviors.get(behavior.name, {})
        if n_bouts < MIN_BOUTS:
            row = BehaviorQuality(behavior.name, n_bouts, withheld=f"fewer than {MIN_BOUTS} labeled bouts")
        elif n_groups < MIN_BEHAVIOR_GROUPS:
            row = BehaviorQuality(behavior.name, n_bouts, withheld=f"labeled in one {quality.split} only")
        else:
            row = BehaviorQuality(behavior.name, n_bouts, _number(values.get("f1")), _number(values.get("bout_f1")))
        rows.append(row)
    scored = [row for row in rows if not row.withheld]
    if not scored:
        reason = f"no behavior has {MIN_BOUTS} labeled bouts in at least {count_units(MIN_BEHAVIOR_GROUPS, f'{quality.split}s')}"
        return replace(quality, behaviors=tuple(rows), withheld=reason)
    return replace(quality, behaviors=tuple(rows), f1=_mean([r.f1 for r in scored]), bout_f1=_mean([r.bout_f1 for r in scored]))


def _counts(predicted: Annotation, truth: Annotation, behaviors: list[str]) -> Counts:
    """Count true positive, false positive and false negative frames of each behavior in its observed frames (n_behaviors, 3)."""
    predicted_frames, true_frames = predicted.without_subjects().to_frames(), truth.to_frames()
    counts = np.zeros((len(behaviors), 3))
    predictable = iv.to_mask(predicted.observed.of_any(), predicted.n_frames)
    for row, name in enumerate(behaviors):
        code = truth.ethogram.code(name)
        observed = iv.to_mask(truth.observed.of(name), truth.n_frames) & predictable
        p, t = predicted_frames[observed, code], true_frames[observed, code]
        counts[row] = (p & t).sum(), (p & ~t).sum(), (~p & t).sum()
    return counts


def _mean_f1(counts: Counts) -> NDArray[np.float64]:
    """Return the mean F1 over behaviors (n_resamples,) of counts (n_resamples, n_behaviors, 3); NaN where no behavior occurs."""
    tp, fp, fn = np.moveaxis(counts, 2, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        f1 = 2 * tp / (2 * tp + fp + fn)
    occurs = np.isfinite(f1)
    return np.where(occurs.any(axis=1), np.where(occurs, f1, 0).sum(axis=1) / np.maximum(occurs.sum(axis=1), 1), np.nan)


def _bouts(truths: Mapping[str, Annotation]) -> dict[str, int]:
    """Count labeled bouts by behavior, without the background."""
    counts: dict[str, int] = {}
    for truth in truths.values():
        for code, count in enumerate(np.bincount(truth.behavior, minlength=len(truth.ethogram))):
            if code != truth.ethogram.background:
                counts[truth.ethogram[code].name] = counts.get(truth.ethogram[code].name, 0) + int(count)
    return counts


def _codes_inside(truth: Annotation, start: int, stop: int) -> list[int]:
    return [int(code) for code in np.unique(truth.behavior[(truth.start < stop) & (truth.stop > start)])]


def _number(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _mean(values: list[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None
