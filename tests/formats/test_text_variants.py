"""The same table in another text variant (quoting, blank lines, line ends, column order, ...) reads the same or is refused."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethobench import Poses, Recording
from ethobench.core.errors import FormatError
from ethobench.formats import formats, read_recordings, write_recordings

from .test_anipose import TEXT as ANIPOSE
from .test_deeplabcut_lightning_pose import TEXT as LIGHTNING_POSE
from .test_every_format import WRITABLE, example
from .test_sleap import CSV as SLEAP

pytestmark = pytest.mark.slow

SIGNALS = "time,AccX,AccY\n" + "".join(f"{i / 25:.4f},{i * 0.5},{-i}\n" for i in range(50))
LABELED = "timestamp,animal,AccX,AccY,label\n" + "".join(
    f"2024-05-01T12:00:{i % 50:02d},{'a' if i < 50 else 'b'},{i * 0.5},{-i},{'rest' if i % 9 else ''}\n" for i in range(100)
)
HAND_MADE = {
    "anipose": ANIPOSE,
    "labeled_signals": LABELED,
    "lightning_pose": LIGHTNING_POSE,
    "signals_csv": SIGNALS,
    "sleap": SLEAP,
}
DELIMITED = ("bebe_predictions", "boris_aggregated", "boris_tabular", "deepethogram", "deeplabcut", "intervals", "labels", "mabe2025")
DELIMITED += ("observer", "onehot", "simba", "solomon", "tidy", *HAND_MADE)
OTHER_TEXT = ("bento", "boris", "calms21", "caltech", "segments")
NOT_TEXT = {"jabs", "labels_npy", "matlab", "nwb", "sleap_events", "tidy_parquet"}
FOLDERS = {"bebe"}
NAMED_COLUMNS = {*DELIMITED} - {"bebe_predictions", "deeplabcut", "lightning_pose"}
REFUSED = {  # where the order of columns has a meaning, or a blank line might be a frame
    *(("deepethogram", "reversed columns"), ("simba", "reversed columns"), ("onehot", "blank line between")),
    ("calms21", "UTF-16"),
}
DESCRIBED_ABOVE = ("boris/test_export_events_tabular.csv", "boris/test-simultaneous-events.csv")  # in rows "name, value"
SAMPLES = (
    *DESCRIBED_ABOVE,
    "boris/test_export_aggregated_events_test_full_1.tsv",
    *(
        "deepethogram/Together_1.csv",
        "dlc/testDLC_csv_table_madlc.csv",
        "dlc/openfield_dlc_inference_example.csv",
        "solomon/Together_1.csv",
    ),
    *("simba/targets_inserted_Together_1.csv", "bento/bento_example.annot"),
)


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text), delimiter="\t" if "\t" in text.split("\n", 1)[0] else ","))


def delimited(rows: list[list[str]], **options: Any) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n", **options).writerows(rows)
    return file.getvalue()


def quoted(text: str) -> str:
    return delimited(rows_of(text), quoting=csv.QUOTE_ALL)


def quoted_text(text: str) -> str:
    """As R's write.csv does: text is quoted, numbers are not; the lines above the table stay as they are."""
    rows = rows_of(text)
    return "".join(
        ",".join(cell if cell.replace(".", "", 1).isdigit() else '"' + cell.replace('"', '""') + '"' for cell in row) + "\n"
        if not row[0].startswith("#")
        else line + "\n"
        for row, line in zip(rows, text.split("\n"), strict=False)
    )


def spaced_cells(text: str) -> str:
    return delimited([[cell + "  " for cell in row] for row in rows_of(text)])


def padded(text: str) -> str:
    """As spreadsheets do: every line gets as many cells as the widest one."""
    rows = rows_of(text)
    width = max(map(len, rows)) + 1
    return delimited([row + [""] * (width - len(row)) for row in rows])


def semicolons(text: str) -> str:
    return delimited(rows_of(text), delimiter=";")


def tabs(text: str) -> str:
    return delimited(rows_of(text), delimiter="\t")


def reversed_columns(text: str) -> str:
    lines = text.split("\n")
    above = [line for line in lines if line.startswith("#")]
    rows = rows_of("\n".join(line for line in lines if not line.startswith("#")))
    return "".join(line + "\n" for line in above) + delimited([row[::-1] for row in rows])


