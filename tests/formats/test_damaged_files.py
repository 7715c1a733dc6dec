"""Detection of damaged files: a format or an error in one line, whatever the damage."""

from __future__ import annotations

import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ethobench.core.errors import FormatError
from ethobench.formats import Format, detect, formats, write_recordings
from ethobench.formats.text import Head

from .test_every_format import WRITABLE, example
from .test_text_variants import HAND_MADE

pytestmark = pytest.mark.slow

MUTANTS = 20
BINARY = ("jabs/sample_pose_est_v5.h5", "sleap/typical.slp", "dlc/testDLC_h5_table_madlc.h5", "observer/test_1.xlsx")


def mutants(raw: bytes, seed: str) -> Iterator[bytes]:
    """Yield damaged versions of a file: changed, deleted, repeated and cut bytes; many changes hit its beginning and its end."""
    rng = random.Random(seed)  # noqa: S311 - the same mutants every time
    for n in range(MUTANTS):
        mutant = bytearray(raw)
        for _ in range(rng.choice((1, 3, 20))):
            edge = rng.choice((0, max(0, len(mutant) - 300), rng.randrange(max(1, len(mutant)))))
            at = min(len(mutant) - 1, edge + rng.randrange(300))
            mutant[at] = rng.randrange(256)
        if n % 4 == 1:
            mutant = mutant[: rng.randrange(1, len(mutant))]
        elif n % 4 == 2:
            at, size = rng.randrange(len(mutant)), rng.randrange(1, 200)
            mutant[at : at + size] = b""
        elif n % 4 == 3:
            at, size = rng.randrange(len(mutant)), rng.randrange(1, 200)
            mutant[at:at] = mutant[at : at + size]
        yield bytes(mutant)


def check_detection(path: Path, raw: bytes, seed: str) -> None:
    for mutant in mutants(raw, seed):
        path.write_bytes(mutant)
        try:
            assert isinstance(detect(path), Format)
        except FormatError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("name", [*WRITABLE, *HAND_MADE])
def test_detection_of_damaged_files_never_fails(name: str, tmp_path: Path) -> None:
    for suffix in formats[name].suffixes if name in WRITABLE else (".csv",):
        path = tmp_path / f"mouse001{suffix}"
        if name in HAND_MADE:
            path.write_text(HAND_MADE[name], encoding="utf-8")
        elif (name, suffix) == ("deeplabcut", ".h5"):
            continue
        else:
            write_recordings([example(40)], path, name)
        check_detection(path, path.read_bytes(), f"{name}{suffix}")


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("file", BINARY)
def test_detection_of_damaged_binary_files_never_fails(file: str, data: Path, tmp_path: Path) -> None:
    source = data / "formats" / file
    check_detection(tmp_path / source.name, source.read_bytes(), file)


def test_the_reason_is_in_the_message(tmp_path: Path) -> None:
    path = tmp_path / "events.xlsx"
    write_recordings([example(40)], path, "observer")
    raw = path.read_bytes()
    at = raw.index(b"PK\x01\x02") + 6  # the version that is needed to extract, in the central directory
    path.write_bytes(raw[:at] + b"\xff" + raw[at + 1 :])
    with pytest.raises(NotImplementedError), zipfile.ZipFile(path):
        pass
    with pytest.raises(FormatError, match=r"unknown format.* may be damaged: .*zip file version 25.5"):
        detect(path)
    parquet = tmp_path / "bouts.parquet"
    parquet.write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    with pytest.raises(FormatError, match=r"unknown format.* may be damaged: not a valid Parquet file .*thrift"):
        detect(parquet)


def test_any_exception_of_a_sniffer_means_that_it_does_not_recognize_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mouse001.csv"
    write_recordings([example(40)], path, "tidy")

    def fails(self: Format, path: Path, head: Head) -> float:
        raise RecursionError("too\ndeep")

    monkeypatch.setattr(type(formats["nwb"]), "sniff", fails)
    assert detect(path).name == "tidy"
    path.write_text("nothing\n", encoding="utf-8")
    with pytest.raises(FormatError, match="may be damaged: it is nested too deeply"):
        detect(path)
