"""Batch prediction with real processes: every recording is predicted once, and no file of the user is replaced."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import ethobench
from tests.runs.test_engine_faults import done_in_logs
from tests.runs.test_executors import lease_holders

import ethobench as eb
from ethobench.core import Poses, Recording
from ethobench.core.errors import EthobenchError, FormatError, PathExistsError
from ethobench.models.audit import LOG, read_log
from ethobench.runs.batch_prediction import BatchPrediction, PredictionEvent
from ethobench.runs.executors import START_METHOD, ClusterNodes, cluster_pool, this_process
from ethobench.runs.prediction_store import PredictionOptions

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

RATE = 25.0


def write_signals(recording: Recording, path: Path, start: int = 0) -> None:
    """Write signals as a table with a column of times."""
    table = np.column_stack([np.arange(recording.n_frames - start) / RATE, recording.signals.values[start:]])
    np.savetxt(path, table, delimiter=",", header=",".join(["time", *recording.signals.channels]), comments="", fmt="%.6f")


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Path:
    """A model of two tags, and twelve recordings of others."""
    root = tmp_path_factory.mktemp("lab")
    *training, unseen = eb.load_dataset("synthetic/tag", individuals=3, seconds=40)
    data = eb.load_dataset("synthetic/tag", individuals=3, seconds=40).select(recordings=[r.id for r in training])
    eb.create_model("dt").fit(data).save(root / "model")
    (root / "new").mkdir()
    for k in range(12):
        write_signals(unseen, root / "new" / f"m{k:02d}.csv", start=20 * k)
    return root


@pytest.fixture(scope="module")
def undisturbed(lab) -> dict[str, bytes]:
    summary = eb.predict_files(lab / "model", lab / "new", lab / "undisturbed")
    assert (len(summary.predicted), summary.reused, summary.failures) == (12, [], [])
    return contents(lab / "undisturbed")


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, without the hidden ones."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def command(lab: Path, out: Path, *more: object) -> list[str]:
    return [sys.executable, "-m", "ethobench", "predict", *map(str, (lab / "model", lab / "new", "--out", out, *more))]


def test_a_batch_predicts_what_the_model_predicts(lab, undisturbed):
    model = eb.load_model(lab / "model")
    for name in undisturbed:
        (recording,) = eb.read_recordings(lab / "new" / name)
        assert eb.read_annotation(lab / "undisturbed" / name).with_ethogram(model.ethogram) == model.predict(recording).annotation
    entries = {entry.file: entry for entry in read_log(lab / "undisturbed")}
    assert {*entries} == {*undisturbed}
    assert entries["m03.csv"].bouts == len(eb.read_annotation(lab / "undisturbed" / "m03.csv"))
    assert entries["m03.csv"].seconds == pytest.approx(40 - 60 / RATE)


def test_processes_give_the_same_files_as_this_process(lab, undisturbed, tmp_path):
    events: list[PredictionEvent] = []
    summary = eb.predict_files(lab / "model", lab / "new", tmp_path / "p", workers=2, report=events.append)
    assert len(summary.predicted) == 12
    assert contents(tmp_path / "p") == undisturbed
    assert [event.ended for event in events] == list(range(1, 13))
    assert {event.total for event in events} == {12}
    assert not list((tmp_path / "p" / LOG / "tmp").iterdir())
    assert not list((tmp_path / "p" / LOG / "leases").iterdir())


def test_the_same_call_continues_where_it_stopped(lab, undisturbed, tmp_path):
    out = tmp_path / "p"
    eb.predict_files(lab / "model", sorted((lab / "new").iterdir())[:5], out)
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.csv")}
    summary = eb.predict_files(lab / "model", lab / "new", out)
    assert (len(summary.predicted), len(summary.reused)) == (7, 5)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert contents(out) == undisturbed
    assert len(eb.predict_files(lab / "model", lab / "new", out).reused) == 12


def test_inputs_that_were_moved_or_touched_are_the_same_and_changed_ones_are_not(lab, tmp_path):
    (tmp_path / "a").mkdir()
    shutil.copy(lab / "new" / "m00.csv", tmp_path / "a")
    eb.predict_files(lab / "model", tmp_path / "a", tmp_path / "p")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "b" / "m00.csv").touch()
    assert len(eb.predict_files(lab / "model", tmp_path / "b", tmp_path / "p").reused) == 1
    shutil.copy(lab / "new" / "m07.csv", tmp_path / "b" / "m00.csv")
    with pytest.raises(PathExistsError, match=r"1 of 1 files already exist in .*: m00\.csv \(use overwrite=True"):
        eb.predict_files(lab / "model", tmp_path / "b", tmp_path / "p")
    assert len(eb.predict_files(lab / "model", tmp_path / "b", tmp_path / "p", overwrite=True).predicted) == 1


def test_files_of_other_programs_are_never_replaced(lab, undisturbed, tmp_path):
    out = tmp_path / "p"
    out.mkdir()
    (out / "m05.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(PathExistsError, match=r"1 of 12 files already exist"):
        eb.predict_files(lab / "model", lab / "new", out)
    assert contents(out) == {"m05.csv": b"mine"}  # nothing was predicted
    assert len(eb.predict_files(lab / "model", lab / "new", out, overwrite=True).predicted) == 12
    assert contents(out) == undisturbed
    (out / "m05.csv").write_text("corrected by hand", encoding="utf-8")
    with pytest.raises(PathExistsError):
        eb.predict_files(lab / "model", lab / "new", out)
    with pytest.raises(PathExistsError, match="12 of 12"):  # other settings
        eb.predict_files(lab / "model", lab / "new", out, in_sample=True)


def test_a_file_that_appears_during_the_run_is_not_replaced(lab, tmp_path):
    batch = BatchPrediction(lab / "model", [lab / "new"], tmp_path / "p")

    def create(event: PredictionEvent) -> None:
        if event.ended == 1:
            (tmp_path / "p" / "m11.csv").write_text("mine", encoding="utf-8")

    summary = batch.run(report=create)
    assert len(summary.predicted) == 11
    ((failure,),) = [summary.failures]
    assert failure.input == "m11.csv"
    assert "already exists" in failure.error
    assert (tmp_path / "p" / "m11.csv").read_text(encoding="utf-8") == "mine"
    assert "m11.csv" not in {entry.file for entry in read_log(tmp_path / "p")}


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_files_do_not_stop_the_others(lab, tmp_path, workers):
    folder = tmp_path / "new"
    shutil.copytree(lab / "new", folder)
    rows = (folder / "m03.csv").read_text(encoding="utf-8").splitlines()
    rows[400] = rows[400].replace(",", ",x", 1)
    (folder / "m03.csv").write_text("\n".join(rows), encoding="utf-8")
    (folder / "m04.csv").write_bytes(b"")
    (folder / "m05.csv").write_text("time,height\n" + "\n".join(f"{k / RATE},{k / 3:.3f}" for k in range(100)), encoding="utf-8")
    summary = eb.predict_files(lab / "model", folder, tmp_path / "p", workers=workers)
    assert len(summary.predicted) == 9
    reasons = {failure.input: failure.error for failure in summary.failures}
    assert {*reasons} == {"m03.csv", "m04.csv", "m05.csv"}
    assert "row 401" in reasons["m03.csv"]
    assert "empty" in reasons["m04.csv"]
    assert "lacks" in reasons["m05.csv"]
    shutil.copy(lab / "new" / "m04.csv", folder / "m04.csv")
    again = eb.predict_files(lab / "model", folder, tmp_path / "p", workers=workers)
    assert ([entry.file for entry in again.predicted], len(again.reused), len(again.failures)) == (["m04.csv"], 9, 2)


def test_long_recordings_are_predicted_first(lab, tmp_path):
    eb.predict_files(lab / "model", lab / "new", tmp_path / "p", pool=this_process())
    written = sorted((tmp_path / "p").glob("*.csv"), key=lambda path: path.stat().st_mtime_ns)
    sizes = [(lab / "new" / path.name).stat().st_size for path in written]
    assert sizes == sorted(sizes, reverse=True)
    assert len({*sizes}) > 1


def test_keywords_are_options_or_external_settings(lab, tmp_path):
    options = PredictionOptions.from_keywords(rate=25.0, overwrite=True, url="http://127.0.0.1", external={"key": "k"})
    assert options == PredictionOptions(rate=25.0, overwrite=True, external={"url": "http://127.0.0.1", "key": "k"})
    with pytest.raises(EthobenchError, match="min_confidense"):
        eb.predict_files(lab / "model", lab / "new", tmp_path / "p", min_confidense=0.5)


def test_recordings_with_the_same_name_are_named_after_their_folders(lab, tmp_path):
    for k, name in enumerate(("cage A", "cage B")):
        (tmp_path / name).mkdir()
        shutil.copy(lab / "new" / f"m0{k}.csv", tmp_path / name / "poses.csv")
    inputs = [tmp_path / "cage A", tmp_path / "cage B", tmp_path / "cage A" / "poses.csv"]
    summary = eb.predict_files(lab / "model", inputs, tmp_path / "p")
    assert [entry.file for entry in summary.annotations] == ["cage_A_poses.csv", "cage_B_poses.csv"]


def test_annotations_in_the_input_folder_are_not_inputs(lab, tmp_path):
    shutil.copytree(lab / "new", tmp_path / "new")
    for _ in range(2):
        summary = eb.predict_files(lab / "model", tmp_path / "new", tmp_path / "new" / "annotations", to="nwb")
        assert (len(summary.annotations), summary.failures) == (12, [])


def test_mistakes_are_reported_before_anything_is_written(lab, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "labels").mkdir()
    eb.write_annotation(eb.Annotation.from_frames([0, 1], ["a", "b"], RATE), tmp_path / "labels" / "x.csv")
    for model, inputs, options, error, message in (
        ("nowhere", lab / "new", {}, FormatError, "not a saved model"),
        ("model", tmp_path / "labels", {}, EthobenchError, "has no signals or poses"),
        ("model", tmp_path / "nowhere.csv", {}, EthobenchError, "nowhere"),
        ("model", lab / "new", {"to": "deeplabcut"}, EthobenchError, "annotations cannot be written as"),
        ("model", lab / "new", {"min_confidence": 0.5}, EthobenchError, "does not abstain"),
        ("model", lab / "new", {"style": "anna"}, EthobenchError, "no styles"),
    ):
        with pytest.raises(error, match=message):
            eb.predict_files(lab / model, inputs, tmp_path / "p", **options)
        assert not (tmp_path / "p").exists()
    with pytest.raises(EthobenchError, match=r"file: annotations cannot be written to this folder \(.+\)"):
        eb.predict_files(lab / "model", lab / "new", tmp_path / "file")


@pytest.mark.skipif(not hasattr(os, "geteuid") or shutil.which("setpriv") is None, reason="needs setpriv")
def test_a_read_only_folder(lab, tmp_path):
    (tmp_path / "p").mkdir(mode=0o555)
    for folder in (*tmp_path.parents, *lab.parents, lab, tmp_path):
        if folder.name.startswith(("pytest-", "popen-", "lab", tmp_path.name)):
            folder.chmod(0o755)
    for path in (lab / "model").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    settings = {**os.environ, "HOME": "/nonexistent", "ETHOBENCH_CACHE": "/nonexistent"}
    done = subprocess.run([*nobody, *command(lab, tmp_path / "p")], capture_output=True, text=True, env=settings, check=False)
    assert done.returncode == 1
    assert "annotations cannot be written to this folder (" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_stops_the_run_and_leaves_complete_files(lab, undisturbed, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(disk)], capture_output=True, check=False).returncode:
        pytest.skip("a small disk can only be mounted by root")
    try:
        with pytest.raises(EthobenchError, match="No space left on device"):
            eb.predict_files(lab / "model", lab / "new", disk / "p")
        finished = contents(disk / "p")
        assert 0 < len(finished) < 12
        assert all(undisturbed[name] == content for name, content in finished.items())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# ---------------------------------------------------------------------------------------------------------------- interruptions and kills


@pytest.fixture(scope="module")
def many(lab) -> Path:
    """Sixty recordings, so that a batch takes a while."""
    folder = lab / "many"
    shutil.copytree(lab / "new", folder)
    for k in range(12, 60):
        shutil.copy(lab / "new" / f"m{k % 12:02d}.csv", folder / f"m{k:02d}.csv")
    return folder


def expected(undisturbed: dict[str, bytes], out: Path) -> dict[str, bytes]:
    """Return what a batch of sixty recordings writes, except for the names of the recordings in the files."""
    return {f"m{k:02d}.csv": undisturbed[f"m{k % 12:02d}.csv"].replace(f"m{k % 12:02d}".encode(), f"m{k:02d}".encode()) for k in range(60)}


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_command_is_resumed(lab, many, undisturbed, tmp_path, stop):
    out = tmp_path / "p"
    restore_handler = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # ignored by processes in the background
    arguments = ["predict", str(lab / "model"), str(many), "--out", str(out), "--workers", "2"]
    call = [sys.executable, "-c", f"{restore_handler}; from ethobench.cli import main; main()", *arguments]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("7 of 60: "):
                process.send_signal(stop)
                break
        process.stdout.read()  # ends when no process of the command is left that could write to it
        errors = process.stderr.read()
    if stop == signal.SIGINT:
        assert process.returncode == 130, errors
        assert "of 60 recordings are predicted; run the same command again to continue" in errors
        assert "Traceback" not in errors
    time.sleep(0.5)
    finished = contents(out)
    assert 7 <= len(finished) < 60
    assert finished.items() <= expected(undisturbed, out).items()
    done = ethobench(*arguments)
    assert done.returncode == 0, done.stderr
    assert f"{60 - len(finished)} recordings predicted, {len(finished)} finished before, 0 failed" in done.stdout
    assert contents(out) == expected(undisturbed, out)
    assert set(done_in_logs(out / LOG).values()) == {1}
    assert len(read_log(out)) == 60
    assert not list((out / LOG / "tmp").iterdir())


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


def kill_one(out: Path, killed: list[int], *, parent: bool = False) -> threading.Thread:
    """Start a thread that kills one process that is predicting, or its parent process, once some recordings are finished."""

    def watch() -> None:
        for _ in range(20_000):
            holders = lease_holders(out / LOG) - {os.getpid()}
            if holders and len(list(out.glob("*.csv"))) >= 5:
                killed.append(parent_of(holders.pop()) if parent else holders.pop())
                assert killed[0] != os.getpid()
                os.kill(killed[0], signal.SIGKILL)
                return
            time.sleep(0.005)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("which", ["worker", "server of the workers", "dask worker"])
def test_a_killed_worker_loses_nothing(lab, many, undisturbed, tmp_path, which):
    if which == "server of the workers" and START_METHOD != "forkserver":
        pytest.skip("workers have no server on this system")
    out, killed = tmp_path / "p", []
    thread = kill_one(out, killed, parent=which == "server of the workers")
    pool = cluster_pool("local", ClusterNodes(2, 1)) if which == "dask worker" else None
    summary = eb.predict_files(lab / "model", many, out, workers=2, pool=pool)
    thread.join()
    assert killed
    assert (len(summary.predicted), summary.failures) == (60, [])
    assert len({entry.file for entry in summary.predicted}) == 60
    assert contents(out) == expected(undisturbed, out)
    assert set(done_in_logs(out / LOG).values()) == {1}


def test_two_commands_share_a_folder(lab, many, undisturbed, tmp_path):
    call = [sys.executable, "-m", "ethobench", "predict", str(lab / "model"), str(many), "--out", str(tmp_path / "p"), "--workers", "1"]
    processes = [subprocess.Popen([*call, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert all(json.loads(stdout)["failures"] == [] for stdout, _ in outputs)
    assert contents(tmp_path / "p") == expected(undisturbed, tmp_path / "p")


# ------------------------------------------------------------------------------------------------------------- clocks, swaps, start times


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> Path:
    """A model of two mice, and a DeepLabCut file, which states no frame rate, in which the mice are swapped once."""
    root = tmp_path_factory.mktemp("pairs")
    data = eb.load_dataset("synthetic/pose", individuals=2, seconds=30)
    eb.create_model("dt").fit(data).save(root / "model")
    new = eb.load_dataset("synthetic/pose", individuals=3, seconds=30).recordings[2]
    poses = new.signals
    positions, centers = poses.positions.copy(), np.nanmean(poses.positions, axis=2)
    swap = int(np.nanargmax(np.linalg.norm(centers[:, 0] - centers[:, 1], axis=1)[1:])) + 1
    positions[swap:] = positions[swap:, ::-1]
    swapped = Poses(positions, poses.confidence, poses.individuals, poses.keypoints, poses.rate)
    eb.write_recordings([new.copy(signals=swapped, annotations={})], root / "m.csv", "deeplabcut")
    return root


def test_notes_do_not_depend_on_whether_the_rate_was_stated(pairs, tmp_path):
    rate = eb.load_model(pairs / "model").rate
    codes, files = [], []
    for options in ({}, {"rate": rate}):
        out = tmp_path / f"p{len(codes)}"
        (entry,) = eb.predict_files(pairs / "model", pairs / "m.csv", out, **options).predicted
        codes.append([note for note in entry.notes if note.code != "assumed-rate"])
        assert [note.code for note in entry.notes].count("assumed-rate") == (not options)
        files.append((out / "m.csv").read_bytes())
    assert codes[0] == codes[1]
    assert any("swap" in note.message for note in codes[0])
    assert files[0] == files[1]


@pytest.mark.parametrize("to", ["tidy", "tidy_parquet", "nwb"])
def test_annotations_keep_the_start_time(lab, tmp_path, to):
    start = datetime(2024, 5, 1, 6, 30, 15, 250_000, tzinfo=UTC)
    (recording,) = eb.read_recordings(lab / "new" / "m00.csv")
    annotation = eb.load_model(lab / "model").predict(recording).annotation
    eb.write_recordings([recording.copy(start_time=start, annotations={"dt": annotation}, signals=None)], tmp_path / "x", to)
    (back,) = eb.read_recordings(tmp_path / "x")
    assert back.start_time == start
