"""Small hostile files are read or refused within 2 GB of memory and 20 s."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fuzz.corpus import make_corpus
from tests.fuzz.worker import MEMORY_LIMIT, TIME_LIMIT, Worker

pytest.importorskip("resource", reason="limits of a process need a POSIX system")

SMALL_FILE = 5 << 20
BUILDERS: dict[str, tuple[str, str, Callable[[], bytes]]] = {}
SHEET = "xl/worksheets/sheet1.xml"


def hostile(name: str, format: str, message: str) -> Callable[[Callable[[], bytes]], Callable[[], bytes]]:
    """Register the builder of a file: its name, its format, and a fragment of the expected message ("" if it can be read)."""

    def register(build: Callable[[], bytes]) -> Callable[[], bytes]:
        BUILDERS[name] = (format, message, build)
        return build

    return register


def nested(kind: Callable[[list[Any]], Any], item: Any = 0, depth: int = 12, width: int = 10) -> Any:
    """Return a container that holds itself `width` times at each of `depth` levels, by reference."""
    for _ in range(depth):
        item = kind([item] * width)
    return item


def npy(content: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": ()})
    return file.getvalue() + pickle.dumps(content)


def record(**fields: Any) -> dict[str, Any]:
    return {"group": {"mouse001": {"annotations": np.zeros(3), **fields}}}


@hostile("shared_lists.npy", "calms21", "references")
def shared_lists() -> bytes:
    return npy(record(metadata={"x": nested(list)}))


@hostile("shared_text.npy", "calms21", "references")
def shared_text() -> bytes:
    return npy(record(metadata={"x": ["x" * 1_000_000] * 10_000}))


@hostile("shared_numbers.npy", "calms21", "references")
def shared_numbers() -> bytes:
    return npy(record(keypoints=nested(list)))


@hostile("shared_arrays.npy", "calms21", "references")
def shared_arrays() -> bytes:
    zeros = np.zeros(1_000_000, dtype=np.uint8)
    return npy({"group": {f"mouse{i}": {"annotations": zeros} for i in range(1000)}})


class Constructed:
    """Pickled as a call that copies a shared list."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __reduce__(self) -> tuple[Any, ...]:
        return set, (self.items,)


@hostile("shared_calls.npy", "calms21", "references")
def shared_calls() -> bytes:
    items = list(range(1000))
    return npy(record(metadata={"x": [Constructed(items) for _ in range(100_000)]}))


@hostile("shared_keys.npy", "calms21", "key")
def shared_keys() -> bytes:
    pickled = pickle.dumps(nested(tuple), protocol=4)
    return npy(None)[: -len(pickle.dumps(None))] + b"}" + pickled[:-1].partition(b"\x95")[2][8:] + b"Ns."


@hostile("shared_members.npy", "calms21", "key")
def shared_members() -> bytes:
    pickled = pickle.dumps(nested(tuple), protocol=4)
    return npy(None)[: -len(pickle.dumps(None))] + b"\x8f(" + pickled[:-1].partition(b"\x95")[2][8:] + b"\x90."


def pandas_h5(fill: Callable[[Any], object]) -> bytes:
    """Return an H5 file as pandas writes it, whose only table is filled by a function."""
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        h5.attrs["PYTABLES_FORMAT_VERSION"] = b"2.1"
        fill(h5.create_group("df_with_missing"))
    return file.getvalue()


@hostile("column_names.h5", "deeplabcut", "references")
def column_names() -> bytes:
    def fill(group: Any) -> None:
        group.attrs["pandas_type"] = b"frame_table"
        table = group.create_dataset("table", data=np.zeros(2, dtype=[("index", "<i8"), ("values_block_0", "<f8", (3,))]))
        table.attrs["values_block_0_kind"] = np.void(pickle.dumps([("a", "b", nested(tuple))] * 3))

    return pandas_h5(fill)


@hostile("row_names.h5", "deeplabcut", "would take")
def row_names() -> bytes:
    def fill(group: Any) -> None:
        group.attrs.update({"pandas_type": b"frame", "nblocks": 1, "block0_items_variety": b"regular"})
        group.create_dataset("block0_values", data=np.zeros((2, 2)))
        group.create_dataset("block0_items", shape=(200_000_000,), dtype="S1", chunks=(1 << 22,), compression="gzip")
        group["block0_items"][0] = b"x"

    return pandas_h5(fill)


