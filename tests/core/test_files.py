"""Files appear whole or not at all, nothing is overwritten unless asked, and what kills leave behind is cleaned up."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time

import pytest

from ethobench.core import files
from ethobench.core.errors import EthobenchError
from ethobench.core.files import atomic_path, write_text


def test_a_failure_changes_nothing(tmp_path):
    path = tmp_path / "a.csv"
    write_text(path, "old")

    def fail_halfway():
        with atomic_path(path, overwrite=True) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        fail_halfway()
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_overwrites_only_when_asked_also_what_appears_meanwhile(tmp_path):
    path = tmp_path / "a.csv"

    def write_while_somebody_else_does():
        with atomic_path(path) as temporary:
            temporary.write_text("mine", encoding="utf-8")
            path.write_text("theirs", encoding="utf-8")

    with pytest.raises(EthobenchError, match=r"a\.csv already exists"):
        write_while_somebody_else_does()
    assert path.read_text(encoding="utf-8") == "theirs"
    with pytest.raises(FileExistsError):
        write_text(path, "mine")
    write_text(path, "mine", overwrite=True)
    assert path.read_text(encoding="utf-8") == "mine"


def test_the_temporary_file_exists_all_the_time_and_may_not_be_replaced(tmp_path):
    path = tmp_path / "a.csv"

    def swap():
        with atomic_path(path) as temporary:
            assert temporary.is_file()  # its name is never free for somebody else to take
            assert temporary.suffix == ".csv"
            temporary.unlink()
            temporary.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(EthobenchError, match="was replaced"):
        swap()
    assert not path.exists()


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_the_mode_is_that_of_any_new_file(tmp_path):
    write_text(tmp_path / "a", "x")
    (tmp_path / "b").write_text("x", encoding="utf-8")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_file_and_folder_are_flushed_before_and_after_the_rename(tmp_path, monkeypatch):
    path, flushed = tmp_path / "a.csv", []
    original = os.fsync

    def fsync(handle):
        flushed.append(("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file", path.exists()))
        original(handle)

    monkeypatch.setattr(files.os, "fsync", fsync)
    write_text(path, "x")
    assert [row for row in flushed if row[0] == "file"] == [("file", False)]
    assert flushed[-1][1]


def test_what_a_killed_process_left_is_removed_once_it_is_old(tmp_path, monkeypatch):
    script = (
        "import os, sys; from pathlib import Path; from ethobench.core.files import atomic_path\n"
        f"with atomic_path(Path({str(tmp_path)!r}) / 'a.csv') as temporary:\n"
        "    temporary.write_text('half'); os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    (left,) = tmp_path.iterdir()
    mine = tmp_path / ".notes.csv"
    mine.write_text("a user's file", encoding="utf-8")
    monkeypatch.setattr(files, "_cleaned_folders", set())
    write_text(tmp_path / "b.csv", "x")
    assert left.exists()  # it may still be written to
    old = time.time() - 2 * files.STALE_SECONDS
    for path in (left, mine):
        os.utime(path, (old, old))
    monkeypatch.setattr(files, "_cleaned_folders", set())
    write_text(tmp_path / "c.csv", "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".notes.csv", "b.csv", "c.csv"]