def blank_between(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    return "\n".join([*lines[:-2], "", *lines[-2:]]) + "\n"


TEXT_VARIANTS: dict[str, Callable[[str], str | bytes]] = {
    "blank line first": lambda text: "\n" + text,
    "blanks and a line first": lambda text: "   \n\n" + text,
    "blank lines last": lambda text: text.rstrip("\n") + "\n\n  \n\n",
    "no line end at the end": lambda text: text.rstrip("\n"),
    "trailing spaces": lambda text: "".join(f"{line}   \n" for line in text.rstrip("\n").split("\n")),
    "byte order mark": lambda text: codecs.BOM_UTF8 + text.encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "CR": lambda text: text.replace("\n", "\r").encode(),
    "mark, blank line, CRLF": lambda text: codecs.BOM_UTF8 + ("\n" + text).replace("\n", "\r\n").encode(),
}
TABLE_VARIANTS: dict[str, Callable[[str], str | bytes]] = {
    "all cells quoted": quoted,
    "text quoted": quoted_text,
    "quoted, blank line first, CRLF": lambda text: codecs.BOM_UTF8 + ("\n" + quoted(text)).replace("\n", "\r\n").encode(),
    "cells with trailing spaces": spaced_cells,
    "quoted with trailing spaces": lambda text: quoted(spaced_cells(text)),
    "quoted, then trailing spaces": lambda text: quoted(text).replace("\n", "  \n"),
    "padded with empty cells": padded,
    "semicolons": semicolons,
    "quoted semicolons": lambda text: delimited(rows_of(text), delimiter=";", quoting=csv.QUOTE_ALL),
    "tabs": tabs,
    "blank line between": blank_between,
    "reversed columns": reversed_columns,
}


def test_every_format_is_enrolled() -> None:
    assert {*DELIMITED, *OTHER_TEXT} | NOT_TEXT | FOLDERS == {*formats.names()}


def content(recordings: list[Recording]) -> list[Any]:
    """Return everything that the recordings hold except notes, in an order that does not depend on the order of columns."""
    return sorted((_content(recording) for recording in recordings), key=repr)


def _content(r: Recording) -> list[Any]:
    about = [r.id, r.individual, r.rate, r.n_frames, r.clock_origin.value, sorted(r.subjects), r.start_time]
    return [about, *((name, _bouts(a)) for name, a in sorted(r.annotations.items())), *_arrays(r.signals), *_arrays(r.features)]


def _bouts(a: Any) -> list[Any]:
    subject, target = a.names(a.subject), a.names(a.target)
    texts = [[""] * len(a) if column is None else list(column) for column in (a.modifiers, a.comment)]
    confidence = [None] * len(a) if a.confidence is None else [None if np.isnan(c) else round(float(c), 9) for c in a.confidence]
    names = [a.ethogram[int(code)].name for code in a.behavior]
    who = ([name or "" for name in column] for column in (subject, target))
    bouts = list(zip(a.start.tolist(), a.stop.tolist(), names, *who, *texts, confidence, strict=True))
    tracks = {str(track): (where.start.tolist(), where.stop.tolist()) for track, where in a.observed.tracks.items()}
    observed = (a.observed.frames.start.tolist(), a.observed.frames.stop.tolist())
    behaviors = sorted((b.name, b.definition, b.point, b.key) for b in a.ethogram)
    return [a.rate, a.n_frames, behaviors, a.ethogram.background_name, observed, sorted(tracks.items()), sorted(bouts, key=repr)]


def _arrays(data: Any) -> list[Any]:
    if data is None:
        return []
    if isinstance(data, Poses):
        names = sorted(data.keypoints)
        order = [data.keypoints.index(name) for name in names]
        who = sorted(data.individuals)
        locations = [data.individuals.index(name) for name in who]
        cells = np.concatenate([data.positions, data.confidence[..., None]], axis=-1)[:, locations][:, :, order]
        return [data.rate, who, names, np.round(cells, 9).tobytes()]
    names = sorted(data.channels)
    return [data.rate, names, np.round(data.values[:, [data.channels.index(name) for name in names]], 9).tobytes()]


def refusals(path: Path, text: str, variants: Mapping[str, Callable[[str], str | bytes]]) -> set[str]:
    """Check that a file in other variants reads the same or is refused; return the names of the variants that are refused."""
    path.write_text(text, encoding="utf-8", newline="")
    expected = content(read_recordings(path, warn=False))
    refused = set()
    for name, variant in variants.items():
        rewritten = variant(text)
        path.write_bytes(rewritten if isinstance(rewritten, bytes) else rewritten.encode())
        try:
            assert content(read_recordings(path, warn=False)) == expected, name
        except FormatError:
            refused.add(name)
    return refused


def sample(name: str, folder: Path) -> tuple[Path, str]:
    """Return the path and the text of a small file of a format."""
    suffix = next(s for s in formats[name].suffixes if s not in (".xlsx", ".h5", ".slp", ".parquet"))
    path = folder / f"mouse001{suffix}"
    if name in HAND_MADE:
        return path, HAND_MADE[name]
    assert name in WRITABLE
    write_recordings([example(200)], path, name)
    text = path.read_bytes().decode().replace("\r\n", "\n")
    path.unlink()
    return path, text


@pytest.mark.parametrize("name", [*DELIMITED, *OTHER_TEXT])
def test_files_read_the_same_in_another_text_variant(name: str, tmp_path: Path) -> None:
    path, text = sample(name, tmp_path)
    variants = {**TEXT_VARIANTS, **(TABLE_VARIANTS if name in DELIMITED else {})}
    if name not in NAMED_COLUMNS:
        variants.pop("reversed columns", None)
    assert refusals(path, text, variants) == {variant for refused, variant in REFUSED if refused == name}


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("file", SAMPLES)
def test_real_files_read_the_same_in_another_text_variant(file: str, data: Path, tmp_path: Path) -> None:
    source = data / "formats" / file
    lines = source.read_bytes().decode().replace("\r\n", "\n").split("\n")
    text = "\n".join(lines[:400]).rstrip("\n") + "\n"
    variants = TEXT_VARIANTS if source.suffix == ".annot" else {**TEXT_VARIANTS, **TABLE_VARIANTS}
    if file in DESCRIBED_ABOVE:
        variants.pop("reversed columns")
    refused = refusals(tmp_path / source.name, text, variants)
    assert refused <= {"reversed columns", "blank line between", "semicolons", "tabs", "quoted semicolons"}


def test_a_reformatted_clip_of_a_bebe_folder_reads_the_same(tmp_path: Path) -> None:
    (tmp_path / "clip_data").mkdir()
    (tmp_path / "dataset_metadata.yaml").write_text(
        "clip_column_names: [AccX, AccY, individual_id, label]\nclip_ids: [c]\nclip_id_to_individual_id: {c: 1}\n"
        "label_names: [unknown, rest, walk]\nsr: 10\n",
        encoding="utf-8",
    )
    path = tmp_path / "clip_data" / "c.csv"
    text = "".join(f"{i * 0.5},{-i},1,{1 + i // 10 % 2}\n" for i in range(40))
    assert not refusals(path, text, TEXT_VARIANTS) - {"UTF-16", "trailing spaces", "blanks and a line first"}
    refusals(path, text, {name: variant for name, variant in TABLE_VARIANTS.items() if name != "reversed columns"})


def test_a_quoted_tidy_table_keeps_its_frames_and_its_clock(tmp_path: Path) -> None:
    path = tmp_path / "mouse.csv"
    text = (
        "# ethobench bouts 1\n# unit: frames\n# rate: 25.0\n"
        '# recording: {"id": "mouse", "annotator": "me", "n_frames": 460}\n# behavior: {"name": "rear"}\n'
        "recording,behavior,start,stop,subject,target,annotator\nmouse,rear,20,440,,,me\n"
    )
    for rewritten in (text, quoted(text), "\n" + text, text.replace("\n", "   \n"), quoted(text).replace("\n", " \r\n")):
        path.write_text(rewritten, encoding="utf-8", newline="")
        (recording,) = read_recordings(path, warn=False)
        annotation = recording.annotations["me"]
        assert (annotation.rate, annotation.n_frames, annotation.start.tolist(), annotation.stop.tolist()) == (25, 460, [20], [440])