@hostile("small_integers.h5", "deeplabcut", "would take")
def small_integers() -> bytes:
    def fill(group: Any) -> None:
        group.attrs.update({"pandas_type": b"frame", "nblocks": 1})
        group.create_dataset("block0_values", shape=(100_000_000, 2), dtype="i1", chunks=(1 << 21, 2), compression="gzip")

    return pandas_h5(fill)


def sheet(rows: str, width: int = 3) -> bytes:
    """Return a workbook whose only sheet holds this XML of rows."""
    from openpyxl import Workbook

    workbook = io.BytesIO()
    book = Workbook()
    book.active.append(["Behavior", "Start (s)", "Stop (s)"][:width])
    book.save(workbook)
    out = io.BytesIO()
    with zipfile.ZipFile(workbook) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name == SHEET:
                content = content.replace(b"</sheetData>", rows.encode() + b"</sheetData>")
            new.writestr(name, content)
    return out.getvalue()


@hostile("row_number.xlsx", "boris_tabular", "rows")
def row_number() -> bytes:
    return sheet('<row r="30000000"><c r="A30000000"><v>1</v></c></row>')


@hostile("column_zzz.xlsx", "boris_tabular", "columns")
def column_zzz() -> bytes:
    return sheet("".join(f'<row r="{i}"><c r="ZZZ{i}"><v>1</v></c></row>' for i in range(2, 200_000)))


@hostile("many_cells.xlsx", "boris_tabular", "cells")
def many_cells() -> bytes:
    return sheet('<row r="2"><c r="XFD2"><v>1</v></c></row>' + "".join(f'<row r="{i}"><c r="XFD{i}"/></row>' for i in range(3, 1000)))


