from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ethobench.core.errors import FormatError
from ethobench.formats.arrow_tables import first_rows, read_wide


def put(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_numeric_and_text_columns_are_separated(encoding: str, end: str, delimiter: str, tmp_path: Path) -> None:
    rows = [["who", "x", "y"], ["ä", "1", "2.5"], ["b", "", "NaN"]]
    path = put(tmp_path / "x.csv", "".join(delimiter.join(row) + end for row in rows), encoding)
    table = read_wide(path, 1, [0])
    assert (table.header, table.text_columns, table.first_row) == ([["who", "x", "y"]], [["ä", "b"]], 2)
    assert np.array_equal(table.values, [[1, 2.5], [np.nan, np.nan]], equal_nan=True)


def test_decimal_commas_are_parsed_where_they_are_not_the_delimiter(tmp_path: Path) -> None:
    assert read_wide(put(tmp_path / "x.csv", "x;y\n1,5;2\n"), 1, []).values.tolist() == [[1.5, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n3\n", "1 cells, but the header has 2"),
        ("x,y\n1,2\n3,left\n", "column 2: 'left' is not a number"),
        (" \n", "the file is empty"),
        ("x,\0\n1,2\n", "binary"),
    ],
)
def test_damage_is_reported_with_its_location(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        read_wide(put(tmp_path / "x.csv", text), 1, [])


def test_only_the_first_rows_are_read(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", "scorer;a\n coords ;x\n0;1\n")
    assert first_rows(path, 2) == ([["scorer", "a"], ["coords", "x"]], ";", "utf-8")
