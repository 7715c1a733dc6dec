"""One model across laboratories: `synthetic/labs` and the rats.

    python benchmarks/labs.py conditioned   # one conditioned model against one model per laboratory
    python benchmarks/labs.py new           # leave laboratories out: zero-shot, after one and after two labeled videos
    python benchmarks/labs.py rats          # the rats with missing keypoints and mixed rates; together with mice

Each prints one JSON line per result. The size is small, so that all of it takes minutes; see ``results/labs.md``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ethobench import create_model, load_dataset, score
from ethobench.core import Annotation, Dataset, Poses, Recording
from ethobench.features.cache import feature_cache

MODEL = {"rounds": 60, "rows": 20_000}
SIZE = {"videos": 3, "seconds": 30.0}
N_TESTED = 4  # videos of a new laboratory


def lab_scores(predictions: Mapping[str, Annotation], recordings: Iterable[Recording]) -> dict[str, float]:
    """Return the mean F1 of frames over the labeled actions that occur, by laboratory, as MABe 2025 counts them."""
    counts: dict[tuple[str, str], Any] = defaultdict(lambda: np.zeros(3))
    for recording in recordings:
        truth, predicted = recording.annotation(), predictions[recording.id].with_ethogram(recording.annotation().ethogram)
        for track in truth.observed.tracks:
            code = truth.ethogram.names.index(str(track.behavior))
            true, found = (each.to_frames(track.subject, track.target)[:, code] for each in (truth, predicted))
            counts[recording.metadata["lab"], str(track.behavior)] += (
                (true & found).sum(),
                (found & ~true).sum(),
                (true & ~found).sum(),
            )
    by_lab: dict[str, list[float]] = defaultdict(list)
    for (lab, _), (hits, false, missed) in counts.items():
        if hits + missed:
            by_lab[lab].append(2 * hits / (2 * hits + false + missed))
    return {lab: float(np.mean(values)) for lab, values in by_lab.items()}


def annotate(model: Any, recordings: Iterable[Recording]) -> dict[str, Annotation]:
    """Predict recordings; a refusal ends the benchmark."""
    return {recording.id: model.predict(recording).annotation for recording in recordings}


def labeled_videos(**options: Any) -> Dataset:
    """Return the labeled videos of the simulated laboratories."""
    data = load_dataset("synthetic/labs", **{**SIZE, **options})
    return data.select(recordings=[r.id for r in data if r.annotations and len(r.annotation())])


def split(data: Dataset) -> tuple[Dataset, Dataset]:
    """Hold out the first video of each laboratory."""
    first = {lab: next(r.id for r in data if r.metadata["lab"] == lab) for lab in {r.metadata["lab"] for r in data}}
    test = {*first.values()}
    return data.select(recordings=[r.id for r in data if r.id not in test]), data.select(recordings=[r.id for r in data if r.id in test])


def report(**values: Any) -> None:
    """Print one result."""
    print(json.dumps({name: round(v, 3) if isinstance(v, float) else v for name, v in values.items()}), flush=True)


def compare_with_own_models() -> None:
    """One conditioned model, one without conditions, and one per laboratory, all by role and with the same settings."""
    train, test = split(labeled_videos())
    skeletons = len({r.signals.keypoints for r in train if isinstance(r.signals, Poses)})
    results = {}
    for name, condition in (("conditioned", "lab"), ("shared", "")):
        start = time.perf_counter()
        model = create_model("boost", condition=condition, **MODEL).fit(train)
        fitted = time.perf_counter() - start
        results[name] = lab_scores(annotate(model, test), test)
        report(model=name, skeletons=skeletons, mean=float(np.mean([*results[name].values()])), seconds=fitted, **results[name])
    own: dict[str, float] = {}
    for lab in results["conditioned"]:
        of_lab = train.select(recordings=[r.id for r in train if r.metadata["lab"] == lab])
        tested = [r for r in test if r.metadata["lab"] == lab]
        own |= lab_scores(annotate(create_model("boost", inputs="roles", **MODEL).fit(of_lab), tested), tested)
    better = [lab for lab, value in own.items() if results["conditioned"][lab] > value]
    report(model="own", mean=float(np.mean([*own.values()])), better=len(better), labs=len(own), **own)


def adapt_to_new_labs(labs: list[str]) -> None:
    """Leave laboratories out of training, and adapt to each from none, one and two labeled videos; four other videos are tested."""
    others = labeled_videos()
    train = others.select(recordings=[r.id for r in others if r.metadata["lab"] not in labs])
    model = create_model("boost", **MODEL).fit(train)
    for lab in labs:
        videos = labeled_videos(labs=[lab], videos=2 + N_TESTED)
        labeled, tested = videos.recordings[:2], videos.recordings[2:]
        scores, seconds = [lab_scores(annotate(model, tested), tested)[lab]], 0.0
        for count in (1, 2):
            start = time.process_time()
            model.adapt_to(Dataset(labeled[:count], videos.ethogram))
            seconds = time.process_time() - start
            scores.append(lab_scores(annotate(model, tested), tested)[lab])
        changed = {"thresholds": len(model.condition_thresholds[lab]), "trees": len(model.condition_parts[lab])}
        own = create_model("boost", inputs="roles", **MODEL).fit(Dataset(labeled, videos.ethogram))
        reference = lab_scores(annotate(own, tested), tested)[lab]
        report(lab=lab, own=reference, zero_shot=scores[0], one_video=scores[1], two_videos=scores[2], adapting_seconds=seconds, **changed)


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


def compare_rats(path: str, count: int) -> None:
    """The rats as they are, with keypoints missing or a lower rate in every second recording, and together with simulated mice."""
    data = load_dataset(path)
    data = data.select(recordings=[r.id for r in data.recordings[:count]])
    names = [r.id for r in data]
    train_ids, test_ids = names[: 2 * count // 3], names[2 * count // 3 :]

    def measure(case: str, change: Any, inputs: str = "roles", more: Iterable[Recording] = ()) -> None:
        changed = [change(r) if k % 2 else r for k, r in enumerate(data)]
        train = [r for r in changed if r.id in train_ids]
        test = [r for r in changed if r.id in test_ids]
        ethogram = data.ethogram
        for each in more:
            ethogram = ethogram.join(each.annotation().ethogram)
        model = create_model("boost", inputs=inputs, **MODEL).fit(Dataset((*train, *more), ethogram))
        truths = {r.id: r.annotation() for r in test}
        predictions = {name: annotation.restrict(data.ethogram.names) for name, annotation in annotate(model, test).items()}
        overall = score(predictions, truths, resamples=0).overall
        report(case=case, f1=float(overall["f1"]), bout_f1=float(overall["bout_f1"]), recordings=len(names))

    measure("clean, by keypoint", lambda r: r, "keypoints")
    measure("clean, by role", lambda r: r)
    measure("two keypoints missing in half", lambda r: damaged(r, keypoints=2))
    measure("half at 15 frames/s", lambda r: damaged(r, rate=15.0))
    measure("with mice", lambda r: r, more=load_dataset("synthetic/pose", individuals=4, seconds=60).recordings)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["conditioned", "new", "rats"])
    parser.add_argument("--labs", nargs="+", default=["CRIM13", "LyricalHare", "BoisterousParrot", "JovialSwallow", "TranquilPanther"])
    parser.add_argument("--rats", default="", help="Folder of the rats' manifest.")
    parser.add_argument("--count", type=int, default=12, help="Recordings of rats.")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, feature_cache(folder):
        if arguments.what == "conditioned":
            compare_with_own_models()
        elif arguments.what == "new":
            adapt_to_new_labs(arguments.labs)
        else:
            compare_rats(arguments.rats, arguments.count)