def false_size(member: str) -> bytes:
    """Return a workbook in which a member states a size of 1000 bytes and decompresses to 3 GB."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sheet(""))) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != member:
                new.writestr(name, old.read(name))
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        block = packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)  # can be repeated
        data = block * (3 << 10) + packer.flush()
        info = zipfile.ZipInfo(member)
        offset = out.tell()
        crc = zlib.crc32(b" " * 1000)
        name_bytes = member.encode()
        local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 33, crc, len(data), 1000, len(name_bytes), 0)
        out.write(local + name_bytes + data)
        info.compress_type, info.CRC, info.compress_size, info.file_size, info.header_offset = 8, crc, len(data), 1000, offset
        new.filelist.append(info)
        new.NameToInfo[member] = info
        new.start_dir = out.tell()
        new._didModify = True
    return out.getvalue()


@hostile("false_size.xlsx", "boris_tabular", "decompress")
def false_size_of_workbook() -> bytes:
    return false_size("xl/workbook.xml")


@hostile("many_styles.xlsx", "boris_tabular", "decompress")
def many_styles() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sheet(""))) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content.replace(b"</cellXfs>", b"<xf/>" * 10_000_000 + b"</cellXfs>") if "styles" in name else content)
    return out.getvalue()


def parquet(columns: dict[str, Any], metadata: dict[bytes, bytes] | None = None) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    table = pa.table(columns).replace_schema_metadata(metadata)
    with pq.ParquetWriter(out, table.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(table)
    return out.getvalue()


def constant(value: Any, count: int = 1_000_000) -> Any:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), [value])


TIDY = {b"ethobench": json.dumps({"unit": "frames", "rate": 30}).encode()}


@hostile("equal_rows.parquet", "tidy_parquet", "rows")
def equal_rows() -> bytes:
    texts = {name: constant("x") for name in ("recording", "behavior", "subject", "target")}
    return parquet({**texts, "start": np.zeros(1_000_000, dtype=np.int64), "stop": np.ones(1_000_000, dtype=np.int64)}, TIDY)


@hostile("equal_text.parquet", "tidy_parquet", "")
def equal_text() -> bytes:
    texts = {name: constant("x" * 50_000, 1_000) for name in ("recording", "behavior", "subject", "target")}
    return parquet({**texts, "start": np.zeros(1_000, dtype=np.int64), "stop": np.ones(1_000, dtype=np.int64)}, TIDY)


@hostile("equal_rows_mabe.parquet", "mabe2025", "rows")
def equal_rows_of_mabe() -> bytes:
    numbers = {name: np.ones(1_000_000, dtype=np.int64) for name in ("agent_id", "target_id", "start_frame", "stop_frame")}
    return parquet({**numbers, "action": constant("x")})


@hostile("equal_samples.parquet", "signals_csv", "would take")
def equal_samples() -> bytes:
    return parquet({"time": np.zeros(1_000_000), "x": np.ones(1_000_000)})


def damaged_sleap(position: int, value: int) -> bytes:
    """Return a SLEAP analysis file with another number at a position; its heap of texts begins at 2584."""
    content = next(seed.files["seed.analysis.h5"] for seed in make_corpus(["sleap"]) if "seed.analysis.h5" in seed.files)
    return content[:position] + struct.pack("<Q", value) + content[position + 8 :]


@hostile("misplaced_text.analysis.h5", "sleap", "byte 2584: damaged HDF5 file: the sizes of its stored texts")
def misplaced_text() -> bytes:
    return damaged_sleap(2584 + 48, 16)  # the next object begins in zeros


@hostile("backward_text.analysis.h5", "sleap", "byte 2584: damaged HDF5 file: the sizes of its stored texts")
def backward_text() -> bytes:
    return damaged_sleap(2584 + 24, (1 << 64) - 16)


@hostile("long_text.analysis.h5", "sleap", "byte 2568: damaged HDF5 file: a text of 2,147,483,652 bytes")
def long_text() -> bytes:
    return damaged_sleap(2568, 2584 << 32 | 0x80000004)


@hostile("driver.analysis.h5", "sleap", "byte 0: damaged HDF5 file: its superblock names a storage driver")
def storage_driver() -> bytes:
    return damaged_sleap(48, 2272)  # there, a number of the dataset says that 1 GB of information follow


@hostile("duplicate_key.boris", "boris", "duplicate key")
def duplicate_key() -> bytes:
    return ("{" + ",".join(f'"k{i}": 1' for i in range(200_000)) + ', "k199999": 2}').encode()


@hostile("brackets.json", "calms21", "axes")
def brackets() -> bytes:
    return b'{"g": {"s": {"keypoints": ' + b"[" * 100_000 + b"]" * 100_000 + b', "metadata": {}}}}'


@hostile("label.bebe.csv", "bebe_predictions", "1000000000")
def label() -> bytes:
    return b"1\n2\n1000000000\n"


@hostile("dashes.annot", "bento", "")
def dashes() -> bytes:
    return b"Bento annotation file\n\nx" + b"-" * 400_000 + b"x\n"


@hostile("behaviors.annot", "bento", "")
def many_behaviors() -> bytes:
    return b"Bento annotation file\n\nList of annotations:\n" + b"".join(b"b%d\n" % i for i in range(100_000)) * 2


@hostile("spaces.tsv", "boris_tabular", "")
def spaces() -> bytes:
    header = "\t".join(["Observation id", "Subject", "Behavior", "Behavior type", "Time", "Modifier" + " " * 100_000 + "x"])
    return f"{header}\na\tb\tc\tPOINT\t1.0\t\n".encode()


MANY_NAMES = ",".join(f"b{i}" for i in range(15_000))
SHORT_ROWS = {  # by format: the header and one of its rows, which has far fewer cells
    "intervals": ("behavior,start,stop" + "," * 15_000 + "x", "a,1,2"),
    "onehot": (MANY_NAMES, "1"),
    "simba": (f",nose_x,nose_y,nose_p,{MANY_NAMES}", "1"),
    "signals_csv": (MANY_NAMES, "1.5"),
    "labeled_signals": (f"time,label,{MANY_NAMES}", "1.5,rest"),
}


def short_rows(format: str) -> bytes:
    header, row = SHORT_ROWS[format]
    return f"{header}\n{(row + chr(10)) * 50_000}".encode()


for name in SHORT_ROWS:
    hostile(f"short_rows_{name}.csv", name, "cells")(partial(short_rows, name))


@hostile("many_columns.csv", "onehot", "columns")
def many_columns() -> bytes:
    return ",".join(f"b{i}" for i in range(300_000)).encode() + b"\n" + b"1" + b",1" * 299_999 + b"\n"


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with Worker(tmp_path_factory.mktemp("worker"), TIME_LIMIT) as worker:
        yield worker


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
def test_a_small_file_cannot_exhaust_memory_or_time(name: str, worker: Worker, tmp_path: Path) -> None:
    format, message, build = BUILDERS[name]
    path = tmp_path / name
    path.write_bytes(build())
    assert path.stat().st_size < SMALL_FILE
    result = worker.run({"task": "read", "path": str(path), "format": format})
    assert result.outcome == ("refused" if message else "read"), result
    assert message in result.detail
    assert result.peak < MEMORY_LIMIT
    assert not result.unexpected, result.detail
    sniffed = worker.run({"task": "sniff", "path": str(path)})
    assert sniffed.outcome == "read", sniffed
