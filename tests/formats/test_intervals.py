"""Generic interval tables: any delimiter, any usual column names, several raters."""

from __future__ import annotations

import zipfile
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from ethobench.core import Annotation, Ethogram, Recording, Track
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, FormatError, ReadWarning
from ethobench.formats import detect, formats, read_annotation, read_recordings, write_annotation, write_recordings
from ethobench.formats.tables import write_sheet
from ethobench.formats.text import Head

TABLE = "video,rater,start,stop,behavior\nv1,Ann,0.5,2,rear\nv1,Ann,3,4.25,groom\nv1,Bob,0.6,2.1,rear\nv2,Ann,1,2,groom\n"


def put(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def pairs(a: iv.Intervals) -> list[tuple[int, int]]:
    return list(zip(a.start.tolist(), a.stop.tolist(), strict=True))


def notes_of(path: Path, **options: object) -> str:
    return "; ".join(str(n) for r in read_recordings(path, "intervals", **options, warn=False) for n in r.notes)


def test_raters_and_recordings(tmp_path: Path) -> None:
    path = put(tmp_path, TABLE)
    assert detect(path).name == "intervals"
    first, second = read_recordings(path)
    assert (first.id, second.id) == ("v1", "v2")
    assert list(first.annotations) == ["Ann", "Bob"]
    ann, bob = first.annotation("Ann"), first.annotation("Bob")
    assert ann.ethogram == bob.ethogram == Ethogram(["rear", "groom"])
    assert (ann.rate, ann.n_frames, bob.n_frames) == (1000, 4250, 4250)
    assert (ann.start.tolist(), ann.stop.tolist()) == ([500, 3000], [2000, 4250])
    assert formats["intervals"].entries(path) == ["v1", "v2"]
    assert read_annotation(path, entry="v2").stop.tolist() == [2000]


@pytest.mark.parametrize(
    "text",
    [
        TABLE.replace("\n", "\r\n"),
        "\ufeff" + TABLE,
        TABLE.replace(",", "\t"),
        TABLE.replace(",", ";").replace(".", ","),
        TABLE.encode("utf-16"),
        TABLE.replace("video,rater,start,stop,behavior", "ID,Experimenter,from,to,type"),
        TABLE.replace("video,rater,start,stop,behavior", "Recording ID,Observer,Onset (s),Offset (s),Event"),
        TABLE.replace("video,rater,start,stop,behavior", "file,coder,t_start,t_end,Label"),
        TABLE.replace("video,rater,start,stop,behavior", "session,annotator,begin_time,end_time,behaviour"),
        "video,rater,start,duration,behavior\nv1,Ann,0.5,1.5,rear\nv1,Ann,3,1.25,groom\nv1,Bob,0.6,1.5,rear\nv2,Ann,1,1,groom\n",
        "video,rater,start_ms,end_ms,behavior\nv1,Ann,500,2000,rear\nv1,Ann,3000,4250,groom\nv1,Bob,600,2100,rear\nv2,Ann,1000,2000,groom\n",
        "video,rater,start,stop,behavior\nv1,Ann,0:00.5,0:02,rear\nv1,Ann,0:03,00:00:04.25,groom\nv1,Bob,0:00.6,0:02.1,rear\nv2,Ann,0:01,0:02,groom\n",
    ],
)
def test_dialects_read_alike(tmp_path: Path, text: str | bytes) -> None:
    path = put(tmp_path, text)
    assert detect(path).name == "intervals"
    plain = read_recordings(put(tmp_path, TABLE, "plain.csv"))
    for got, expected in zip(read_recordings(path, warn=False), plain, strict=True):
        assert got.id == expected.id
        assert got.annotations == expected.annotations


def test_sheet(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    write_sheet(path, [["start", "stop", "behavior", "subject"], [0.5, 2, "rear", "m1"], [3, 4, "groom", "m2"]])
    assert detect(path).name == "intervals"
    a = read_annotation(path)
    assert (a.stop.tolist(), a.subjects) == ([2000, 4000], ("m1", "m2"))


def test_all_details(tmp_path: Path) -> None:
    text = "start,end,action,agent,target,modifier,comment,confidence\n0,1,bite,m1,m2,hard,look,0.5\n2,3,bite,m2,,,,\n"
    a = read_annotation(put(tmp_path, text))
    assert a.names(a.subject) == ["m1", "m2"]
    assert a.names(a.target) == ["m2", None]
    assert a.modifiers is not None
    assert a.comment is not None
    assert a.confidence is not None
    assert (a.modifiers[0], a.comment[0], a.confidence[0]) == ("hard", "look", 0.5)


def test_frames(tmp_path: Path) -> None:
    path = put(tmp_path, "start_frame,stop_frame,label\n0,10,a\n10,12,b\n")
    with pytest.warns(ReadWarning) as warned:
        a = read_annotation(path)
    assert "no frame rate" in str(warned[0].message)
    assert "use inclusive=True" in str(warned[1].message)
    assert a.stop.tolist() == [10, 12]
    assert read_annotation(path, rate=25, inclusive=True).stop.tolist() == [11, 13]
    assert read_annotation(path, rate=25, inclusive=False).stop.tolist() == [10, 12]
    last = put(tmp_path, "first_frame,last_frame,label\n0,9,a\n", "last.csv")
    assert read_annotation(last, rate=25).stop.tolist() == [10]


def test_columns_can_be_specified(tmp_path: Path) -> None:
    path = put(tmp_path, "A,B,C,D\n1,2,x,0.5\n")
    with pytest.raises(
        FormatError,
        match=r"no column for start, stop, behavior; specify with columns=\{'start': '...', .*'behavior': '...'\} \(columns: A, B",
    ):
        read_recordings(path, "intervals", warn=False)
    with pytest.warns(ReadWarning, match="ignored unknown columns: D"):
        a = read_annotation(path, "intervals", columns={"start": "A", "stop": "B", "behavior": "C"})
    assert (a.start.tolist(), a.ethogram.names) == ([1000], ("x",))
    with pytest.raises(FormatError, match="no column 'Z'"):
        read_recordings(path, "intervals", columns={"start": "Z"}, warn=False)
    with pytest.raises(EthobenchError, match="unknown role in `columns`: begin; roles: start, stop"):
        read_recordings(path, "intervals", columns={"begin": "A"}, warn=False)


def test_row_numbers_are_not_recordings(tmp_path: Path) -> None:
    path = put(tmp_path, "id,start,stop,behavior\n1,0,1,a\n2,1,2,b\n")
    with pytest.warns(ReadWarning, match="ignored unknown columns: id"):
        (recording,) = read_recordings(path)
    assert recording.id == "t"
    assert len(recording.annotation()) == 2


def test_unlabeled_rows_are_unobserved(tmp_path: Path) -> None:
    path = put(tmp_path, "start,stop,type\n0,1,a\n2,3,\n4,5,_DEFAULT\n6,7,NaN\n8,10,a\n9,,\n")
    a = read_recordings(path, warn=False)[0].annotation()
    assert a.ethogram.names == ("a",)
    assert pairs(a.observed.frames) == [(0, 2000), (3000, 4000), (5000, 6000), (7000, 10_000)]
    notes = notes_of(path)
    assert "row 3: '' is not a behavior; its frames are read as unobserved (3 such rows)" in notes
    assert "row 7: no behavior and no valid start and stop; dropped" in notes


def test_marks_delimit_what_was_observed(tmp_path: Path) -> None:
    path = put(tmp_path, "who,start,stop,type\nA,2,3,Start/End\nA,5,6,a\nA,9,10,start_end\nB,1,2,StartEnd\nB,5,6,a\n")
    options = {"columns": {"rater": "who"}}
    (recording,) = read_recordings(path, **options, warn=False)
    assert pairs(recording.annotation("A").observed.frames) == [(2000, 10_000)]
    assert pairs(recording.annotation("B").observed.frames) == [(0, 10_000)]
    assert recording.annotation("A").ethogram.names == ("a",)
    notes = notes_of(path, **options)
    assert "A, row 2: 2 rows 'Start/End' mark the observed period: frames 2000 to 10000" in notes
    assert "B, row 5: only one row 'StartEnd'" in notes
    (full,) = read_recordings(path, markers=[], **options, warn=False)
    assert full.annotation("A").ethogram.names == ("Start/End", "a", "start_end", "StartEnd")


def test_drop(tmp_path: Path) -> None:
    path = put(tmp_path, "start,stop,type\n0,1,a\n2,3,junk\n")
    with pytest.warns(ReadWarning, match=r"dropped \(see drop=\): 'junk' \(1 rows\)"):
        a = read_annotation(path, drop=["junk"])
    assert a.ethogram.names == ("a",)
    assert a.observed.is_complete(a.n_frames)


def test_missing_ends(tmp_path: Path) -> None:
    path = put(tmp_path, "start,stop,type,subject\n0,1,a,m\n4,,a,m\n,3,b,m\n5,9,b,m\n,,b,m\n")
    a = read_recordings(path, warn=False)[0].annotation()
    assert len(a) == 2
    assert pairs(a.observed.of("a", "m")) == [(0, 4000)]
    assert pairs(a.observed.of("b", "m")) == [(3000, 9000)]
    assert {*a.observed.tracks} == {Track("a", "m"), Track("b", "m")}
    notes = notes_of(path)
    for words in (
        "row 3: 'a' has no stop; read as unobserved from its start on",
        "row 4: 'b' has no start",
        "row 6: 'b' has no start and no stop; dropped",
    ):
        assert words in notes


def test_points(tmp_path: Path) -> None:
    path = put(tmp_path, "start,stop,type\n0,1,a\n4,4,bite\n5,5,bite\n6,,peck\n")
    a = read_recordings(path, points="peck", warn=False)[0].annotation()
    assert [b.name for b in a.ethogram if b.point] == ["bite", "peck"]
    assert a.stop.tolist() == [1000, 4000, 5000, 6000]
    assert not read_recordings(path, warn=False)[0].annotation().ethogram["peck"].point


def test_repairs_are_reported(tmp_path: Path) -> None:
    path = put(tmp_path, "start,stop,type\n5,4,a\n6,7,a\n")
    assert "row 2: 'a' stops at 4, before its start at 5" in notes_of(path)
    assert "fall between frames at 30 Hz" in notes_of(put(tmp_path, "start,stop,type\n0,0.51,a\n", "o.csv"), rate=30)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("start,stop,type\n0,1,a,b\n", "row 2: 4 cells, but the header has 3"),
        ("start,stop,type\n0,x,a\n", "row 2: 'x' in column 'stop' is not a number"),
        ("start,stop,type\n0:00,0:99,a\n", "row 2: '0:99' in column 'stop' is not a time"),
        ("start,stop,type\n-1,1,a\n", "row 2: 'a' starts at -1"),
        ("start stop type\n0 1 a\n", "no column for start"),
        ("video,start,stop,type\nv,0,1,a\n,0,1,a\n", "row 3: column 'video' is blank"),
        (b"\x00\x01\x02", "binary"),
    ],
)
def test_bad_files(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message) as error:
        read_recordings(put(tmp_path, text), "intervals", warn=False)
    assert "\n" not in str(error.value)


