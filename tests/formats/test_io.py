from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ethobench import Annotation, Poses, Recording
from ethobench.core.errors import EthobenchError, Note
from ethobench.formats import Format, formats, io, write_recordings


def recording() -> Recording:
    overlapping = Annotation.from_bouts([0, 5], [10, 15], ["a", "b"], ["a", "b"], 30, 20, subject=["x", "y"])
    poses = Poses(np.ones((20, 1, 1, 2)), np.ones((20, 1, 1)), ("individual",), ("nose",))
    return Recording("r", annotations={"me": overlapping}, signals=poses)


class Written(Format):
    title = "written"

    def __init__(self, name: str, contents: tuple[str, ...], suffixes: tuple[str, ...]) -> None:
        self.name, self.contents, self.suffixes = name, contents, suffixes  # type: ignore[misc]

    def write(self, recordings: Sequence[Recording], path: Path) -> list[Note]:  # type: ignore[override]
        return []


def test_a_suffix_selects_a_format_that_holds_annotations_if_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    among = [
        Written("poses", ("poses",), (".csv", ".h5", ".long.csv")),
        Written("both", ("poses", "annotations"), (".txt", ".csv")),
        Written("special", ("annotations",), (".x.csv",)),
        Format(),
    ]
    monkeypatch.setattr(io, "formats", among)
    chosen = {name: io.format_for(Path(name)).name for name in ("a.csv", "A.LONG.CSV", "a.h5", "a.x.csv", "a.txt")}
    assert chosen == {"a.csv": "both", "A.LONG.CSV": "both", "a.h5": "poses", "a.x.csv": "special", "a.txt": "both"}
    with pytest.raises(EthobenchError, match=r"'a\.md'; specify one: poses, both, special"):
        io.format_for(Path("a.md"))


def test_a_format_without_annotations_reports_no_loss_of_their_details(tmp_path: Path) -> None:
    assert formats["deeplabcut"].keeps == ()
    notes = write_recordings([recording()], tmp_path / "r.csv", "deeplabcut")
    assert [str(note) for note in notes] == ["DeepLabCut files do not store annotations; they are lost"]


def test_an_unexpected_failure_of_a_writer_becomes_one_line_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Format, recordings: Sequence[Recording], path: Path) -> list[Note]:
        path.write_text("half", encoding="utf-8")
        raise ValueError("first\n  second")

    monkeypatch.setattr(type(formats["tidy"]), "write", broken)
    with pytest.raises(EthobenchError, match=r"r\.csv: could not be written as .* \(first second\); please report this$") as caught:
        write_recordings([recording()], tmp_path / "r.csv", "tidy")
    assert isinstance(caught.value.__cause__, ValueError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [PermissionError("no"), MemoryError(), EthobenchError("told")])
def test_expected_errors_are_not_wrapped(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Format, recordings: Sequence[Recording], path: Path) -> list[Note]:
        raise error

    monkeypatch.setattr(type(formats["tidy"]), "write", failing)
    with pytest.raises(type(error)) as caught:
        write_recordings([recording()], tmp_path / "r.csv", "tidy")
    assert caught.value is error
