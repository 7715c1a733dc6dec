"""Corrections that the viewer saved reach any dataset."""

from __future__ import annotations

import pytest

from ethobench import Annotation, load_dataset
from ethobench.app.corrections import Corrections
from ethobench.core.errors import FormatError, ReadWarning

OPTIONS = {"individuals": 2, "seconds": 20.0}


@pytest.fixture
def folder(tmp_path):
    data = load_dataset("synthetic/tag", **OPTIONS)
    first = data.recordings[0]
    truth = first.annotation()
    mine = Annotation.from_frames([0] * truth.n_frames, truth.ethogram, truth.rate)
    Corrections(tmp_path / "corrections").save(first, "carla", mine)
    return tmp_path / "corrections"


def test_a_named_dataset_gets_one_more_annotator(folder):
    plain, data = load_dataset("synthetic/tag", **OPTIONS), load_dataset("synthetic/tag", corrections=folder, **OPTIONS)
    assert [list(r.annotations) for r in data] == [["truth", "carla"], ["truth"]]
    assert data.recordings[0].annotation("carla").behavior.tolist() == [0]
    assert data.recordings[1].annotation("carla,truth") == plain.recordings[1].annotation()
    assert data.version != plain.version


def test_corrections_of_another_dataset_are_refused(folder, tmp_path):
    with pytest.raises(FormatError, match=r"no recordings\.csv"):
        load_dataset("synthetic/tag", corrections=tmp_path, **OPTIONS)
    with pytest.raises(FormatError, match="no annotation of 'animal01' by 'carla' to add"):
        load_dataset("synthetic/tag", corrections=_renamed(folder), **OPTIONS)
    manifest = folder / "recordings.csv"
    text = manifest.read_text(encoding="utf-8").splitlines()
    name = next(p.name for p in folder.iterdir() if p != manifest)
    manifest.write_text("\n".join([text[0], text[1].replace(name, "../outside.csv")]), encoding="utf-8")
    (tmp_path / "outside.csv").write_text("", encoding="utf-8")
    with pytest.raises(FormatError, match="is not a file in"):
        load_dataset("synthetic/tag", corrections=folder, **OPTIONS)


def test_an_unreadable_correction_is_skipped(folder):
    data = load_dataset("synthetic/tag", **OPTIONS)
    Corrections(folder).save(data.recordings[1], "dora", data.recordings[1].annotation())
    next(folder.glob("*.carla.csv")).write_bytes(b"\xff\0")
    with pytest.warns(ReadWarning, match="a correction is skipped: .*carla"):
        data = load_dataset("synthetic/tag", corrections=folder, **OPTIONS)
    assert [list(r.annotations) for r in data] == [["truth"], ["truth", "dora"]]


def _renamed(folder):
    """Change the annotator in the file."""
    other = folder.with_name("other")
    other.mkdir()
    for path in folder.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    file = next(p for p in other.iterdir() if p.name != "recordings.csv")
    file.write_text(file.read_text(encoding="utf-8").replace("carla", "dora"), encoding="utf-8")
    return other