def test_zip_bomb_is_refused(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 50_000_000)
    with pytest.raises(FormatError, match=r"unknown format; .* refused: its"):
        detect(path)
    with pytest.raises(FormatError, match=r"refused: its .* bytes would decompress to 50,000,000"):
        read_recordings(path, "intervals", warn=False)


@pytest.mark.parametrize("text", ["a,b\n0,1\n", "from,to,type\nRome,Paris,train\n", "start,stop\n0,1\n", "start,stop,type\n", "text"])
def test_does_not_detect_other_files(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, text)
    assert formats["intervals"].sniff(path, Head(path)) == 0


def test_everything_it_keeps_survives(tmp_path: Path) -> None:
    a = Annotation.from_bouts(
        [5, 0, 3, 9],
        [9, 4, 8, 9],
        ["x", "y, z", "x", "bite"],
        read_recordings(put(tmp_path, 'start,stop,type\n0,1,x\n0,1,"y, z"\n2,2,bite\n'), warn=False)[0].annotation().ethogram,
        25,
        9,
        subject=["m1", "m2", "m1", None],
        target=["m2", None, None, "m1"],
        modifiers=["a|b", "", "", ""],
        comment=["ö\n2", "", "", ""],
        confidence=[0.5, np.nan, 1, 0],
    )
    result = [Recording("r1", annotations={"Ann": a, "Bob": a.take([3])}), Recording("r2", annotations={"Ann": a})]
    assert write_recordings(result, tmp_path / "out.tsv", "intervals") == []
    assert (tmp_path / "out.tsv").read_text().startswith("recording\trater\tstart\tstop\tbehavior\t")
    back = read_recordings(tmp_path / "out.tsv", rate=25)
    assert [r.id for r in back] == ["r1", "r2"]
    got, order = back[1].annotation("Ann"), ["x", "y, z", "bite"]
    assert got.order.tolist() == a.order.tolist()
    for column in ("start", "stop", "modifiers", "comment", "subject", "target"):
        assert getattr(got, column).tolist() == getattr(a, column).tolist(), column
    assert np.array_equal(got.confidence, a.confidence, equal_nan=True)  # type: ignore[arg-type]
    assert [b.point for b in got.ethogram.restrict(order)] == [False, False, True]


