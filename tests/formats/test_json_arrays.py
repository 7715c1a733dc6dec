from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethobench.core.errors import FormatError
from ethobench.formats.json_arrays import JsonScanner

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def scanned(path: Path, text: str, what: str) -> dict[str, Any]:
    """Walk through one object: members called "numbers" as arrays, "skipped" not at all, all others as they are."""
    path.write_text(text, encoding="utf-8")
    result: dict[str, Any] = {}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        scanner = JsonScanner(path, memory, what)
        for name in scanner.members():
            scanner.context = name
            if name == "numbers":
                result[name] = np.concatenate(scanner.numbers()).tolist()
            elif name == "skipped":
                scanner.skip()
            else:
                result[name] = scanner.value()
        scanner.finish()
    return result


@given(value=VALUES, skipped=VALUES, numbers=st.lists(st.lists(st.integers(-9, 9), min_size=2, max_size=2), max_size=4))
def test_any_object_is_traversed(value: Any, skipped: Any, numbers: list[list[int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    content = {"value": value, "skipped": skipped, "numbers": numbers, "after": "end"}
    result = scanned(tmp_path_factory.getbasetemp() / "scanned.json", json.dumps(content), "JSON")
    assert result == {"value": value, "numbers": numbers, "after": "end"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"numbers": [[1, 2], [3]]}', "numbers: not valid log: rows of different lengths"),
        ('{"numbers": [1, 2', "expected the end of an array; the file may be truncated"),
        ('{"numbers": [1, x]}', "not a number"),
        ('{"value": nothing}', "expected a value"),
        ('{"value": 1} 2', "expected the end of the file"),
    ],
)
def test_damage_is_reported_with_its_location(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=rf"byte \d+.*{message}"):
        scanned(tmp_path / "x.json", text, "log")
