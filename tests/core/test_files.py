"""Atomic writing, existing paths, JSON, and the removal of files that killed processes left."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ethobench.core import files
from ethobench.core.errors import EthobenchError, FormatError, PathExistsError
from ethobench.core.files import atomic_path, check_new_path, check_self_contained, read_json, sha256_of, write_json, write_text


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


WRITE_FOREVER = """
import sys, time
from pathlib import Path
from ethobench.core.files import atomic_folder, atomic_path

with atomic_path(Path(sys.argv[1]) / "a.csv") as temporary, atomic_folder(Path(sys.argv[1]) / "model") as folder:
    temporary.write_text("half")
    (folder / "part").write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def writer(tmp_path):
    """A process that is writing a file and a folder."""
    with subprocess.Popen([sys.executable, "-c", WRITE_FOREVER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_temporary_files_of_a_killed_process_are_removed(tmp_path, monkeypatch, writer):
    unfinished = {*tmp_path.iterdir()}
    assert len(unfinished) == 2
    others = {tmp_path / name for name in (".notes.csv", f"{files.TEMPORARY_PREFIX}notes", f"{files.TEMPORARY_PREFIX}{'x' * 16}.csv")}
    for path in others:
        path.write_text("a user's file", encoding="utf-8")
        os.utime(path, (0, 0))
    monkeypatch.setattr(files, "_cleaned_folders", set())
    write_text(tmp_path / "b.csv", "x")
    assert {*tmp_path.iterdir()} == {*unfinished, *others, tmp_path / "b.csv"}  # the process lives
    writer.kill()
    writer.wait()
    write_text(tmp_path / "c.csv", "x")
    assert unfinished < {*tmp_path.iterdir()}  # looked for once per process and folder
    monkeypatch.setattr(files, "_cleaned_folders", set())
    write_text(tmp_path / "d.csv", "x")
    assert {*tmp_path.iterdir()} == {*others, *(tmp_path / f"{name}.csv" for name in "bcd")}


def test_temporary_files_of_other_machines_are_removed_once_they_are_old(tmp_path):
    names = ("00000000-1-1-", "00000000-1--", "")
    stale = [tmp_path / f"{files.TEMPORARY_PREFIX}{name}{'a' * 16}.csv" for name in names]
    for path in stale:
        path.write_text("half", encoding="utf-8")
    files.remove_stale_temporaries(tmp_path)
    assert [*map(Path.exists, stale)] == [True] * 3
    for path in stale:
        old = time.time() - 2 * files.STALE_SECONDS
        os.utime(path, (old, old))
    files.remove_stale_temporaries(tmp_path, 3 * files.STALE_SECONDS)
    assert [*map(Path.exists, stale)] == [True] * 3
    files.remove_stale_temporaries(tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_a_folder_appears_completely_or_not_at_all(tmp_path):
    path = tmp_path / "model"

    def fill(*, fails: bool) -> None:
        with files.atomic_folder(path) as folder:
            (folder / "part").write_text("x", encoding="utf-8")
            assert not path.exists()
            if fails:
                raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        fill(fails=True)
    assert [*tmp_path.iterdir()] == []
    fill(fails=False)
    assert [*tmp_path.iterdir()] == [path]
    with pytest.raises(files.PathExistsError):
        fill(fails=False)
    assert [*path.iterdir()] == [path / "part"]


def test_existing_paths_are_refused_unless_they_may_be_replaced(tmp_path):
    path = tmp_path / "a.csv"
    check_new_path(path)
    path.symlink_to(tmp_path / "missing")  # a broken link is a path, too
    with pytest.raises(PathExistsError, match=r"a\.csv already exists \(choose another path\)$"):
        check_new_path(path)
    with pytest.raises(FileExistsError, match=r"already exists \(use overwrite=True to replace it\)$"):
        check_new_path(path, overwrite=False)
    check_new_path(path, overwrite=True)


def test_json_is_read_as_written_and_replaced_only_on_request(tmp_path):
    path = tmp_path / "a.json"
    content = {"name": "小鼠", "values": [1, 2.5, None], "nested": {"a": True}}
    write_json(path, content)
    assert read_json(path) == content
    with pytest.raises(PathExistsError):
        write_json(path, {})
    write_json(path, {}, overwrite=True)
    assert read_json(path) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1, "a": 2}', "duplicate key 'a'"),
        (b'{"a": 1', "line 1, column 8: not valid JSON .*truncated"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": "\xff"}', "not valid UTF-8"),
        (b" " * 2000, "more than the limit of 1000"),
    ],
)
def test_damaged_and_hostile_json_is_refused(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message):
        read_json(path, max_bytes=1000 if b"  " in content else 1 << 20)


def test_folders_with_links_to_other_files_are_refused(tmp_path):
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.csv").write_text("x", encoding="utf-8")
    (folder / "same.csv").symlink_to(folder / "sub" / "a.csv")
    check_self_contained(folder)
    (tmp_path / "other.csv").write_text("x", encoding="utf-8")
    (tmp_path / "folder2").mkdir()
    for target, message in (
        (tmp_path / "other.csv", "points outside the folder"),
        (tmp_path / "folder2", "points outside the folder"),
        (folder / "missing.csv", "link is broken"),
        (folder / "sub", "link to a folder"),
    ):
        link = folder / "sub" / "link"
        link.symlink_to(target)
        with pytest.raises(FormatError, match=message):
            check_self_contained(folder)
        link.unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(FormatError, match="not a regular file"):
        check_self_contained(folder)
    (folder / "pipe").unlink()
    for name in ("a\\b.csv", "a\x1b.csv"):
        (folder / name).write_text("x", encoding="utf-8")
        with pytest.raises(FormatError, match="path separator or an unprintable character"):
            check_self_contained(folder)
        (folder / name).unlink()
    check_self_contained(folder)


def test_without_hard_links_a_new_file_is_still_not_overwritten(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(95, "not supported")

    monkeypatch.setattr(Path, "hardlink_to", fail)
    write_text(tmp_path / "a.csv", "first")
    with pytest.raises(PathExistsError):
        write_text(tmp_path / "a.csv", "second")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == "first"
    assert [*tmp_path.iterdir()] == [tmp_path / "a.csv"]


def test_digests_are_those_of_the_content(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert sha256_of(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()


@pytest.mark.parametrize(
    ("text", "is_truncated"), [('{"a": 1', True), ('{"a": ', True), ('{"a": x}', False), ("[1 2]", False), ("[1 2", True)]
)
def test_truncated_json_is_named(text, is_truncated, tmp_path):
    with pytest.raises(FormatError) as error:
        files.parse_json(tmp_path / "a.json", text)
    assert ("the file may be truncated" in str(error.value)) is is_truncated


def test_json_of_exactly_the_maximum_size_is_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[1, 2]", encoding="utf-8")
    assert read_json(path, max_bytes=6) == [1, 2]
    with pytest.raises(FormatError):
        read_json(path, max_bytes=5)


def test_json_is_written_as_it_is_read(tmp_path):
    write_json(tmp_path / "a.json", {"é": [1]})
    assert (tmp_path / "a.json").read_text(encoding="utf-8").split() == ["{", '"é":', "[", "1", "]", "}"]
    write_json(tmp_path / "b.json", {"a": 1}, indent=None)
    assert (tmp_path / "b.json").read_text(encoding="utf-8") == '{"a": 1}'


def test_the_parent_of_a_temporary_folder_is_created_once(tmp_path):
    for _ in range(2):
        with files.temporary_folder(tmp_path / "a" / "b") as folder:
            assert folder.parent == tmp_path / "a" / "b"
            assert folder.is_dir()
    assert not [*(tmp_path / "a" / "b").iterdir()]
