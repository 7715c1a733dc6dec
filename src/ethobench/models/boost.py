"""Boosted trees on features at several scales: the best choice for few animals and little time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core.annotation import UNOBSERVED
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.core.progress import progress_range, report_progress
from ethobench.core.recording import Data
from ethobench.core.targets import exclusive_targets, overlapping_targets
from ethobench.features.cache import cache_folder, cached, precompute
from ethobench.features.multiscale import Baseline, multiscale_context, multiscale_features
from ethobench.models.base import input_names, register_model, thread_count
from ethobench.models.estimator_files import check_lightgbm_text
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.input_checks import TrainingRange
from ethobench.models.inputs import SignalModel, between, plain_keypoints, stated_keypoints
from ethobench.models.thinned import choose_rows, row_weights

FACTS, TREES = "boost.json", "trees-{}.txt"
Features = NDArray[np.float32]
FEWEST_ROWS = 20  # of a leaf; fewer where there are few rows altogether
PIECE = 100_000  # rows whose features are in memory at a time
COLLECTING = 0.3  # of a limited time that computing features may take; recordings that are left then are not learnt from
FEWEST_RECORDINGS = 4  # that are learnt from even if time is short
PILOT_ROWS, PILOT_ROUNDS = 3_000, 4  # of a first training that tells how fast boosting is, where time is limited
FEWEST_ROUNDS, GOOD_ROUNDS = 20, 80  # that are grown even if time has run out; that should be grown, rather from fewer rows
ROUND_COST = 0.05  # of computing a row's features: so long it takes to learn from the row in one round, about
FASTEST = 3.0  # by which the learning rate is raised at most, where there is time for fewer rounds


@hyperparameters
class Params:
    """Hyper-parameters.

    Attributes
    ----------
    rounds : int
        Trees for each behavior.
    leaves : int
        Of a tree, at most.
    learning_rate : float
    rows : int
        Frames to learn from, at most: of common behaviors some are left out, evenly.
    row_rate : float
        Frames per second that are learnt and predicted, where recordings are faster; those between lie on straight lines.
    temper : float
        How far behaviors are balanced: 0 as frequent as they are, 1 all the same.
    """

    rounds: int = 150
    leaves: int = 15
    learning_rate: float = 0.1
    rows: int = 60_000
    row_rate: float = 10.0
    temper: float = 0.5

    def __post_init__(self) -> None:
        if min(self.rounds, self.rows) < 1 or self.leaves < 2 or not (self.learning_rate > 0 and self.row_rate > 0):
            raise EthobenchError("boost needs at least one round and row, two leaves, and rates above 0")
        if not 0 <= self.temper <= 1:
            raise EthobenchError(f"temper lies between 0 (as frequent as they are) and 1 (balanced), not {self.temper}")


@dataclass(frozen=True)
class Rows:
    """What is learnt of a recording.

    Attributes
    ----------
    features : array (n_rows, n_features)
    targets : array (n_rows,) or (n_rows, n_behaviors)
        Codes, or 0 and 1 for each behavior; -1 where nothing is known.
    counts : array (n_codes,) or (n_behaviors, 2)
        How many frames there were of each code, or without and with each behavior, before some were left out.
    """

    features: Features
    targets: NDArray[np.int16]
    counts: NDArray[np.int64]


@register_model("boost")
class Boost(SignalModel):
    """LightGBM: one set of trees where behaviors exclude each other, one for each where they overlap."""

    title = "boosted trees on features at several scales (LightGBM); tags and poses"
    packages = {"lightgbm": "boost"}  # noqa: RUF012
    Params = Params
    grid = {"rounds": (75, 150, 300), "leaves": (7, 15, 31), "temper": (0.25, 0.5, 1.0)}  # noqa: RUF012
    revision = 3
    supports_deadline = True

    classes: list[list[int]]
    boosters: list[Any]
    prepared: tuple[str, ...] = ()  # recordings whose features there was time for
    seconds_per_row: float | None = None  # of a training, where time is limited and it was measured

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        self.keypoints = dict(data.keypoints)
        rows = self.collect(data, truths)
        self.training_range = TrainingRange.fit([self.signal_baseline(recording) for recording in data if recording.id in rows])
        self.learn(rows)

    def collect(self, data: Dataset, truths: Mapping[str, Annotation], share: float = 1.0) -> dict[str, Rows]:
        """Compute what is to be learnt of each recording.

        Parameters
        ----------
        data : Dataset
        truths : mapping of recording to Annotation
        share : float
            Of the time that is left afterwards, which one training may take; where time is limited, there are fewer rows for that.
        """
        start = self.deadline.clock()
        data = self._prepared(data)
        self.prepared = tuple(recording.id for recording in data)
        seconds = self.deadline.clock() - start
        targets_of = exclusive_targets if self.exclusive else overlapping_targets
        targets = {r.id: targets_of(truths[r.id])[:: self._every(self.rate_of(r))] for r in data}
        chosen = choose_rows(targets, self._affordable_rows(targets, seconds, share))
        rows = {}
        for recording in data:
            target, places = targets[recording.id], chosen[recording.id]
            places = places[places < -(-len(self._data(recording)) // self._every(self.rate_of(recording)))]
            if len(places):
                rows[recording.id] = Rows(self._features(recording, places), target[places], self._count(target))
        if not rows:
            raise EthobenchError("there is nothing to learn from: no frame was observed")
        return rows

    def _affordable_rows(self, targets: Mapping[str, NDArray[np.int16]], seconds: float, share: float) -> int:
        """Return how many rows to learn from at most: fewer where computing the features shows that there is no time for more."""
        if not self.deadline.is_limited:
            return int(self.params.rows)
        each = ROUND_COST * seconds / max(sum(len(target) for target in targets.values()), 1)
        most = int(np.clip(share * max(self.deadline.remaining, 0.0) / max(GOOD_ROUNDS * each, 1e-9), PILOT_ROWS, self.params.rows))
        if most < min(self.params.rows, sum(len(target) for target in targets.values())):
            self.note(f"boosted trees learn from {most} rows at most, to keep the time budget")
        return most

    def _prepared(self, data: Dataset) -> Dataset:
        """Compute features of recordings for all trainings that share them, and return those that there was time for."""
        ready = self._keep_features(data, self.deadline.share(COLLECTING), FEWEST_RECORDINGS)
        if len(ready) < len(data):
            self.note(f"learnt from {len(ready)} of {len(data)} recordings, to keep the time budget")
        return data.select(recordings=ready)

    def _keep_features(self, data: Dataset, limit: Deadline, fewest: int = 0) -> list[str]:
        """Compute and keep features until a deadline; return the recordings that are ready.

        The order is random, so that processes that do so at once share the work.
        """
        if cache_folder() is None:
            return [recording.id for recording in data]
        ready: list[str] = []
        for index in np.random.default_rng(os.getpid()).permutation(len(data)):
            if limit.has_passed and len(ready) >= fewest:
                break
            recording = data.recordings[index]
            if self._is_kept(recording):
                precompute(*self._kept_features(recording))
            ready.append(recording.id)
            report_progress("features", max(limit.fraction_elapsed, len(ready) / len(data)))
        return ready

    def prepare(self, data: Dataset, deadline: Deadline) -> None:
        """Compute the features of recordings ahead of all trainings that share them, until a deadline."""
        if any(annotation.subjects for recording in data for annotation in recording.annotations.values()):
            return  # who does what to whom is learnt from other views of the recordings
        probe = self._unfitted(data)
        probe._keep_features(data, deadline)

    def _unfitted(self, data: Dataset) -> Boost:
        """Return a model that knows what it reads, and nothing else."""
        model = Boost(seed=self.seed, row_rate=self.params.row_rate)
        first = data.recordings[0]
        model.rate, model.inputs, model.keypoints = first.rate, input_names(first), dict(data.keypoints)
        return model

    def preparation_seconds(self, data: Dataset) -> float:
        """Estimate the seconds that computing the features of all recordings takes, by those of one of them."""
        recording = sorted(data, key=lambda each: each.n_frames or 0)[len(data) // 2]
        probe = self._unfitted(data)
        start = time.perf_counter()
        probe._features(recording, np.arange(-(-len(probe._data(recording)) // probe._every(probe.rate_of(recording)))))
        return (time.perf_counter() - start) * data.n_frames / max(recording.n_frames or 1, 1)

    def learn(self, rows: Mapping[str, Rows]) -> None:
        """Grow the trees from what was collected of some recordings."""
        y = np.concatenate([own.targets for own in rows.values()]).astype(np.int64)
        counts = np.sum([own.counts for own in rows.values()], axis=0)
        self.boosters, self.classes = [], []
        tracks = [(y, counts)] if self.exclusive else list(zip(y.T, counts, strict=True))
        for place, (target, count) in enumerate(tracks):
            known = np.flatnonzero(target != UNOBSERVED)
            classes = np.unique(target[known])
            self.classes.append(classes.tolist())
            examples = _Examples(rows, known, np.searchsorted(classes, target[known]), count[classes])
            with progress_range(place / len(tracks), (place + 1) / len(tracks)):
                limit = self.deadline.share(1 / (len(tracks) - place))
                self.boosters.append(self._grow(examples, limit) if len(classes) > 1 else None)

    def _count(self, target: NDArray[np.int16]) -> NDArray[np.int64]:
        if self.exclusive:
            return np.bincount(target[target != UNOBSERVED], minlength=self.n_outputs)
        return np.stack([(target == code).sum(axis=0) for code in (0, 1)], axis=1)

    def _grow(self, examples: _Examples, limit: Deadline) -> Any:
        """Grow trees; where time is limited, from as many rows as there is time for, and faster if that is still too slow."""
        import lightgbm

        count = int(examples.y.max()) + 1
        settings = {
            "objective": "multiclass" if count > 2 else "binary",
            "num_leaves": self.params.leaves,
            "learning_rate": self.params.learning_rate,
            "feature_fraction": 0.1,
            "extra_trees": True,
            "bagging_fraction": 0.7,
            "bagging_freq": 1,
            "lambda_l2": 5.0,
            "max_bin": 63,
            "seed": self.seed,
            "deterministic": True,
            "force_col_wise": True,  # with so few features a tree, twice as fast as by row
            "num_threads": thread_count(),
            "verbose": -1,
        } | ({"num_class": count} if count > 2 else {})
        n_rows, rounds = len(examples.y), int(self.params.rounds)

        def train(part: _Examples, rounds: int, pace: _Pace) -> Any:
            weights = row_weights(part.y, part.counts, self.params.temper)
            smallest = {"min_data_in_leaf": int(np.clip(len(part.y) // 50, 1, FEWEST_ROWS))}
            data = lightgbm.Dataset(part.features(), part.y, weight=weights)
            return lightgbm.train({**settings, **smallest}, data, rounds, callbacks=[pace])

        if limit.is_limited and n_rows > PILOT_ROWS:
            if self.seconds_per_row is None:
                pilot = _Pace(Deadline(clock=limit.clock), PILOT_ROUNDS, 0.0)
                train(examples.thinned(PILOT_ROWS), PILOT_ROUNDS, pilot)
                self.seconds_per_row = (pilot.first + GOOD_ROUNDS * pilot.each) / PILOT_ROWS
            examples = examples.thinned(max(limit.remaining / max(self.seconds_per_row, 1e-9), PILOT_ROWS))
        pace = _Pace(limit, rounds, float(self.params.learning_rate))
        grown = train(examples, rounds, pace)
        if pace.done < rounds or len(examples.y) < n_rows:
            self.note(f"boosted trees: {pace.done} of {rounds} rounds on {len(examples.y)} of {n_rows} rows, to keep the time budget")
        return lightgbm.Booster(model_str=grown.model_to_string())  # so that what is used is what is saved

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        ethogram, rate = self.check_is_fitted(), self.rate_of(recording)
        n = len(self._data(recording))
        places = np.arange(-(-n // self._every(rate)))
        pieces = [places[start : start + PIECE] for start in range(0, len(places), PIECE)]
        parts = [self.probabilities(self._features(recording, piece, baseline)) for piece in pieces]
        found = np.concatenate([np.zeros((0, self.n_outputs), dtype=np.float32), *parts])
        return Prediction(between(found, self._every(rate), n), ethogram, rate, exclusive=self.exclusive)

    def probabilities(self, features: Features) -> Features:
        """Return the probabilities of rows of features."""
        result = np.zeros((len(features), self.n_outputs), dtype=np.float32)
        for column, (booster, classes) in enumerate(zip(self.boosters, self.classes, strict=True)):
            if booster is None:
                found = np.ones((len(features), 1))
            else:
                if booster.num_feature() != features.shape[1]:
                    raise MismatchError(f"the model takes {booster.num_feature()} features, and these signals give {features.shape[1]}")
                found = booster.predict(features, num_threads=thread_count())
                found = np.stack([1 - found, found], axis=1) if found.ndim == 1 else found
            if self.exclusive:
                result[:, classes] = found
            elif 1 in classes:
                result[:, column] = found[:, classes.index(1)]
        return result

    def _features(self, recording: Recording, rows: NDArray[np.int64], baseline: Baseline | None = None) -> Features:
        rate = self.rate_of(recording)
        if not self._is_kept(recording):
            data, baseline = self._data(recording), baseline or self.signal_baseline(recording)
            return multiscale_features(data, rate, every=self._every(rate), baseline=baseline, keypoints=self.keypoints, rows=rows)[0]
        return cached(*self._kept_features(recording, baseline))[rows]

    def _is_kept(self, recording: Recording) -> bool:
        """Return whether the features of a recording are kept for other trainings."""
        return cache_folder() is not None and len(self._data(recording)) // self._every(self.rate_of(recording)) <= PIECE

    def _kept_features(self, recording: Recording, baseline: Baseline | None = None) -> tuple[str, Data, Any, Callable[[], Features]]:
        """Return what `cached` and `precompute` take."""
        rate, data, baseline = self.rate_of(recording), self._data(recording), baseline or self.signal_baseline(recording)
        every = self._every(rate)

        def compute() -> Features:
            return multiscale_features(data, rate, every=every, baseline=baseline, keypoints=self.keypoints)[0]

        return "multiscale", data, (rate, every, self.keypoints, baseline), compute

    def _every(self, rate: float) -> int:
        return max(1, round(rate / float(self.params.row_rate)))

    def _stride(self) -> int:
        return self._every(float(self.rate or 1.0))

    def context(self, rate: float) -> int:
        """Return how many frames beside a stretch decide what is predicted in it."""
        return multiscale_context(rate) + self._every(rate)

    def _save(self, folder: Path) -> None:
        facts = {
            "exclusive": self.exclusive,
            "classes": self.classes,
            "keypoints": plain_keypoints(self.keypoints),
            "training_range": None if self.training_range is None else asdict(self.training_range),
        }
        (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")
        for number, booster in enumerate(self.boosters):
            if booster is not None:
                (folder / TREES.format(number)).write_text(booster.model_to_string(), encoding="utf-8")

    def _load(self, folder: Path) -> None:
        import lightgbm

        from ethobench.core.files import read_json

        facts = read_json(folder / FACTS)
        try:
            self.exclusive, self.keypoints = bool(facts["exclusive"]), stated_keypoints(facts["keypoints"])
            self.training_range = TrainingRange.from_dict(facts["training_range"]) if facts["training_range"] else None
            self.classes = [[int(code) for code in codes] for codes in facts["classes"]]
            self._check_classes()
        except EthobenchError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(folder / FACTS, f"the model's facts are damaged ({error})") from None
        self.boosters = []
        for number, classes in enumerate(self.classes):
            path = folder / TREES.format(number)
            try:
                text = check_lightgbm_text(path.read_text(encoding="utf-8"), len(classes)) if len(classes) > 1 else ""
                self.boosters.append(lightgbm.Booster(model_str=text) if text else None)
            except EthobenchError:
                raise
            except (OSError, ValueError, lightgbm.basic.LightGBMError) as error:
                raise FormatError(path, f"these are not the trees of a saved model ({error})") from None

    def _check_classes(self) -> None:
        """Refuse codes that the ethogram does not have: one set of them where behaviors exclude each other, else one for each."""
        n_sets, n_codes = (1, self.n_outputs) if self.exclusive else (self.n_outputs, 2)
        codes = [code for each in self.classes for code in each]
        if len(self.classes) != n_sets or any(len({*each}) != len(each) or not each for each in self.classes):
            raise ValueError(f"{len(self.classes)} sets of classes where {n_sets} are expected, or some twice")
        if min(codes) < 0 or max(codes) >= n_codes:
            raise ValueError("a class is not among the behaviors")


class _Pace:
    """A callback of LightGBM that reports progress and stops by a deadline; without one it changes nothing.

    Parameters
    ----------
    limit : Deadline
    rounds : int
        Planned.
    learning_rate : float
        To begin with; it is raised where there is time for fewer rounds than planned.

    Attributes
    ----------
    done : int
        Rounds.
    first, each : float
        Seconds until the first round had ended, which includes preparing the data, and for each round after it.
    """

    def __init__(self, limit: Deadline, rounds: int, learning_rate: float) -> None:
        self.limit, self.rounds, self.learning_rate = limit, rounds, learning_rate
        self.done, self.first, self.each = 0, 0.0, 0.0
        self._start = limit.clock()

    def __call__(self, env: Any) -> None:
        """Look at the clock after a round."""
        import lightgbm

        self.done = env.iteration + 1
        report_progress("boosted trees", max(self.limit.fraction_elapsed, self.done / self.rounds))
        passed = self.limit.clock() - self._start
        if self.done == 1:
            self.first = passed
            return
        self.each = (passed - self.first) / (self.done - 1)
        if not self.limit.is_limited:
            return
        if self.done == PILOT_ROUNDS:
            possible = self.done + max(self.limit.remaining, 0.0) / max(self.each, 1e-9)
            if possible < self.rounds:
                env.model.reset_parameter({"learning_rate": self.learning_rate * min(FASTEST, self.rounds / possible)})
        if self.limit.has_passed and self.done >= FEWEST_ROUNDS:
            raise lightgbm.callback.EarlyStopException(env.iteration, [])


@dataclass(frozen=True)
class _Examples:
    """Rows of several recordings with the classes of one set of trees; features are put together only when they are needed.

    Attributes
    ----------
    rows : mapping of recording to Rows
    index : array of int
        Which of all rows, in order.
    y : array of int
        Their classes.
    counts : array of int
        How many frames there were of each class.
    """

    rows: Mapping[str, Rows]
    index: NDArray[np.int64]
    y: NDArray[np.int64]
    counts: NDArray[np.int64]

    def features(self) -> Features:
        """Return the features of the rows."""
        ends = np.cumsum([len(own.targets) for own in self.rows.values()])
        parts, first = [], 0
        for own, end in zip(self.rows.values(), ends, strict=True):
            chosen = self.index[slice(*np.searchsorted(self.index, [first, end]))] - first
            parts.append(own.features if len(chosen) == len(own.features) else own.features[chosen])
            first = int(end)
        return np.concatenate(parts)

    def thinned(self, most: float) -> _Examples:
        """Return at most about so many rows, evenly from each class, at least one of each."""
        if most >= len(self.y):
            return self
        kept = []
        for code in np.unique(self.y):
            places = np.flatnonzero(self.y == code)
            count = max(1, round(len(places) * most / len(self.y)))
            kept.append(places[(np.arange(count) * (len(places) / count)).astype(np.int64)])
        chosen = np.sort(np.concatenate(kept))
        return replace(self, index=self.index[chosen], y=self.y[chosen])