def test_losses_are_reported(tmp_path: Path) -> None:
    a = Annotation.from_bouts([0], [3], ["x"], ["x", "y"], 25, 9, observed=np.arange(9) < 4)
    notes = str(write_annotation(a, tmp_path / "out.csv", "intervals"))
    for words in ("which frames are unobserved", "length of the recording", "lost: y"):
        assert words in notes


@pytest.mark.slow
@pytest.mark.data
def test_open_field_raters_agree_as_published(data: Path) -> None:
    from sklearn.metrics import cohen_kappa_score

    path = data / "multirater_oft/labels.csv"
    assert detect(path).name == "intervals"
    recordings = read_recordings(path, rate=25, warn=False)
    assert len(recordings) == 20
    assert all({*r.annotations} == {"Jin", "Oliver", "Furkan"} for r in recordings)
    assert recordings[0].annotation("Jin").ethogram.names == ("Supported", "Unsupported", "Grooming", "Jumping")
    for behavior, low, high in (("Supported", 0.85, 0.89), ("Unsupported", 0.66, 0.73), ("Grooming", 0.66, 0.70)):
        for one, other in combinations(("Jin", "Oliver", "Furkan"), 2):
            kappas = []
            for recording in recordings:
                a, b = recording.annotation(one), recording.annotation(other)
                observed_frames = iv.to_mask(iv.intersection(a.observed.of(behavior), b.observed.of(behavior)), a.n_frames)
                code = a.ethogram.code(behavior)
                kappas.append(cohen_kappa_score(a.to_frames()[observed_frames, code], b.to_frames()[observed_frames, code]))
            assert low - 0.005 <= np.mean(kappas) <= high + 0.005, (behavior, one, other)


