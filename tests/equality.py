"""Record what a refactoring must not change, and compare two recordings.

Run it on the code before and after a change, from the root of a checkout::

    PYTHONPATH=/path/to/before/src python -m tests.equality record before/
    PYTHONPATH=/path/to/after/src python -m tests.equality record after/
    python -m tests.equality compare before/ after/

``record`` fits every model on small data and stores its probabilities and bouts, the scores of every suite, the JSON output of the
command line, the results of small benchmark runs, and the files that each format writes. It uses public names only, so that the same
script runs on both versions. Items that need real recordings read them from ``$ETHOBENCH_DATA``. An item that fails is recorded as an error
and does not stop the others. ``--only PATTERN`` (a regular expression) selects items, ``list`` prints their names.

``compare`` prints one line per item and exits with 1 if anything differs by more than 1e-6. Text meant for people (notes, titles) and
values that vary between runs (times, paths, versions) are not recorded. Where a change renames a JSON field or a hyper-parameter on
purpose, pass ``--rename OLD=NEW`` to ``compare``, or add the new name to `RENAMED_PARAMETERS`.

``load BEFORE`` loads the models that an earlier ``record`` saved, with the current code, and compares their predictions.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # sums over several threads are not added in a fixed order

import numpy as np

import ethobench as eb

TOLERANCE = 1e-6
NOT_COMPARED = {"notes", "note", "reason", "withheld", "title", "version", "date", "created", "host", "path", "hash", "key"}
SUITES = ("ethobench", "banos", "bebe", "calms21", "rodentbench")
RENAMED_PARAMETERS: dict[str, str] = {}  # old name to new name; both are tried

SHORT_TRAJECTORY = {"past": 30, "future": 30, "epochs": 1}
MODELS: dict[str, dict[str, Any]] = {
    "attention": SHORT_TRAJECTORY,
    "boost": {"rounds": 40},
    "chance": {},
    "cnn": {"epochs": 2},
    "conv1d": SHORT_TRAJECTORY,
    "crnn": {"epochs": 2},
    "dense": SHORT_TRAJECTORY,
    "dt": {},
    "gmm": {"iterations": 10},
    "harnet": {"config": "harnet5", "mode": "random", "epochs": 1},
    "hmm": {"iterations": 3},
    "kmeans": {},
    "lstm": SHORT_TRAJECTORY,
    "mllm": {},
    "rf": {"trees": 20},
    "rnn": {"epochs": 2},
    "svm": {"iterations": 20},
    "tcn": {"updates": 10},
    "wavelet_dt": {},
    "wavelet_rf": {"trees": 20},
    "wavelet_rnn": {"epochs": 2},
    "wavelet_svm": {"iterations": 20},
}
"""Every registered model but ``auto``, with hyper-parameters that make it fast."""

DATA = ("tag", "pose", "trio", "overlapping", "rats", "HAR", "seals")
ON_OVERLAPPING = ("boost", "conv1d", "rf", "svm", "tcn")
VARIANTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "rf_bout_f1/tag": ("rf", "tag", {"trees": 20, "decode": "bout_f1"}),
    "rf_balanced/tag": ("rf", "tag", {"trees": 20, "decode": "balanced"}),
    "rf_bout_f1/pose": ("rf", "pose", {"trees": 20, "decode": "bout_f1"}),
    "rf_balanced/overlapping": ("rf", "overlapping", {"trees": 20, "decode": "balanced"}),
    "rf_balanced/rats": ("rf", "rats", {"trees": 20, "decode": "balanced"}),
    "chance_random/tag": ("chance", "tag", {"kind": "random"}),
    "chance_renewal/tag": ("chance", "tag", {"kind": "renewal"}),
    "conv1d_features/pose": ("conv1d", "pose", {**SHORT_TRAJECTORY, "inputs": "features"}),
    "conv1d_augmented/pose": ("conv1d", "pose", {**SHORT_TRAJECTORY, "augment": ("rotation", "reflection")}),
    "conv1d_balanced/pose": ("conv1d", "pose", {**SHORT_TRAJECTORY, "class_weight": "balanced"}),
    "auto_small/tag": ("auto", "tag", {"budget": 0.001}),
    "auto/tag": ("auto", "tag", {}),
    "auto/pose": ("auto", "pose", {}),
}
"""Further fits: item name to model, data and hyper-parameters."""

STREAMING = {
    "conv1d/tag": ("conv1d", "tag", {"past": 60, "future": 0, "epochs": 1}),
    "conv1d/pose": ("conv1d", "pose", {"past": 60, "future": 0, "epochs": 1}),
    "tcn/tag": ("tcn", "tag", {"updates": 10, "causal": True}),
    "tcn/pose": ("tcn", "pose", {"updates": 10, "causal": True}),
}

Values = dict[str, Any]
Item = Callable[[Path], Values]


# ---------------------------------------------------------------------------------------------------------------------------- data


def data_folder() -> Path:
    """Return the folder of real recordings."""
    folder = os.environ.get("ETHOBENCH_DATA", "")
    if not folder or not Path(folder).is_dir():
        raise FileNotFoundError("set ETHOBENCH_DATA to the folder of real recordings")
    return Path(folder)


def crop(recording: eb.Recording, start: int, stop: int) -> eb.Recording:
    """Return frames `start` to `stop` of a recording."""
    annotations = {name: annotation.crop(start, stop) for name, annotation in recording.annotations.items()}
    return recording.copy(signals=recording.signals[start:stop], n_frames=stop - start, annotations=annotations, features=None)


def with_overlaps(recording: eb.Recording) -> eb.Recording:
    """Add a behavior that overlaps every third bout and the one after it."""
    truth = recording.annotation()
    names = [truth.ethogram.names[code] for code in truth.behavior]
    starts, stops = list(truth.start), list(truth.stop)
    for first, last in zip(truth.start[::3], truth.stop[1::3], strict=False):
        starts.append(first)
        stops.append(last)
        names.append("alert")
    ethogram = [*truth.ethogram.names, "alert"]
    annotation = eb.Annotation.from_bouts(starts, stops, names, ethogram, truth.rate, truth.n_frames)
    return recording.copy(annotations={"truth": annotation})


@cache
def load(name: str) -> eb.Dataset:
    """Load a small dataset of at least three recordings; the last one is for testing."""
    if name == "trio":
        return eb.load_dataset("synthetic/trio", individuals=3, seconds=15, folds=3)
    if name in ("tag", "pose"):
        return eb.load_dataset(f"synthetic/{name}", individuals=3, seconds=40, folds=3)
    if name == "overlapping":
        data = load("tag")
        recordings = tuple(with_overlaps(recording) for recording in data)
        return eb.Dataset(recordings, recordings[0].annotation().ethogram, name=name)
    if name == "rats":
        data = eb.load_dataset(data_folder() / "rats/recordings.csv")
        recordings = tuple(crop(data[key], 1000, 2500) for key in ("01", "02", "03"))
    elif name == "HAR":
        data = eb.load_dataset("bebe/HAR")
        recordings = tuple(crop(data[key], 1000, 5000) for key in ("exp01_user01", "exp03_user02", "exp05_user03"))
    else:
        data = eb.load_dataset("bebe/ladds_seals")
        recordings = tuple(crop(data[key], 500, 3500) for key in ("bella-30-08-15", "malie-07-09-14", "teiko-28-08-15"))
    return eb.Dataset(recordings, data.ethogram, name=name, keypoints=data.keypoints)


def split(data: eb.Dataset) -> tuple[eb.Dataset, eb.Recording]:
    """Return all recordings but the last, and the last."""
    *training, test = data.recordings
    return data.select(recordings=[recording.id for recording in training]), test


# -------------------------------------------------------------------------------------------------------------------------- models


def create(name: str, **parameters: Any) -> Any:
    """Create a model; hyper-parameters that have been renamed since are passed under their new names."""
    try:
        return eb.create_model(name, **parameters)
    except eb.EthobenchError:
        renamed = {RENAMED_PARAMETERS.get(key, key): value for key, value in parameters.items()}
        if renamed == parameters:
            raise
        return eb.create_model(name, **renamed)


def bouts_of(annotation: eb.Annotation) -> Values:
    """Return an annotation as arrays."""
    ethogram, subjects = annotation.ethogram.names, annotation.subjects
    observed = annotation.observed.frames
    return {
        "n_frames": annotation.n_frames,
        "rate": annotation.rate,
        "start": np.asarray(annotation.start),
        "stop": np.asarray(annotation.stop),
        "behavior": np.array([ethogram[code] for code in annotation.behavior], dtype=str),
        "subject": np.array([subjects[code] if code >= 0 else "" for code in annotation.subject], dtype=str),
        "target": np.array([subjects[code] if code >= 0 else "" for code in annotation.target], dtype=str),
        "observed_start": np.asarray(observed.start),
        "observed_stop": np.asarray(observed.stop),
    }


def prediction_values(prediction: eb.Prediction) -> Values:
    """Return probabilities and bouts of a prediction."""
    return {"probabilities": np.asarray(prediction.probabilities, dtype=np.float64), "bouts": bouts_of(prediction.annotation)}


def record_model(model: str, data: str, parameters: Mapping[str, Any], folder: Path) -> Values:
    """Fit a model, predict, save it, load it and predict again."""
    training, test = split(load(data))
    fitted = create(model, **parameters).fit(training)
    fitted.save(folder / "saved_model")
    loaded = eb.load_model(folder / "saved_model").predict(test)
    return {"fitted": prediction_values(fitted.predict(test)), "loaded": prediction_values(loaded)}


def record_resampled(model: str, folder: Path) -> Values:
    """Predict a recording of half the model's rate."""
    training, test = split(load("tag"))
    signals = eb.Signals(test.signals.values[::2], test.signals.channels, test.rate / 2)
    slow = test.copy(signals=signals, rate=test.rate / 2, n_frames=len(signals), annotations={})
    return prediction_values(create(model, **MODELS[model]).fit(training).predict(slow))


