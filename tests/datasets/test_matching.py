"""Files of two people under names with random affixes: matched with the right recording, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from tests.datasets.test_collate import write
from tests.datasets.test_name_core import IDS, names_with_affixes
from tests.hypothesis_limits import at_most

from ethobench.datasets.collate import collate_files

pytestmark = pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")


@pytest.mark.slow
@at_most(40)
@given(names_with_affixes(), names_with_affixes())
def test_files_are_matched_right_or_not_at_all(tmp_path_factory, first, second):
    folder = tmp_path_factory.mktemp("affixes")
    ids: dict[Path, str] = {}
    for who, files in (("one", first), ("two", second)):
        for recording, name in files:
            path = folder / who / f"{name}.csv"
            write(path, seed=IDS.index(recording) + 50 * (who == "two"), n=100)
            ids[path] = recording
    collation = collate_files([folder / "one", folder / "two"], same_recording=True if len(first) + len(second) > 2 else None)
    by_recording: dict[str, set[str]] = {}
    for match in collation.matches:
        if match.matched_by != "only recording":
            by_recording.setdefault(match.recording, set()).add(ids[match.path])
    reported = {note.location for note in collation.notes}
    for recording, true_ids in by_recording.items():
        assert len({_undated(name) for name in true_ids}) == 1, (recording, true_ids, first, second)
    joined = {match.recording for match in collation.matches if match.matched_by in ("affix", "common core")}
    assert joined <= reported | {""}


def _undated(name: str) -> str:
    """Return an id without its date, since a date that only one side has may be an affix."""
    return name.split("_", 1)[1] if name.startswith("2023") else name
