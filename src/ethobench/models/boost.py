"""Model `boost`: gradient-boosted trees (LightGBM) on multiscale features; a good choice for few animals and little time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ethobench.core import Annotation, Dataset, Prediction, Recording
from ethobench.core.annotation import UNOBSERVED
from ethobench.core.deadline import Deadline
from ethobench.core.errors import EthobenchError, FormatError, MismatchError
from ethobench.core.files import read_json
from ethobench.core.processes import thread_count
from ethobench.core.progress import progress_range, report_progress
from ethobench.core.recording import Data
from ethobench.core.targets import exclusive_targets, overlapping_targets
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.pooling import DEFAULT, Labeled, pooled_thresholds
from ethobench.features.cache import cache_folder, cached, precompute
from ethobench.features.multiscale import Baseline, multiscale_context, multiscale_features
from ethobench.features.roles import constant_names
from ethobench.models.condition_parts import ConditionRows, condition_folds, to_probabilities
from ethobench.models.cross_validation import copy_fitted_metadata
from ethobench.models.estimator_files import check_lightgbm_text
from ethobench.models.hyperparameters import Count, hyperparameters
from ethobench.models.input_checks import TrainingRange
from ethobench.models.inputs import input_names, interpolate_steps, keypoints_from_json, keypoints_to_json
from ethobench.models.registry import register_model
from ethobench.models.row_sampling import BINNING, BinnedRows, Examples, Features, Indices, Rows, choose_rows, row_weights
from ethobench.models.signal_model import SignalModel

STATE, TREES, CONDITION_TREES = "boost.json", "trees-{}.txt", "trees-condition{}-{}.txt"
MIN_LEAF_ROWS = 20  # fewer where there are few rows altogether
MAX_BLOCK_ROWS = 100_000  # rows whose features are in memory at a time
FEATURE_SHARE = 0.3  # of a time budget, for computing features; recordings without features are not used then
MIN_RECORDINGS = 4  # used even if the time budget is too short
PILOT_ROWS, PILOT_ROUNDS = 3_000, 4  # of a pilot fit that measures the speed, where time is limited
MIN_ROUNDS, GOOD_ROUNDS = 20, 50  # done even after the deadline; preferred over more rows
ROUND_COST = 0.05  # seconds of one boosting round per row, relative to computing the features of the row
MAX_LEARNING_RATE_FACTOR = 3.0  # by which the learning rate is raised where there is time for fewer rounds


@hyperparameters
class Params:
    """Hyper-parameters.

    Attributes
    ----------
    rounds : int
        Boosting rounds: trees per behavior.
    leaves : int
        Maximum number of leaves of a tree.
    learning_rate : float
    rows : int
        Maximum number of frames used for training. Frames of common behaviors are left out first.
    row_rate : float
        Frames per second used for training and prediction, where recordings have more. Probabilities are interpolated linearly.
    class_weight_exponent : float
        Classes are weighted by their frequency to the power of minus this: 0 for no weights, 1 for balanced classes.
    inputs : {"auto", "roles", "keypoints"}
        Poses by role, at a common rate and scale, or the keypoints of the training recordings by name. ``"auto"``: by role where
        recordings differ in skeleton, rate, number of animals, or condition.
    condition : str
        Column of the metadata, such as the laboratory. Each of its values has its own small part of the model and its own thresholds;
        recordings with other values are predicted by the shared part. Empty for none.
    zones : bool
        Use the zones of the study (``zones.csv``) as inputs: whether each animal is inside, and how far away it is.
    """

    rounds: Count = 100
    leaves: Annotated[int, Field(ge=2)] = 15
    learning_rate: Annotated[float, Field(gt=0)] = 0.15
    rows: Count = 60_000
    row_rate: Annotated[float, Field(gt=0)] = 10.0
    class_weight_exponent: Annotated[float, Field(ge=0, le=1)] = 0.5
    inputs: Literal["auto", "roles", "keypoints"] = "auto"
    condition: str = "lab"
    zones: bool = False


@register_model("boost")
class Boost(SignalModel):
    """Boosted trees: one classifier where behaviors exclude each other, one per behavior where they overlap."""

    title = "boosted trees on features at several scales (LightGBM); tags and poses"
    packages = {"lightgbm": "boost"}  # noqa: RUF012
    Params = Params
    grid = {"rounds": (50, 100, 200), "leaves": (7, 15, 31), "class_weight_exponent": (0.25, 0.5, 1.0)}  # noqa: RUF012
    revision = 5
    supports_deadline = True

    classes: list[list[int]]
    boosters: list[Any]
    condition_parts: dict[str, dict[int, Any]]
    recordings_used: tuple[str, ...] = ()  # those for which there was time to compute features
    seconds_per_row: float | None = None  # of a fit, measured where time is limited
    binned: BinnedRows | None = None  # the rows of all fits that share them

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        self.keypoints = dict(data.keypoints)
        rows = self.collect_rows(data, truths)
        self.training_range = TrainingRange.fit([self.signal_baseline(recording) for recording in data if recording.id in rows])
        self.fit_rows(rows)

    def collect_rows(self, data: Dataset, truths: Mapping[str, Annotation], share: float = 1.0) -> dict[str, Rows]:
        """Compute the training rows of each recording.

        Parameters
        ----------
        data : Dataset
        truths : mapping of recording id to Annotation
        share : float
            Share of the remaining time that one fit may take. Where time is limited, fewer rows are used.
        """
        start = self.deadline.clock()
        data = self._with_features(data)
        self.recordings_used = tuple(recording.id for recording in data)
        seconds = self.deadline.clock() - start
        targets_of = exclusive_targets if self.exclusive else overlapping_targets
        targets = {r.id: targets_of(truths[r.id])[:: self._every(self.rate_of(r))] for r in data}
        chosen = choose_rows(targets, self._affordable_rows(targets, seconds, share))
        rows = {}
        for recording in data:
            target, frames = targets[recording.id], chosen[recording.id]
            frames = frames[frames < self._n_rows(recording)]
            if len(frames):
                features = self._features(recording, frames, self.signal_baseline(recording))
                condition = self.condition_of(recording) if self.role_inputs is not None else ""
                rows[recording.id] = Rows(features, target[frames], self._count(target), condition, recording.source_id)
        if not rows:
            raise EthobenchError("cannot fit a model: no frame is observed")
        return rows

    def fit_rows(self, rows: Mapping[str, Rows]) -> None:
        """Fit the trees to rows from `collect_rows`: those shared by all recordings, and those of each condition."""
        shared_bins = self.binned
        if self.has_conditions and self.binned is None:
            self.binned = BinnedRows.from_rows(rows, thread_count())  # binning takes longer than the trees of one behavior
        try:
            self._fit_shared(rows)
            self.condition_parts = {}
            if self.has_conditions and len({each.group for each in rows.values()}) > 1:
                self._fit_conditions(rows)
        finally:
            self.binned = shared_bins

    @property
    def has_conditions(self) -> bool:
        """Whether parts and thresholds of conditions can be fitted: inputs are by role, and behaviors have separate classifiers."""
        return self.role_inputs is not None and not self.exclusive and bool(self.params.condition)

    def _fit_shared(self, rows: Mapping[str, Rows]) -> None:
        y = np.concatenate([each.targets for each in rows.values()]).astype(np.int64)
        counts = np.sum([each.counts for each in rows.values()], axis=0)
        self.boosters, self.classes = [], []
        problems = [(y, counts)] if self.exclusive else list(zip(y.T, counts, strict=True))
        for number, (target, count) in enumerate(problems):
            observed = np.flatnonzero(target != UNOBSERVED)
            classes = np.unique(target[observed])
            self.classes.append(classes.tolist())
            examples = Examples(rows, observed, np.searchsorted(classes, target[observed]), count[classes], self.binned)
            with progress_range(number / len(problems), (number + 1) / len(problems)):
                deadline = self.deadline.share(1 / (len(problems) - number))
                self.boosters.append(self._fit_booster(examples, deadline) if len(classes) > 1 else None)

    def _fit_conditions(self, rows: Mapping[str, Rows]) -> None:
        """Fit the part and the thresholds of each condition, on predictions of recordings by trees that were not fitted to them."""
        folds = condition_folds(rows)
        margins: dict[str, NDArray[np.float64]] = {}
        for number in sorted({*folds.values()}):
            held_out = {name: each for name, each in rows.items() if folds[name] == number}
            others = {name: each for name, each in rows.items() if folds[name] != number}
            if others:
                shared = copy_fitted_metadata(self, self.clone())
                shared.binned = self.binned
                shared.deadline = self.deadline.share(1 / (2 + max(folds.values()) - number))
                shared._fit_shared(others)
                margins |= {name: shared.shared_margins(each.features) for name, each in held_out.items()}
        labeled: dict[str, dict[str, Labeled]] = {}
        names = self.check_is_fitted().names
        conditions = sorted({each.condition for each in rows.values()})
        for condition in conditions:
            members = [name for name, each in rows.items() if each.condition == condition and name in margins]
            if not members:
                continue
            examples = ConditionRows.from_rows(
                [rows[name] for name in members],
                [margins[name] for name in members],
                [folds[name] for name in members],
                self.params.class_weight_exponent,
            )
            has_part = bool(condition) and len(conditions) > 1
            if has_part:
                self.condition_parts[condition] = examples.fit(self.seed)
            for code, values in examples.labeled(examples.cross_fit(self.seed) if has_part else examples.margins).items():
                labeled.setdefault(names[code], {})[condition] = values
        if not self.decode:
            shared_thresholds, self.condition_thresholds = pooled_thresholds(labeled)
            self.condition_thresholds.pop("", None)
            self.decoder = Decoder(thresholds=shared_thresholds)

    def _adapt(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        """Fit the part and the thresholds of new conditions to the residuals of the shared trees, where held-out rows say that it helps."""
        rows = self.collect_rows(data, truths)
        names = self.check_is_fitted().names
        for condition in sorted({each.condition for each in rows.values()}):
            members = {name: each for name, each in rows.items() if each.condition == condition}
            groups = {group: number for number, group in enumerate(dict.fromkeys(each.group for each in members.values()))}
            examples = ConditionRows.from_rows(
                list(members.values()),
                [self.shared_margins(each.features) for each in members.values()],
                [groups[each.group] for each in members.values()],
                self.params.class_weight_exponent,
            )
            shared = {} if self.decoder is None else self.decoder.thresholds
            adapted = examples.adapt(self.seed, {code: shared.get(name, DEFAULT) for code, name in enumerate(names)})
            self.condition_parts[condition] = adapted.boosters
            self.condition_thresholds[condition] = {names[code]: threshold for code, threshold in adapted.thresholds.items()}

    def shared_margins(self, features: Features) -> NDArray[np.float64]:
        """Return the log odds of overlapping behaviors by the shared trees (n_rows, n_behaviors); NaN for behaviors without trees."""
        margins = np.full((len(features), self.n_outputs), np.nan)
        for column, booster in enumerate(self.boosters):
            if booster is not None:
                margins[:, column] = booster.predict(features, raw_score=True, num_threads=thread_count())
        return margins

    def prepare(self, data: Dataset, deadline: Deadline) -> None:
        """Compute and cache the features of recordings, until a deadline."""
        if any(annotation.subjects for recording in data for annotation in recording.annotations.values()):
            return  # directed behavior is fitted to other views of the recordings
        self._unfitted(data)._precompute_features(data, deadline)

    def recording_features(self, recording: Recording) -> Features:
        """Return the features of all rows of a recording (n_rows, n_features), from the cache where they are cached."""
        return self._features(recording, np.arange(self._n_rows(recording)), self.signal_baseline(recording))

    def feature_names(self, recording: Recording) -> tuple[str, ...]:
        """Return the names of the features of a recording, such as ``"speed/mean/0.5s"``."""
        rate, baseline = self.rate_of(recording), self.signal_baseline(recording)
        beginning = self._data(recording)[: 2 * self._every(rate)]
        names = multiscale_features(beginning, rate, every=self._every(rate), baseline=baseline, keypoints=self.keypoints)[1]
        return names if self.role_inputs is None else (*names, *constant_names())

    def row_step(self, rate: float) -> int:
        """Return the frames between two rows, in a recording of this many frames per second."""
        return self._every(rate)

    def unfitted(self, data: Dataset) -> Boost:
        """Return a model that has the rate, the inputs and the row rate for a dataset, and is not fitted."""
        return self._unfitted(data)

    def preparation_seconds(self, data: Dataset) -> float:
        """Estimate the seconds that the features of all recordings take, from those of one recording."""
        recording = sorted(data, key=lambda each: each.n_frames or 0)[len(data) // 2]
        probe = self._unfitted(data)
        start = time.perf_counter()
        probe._features(recording, np.arange(probe._n_rows(recording)), probe.signal_baseline(recording))
        return (time.perf_counter() - start) * data.n_frames / max(recording.n_frames or 1, 1)

    def context(self, rate: float) -> int:
        """Return how many frames before and after a frame influence its prediction."""
        return multiscale_context(rate) + self._every(rate)

    def predict_rows(self, features: Features, condition: str = "") -> Features:
        """Return the probabilities of rows of features (n_rows, n_outputs), by the shared trees and those of a condition."""
        parts = self.condition_parts.get(condition, {})
        probabilities = np.zeros((len(features), self.n_outputs), dtype=np.float32)
        for column, (booster, classes) in enumerate(zip(self.boosters, self.classes, strict=True)):
            if booster is None:
                by_class = np.ones((len(features), 1))
            else:
                if booster.num_feature() != features.shape[1]:
                    raise MismatchError(f"the model needs {booster.num_feature()} features, but these signals have {features.shape[1]}")
                by_class = booster.predict(features, num_threads=thread_count())
                by_class = np.stack([1 - by_class, by_class], axis=1) if by_class.ndim == 1 else by_class
            if self.exclusive:
                probabilities[:, classes] = by_class
            elif 1 in classes:
                probabilities[:, column] = by_class[:, classes.index(1)]
        for column, component in parts.items():
            margins = self.boosters[column].predict(features, raw_score=True, num_threads=thread_count())
            probabilities[:, column] = to_probabilities(margins + component.predict(features, raw_score=True, num_threads=thread_count()))
        return probabilities

    def _predict(self, recording: Recording, baseline: Baseline) -> Prediction:
        ethogram, rate, n_frames = self.check_is_fitted(), self.rate_of(recording), len(self._data(recording))
        rows = np.arange(self._n_rows(recording))
        blocks = [rows[start : start + MAX_BLOCK_ROWS] for start in range(0, len(rows), MAX_BLOCK_ROWS)]
        condition = self.condition_of(recording)
        predicted = [self.predict_rows(self._features(recording, block, baseline), condition) for block in blocks]
        probabilities = np.concatenate([np.zeros((0, self.n_outputs), dtype=np.float32), *predicted])
        return Prediction(interpolate_steps(probabilities, self._every(rate), n_frames), ethogram, rate, exclusive=self.exclusive)

    # Time budget

    def _affordable_rows(self, targets: Mapping[str, NDArray[np.int16]], feature_seconds: float, share: float) -> int:
        """Return the maximum number of training rows; fewer where the speed of the features shows that time is short."""
        if not self.deadline.is_limited:
            return int(self.params.rows)
        n_frames = sum(len(target) for target in targets.values())
        seconds_per_round = ROUND_COST * feature_seconds / max(n_frames, 1)
        affordable = share * max(self.deadline.remaining, 0.0) / max(GOOD_ROUNDS * seconds_per_round, 1e-9)
        max_rows = int(np.clip(affordable, PILOT_ROWS, self.params.rows))
        if max_rows < min(self.params.rows, n_frames):
            self.note(f"boosted trees are trained on at most {max_rows} rows, to keep the time budget")
        return max_rows

    def _with_features(self, data: Dataset) -> Dataset:
        """Compute features for all fits that share them; return the recordings for which there was time."""
        ready = self._precompute_features(data, self.deadline.share(FEATURE_SHARE), MIN_RECORDINGS)
        if len(ready) < len(data):
            self.note(f"trained on {len(ready)} of {len(data)} recordings, to keep the time budget")
        return data.select(recordings=ready)

    def _precompute_features(self, data: Dataset, deadline: Deadline, min_recordings: int = 0) -> list[str]:
        """Compute and cache features until a deadline; return the recordings whose features are ready.

        The order is random, so that concurrent processes share the work.
        """
        if cache_folder() is None:
            return [recording.id for recording in data]
        ready: list[str] = []
        for index in np.random.default_rng(os.getpid()).permutation(len(data)):
            if deadline.has_passed and len(ready) >= min_recordings:
                break
            recording = data.recordings[index]
            if self._is_cached(recording):
                precompute(*self._cache_entry(recording, self.signal_baseline(recording)))
            ready.append(recording.id)
            report_progress("features", max(deadline.fraction_elapsed, len(ready) / len(data)))
        return ready

    def _unfitted(self, data: Dataset) -> Boost:
        """Return a model that has the rate and the inputs of a dataset, and is not fitted."""
        model = Boost(seed=self.seed, row_rate=self.params.row_rate)
        first = data.recordings[0]
        model.rate, model.inputs, model.keypoints, model.condition_parts = first.rate, input_names(first), dict(data.keypoints), {}
        return model

    def _fit_booster(self, examples: Examples, deadline: Deadline) -> Any:
        """Fit trees. Where time is limited, use fewer rows first, then fewer rounds with a higher learning rate."""
        import lightgbm

        n_rows, rounds = len(examples.y), int(self.params.rounds)
        if deadline.is_limited and n_rows > PILOT_ROWS:
            if self.seconds_per_row is None:
                pilot = _Pace(Deadline(clock=deadline.clock), PILOT_ROUNDS, 0.0)
                self._train(examples.subsample(PILOT_ROWS), PILOT_ROUNDS, pilot)
                self.seconds_per_row = (pilot.first_seconds + GOOD_ROUNDS * pilot.round_seconds) / PILOT_ROWS
            examples = examples.subsample(max(deadline.remaining / max(self.seconds_per_row, 1e-9), PILOT_ROWS))
        pace = _Pace(deadline, rounds, float(self.params.learning_rate))
        booster = self._train(examples, rounds, pace)
        if pace.done < rounds or len(examples.y) < n_rows:
            self.note(f"boosted trees: {pace.done} of {rounds} rounds on {len(examples.y)} of {n_rows} rows, to keep the time budget")
        return lightgbm.Booster(model_str=booster.model_to_string())  # so that predictions are those of the saved model

    def _train(self, examples: Examples, rounds: int, pace: _Pace) -> Any:
        import lightgbm

        n_classes = int(examples.y.max()) + 1
        settings = {
            "objective": "multiclass" if n_classes > 2 else "binary",
            "num_leaves": self.params.leaves,
            "learning_rate": self.params.learning_rate,
            "feature_fraction": 0.05,
            "extra_trees": True,
            "bagging_fraction": 0.7,
            "bagging_freq": 1,
            "lambda_l2": 5.0,
            "seed": self.seed,
            "deterministic": True,
            "force_col_wise": True,  # twice as fast as by row, with so few features per tree
            "num_threads": thread_count(),
            "verbose": -1,
            "min_data_in_leaf": int(np.clip(len(examples.y) // 50, 1, MIN_LEAF_ROWS)),
        } | ({"num_class": n_classes} if n_classes > 2 else {})
        weights = row_weights(examples.y, examples.counts, self.params.class_weight_exponent)
        return lightgbm.train({**BINNING, **settings}, examples.dataset(weights, thread_count()), rounds, callbacks=[pace])

    # Features

    def _features(self, recording: Recording, rows: Indices, baseline: Baseline) -> Features:
        """Return the features of rows (n_rows, n_features), with the constant inputs of the recording."""
        features, constants = self._signal_features(recording, rows, baseline), self.constant_inputs(recording)
        return np.hstack([features, np.tile(constants, (len(features), 1))]) if len(constants) else features

    def _signal_features(self, recording: Recording, rows: Indices, baseline: Baseline) -> Features:
        """Return the features of rows that follow from the signals, from the cache where they are cached."""
        if self._is_cached(recording):
            features = cached(*self._cache_entry(recording, baseline))
            return features if len(rows) == len(features) else features[rows]
        rate = self.rate_of(recording)
        options: dict[str, Any] = {"every": self._every(rate), "baseline": baseline, "keypoints": self.keypoints}
        return multiscale_features(self._data(recording), rate, **options, rows=rows)[0]

    def _is_cached(self, recording: Recording) -> bool:
        """Return whether the features of a recording are cached for other fits."""
        return cache_folder() is not None and len(self._data(recording)) // self._every(self.rate_of(recording)) <= MAX_BLOCK_ROWS

    def _cache_entry(self, recording: Recording, baseline: Baseline) -> tuple[str, Data, Any, Callable[[], Features]]:
        """Return the arguments of `cached` and `precompute`."""
        rate, data = self.rate_of(recording), self._data(recording)
        every = self._every(rate)

        def compute() -> Features:
            return multiscale_features(data, rate, every=every, baseline=baseline, keypoints=self.keypoints)[0]

        return "multiscale", data, (rate, every, self.keypoints, baseline), compute

    def _n_rows(self, recording: Recording) -> int:
        """Return the number of rows of a recording: every n-th frame."""
        return -(-len(self._data(recording)) // self._every(self.rate_of(recording)))

    def _every(self, rate: float) -> int:
        return max(1, round(rate / float(self.params.row_rate)))

    def _stride(self) -> int:
        return self._every(float(self.rate or 1.0))

    def _count(self, target: NDArray[np.int16]) -> NDArray[np.int64]:
        """Return the frames of each code, or without and with each behavior."""
        if self.exclusive:
            return np.bincount(target[target != UNOBSERVED], minlength=self.n_outputs)
        return np.stack([(target == code).sum(axis=0) for code in (0, 1)], axis=1)

    # Saving

    def _save(self, folder: Path) -> None:
        state = {
            "exclusive": self.exclusive,
            "classes": self.classes,
            "keypoints": keypoints_to_json(self.keypoints),
            "training_range": None if self.training_range is None else asdict(self.training_range),
            "condition_parts": {condition: sorted(parts) for condition, parts in self.condition_parts.items()},
        }
        (folder / STATE).write_text(json.dumps(state), encoding="utf-8")
        for number, booster in enumerate(self.boosters):
            if booster is not None:
                (folder / TREES.format(number)).write_text(booster.model_to_string(), encoding="utf-8")
        for number, parts in enumerate(self.condition_parts.values()):
            for code, booster in parts.items():
                (folder / CONDITION_TREES.format(number, code)).write_text(booster.model_to_string(), encoding="utf-8")

    def _load(self, folder: Path) -> None:
        import lightgbm

        state = read_json(folder / STATE)
        try:
            self.exclusive, self.keypoints = bool(state["exclusive"]), keypoints_from_json(state["keypoints"])
            self.training_range = TrainingRange.from_dict(state["training_range"]) if state["training_range"] else None
            self.classes = [[int(code) for code in codes] for codes in state["classes"]]
            self._check_classes()
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(folder / STATE, f"the state of the model is damaged ({error})") from None
        self.boosters = []
        for number, classes in enumerate(self.classes):
            path = folder / TREES.format(number)
            try:
                text = check_lightgbm_text(path.read_text(encoding="utf-8"), len(classes)) if len(classes) > 1 else ""
                self.boosters.append(lightgbm.Booster(model_str=text) if text else None)
            except (OSError, ValueError, lightgbm.basic.LightGBMError) as error:
                raise FormatError(path, f"not the trees of a saved model ({error})") from None
        self.condition_parts = {}
        for number, (condition, codes) in enumerate(state.get("condition_parts", {}).items()):
            self.condition_parts[str(condition)] = {}
            for code in codes:
                path = folder / CONDITION_TREES.format(number, int(code))
                try:
                    text = check_lightgbm_text(path.read_text(encoding="utf-8"), 2)
                    self.condition_parts[str(condition)][int(code)] = lightgbm.Booster(model_str=text)
                except (OSError, ValueError, lightgbm.basic.LightGBMError) as error:
                    raise FormatError(path, f"not the trees of a saved model ({error})") from None

    def _check_classes(self) -> None:
        """Refuse classes that the ethogram does not have: one set for exclusive behaviors, one per behavior otherwise."""
        n_sets, n_codes = (1, self.n_outputs) if self.exclusive else (self.n_outputs, 2)
        codes = [code for each in self.classes for code in each]
        if len(self.classes) != n_sets or any(len({*each}) != len(each) or (self.exclusive and not each) for each in self.classes):
            raise ValueError(f"expected {n_sets} sets of distinct classes, got {len(self.classes)}")
        if min(codes, default=-1) < 0 or max(codes) >= n_codes:
            raise ValueError("a class is not among the behaviors")


class _Pace:
    """A callback of LightGBM that reports progress and stops at a deadline.

    Parameters
    ----------
    deadline : Deadline
    rounds : int
        Planned boosting rounds.
    learning_rate : float
        Raised where there is time for fewer rounds than planned.

    Attributes
    ----------
    done : int
        Finished rounds.
    first_seconds, round_seconds : float
        Duration of the first round, including the preparation of the data, and of each later round.
    """

    def __init__(self, deadline: Deadline, rounds: int, learning_rate: float) -> None:
        self.deadline, self.rounds, self.learning_rate = deadline, rounds, learning_rate
        self.done, self.first_seconds, self.round_seconds = 0, 0.0, 0.0
        self._start = deadline.clock()

    def __call__(self, env: Any) -> None:
        """Measure the time after each round."""
        import lightgbm

        self.done = env.iteration + 1
        report_progress("boosted trees", max(self.deadline.fraction_elapsed, self.done / self.rounds))
        elapsed = self.deadline.clock() - self._start
        if self.done == 1:
            self.first_seconds = elapsed
            return
        self.round_seconds = (elapsed - self.first_seconds) / (self.done - 1)
        if not self.deadline.is_limited:
            return
        if self.done == PILOT_ROUNDS:
            possible = self.done + max(self.deadline.remaining, 0.0) / max(self.round_seconds, 1e-9)
            if possible < self.rounds:
                factor = min(MAX_LEARNING_RATE_FACTOR, self.rounds / possible)
                env.model.reset_parameter({"learning_rate": self.learning_rate * factor})
        if self.deadline.has_passed and self.done >= MIN_ROUNDS:
            raise lightgbm.callback.EarlyStopException(env.iteration, [])