def record_stream(model: str, data: str, parameters: Mapping[str, Any], folder: Path) -> Values:
    """Feed a causal model frame by frame."""
    training, test = split(load(data))
    fitted = create(model, **parameters).fit(training)
    stream = fitted.stream()
    if isinstance(test.signals, eb.Poses):
        frames = zip(test.signals.positions[:400], test.signals.confidence[:400], strict=True)
        streamed = [stream.push(frame, confidence) for frame, confidence in frames]
    else:
        streamed = [stream.push(frame) for frame in test.signals.values[:400]]
    return {"streamed": np.array(streamed, dtype=np.float64), "predicted": prediction_values(fitted.predict(test))}


# -------------------------------------------------------------------------------------------------------------------------- scores


def rater_folder(name: str) -> Path:
    """Return a rater's folder of the BORIS data."""
    return data_folder() / "boris_two_raters" / name


def read_rater(name: str) -> dict[str, eb.Annotation]:
    """Read a rater's five tables."""
    return {path.stem: eb.read_annotation(path) for path in sorted(rater_folder(name).glob("DLC*.csv"))}


def banos_raters() -> list[dict[str, eb.Annotation]]:
    """Return the annotations of BANOS's two annotators."""
    data = eb.load_dataset("banos")
    return [{r.id: r.annotations[name] for r in data if name in r.annotations} for name in data.annotators]


