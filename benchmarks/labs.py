"""One model across laboratories: `synthetic/labs` and the rats.

    python benchmarks/labs.py conditioned   # one conditioned model against one model per laboratory
    python benchmarks/labs.py new           # leave laboratories out: zero-shot, after one and after two labeled videos
    python benchmarks/labs.py rats          # the rats with missing keypoints and mixed rates; together with mice

``--videos``, ``--held-out`` and ``--seconds`` set the size of the simulated laboratories. Each prints one JSON line per result; see
``results/labs.md``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ethobench import create_model, load_dataset, load_model, score
from ethobench.core import Annotation, Dataset, Poses, Recording
from ethobench.features.cache import feature_cache

MODEL = {"rounds": 60, "rows": 20_000}
Tests = Mapping[str, tuple[list[Recording], tuple[str, ...]]]  # recordings to test on and their behaviors, by species
LABS = ("CalMS21_task1", "ElegantMink", "InvincibleJellyfish", "ReflectiveManatee", "SparklingTapir", "DeliriousFly", "PleasantMeerkat")
"""Laboratories that are left out by default."""


@dataclass(frozen=True)
class Size:
    """Size of the simulated laboratories: labeled videos for training and for testing, and their seconds."""

    train: int = 2
    test: int = 1
    seconds: float = 30.0


def lab_scores(predictions: Mapping[str, Annotation], recordings: Iterable[Recording]) -> dict[str, float]:
    """Return the mean F1 of frames over the labeled actions that occur, by laboratory, as MABe 2025 counts them."""
    counts: dict[tuple[str, str], Any] = defaultdict(lambda: np.zeros(3))
    for recording in recordings:
        truth, predicted = recording.annotation(), predictions[recording.id].with_ethogram(recording.annotation().ethogram)
        for track in truth.observed.tracks:
            code = truth.ethogram.names.index(str(track.behavior))
            true, positive = (each.to_frames(track.subject, track.target)[:, code] for each in (truth, predicted))
            counts[recording.metadata["lab"], str(track.behavior)] += (
                (true & positive).sum(),
                (positive & ~true).sum(),
                (true & ~positive).sum(),
            )
    by_lab: dict[str, list[float]] = defaultdict(list)
    for (lab, _), (hits, false, missed) in counts.items():
        if hits + missed:
            by_lab[lab].append(2 * hits / (2 * hits + false + missed))
    return {lab: float(np.mean(values)) for lab, values in by_lab.items()}


def annotate(model: Any, recordings: Iterable[Recording]) -> dict[str, Annotation]:
    """Predict recordings; a refusal ends the benchmark."""
    return {recording.id: model.predict(recording).annotation for recording in recordings}


def labeled_videos(size: Size, labs: Iterable[str] | None = None) -> dict[str, tuple[list[Recording], list[Recording]]]:
    """Return the videos for training and for testing by simulated laboratory; those of small laboratories are divided in proportion."""
    n_videos = size.train + size.test
    data = load_dataset("synthetic/labs", videos=n_videos, seconds=size.seconds, labs=None if labs is None else list(labs))
    by_lab: dict[str, list[Recording]] = defaultdict(list)
    for recording in data:
        if recording.annotations and len(recording.annotation()):
            by_lab[recording.metadata["lab"]].append(recording)
    n_test = {lab: max(1, round(len(videos) * size.test / n_videos)) for lab, videos in by_lab.items() if len(videos) > 1}
    return {lab: (by_lab[lab][count:], by_lab[lab][:count]) for lab, count in n_test.items()}


def join(videos: Iterable[list[Recording]]) -> Dataset:
    """Return the videos of several laboratories as a dataset."""
    recordings = [recording for of_lab in videos for recording in of_lab]
    return Dataset(tuple(recordings), recordings[0].annotation().ethogram)


def report(**values: Any) -> None:
    """Print one result."""
    print(json.dumps({name: round(v, 3) if isinstance(v, float) else v for name, v in values.items()}), flush=True)


def compare_with_own_models(size: Size, names: list[str]) -> None:
    """One conditioned model, one without conditions, and one per laboratory, all by role and with the same settings."""
    videos = labeled_videos(size)
    train, test = join(each for each, _ in videos.values()), join(each for _, each in videos.values())
    skeletons = len({r.signals.keypoints for r in (*train, *test) if isinstance(r.signals, Poses)})
    results: dict[str, dict[str, float]] = {}
    for name in [name for name in names if name != "own"]:
        start = time.process_time()
        model = create_model("boost", condition="lab" if name == "conditioned" else "", **MODEL).fit(train)
        seconds = time.process_time() - start
        results[name] = lab_scores(annotate(model, test), test)
        report(
            model=name,
            skeletons=skeletons,
            trained_on=len(train),
            tested_on=len(test),
            mean=float(np.mean([*results[name].values()])),
            processor_seconds=seconds,
            **results[name],
        )
    if "own" not in names:
        return
    own: dict[str, float] = {}
    for lab, (labeled, tested) in videos.items():
        own |= lab_scores(annotate(create_model("boost", inputs="roles", **MODEL).fit(join([labeled])), tested), tested)
        report(lab=lab, trained_on=len(labeled), tested_on=len(tested), own=own[lab], **{name: each[lab] for name, each in results.items()})
    better = [lab for lab, value in own.items() if results["conditioned"][lab] > value]
    report(model="own", mean=float(np.mean([*own.values()])), better=len(better), labs=len(own))


def adapt_to_new_labs(size: Size, shared_size: Size, labs: list[str], tested_labs: list[str], folder: Path) -> None:
    """Leave laboratories out of training, and adapt to each from none, one and two labeled videos.

    In each fold other videos of the laboratory are tested, and its own model, to which the others are compared, learns from all of its
    videos for training.
    """
    if not folder.exists():
        others = {lab: videos for lab, (videos, _) in labeled_videos(shared_size).items() if lab not in labs}
        start = time.process_time()
        shared = create_model("boost", **MODEL).fit(join(others.values()))
        report(trained_on=sum(map(len, others.values())), labs=len(others), processor_seconds=time.process_time() - start)
        shared.save(folder)
    for lab in tested_labs:
        train, test = labeled_videos(size, [lab])[lab]
        videos = [*test, *train]
        values: dict[str, list[float]] = defaultdict(list)
        for first in range(0, len(videos) - size.test + 1, size.test):
            tested = videos[first : first + size.test]
            labeled = [*videos[first + size.test :], *videos[:first]]
            model = load_model(folder)
            values["zero_shot"].append(lab_scores(annotate(model, tested), tested)[lab])
            for count, name in ((1, "one_video"), (2, "two_videos")):
                start = time.process_time()
                model.adapt_to(join([labeled[:count]]))
                values["adapting_seconds"].append(time.process_time() - start)
                values[name].append(lab_scores(annotate(model, tested), tested)[lab])
            own = create_model("boost", inputs="roles", **MODEL).fit(join([labeled]))
            values["own"].append(lab_scores(annotate(own, tested), tested)[lab])
        means = {name: float(np.mean(each)) for name, each in values.items()}
        names = ("zero_shot", "one_video", "two_videos")
        shares = {f"{name}_share": means[name] / max(means["own"], 1e-9) for name in names}
        better = sum(one >= zero for one, zero in zip(values["two_videos"], values["zero_shot"], strict=True))
        report(lab=lab, folds=len(values["own"]), own_videos=len(labeled), tested_on=size.test, **means, **shares, not_worse=better)


def damaged(recording: Recording, *, keypoints: int = 0, rate: float | None = None) -> Recording:
    """Return a recording without its last keypoints, or at another rate."""
    poses = recording.signals
    if keypoints and isinstance(poses, Poses):
        kept = slice(None, len(poses.keypoints) - keypoints)
        fewer = Poses(poses.positions[:, :, kept], poses.confidence[:, :, kept], poses.individuals, poses.keypoints[kept], poses.rate)
        recording = recording.copy(signals=fewer)
    if rate is not None and isinstance(recording.signals, Poses):
        step = round(float(recording.rate or rate) / rate)
        annotations = {name: each.resample(rate) for name, each in recording.annotations.items()}
        slow = replace(recording.signals[::step], rate=rate)
        n_frames = min([len(slow), *(each.n_frames for each in annotations.values())])
        annotations = {name: each.crop(0, n_frames) for name, each in annotations.items()}
        recording = recording.copy(signals=slow[:n_frames], rate=rate, n_frames=n_frames, annotations=annotations)
    return recording


def compare_rats(path: str, count: int, n_mice: int) -> None:
    """The rats as they are, with keypoints missing or a lower rate in every second recording, and together with simulated mice.

    The last third of the recordings of either species is held out. The mice have other keypoints and other behaviors than the rats.
    """
    data = load_dataset(path)
    rats = list(data.recordings[:count])
    mice = list(load_dataset("synthetic/pose", individuals=n_mice, seconds=120).recordings)
    rat_names, mouse_names = data.ethogram.names, mice[0].annotation().ethogram.names

    def divide(recordings: list[Recording]) -> tuple[list[Recording], list[Recording]]:
        n_train = 2 * len(recordings) // 3
        return recordings[:n_train], recordings[n_train:]

    def measure(
        case: str, train: list[Recording], tests: Mapping[str, tuple[list[Recording], tuple[str, ...]]], inputs: str = "roles"
    ) -> None:
        ethogram = train[0].annotation().ethogram
        for each in train:
            ethogram = ethogram.join(each.annotation().ethogram)
        model = create_model("boost", inputs=inputs, **MODEL).fit(Dataset(tuple(train), ethogram))
        for species, (test, names) in tests.items():
            predictions = {name: annotation.restrict(list(names)) for name, annotation in annotate(model, test).items()}
            scores = score(predictions, {r.id: r.annotation().restrict(list(names)) for r in test}, resamples=0)
            each = scores.per("recording").values()
            report(
                case=case,
                scored=species,
                trained_on=len(train),
                tested_on=len(test),
                f1=float(scores.overall["f1"]),
                bout_f1=float(scores.overall["bout_f1"]),
                f1_spread=float(np.std([float(one["overall"]["f1"]) for one in each], ddof=1)),
            )

    def every_second(change: Any) -> tuple[list[Recording], list[Recording]]:
        return divide([change(recording) if k % 2 else recording for k, recording in enumerate(rats)])

    train_mice, test_mice = divide(mice)
    for case, (train, test), inputs in (
        ("clean, by keypoint", divide(rats), "keypoints"),
        ("clean, by role", divide(rats), "roles"),
        ("two keypoints missing in half", every_second(lambda r: damaged(r, keypoints=2)), "roles"),
        ("half at 15 frames/s", every_second(lambda r: damaged(r, rate=15.0)), "roles"),
    ):
        measure(case, train, {"rats": (test, rat_names)}, inputs)
    measure("mice alone", train_mice, {"mice": (test_mice, mouse_names)})
    train_rats, test_rats = divide(rats)
    measure("rats and mice", [*train_rats, *train_mice], {"rats": (test_rats, rat_names), "mice": (test_mice, mouse_names)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["conditioned", "new", "rats"])
    parser.add_argument("--labs", nargs="+", default=LABS)
    parser.add_argument("--only", nargs="+", default=(), help="Adapt to these of the laboratories only.")
    parser.add_argument("--model", default="", help="Folder of the model of the other laboratories; trained and saved if it is not there.")
    parser.add_argument("--shared-videos", type=int, default=2, help="Labeled videos of each other laboratory.")
    parser.add_argument("--shared-seconds", type=float, default=40.0, help="Duration of their videos.")
    parser.add_argument("--models", nargs="+", default=["conditioned", "shared", "own"])
    parser.add_argument("--videos", type=int, default=Size.train, help="Labeled videos of each laboratory for training.")
    parser.add_argument("--held-out", type=int, default=Size.test, help="Videos of each laboratory for testing.")
    parser.add_argument("--seconds", type=float, default=Size.seconds, help="Duration of the videos.")
    parser.add_argument("--rows", type=int, default=MODEL["rows"], help="Maximum number of training rows.")
    parser.add_argument("--rats", default="", help="Folder of the rats' manifest.")
    parser.add_argument("--count", type=int, default=12, help="Recordings of rats.")
    parser.add_argument("--mice", type=int, default=9, help="Recordings of simulated pairs of mice, beside the rats.")
    arguments = parser.parse_args()
    MODEL["rows"] = arguments.rows
    size = Size(arguments.videos, arguments.held_out, arguments.seconds)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, feature_cache(folder):
        if arguments.what == "conditioned":
            compare_with_own_models(size, arguments.models)
        elif arguments.what == "new":
            shared_size = Size(arguments.shared_videos, 1, arguments.shared_seconds)
            path = Path(arguments.model or Path(folder, "model"))
            adapt_to_new_labs(size, shared_size, list(arguments.labs), list(arguments.only or arguments.labs), path)
        else:
            compare_rats(arguments.rats, arguments.count, arguments.mice)
