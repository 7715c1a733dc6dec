"""A row that is missing in the middle of a file never shifts the rows after it to other frames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ethobench import Annotation, Poses, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import FormatError
from ethobench.formats import formats, read_recordings, write_recordings

from .test_deeplabcut import LABELS, put_fixed
from .test_every_format import example
from .test_nwb import Session

N, DROPPED = 60, 30
POSES_HEADER = "scorer,{0},{0},{0}\nbodyparts,nose,nose,nose\ncoords,x,y,likelihood\n"


def rows(line: Callable[[int], str]) -> str:
    return "".join(line(i) + "\n" for i in range(N))


def labels_of(i: int) -> str:
    return "rest" if i < 20 or 35 <= i < 50 else "walk"


def one_hot_of(i: int) -> str:
    return f"{int(labels_of(i) == 'rest')},{int(labels_of(i) == 'walk')}"


# One row per frame, and a column that numbers the frames or gives their times: format, name and text of the file.
PER_FRAME: dict[str, tuple[str, str]] = {
    "simba": ("simba", ",nose_x,nose_y,nose_p,speed,rest,walk\n" + rows(lambda i: f"{i},{i}.5,2,0.9,{i},{one_hot_of(i)}")),
    "simba, poses only": ("simba", ",nose_x,nose_y,nose_p\n" + rows(lambda i: f"{i},{i}.5,2,0.9")),
    "simba, frames from 1": ("simba", "frame,nose_x,nose_y,nose_p,rest,walk\n" + rows(lambda i: f"{i + 1},{i}.5,2,0.9,{one_hot_of(i)}")),
    "deeplabcut": ("deeplabcut", POSES_HEADER.format("DLC_net") + rows(lambda i: f"{i},{i}.5,2,0.9")),
    "lightning_pose": ("lightning_pose", POSES_HEADER.format("heatmap_tracker") + rows(lambda i: f"{i},{i}.5,2,0.9")),
    "anipose": ("anipose", "nose_x,nose_y,nose_z,nose_score,nose_ncams,fnum\n" + rows(lambda i: f"{i}.5,2,3,0.9,2,{i}")),
    "sleap": ("sleap", "track,frame_idx,instance.score,nose.x,nose.y,nose.score\n" + rows(lambda i: f"a,{i},1,{i}.5,2,0.9")),
    "onehot, frames": ("onehot", "frame,rest,walk\n" + rows(lambda i: f"{i},{one_hot_of(i)}")),
    "onehot, unnamed index": ("onehot", ",rest,walk\n" + rows(lambda i: f"{i},{one_hot_of(i)}")),
    "onehot, times": ("onehot", "time,rest,walk\n" + rows(lambda i: f"{i / 25:.2f},{one_hot_of(i)}")),
    "labels, frames": ("labels", "frame,label\n" + rows(lambda i: f"{i},{labels_of(i)}")),
    "labels, times": ("labels", "label,time\n" + rows(lambda i: f"{labels_of(i)},{i / 30:.3f}")),
    "deepethogram": ("deepethogram", ",background,walk\n" + rows(lambda i: f"{i},{one_hot_of(i)}")),
    "solomon": ("solomon", "Time,Category\n" + rows(lambda i: f"{i / 25:.2f},{labels_of(i)}")),
    "signals_csv, times": ("signals_csv", "time,AccX\n" + rows(lambda i: f"{i / 25:.4f},{i}.5")),
    "signals_csv, dates": ("signals_csv", "datetime,AccX\n" + rows(lambda i: f"2024-05-01T12:00:{i:02d},{i}.5")),
    "signals_csv, coarse times": ("signals_csv", "time,AccX\n" + rows(lambda i: f"{i / 100:.2f},{i}.5")),
    "labeled_signals, times": ("labeled_signals", "time,AccX,label\n" + rows(lambda i: f"{i / 25:.4f},{i}.5,{labels_of(i)}")),
    "labeled_signals, dates": (
        "labeled_signals",
        "timestamp,AccX,rest,walk\n" + rows(lambda i: f"2024-05-01T12:00:{i:02d},{i}.5,{one_hot_of(i)}"),
    ),
    "signals_csv, whole seconds": ("signals_csv", "time,AccX\n" + rows(lambda i: f"{i},{i}.5")),
    **{
        f"signals_csv, {name or 'unnamed'}": ("signals_csv", f"{name},AccX\n" + rows(lambda i: f"{i},{i}.5"))
        for name in ("frame", "index", "sample", "")
    },
}
# One row or line per bout, with its frames or times: dropping a row does not change the others.
PER_BOUT = ("bento", "boris_aggregated", "caltech", "intervals", "mabe2025", "segments", "tidy")
PER_EVENT = ("boris", "boris_tabular", "observer")  # start and stop in rows of their own: the bout that lost one changes, the others do not
BINARY = ("nwb", "sleap_events", "tidy_parquet")
NO_FRAME_COLUMN = ("bebe", "bebe_predictions", "calms21", "jabs", "labels_npy", "matlab")  # rows are frames, and nothing numbers them


def test_every_format_is_enrolled() -> None:
    per_frame = {format for format, _ in PER_FRAME.values()}
    assert per_frame | {*PER_BOUT} | {*PER_EVENT} | {*BINARY} | {*NO_FRAME_COLUMN} == {*formats.names()}


def frames_of(recording: Recording) -> dict[str, np.ndarray]:
    """Return everything that a recording holds for each frame, by what it is."""
    result: dict[str, np.ndarray] = {}
    for signals in (recording.signals, recording.features):
        if isinstance(signals, Poses):
            result["positions"] = signals.positions
        elif signals is not None:
            result[", ".join(signals.channels)] = signals.values
    for annotation in recording.annotations.values():
        result |= {name: annotation.to_frames()[:, code] for code, name in enumerate(annotation.ethogram.names)}
    return result


def expect_same_frames(complete: Recording, cut: Recording) -> None:
    """Compare a recording with the same one after frame `DROPPED` lost its row."""
    assert (cut.rate, cut.n_frames) == (complete.rate, complete.n_frames)
    if cut.metadata.get("source_software") != "SLEAP":  # which leaves out frames without an animal
        assert any("1 of 60 frames" in str(note) or "1 frames" in str(note) or "1 rows" in str(note) for note in cut.notes)
    others = np.arange(N) != DROPPED
    before, after = frames_of(complete), frames_of(cut)
    assert before.keys() == after.keys()
    for name, values in before.items():
        assert len(values) == N
        assert np.array_equal(values[others], after[name][others]), name
        assert values.dtype == bool or np.isnan(after[name][DROPPED]).all()
    for annotation in cut.annotations.values():
        observed = iv.to_mask(annotation.observed.of(annotation.ethogram.names[0]), N)
        assert np.flatnonzero(~observed).tolist() == [DROPPED]


def read(path: Path, format: str, rate: float | None) -> Recording:
    (recording,) = read_recordings(path, format, **({} if rate is None else {"rate": rate}), warn=False)
    return recording


@pytest.mark.parametrize("case", PER_FRAME)
def test_rows_after_a_gap_keep_their_frames(case: str, tmp_path: Path) -> None:
    format, text = PER_FRAME[case]
    path = tmp_path / "mouse.csv"
    path.write_text(text, encoding="utf-8", newline="")
    needs_rate = format == "signals_csv" and not case.endswith(("times", "dates", "seconds"))
    complete = read(path, format, 25.0 if needs_rate else None)
    lines = text.splitlines(keepends=True)
    del lines[len(lines) - N + DROPPED]
    path = tmp_path / "cut.csv"
    path.write_text("".join(lines), encoding="utf-8", newline="")
    try:
        cut = read(path, format, 25.0 if needs_rate else None)
    except FormatError as error:
        assert case.startswith("signals_csv, "), error
        assert "irregular times" in str(error)  # the rate is told, and asked for
        cut = read(path, format, complete.rate)
    expect_same_frames(complete, cut)


@pytest.mark.parametrize("case", PER_FRAME)
def test_a_duplicate_row_is_refused_or_noted(case: str, tmp_path: Path) -> None:
    format, text = PER_FRAME[case]
    lines = text.splitlines(keepends=True)
    lines.insert(len(lines) - N + DROPPED, lines[len(lines) - N + DROPPED])
    path = tmp_path / "mouse.csv"
    path.write_text("".join(lines), encoding="utf-8", newline="")
    rate = 25.0 if format == "signals_csv" else None
    try:
        recording = read(path, format, rate)
    except FormatError as error:
        assert str(error).startswith(f"{path}, row {len(lines) - N + DROPPED + 1}: ")
    else:
        assert case == "signals_csv, sample"  # numbers of samples may begin anew with each burst
        assert "does not increase" in str(recording.notes)


def bouts(annotation: Annotation) -> list[tuple[float, float, str]]:
    names = [annotation.ethogram.names[code] for code in annotation.behavior]
    return [*zip((annotation.start / annotation.rate).tolist(), (annotation.stop / annotation.rate).tolist(), names, strict=True)]


@pytest.mark.parametrize("format", [*PER_BOUT, *PER_EVENT[1:]])
def test_bouts_after_a_lost_row_keep_their_times(format: str, tmp_path: Path) -> None:
    suffix = next(s for s in formats[format].suffixes if s not in (".xlsx", ".parquet"))
    path = tmp_path / f"mouse{suffix}"
    write_recordings([example()], path, format)
    before = bouts(read_recordings(path, format, warn=False)[0].annotation())
    text = path.read_bytes().decode()
    marks = {"segments": "},", "bento": "\n", "caltech": "\n"}
    pieces = text.split(marks.get(format, "\n"))
    middle = next(i for i in range(len(pieces) * 3 // 4, len(pieces)) if any(c.isdigit() for c in pieces[i]))
    path.write_bytes(marks.get(format, "\n").join(pieces[:middle] + pieces[middle + 1 :]).encode())
    try:
        after = bouts(read_recordings(path, format, warn=False)[0].annotation())
    except FormatError as error:
        assert format in PER_EVENT, error
        return
    changed = [*{*after} - {*before}]
    assert len(after) < len(before)
    assert len(changed) <= (1 if format in PER_EVENT else 0), changed


def test_lost_rows_of_a_parquet_table_do_not_shift_the_others(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "mouse.parquet"
    write_recordings([example()], path, "tidy_parquet")
    before = bouts(read_recordings(path, warn=False)[0].annotation())
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table[:4], table[5:]]), path)
    assert {*bouts(read_recordings(path, warn=False)[0].annotation())} < {*before}


def test_lost_rows_of_signals_in_parquet_are_missing(tmp_path: Path) -> None:
    table = pd.DataFrame({"AccX": np.arange(N) + 0.5})
    table.to_parquet(tmp_path / "whole.parquet")
    table.drop(index=DROPPED).to_parquet(tmp_path / "cut.parquet")  # pandas keeps the index
    expect_same_frames(*(read(tmp_path / f"{name}.parquet", "signals_csv", 25.0) for name in ("whole", "cut")))


def test_lost_rows_of_a_deeplabcut_h5_file_do_not_shift_the_others(tmp_path: Path) -> None:
    values = np.arange(N * 6, dtype=float).reshape(N, 6) + 1
    values[:, 2::3] = 0.9
    kept = np.arange(N) != DROPPED
    complete = read(put_fixed(tmp_path / "whole.h5", LABELS, values, index=np.arange(N)), "deeplabcut", None)
    cut = read(put_fixed(tmp_path / "cut.h5", LABELS, values[kept], index=np.flatnonzero(kept)), "deeplabcut", None)
    expect_same_frames(complete, cut)


@pytest.mark.parametrize("dropped", [DROPPED, 7])
@pytest.mark.parametrize("rate", [30.0, 29.97])
def test_lost_samples_of_an_nwb_file_do_not_shift_the_others(rate: float, dropped: int, tmp_path: Path) -> None:
    kept = np.arange(N) != dropped
    data, times = np.column_stack((np.arange(N) + 1.0, np.ones(N))), np.arange(N) / rate
    name = "processing/behavior/PoseEstimation/nose"
    session = Session(tmp_path / "cut.nwb")
    session.group("processing/behavior/PoseEstimation", "PoseEstimation")
    session.points(name, data[kept], times[kept], np.full(N - 1, 0.9))
    poses = read(session.path, "nwb", None).signals
    assert isinstance(poses, Poses)
    assert poses.rate == pytest.approx(rate)
    assert np.array_equal(np.flatnonzero(~np.isnan(poses.positions[:, 0, 0, 0])), np.flatnonzero(kept))