def record_banos_scores(suite: str, folder: Path) -> Values:
    """Score one annotator of BANOS's recordings against the other."""
    first, second = banos_raters()[:2]
    return dict(eb.score(second, first, suite=suite).to_dict())


def record_rater_scores(suite: str, folder: Path) -> Values:
    """Score one rater's BORIS tables against the other's."""
    scores = eb.score(read_rater("brett_initial"), read_rater("donnie_initial"), suite=suite)
    return {**scores.to_dict(), "per_individual": scores.per("individual")}


def record_probability_scores(suite: str, folder: Path) -> Values:
    """Score predictions with probabilities, on tags and on three animals."""
    values = {}
    for name in ("tag", "trio"):
        data = load(name)
        training, _ = split(data)
        model = create("dt").fit(training) if name == "tag" else create("rf", trees=20).fit(training)
        values[name] = eb.score({r.id: model.predict(r) for r in data}, data, suite=suite).to_dict()
    return values


def record_agreement(folder: Path) -> Values:
    """Compute agreement and consensus of the raters."""
    raters = {name: read_rater(name) for name in ("brett_initial", "brett_reannotation", "donnie_initial", "donnie_reannotation")}
    by_recording = {key: {name: tables[key] for name, tables in raters.items()} for key in raters["brett_initial"]}
    equal_length = {}
    for key, members in by_recording.items():
        n_frames = min(annotation.n_frames for annotation in members.values())
        equal_length[key] = {name: annotation.crop(0, n_frames) for name, annotation in members.items()}
    return {
        "agreement": eb.agreement(equal_length).to_dict(),
        "tolerant": eb.agreement(equal_length, tolerance=0.5).to_dict(),
        "banos": eb.agreement(eb.load_dataset("banos")).to_dict(),
        "consensus": {key: bouts_of(eb.consensus(members)) for key, members in equal_length.items()},
    }


# -------------------------------------------------------------------------------------------------------------------- command line


def command_line(*arguments: object, data: Path | None = None, cwd: Path | None = None) -> str:
    """Run ``ethobench`` and return what it prints; raise RuntimeError if it fails."""
    environment = dict(os.environ, COLUMNS="200", NO_COLOR="1", TERM="dumb")
    if data is not None:
        environment["ETHOBENCH_DATA"] = str(data)
    command = [sys.executable, "-m", "ethobench", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, check=False)
    if done.returncode:
        shown = " ".join(map(str, arguments))
        raise RuntimeError(f"ethobench {shown} exited with {done.returncode}: {(done.stderr or done.stdout)[-800:]}")
    return done.stdout


def record_json(arguments: tuple[str, ...], subfolder: str, folder: Path) -> Values:
    """Record the JSON output of a command that runs in a folder of ``$ETHOBENCH_DATA``."""
    return {"output": json.loads(command_line(*arguments, "--json", cwd=data_folder() / subfolder))}


def record_inspect(subfolder: str, folder: Path) -> Values:
    """Inspect each file of a folder by itself."""
    root, values = data_folder() / subfolder, {}
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path.name not in ("LICENSE", "PROVENANCE.txt")):
        try:
            output = json.loads(command_line("inspect", path.relative_to(root), "--json", cwd=root))
        except RuntimeError:
            output = "not readable"
        values[str(path.relative_to(root))] = output
    return values


