"""Names and comments with any characters come back equal from every format, or are refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ethobench import Annotation, Poses, Recording
from ethobench.core.errors import EthobenchError
from ethobench.formats import formats, read_recordings, write_recordings
from ethobench.formats.base import DETAILS

from .test_every_format import FRAMES_ONLY, WRITABLE

PIECES = [*",;\t|\n\r\0\x1b\x0b\x0c\x1c\x85\u2028\ufeff\ud800\udfff#='\"\\/:_-. []{}()<>&%$@~^*?!0a\u00e9\u65e5\U0001f42d"]
WORDS = [
    "NA",
    "nan",
    "none",
    "other",
    "start",
    "STATE",
    "1.5",
    "-1",
    "true",
    "S1:",
    "-----",
    "=1+1",
    "# x",
    "No focal subject",
    "\r\n",
    "null",
]
HOSTILE = st.lists(st.sampled_from([*PIECES, *WORDS]), min_size=1, max_size=4).map("".join)
KEEPS_ID = ("boris", "boris_aggregated", "boris_tabular", "intervals", "observer", "tidy", "tidy_parquet")
KEYPOINTS = ("nose", "neck")


def recording_with(name: str, subject: str, comment: str, modifier: str, annotator: str, id: str, details: tuple[str, ...]) -> Recording:
    annotation = Annotation.from_bouts(
        [0, 10, 20],
        [10, 20, 30],
        [name, "walk", "rest"],
        dict.fromkeys([name, "walk", "rest"]),
        30.0,
        30,
        subject=[subject, "b", subject] if "subjects" in details else None,
        comment=[comment, "", "c"] if "comments" in details else None,
        modifiers=[modifier, "", ""] if "modifiers" in details else None,
    )
    poses = Poses(np.ones((30, 1, 2, 2)), np.ones((30, 1, 2)), ("mouse",), KEYPOINTS, 30.0)
    return Recording(id, annotations={annotator: annotation}, signals=poses)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*WRITABLE} - FRAMES_ONLY - {"deeplabcut"}))
@settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(field=st.sampled_from(["name", "subject", "comment", "modifier", "annotator", "id"]), text=HOSTILE)
def test_what_is_written_is_read_or_refused(name: str, field: str, text: str, tmp_path: Path) -> None:
    texts = {"name": "rear", "subject": "a", "comment": "c", "modifier": "m", "annotator": "annotator", "id": "mouse", field: text}
    assume(not (name == "mabe2025" and field == "subject" and text.isdigit()))  # mouse 1 is called mouse1
    format = formats[name]
    path = tmp_path / f"file{format.suffixes[0]}"
    path.unlink(missing_ok=True)
    try:
        recording = recording_with(**texts, details=format.keeps)
        notes = write_recordings([recording], path, name)
    except EthobenchError as error:
        assert not list(tmp_path.iterdir())
        str(error).encode()
        return
    (read,) = read_recordings(path, name, **({"rate": 30.0} if name != "nwb" else {}), warn=False)
    annotation, original = next(iter(read.annotations.values())), recording.annotation()
    assert bouts(annotation, format.keeps) == bouts(original, format.keeps), notes
    if format.multiple_annotators:
        assert list(read.annotations) == [texts["annotator"]]
    if name in KEEPS_ID:
        assert read.id == texts["id"]


@pytest.mark.parametrize("name", WRITABLE)
def test_control_characters_and_surrogates_are_never_written(name: str, tmp_path: Path) -> None:
    typical = {"name": "rear", "subject": "a", "comment": "c", "modifier": "m", "annotator": "annotator", "id": "mouse"}
    for field in typical:
        for text in ("a\rb", "a\0b", "a\ud800", "a\x1b[31m"):
            recording = recording_with(**{**typical, field: text}, details=DETAILS)
            with pytest.raises(EthobenchError, match="which files cannot store"):
                write_recordings([recording], tmp_path / f"file{formats[name].suffixes[0]}", name)
    assert not list(tmp_path.iterdir())


def test_a_reader_repairs_what_files_cannot_store(tmp_path: Path) -> None:
    path = tmp_path / "project.boris"
    write_recordings([recording_with("rear", "a", "seen twice", "m", "annotator", "mouse", DETAILS)], path, "boris")
    path.write_text(path.read_text(encoding="utf-8").replace("seen twice", "seen\\r\\ntwice\\u0000"), encoding="utf-8")
    (recording,) = read_recordings(path, warn=False)
    assert recording.annotation().comment is not None
    assert recording.annotation().comment[0] == "seen\ntwice\ufffd"
    assert any("files cannot store all of its characters" in str(note) for note in recording.notes)
    write_recordings([recording], tmp_path / "bouts.csv", "tidy")
    (again,) = read_recordings(tmp_path / "bouts.csv", warn=False)
    assert bouts(again.annotation(), DETAILS) == bouts(recording.annotation(), DETAILS)


def bouts(a: Annotation, details: tuple[str, ...]) -> list[tuple[object, ...]]:
    subject = a.names(a.subject) if "subjects" in details else [None] * len(a)
    comment = [""] * len(a) if a.comment is None or "comments" not in details else [text.strip() for text in a.comment]
    modifiers = [""] * len(a) if a.modifiers is None or "modifiers" not in details else [text.strip() for text in a.modifiers]
    names = [a.ethogram[int(code)].name for code in a.behavior]
    return sorted(zip(a.start.tolist(), a.stop.tolist(), names, [s or "" for s in subject], comment, modifiers, strict=True))