@pytest.mark.data
def test_open_field_rows_are_accounted_for(data: Path) -> None:
    recordings = read_recordings(data / "multirater_oft/labels.csv", warn=False)
    bouts = sum(len(a) for r in recordings for a in r.annotations.values())
    assert bouts == 5518 - 121 - 12 - 1
    notes = [str(n) for r in recordings for n in r.notes]
    assert sum("mark the observed period" in n for n in notes) == 58
    assert sum("only one row" in n for n in notes) == 2
    assert [n for n in notes if "no behavior and no valid" in n] == ["Oliver, row 5032: no behavior and no valid start and stop; dropped"]
    assert sum("its frames are read as unobserved" in n for n in notes) == 12


def test_other_sheets_and_sizes_that_are_out_of_date(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in (["start", "stop", "behavior"], *([k, k + 1, "rear"] for k in range(0, 20, 2))):
        book.active.append(row)
    book.create_sheet("video 2").append(["start", "stop", "behavior"])
    book.save(tmp_path / "plain.xlsx")
    with zipfile.ZipFile(tmp_path / "plain.xlsx") as old, zipfile.ZipFile(tmp_path / "t.xlsx", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'<dimension ref="A1:C11"', b'<dimension ref="A1:C3"'))
    (recording,) = read_recordings(tmp_path / "t.xlsx", "intervals", warn=False)
    assert len(recording.annotation()) == 10
    assert any("other sheets: video 2" in str(note) for note in recording.notes)


def test_large_integers_without_a_unit_are_noted(tmp_path: Path) -> None:
    messages = [
        any("if they are frames" in str(note) for note in read_recordings(put(tmp_path, text), "intervals", warn=False)[0].notes)
        for text in (
            "start,stop,behavior\n1200,1500,attack\n",
            "start,stop,behavior\n12,15,attack\n",
            "start,stop,behavior\n1200.0,1500.5,attack\n",
            "start_s,stop_s,behavior\n1200,1500,attack\n",
        )
    ]
    assert messages == [True, False, False, False]


def test_first_and_last_frames(tmp_path: Path) -> None:
    """Tables such as HiDRA's bouts.csv state the last frame of a bout."""
    header = "video_id,agent_id,target_id,action,start_frame,end_frame,probability"
    table = f"{header}\nv1,mouse1,mouse2,sniff,3,3,0.5\nv1,mouse2,self,rear,5,9,0.75\n"
    (recording,) = read_recordings(put(tmp_path, table, "bouts.csv"), "intervals", inclusive=True, rate=30, warn=False)
    annotation = recording.annotation()
    assert pairs(annotation.spans("sniff", "mouse1", "mouse2")) == [(3, 4)]
    assert pairs(annotation.spans("rear", "mouse2", "")) == [(5, 10)]
    assert annotation.confidence.tolist() == [0.5, 0.75]
    path = tmp_path / "again.csv"
    notes = write_recordings([recording], path, "intervals", inclusive=True)
    assert [note.code for note in notes] == ["lost-rate"]
    assert path.read_text().splitlines()[:2] == [
        "recording,first_frame,last_frame,behavior,subject,target,confidence",
        "v1,3,3,sniff,mouse1,mouse2,0.5",
    ]
    (again,) = read_recordings(path, rate=30, warn=False)
    assert again.annotation() == annotation


def test_first_and_last_frames_have_no_point_events(tmp_path: Path) -> None:
    annotation = Annotation.from_bouts([1, 3], [1, 5], ["a", "b"], ["a", "b"], 30, 5)
    notes = write_annotation(annotation, tmp_path / "t.csv", "intervals", inclusive=True)
    assert {"lost-points", "lost-rate"} <= {note.code for note in notes}
    assert len(read_annotation(tmp_path / "t.csv", "intervals", rate=30)) == 1