JSON_COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "score": (("score", "brett_initial", "brett_reannotation"), "boris_two_raters"),
    "score_rename": (("score", "brett_initial", "brett_reannotation", "--rename", "interact=contact"), "boris_two_raters"),
    "agreement": (("agreement", "brett_initial", "donnie_initial", "donnie_reannotation"), "boris_two_raters"),
    "budget": (("budget", "brett_initial"), "boris_two_raters"),
    "budget_rats": (("budget", "rats/recordings.csv"), "."),
    "inspect_boris": (("inspect", "brett_initial", "donnie_initial"), "boris_two_raters"),
    "inspect_rat": (("inspect", "rats/annotations/01.txt", "rats/poses/01.csv"), "."),
    "inspect_bebe": (("inspect", "bebe/ladds_seals"), "."),
    "inspect_multirater": (("inspect", "multirater_oft/labels.csv"), "."),
    "formats": (("formats",), "."),
    "datasets": (("datasets", "list"), "."),
}


# ---------------------------------------------------------------------------------------------------------------------- benchmarks


@cache
def has_run_study() -> bool:
    """Return whether a study is run by ``ethobench run study PATH`` rather than ``ethobench run PATH``."""
    return re.search(r"^\W*study\s", command_line("run", "--help"), flags=re.MULTILINE) is not None


def write_study(folder: Path, kind: str, individuals: int = 4, seconds: float = 40.0) -> Path:
    """Write a synthetic dataset as a study: signals, annotations and a ``recordings.csv``."""
    folder.mkdir(parents=True)
    rows = ["recording,individual,rate,signals,annotations,annotator"]
    for recording in eb.load_dataset(f"synthetic/{kind}", individuals=individuals, seconds=seconds):
        signals, annotation = f"{recording.id}.signals.csv", f"{recording.id}.bouts.csv"
        if kind == "tag":
            header = ",".join(recording.signals.channels)
            np.savetxt(folder / signals, recording.signals.values, fmt="%.6f", delimiter=",", header=header, comments="")
        else:
            eb.write_recordings([recording.copy(annotations={})], folder / signals, "deeplabcut")
        eb.write_annotation(recording.annotation(), folder / annotation, "tidy")
        rows.append(f"{recording.id},{recording.individual},{recording.rate:g},{signals},{annotation},expert")
    (folder / "recordings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def tables(store: Path, *names: str, data: Path | None = None) -> Values:
    """Return tables of a store as JSON; names beside ``results`` are passed as ``--table``."""
    values = {"results": json.loads(command_line("results", store, "--json", data=data))}
    for name in names:
        values[name] = json.loads(command_line("results", store, "--table", name, "--json", data=data))
    return values


def record_synthetic(folder: Path) -> Values:
    """Run two models on the synthetic benchmark."""
    command_line(
        "run", "synthetic", "--datasets", "tag", "--models", "chance,rf", "--param", "rf.trees=5", "--workers", 1, "--store", folder / "s"
    )
    return tables(folder / "s", "comparison", "behaviors")


def cut_bebe(source: Path, target: Path, per_fold: int = 2, rows: int = 3000) -> None:
    """Copy a BEBE dataset with `per_fold` clips of each fold, and the first `rows` of each clip."""
    import yaml

    metadata = yaml.safe_load((source / "dataset_metadata.yaml").read_text(encoding="utf-8"))
    folds = {fold: clips[:per_fold] for fold, clips in metadata["clip_ids_per_fold"].items()}
    kept = {clip for clips in folds.values() for clip in clips}
    metadata["clip_ids_per_fold"] = folds
    metadata["clip_ids"] = [clip for clip in metadata["clip_ids"] if clip in kept]
    metadata["clip_id_to_individual_id"] = {clip: who for clip, who in metadata["clip_id_to_individual_id"].items() if clip in kept}
    used = set(metadata["clip_id_to_individual_id"].values())
    if "individual_ids" in metadata:
        metadata["individual_ids"] = [who for who in metadata["individual_ids"] if who in used]
    for key in ("individuals_per_fold", "individual_ids_per_fold"):
        if key in metadata:
            metadata[key] = {fold: [who for who in members if who in used] for fold, members in metadata[key].items()}
    (target / "clip_data").mkdir(parents=True)
    (target / "dataset_metadata.yaml").write_text(yaml.safe_dump(metadata), encoding="utf-8")
    for clip in kept:
        lines = (source / "clip_data" / f"{clip}.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        (target / "clip_data" / f"{clip}.csv").write_text("".join(lines[:rows]), encoding="utf-8")


def record_bebe(folder: Path) -> Values:
    """Run BEBE with published hyper-parameters on ten shortened clips of HAR, in both settings."""
    cut_bebe(data_folder() / "bebe/HAR", folder / "data/bebe/HAR")
    options = ("--datasets", "HAR", "--models", "chance,rf,kmeans", "--workers", 1)
    command_line("run", "bebe", *options, "--published", "--settings", "full,reduced", "--store", folder / "s", data=folder / "data")
    return tables(folder / "s", "comparison", "behaviors", "settings", "claims", data=folder / "data")


def write_calms21(folder: Path) -> None:
    """Write small files of CalMS21's three tasks."""
    folder.mkdir(parents=True)
    names = eb.load_dataset("synthetic/pose", individuals=1, seconds=1).ethogram.names
    new_behaviors = [name for name in names if name != "other"][:2]
    groups: dict[int, list[tuple[str, int, tuple[str, ...]]]] = {  # annotator or behavior, delay in frames, behaviors
        1: [("annotator-id_0", 0, ())],
        2: [("annotator-id_1", 0, ()), ("annotator-id_2", 15, ())],
        3: [(name, 0, ("other", name)) for name in new_behaviors],
    }
    for task, members in groups.items():
        for is_test, count in ((False, 3), (True, 2)):
            split_name, recordings = "test" if is_test else "train", []
            for index, (group, delay, behaviors) in enumerate(members):
                seconds, seed = 12.0 if task < 3 else 15.0, 100 * task + 10 * index + is_test
                for number, recording in enumerate(eb.load_dataset("synthetic/pose", individuals=count, seconds=seconds, seed=seed)):
                    truth = recording.annotation()
                    delayed = eb.Annotation.from_frames(np.roll(truth.to_codes(), delay), truth.ethogram, truth.rate)
                    name = f"task{task}/{split_name}/mouse{index}{number:02d}_task{task}"
                    recordings.append(recording.copy(id=name, annotations={group: delayed.restrict(behaviors or truth.ethogram.names)}))
            eb.write_recordings(recordings, folder / f"calms21_task{task}_{split_name}.json", "calms21")


def record_calms21(folder: Path) -> Values:
    """Run CalMS21's tasks 1 and 2 on small synthetic files; task 3 takes minutes, as 30 epochs of its read-out are fixed."""
    write_calms21(folder / "data/calms21")
    parameters = [f"conv1d.{pair}" for pair in ("past=16", "future=16", "epochs=1", "kernel=3", "layers=[8,4]", "batch=512")]
    options = [text for pair in parameters for text in ("--param", pair)]
    common = ("--workers", 1, "--store", folder / "s")
    command_line("run", "calms21", "--tasks", "1", "--seeds", "42,43", "--models", "conv1d,chance", *options, *common, data=folder / "data")
    command_line("run", "calms21", "--tasks", "2", "--seeds", "42", "--models", "conv1d", *options, *common, data=folder / "data")
    return tables(folder / "s", "calms21", "styles", "behaviors", data=folder / "data")


SEGMENTS: dict[str, dict[str, list[tuple[int, int, str]]]] = {
    "freezing": {
        "v1": [(0, 20, "Not Freezing"), (20, 40, "Freezing"), (40, 60, "Not Freezing")],
        "v2": [(0, 30, "Freezing"), (30, 50, "Not Freezing")],
        "v3": [(0, 45, "Not Freezing"), (45, 70, "Freezing")],
    },
    "grooming": {"g1": [(0, 10, "other"), (10, 30, "grooming")], "g2": [(0, 25, "grooming"), (25, 90, "other")]},
}
ANSWERS: dict[str, dict[str, Any]] = {
    "freezing": {
        "v1": [(0, 25, "Not Freezing"), (25, 40, "Freezing"), (40, 60, "Not Freezing")],
        "v2": "I cannot watch videos.",
        "v3": [(0, 50, "not freezing"), (50, 70, "FREEZING")],
    },
    "grooming": {"g1": [(0, 12, "other"), (12, 30, "grooming")], "g2": [(0, 90, "other")]},
}


def segments_text(rows: Any) -> str:
    """Return segments as JSON; text stays as it is."""
    if isinstance(rows, str):
        return rows
    segments = [
        {"segment_number": number, "start_time": start, "end_time": stop, "behavior": name}
        for number, (start, stop, name) in enumerate(rows, start=1)
    ]
    return json.dumps({"segments": segments})


def record_rodentbench(folder: Path) -> Values:
    """Run Rodent-Bench with stored answers."""
    for dataset, videos in SEGMENTS.items():
        for video, rows in videos.items():
            truth, answer = folder / "data/rodentbench" / dataset / "annotations", folder / "answers" / dataset
            for target, text in ((truth, segments_text(rows)), (answer, segments_text(ANSWERS[dataset][video]))):
                target.mkdir(parents=True, exist_ok=True)
                (target / f"{video}.json").write_text(text, encoding="utf-8")
    options = ("--provider", "replay", "--answers", folder / "answers", "--versions", "short", "--workers", 1, "--store", folder / "s")
    command_line("run", "rodentbench", *options, data=folder / "data")
    return tables(folder / "s", "rodentbench", data=folder / "data")


def record_study(kind: str, folder: Path) -> Values:
    """Run two models on a study, scored with two suites."""
    study = write_study(folder / "study", kind)
    command = ("run", "study", study) if has_run_study() else ("run", study)
    options = ("--models", "chance,rf", "--param", "rf.trees=10", "--suite", "ethobench,banos", "--workers", 1, "--store", folder / "s")
    command_line(*command, *options)
    return tables(folder / "s", "comparison", "behaviors")


def record_search(folder: Path) -> Values:
    """Run a study with variations of a hyper-parameter."""
    study = write_study(folder / "study", "tag", individuals=3, seconds=20.0)
    command = ("run", "study", study) if has_run_study() else ("run", study)
    command_line(*command, "--models", "rf", "--param", "trees=5", "--vary", "seconds=1,2", "--workers", 1, "--store", folder / "s")
    return tables(folder / "s")


def record_train(kind: str, folder: Path) -> Values:
    """Train by the command line, predict training and new recordings, and score them."""
    study = write_study(folder / "study", kind)
    new = write_study(folder / "new", kind, individuals=2, seconds=20.0)
    command_line("train", study, "--out", folder / "model", "--model", "rf", "--param", "trees=10", "--workers", 1)
    values: Values = {"evaluation": eb.load_model(folder / "model").evaluation}
    for name, source in (("training", study), ("new", new)):
        output = folder / f"predicted_{name}"
        command_line("predict", folder / "model", source / "recordings.csv", "--out", output)
        values[name] = {path.name: bouts_of(eb.read_annotation(path)) for path in sorted(output.glob("*.csv"))}
        values[f"score_{name}"] = json.loads(command_line("score", output, source / "recordings.csv", "--json"))
    return values


# ------------------------------------------------------------------------------------------------------------------------- formats

WRITTEN = {
    "bebe_predictions": (".bebe.csv",),
    "bento": (".annot",),
    "boris": (".boris",),
    "boris_aggregated": (".xlsx", ".tsv", ".csv"),
    "boris_tabular": (".tsv", ".csv", ".xlsx"),
    "calms21": (".calms21.json", ".json"),
    "caltech": (".txt",),
    "deepethogram": (".csv",),
    "deeplabcut": (".csv", ".h5"),
    "intervals": (".csv", ".tsv"),
    "labels": (".csv",),
    "labels_npy": (".npy",),
    "mabe2025": (".parquet", ".csv"),
    "nwb": (".nwb",),
    "observer": (".xlsx", ".csv"),
    "onehot": (".csv",),
    "segments": (".json",),
    "simba": (".csv",),
    "solomon": (".csv",),
    "tidy": (".csv",),
    "tidy_parquet": (".parquet",),
}
BINARY = (".xlsx", ".h5", ".nwb", ".parquet", ".npy")


def written_values(path: Path, format_name: str) -> Values:
    """Return the SHA-256 of a text file, and what reading the file gives."""
    values: Values = {"size": None, "sha256": None}
    if not path.name.endswith(BINARY):
        content = path.read_bytes().replace(str(path.parent).encode(), b"FOLDER")
        content = re.sub(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?", b"TIME", content)  # BORIS projects have the time of writing
        values = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    recordings = {}
    for recording in eb.read_recordings(path, format_name):
        entry: Values = {name: bouts_of(annotation) for name, annotation in recording.annotations.items()}
        if isinstance(recording.signals, eb.Poses):
            entry["positions"] = np.asarray(recording.signals.positions, dtype=np.float64)
        recordings[recording.id] = entry
    return {**values, "read": recordings}


def record_written(kind: str, format_name: str, ending: str, folder: Path) -> Values:
    """Write one synthetic recording with its poses and annotation, and its annotation alone."""
    recording = load(kind).recordings[0]
    writes: dict[str, Callable[[Path], Any]] = {
        "recording": lambda path: eb.write_recordings([recording], path, format_name),
        "annotation": lambda path: eb.write_annotation(recording.annotation(), path, format_name),
    }
    values: Values = {}
    for name, write in writes.items():
        path = folder / name / f"animal{ending}"
        path.parent.mkdir()
        try:
            write(path)
            values[name] = written_values(path, format_name)
        except eb.EthobenchError as error:
            values[name] = f"refused with {type(error).__name__}"
    return values


# --------------------------------------------------------------------------------------------------------------------------- items


def items() -> dict[str, Item]:
    """Return what is recorded: names to functions of a scratch folder."""
    recorders: dict[str, Item] = {}
    for data in DATA:
        for model, parameters in MODELS.items():
            if data != "overlapping" or model in ON_OVERLAPPING:
                recorders[f"model/{model}/{data}"] = partial(record_model, model, data, parameters)
    for name, (model, data, parameters) in VARIANTS.items():
        recorders[f"model/{name}"] = partial(record_model, model, data, parameters)
    for model in ("rf", "crnn", "boost", "tcn"):
        recorders[f"resampled/{model}"] = partial(record_resampled, model)
    for name, (model, data, parameters) in STREAMING.items():
        recorders[f"stream/{name}"] = partial(record_stream, model, data, parameters)
    for suite in SUITES:
        recorders[f"score/banos/{suite}"] = partial(record_banos_scores, suite)
        recorders[f"score/boris/{suite}"] = partial(record_rater_scores, suite)
        recorders[f"score/probabilities/{suite}"] = partial(record_probability_scores, suite)
        recorders[f"cli/score_suite/{suite}"] = partial(
            record_json, ("score", "donnie_initial/DLC1.csv", "brett_initial/DLC1.csv", "--suite", suite), "boris_two_raters"
        )
    recorders["score/agreement"] = record_agreement
    for name, (arguments, subfolder) in JSON_COMMANDS.items():
        recorders[f"cli/{name}"] = partial(record_json, arguments, subfolder)
    recorders["cli/inspect_formats"] = partial(record_inspect, "formats")
    recorders["run/synthetic"] = record_synthetic
    recorders["run/bebe"] = record_bebe
    recorders["run/calms21"] = record_calms21
    recorders["run/rodentbench"] = record_rodentbench
    recorders["run/study_tag"] = partial(record_study, "tag")
    recorders["run/study_pose"] = partial(record_study, "pose")
    recorders["run/variations"] = record_search
    recorders["train/tag"] = partial(record_train, "tag")
    recorders["train/pose"] = partial(record_train, "pose")
    for kind in ("pose", "trio", "overlapping"):
        for format_name, endings in WRITTEN.items():
            for ending in endings:
                recorders[f"write/{kind}/{format_name}{ending}"] = partial(record_written, kind, format_name, ending)
    return recorders


# ------------------------------------------------------------------------------------------------------------- recording, comparing


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested mappings and sequences with their paths; fields that are not compared are skipped."""
    if isinstance(value, Mapping):
        if not value:
            yield path, "{}"
        for key, child in value.items():
            if key not in NOT_COMPARED:
                yield from flatten(child, f"{path}|{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        if not value:
            yield path, "[]"
        for index, child in enumerate(value):
            yield from flatten(child, f"{path}|{index}")
    else:
        yield path, value


def save(values: Values, path: Path) -> None:
    """Write arrays to an .npz file and everything else to a JSON file."""
    arrays, plain = {}, {}
    for key, value in flatten(values):
        if isinstance(value, np.ndarray):
            arrays[key] = value
        else:
            plain[key] = value.item() if isinstance(value, np.generic) else value
    path.parent.mkdir(parents=True, exist_ok=True)
    if arrays:
        np.savez_compressed(f"{path}.npz", **arrays)
    Path(f"{path}.json").write_text(json.dumps(plain, indent=0, default=str), encoding="utf-8")


def read(path: Path) -> Values:
    """Read what `save` wrote."""
    values: Values = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
    if Path(f"{path}.npz").exists():
        with np.load(f"{path}.npz", allow_pickle=False) as arrays:
            values.update({key: arrays[key] for key in arrays.files})
    return values


def record(folder: Path, only: str) -> None:
    """Record all items whose names match a regular expression; an item recorded earlier is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    print(f"recording {Path(eb.__file__).parent} into {folder}")
    chosen = {name: item for name, item in items().items() if re.search(only, name)}
    timings = {}
    for number, (name, item) in enumerate(chosen.items(), start=1):
        start, target = os.times(), folder / name
        for ending in (".json", ".npz"):
            Path(f"{target}{ending}").unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                save(item(Path(scratch)), target)
                error = ""
            except Exception as problem:
                error = f"{type(problem).__name__}: {problem}".replace(scratch, "SCRATCH")
                save({"ERROR": error, "TRACEBACK": traceback.format_exc()}, target)
            saved = Path(scratch) / "saved_model"
            if saved.is_dir():
                shutil.rmtree(folder / "saved_models" / name, ignore_errors=True)
                shutil.copytree(saved, folder / "saved_models" / name)
        end = os.times()
        timings[name] = sum(end[:4]) - sum(start[:4])
        print(f"[{number}/{len(chosen)}] {name}: {timings[name]:.1f} s CPU {error}"[:300], flush=True)
    print(f"{len(chosen)} items, {sum(timings.values()):.0f} s CPU")


def recorded(folder: Path) -> set[str]:
    """Return the names of the items in a folder."""
    paths = (path.relative_to(folder) for path in folder.rglob("*.json"))
    return {str(path.with_suffix("")) for path in paths if path.parts[0] != "saved_models"}


def difference(before: Any, after: Any) -> float:
    """Return the largest difference between two leaves: 0 within the tolerance, infinite for other types, shapes or texts."""
    numbers = (int, float)
    if isinstance(before, bool) or isinstance(after, bool) or not isinstance(before, (np.ndarray, *numbers)):
        return 0.0 if type(before) is type(after) and before == after else np.inf
    if not isinstance(after, (np.ndarray, *numbers)):
        return np.inf
    first, second = np.asarray(before), np.asarray(after)
    if first.shape != second.shape:
        return np.inf
    if first.dtype.kind not in "fiub" or second.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(first, second) else np.inf
    first, second = first.astype(np.float64), second.astype(np.float64)
    if np.allclose(first, second, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
        return 0.0
    if not np.array_equal(np.isnan(first), np.isnan(second)):
        return np.inf
    return float(np.nanmax(np.abs(first - second)))


def rename_fields(values: Values, renames: Mapping[str, str]) -> Values:
    """Rename fields, wherever they are nested."""
    return {"|".join(renames.get(field, field) for field in key.split("|")): value for key, value in values.items()}


def compare_item(before: Values, after: Values) -> tuple[str, list[str]]:
    """Return the state of an item (``equal``, or what differs) and the fields that differ."""
    if "ERROR" in after:
        if "ERROR" in before:
            return "error in both", [str(after["ERROR"])]
        return "ERROR", [str(after["ERROR"])]
    if "ERROR" in before:
        return "error before only", [str(before["ERROR"])]
    details = [f"- {key}: missing after" for key in before if key not in after]
    details += [f"- {key}: only after" for key in after if key not in before]
    missing, largest, count = len(details), 0.0, 0
    for key in before.keys() & after.keys():
        value = difference(before[key], after[key])
        if value > 0:
            largest, count = max(largest, value), count + 1
            shown = "" if isinstance(before[key], np.ndarray) else f" ({before[key]!r} -> {after[key]!r})"
            details.append(f"- {key}: " + (f"differs by {value:.3g}" if np.isfinite(value) else "differs") + shown[:160])
    if not details:
        return "equal", []
    amount = f"max abs difference {largest:.3g}" if np.isfinite(largest) else "differs"
    return f"{amount} in {count} fields" + (f", {missing} fields missing or new" if missing else ""), details


def compare(before: Path, after: Path, renames: Mapping[str, str], only: str, most: int) -> int:
    """Print one line per item; return how many differ, are missing or failed."""
    names = sorted(name for name in recorded(before) | recorded(after) if re.search(only, name))
    problems, counts = 0, dict.fromkeys(("equal", "different", "missing", "error"), 0)
    for name in names:
        absent = [side for side, folder in (("before", before), ("after", after)) if not (folder / f"{name}.json").exists()]
        if absent:
            state, details, kind = f"missing {absent[0]}", [], "missing"
        else:
            state, details = compare_item(rename_fields(read(before / name), renames), read(after / name))
            kind = "equal" if state == "equal" else "error" if "error" in state.lower() else "different"
        counts[kind] += 1
        problems += kind != "equal"
        print(f"{name:44} {state}")
        for line in sorted(details)[:most]:
            print(f"    {line[:400]}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return problems


def load_saved(before: Path, only: str) -> int:
    """Load models that an earlier recording saved and compare their predictions; return how many differ or fail."""
    problems = 0
    root = before / "saved_models"
    for path in sorted(root.rglob("model.json")):
        name = str(path.parent.relative_to(root))
        if not re.search(only, name):
            continue
        data = name.rsplit("/", 1)[1]
        try:
            with warnings.catch_warnings(), tempfile.TemporaryDirectory() as scratch:
                warnings.simplefilter("ignore")
                save({"loaded": prediction_values(eb.load_model(path.parent).predict(split(load(data))[1]))}, Path(scratch) / "item")
                after = read(Path(scratch) / "item")
            expected = {key: value for key, value in read(before / name).items() if key.startswith("loaded|")}
            state, details = compare_item(expected, after)
        except Exception as problem:
            state, details = "ERROR", [f"{type(problem).__name__}: {problem}"]
        problems += state != "equal"
        print(f"{name:44} {state}")
        for line in details[:5]:
            print(f"    {line[:400]}")
    return problems


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.equality", description="Record what a refactoring must not change; compare.")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="record into a folder")
    recording.add_argument("folder", type=Path)
    comparing = commands.add_parser("compare", help="compare two recordings; exit with 1 if anything differs")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--rename", action="append", default=[], metavar="OLD=NEW", help="a JSON field that was renamed on purpose")
    comparing.add_argument("--most", type=int, default=5, help="fields shown per item")
    loading = commands.add_parser("load", help="load models that an earlier recording saved, and compare their predictions")
    loading.add_argument("before", type=Path)
    listing = commands.add_parser("list", help="print the names of all items")
    for command in (recording, comparing, loading, listing):
        command.add_argument("--only", default="", metavar="PATTERN", help="regular expression that item names must match")
    options = parser.parse_args()
    if options.command == "list":
        print("\n".join(name for name in items() if re.search(options.only, name)))
    elif options.command == "compare":
        renames = dict(pair.split("=", 1) for pair in options.rename)
        sys.exit(bool(compare(options.before, options.after, renames, options.only, options.most)))
    else:
        with tempfile.TemporaryDirectory() as cache_folder:  # nothing that other code has cached
            os.environ["ETHOBENCH_CACHE"] = cache_folder
            start = time.monotonic()
            if options.command == "load":
                sys.exit(bool(load_saved(options.before, options.only)))
            record(options.folder.resolve(), options.only)
            print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
