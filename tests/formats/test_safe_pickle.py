from __future__ import annotations

import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethobench.core.errors import FormatError
from ethobench.formats.safe_pickle import load_plain

HERE = Path("some.npy")


def plain() -> dict[str, Any]:
    return {
        "ints": np.arange(6).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        "big-endian": np.arange(3, dtype=">i4"),
        "bool": np.array([True, False]),
        "text": np.array(["ab", "c"]),
        "bytes": np.array([b"ab", b"c"]),
        "empty": np.empty((0, 7)),
        "zero axes": np.array(5.5),
    }


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_survive_every_protocol(protocol: int) -> None:
    result = load_plain(HERE, pickle.dumps(plain(), protocol=protocol))
    for name, array in plain().items():
        assert result[name].dtype == array.dtype, name
        assert result[name].shape == array.shape, name
        assert np.array_equal(result[name], array), name


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_containers_survive_every_protocol(protocol: int) -> None:
    value = {"list": [1, 2.5, None, True, "ä", b"\xff"], "tuple": (1, ("x",)), "set": {1, 2}, "frozen": frozenset({3}), "big": 10**40}
    assert load_plain(HERE, pickle.dumps(value, protocol=protocol)) == value


def test_scalars_and_ordered_dicts() -> None:
    result = load_plain(HERE, pickle.dumps(OrderedDict(a=np.float64(0.5), b=np.int32(7), c=np.str_("x"))))
    assert result == {"a": 0.5, "b": 7, "c": "x"}


def test_arrays_of_objects_hold_only_permitted_types() -> None:
    result = load_plain(HERE, pickle.dumps(np.array([{"a": np.ones(2)}, "b"], dtype=object)))
    assert result[0]["a"].tolist() == [1, 1]
    with pytest.raises(FormatError, match=r"pathlib"):
        load_plain(HERE, pickle.dumps(np.array([Path("x")], dtype=object)))


def test_a_shared_object_is_read_once() -> None:
    array = np.ones(3)
    result = load_plain(HERE, pickle.dumps([array, array]))
    assert result[0] is result[1]


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("echo ran >ran",)


class State:
    def __init__(self) -> None:
        self.x = 1


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Evil(), r"(posix|nt)\.system"),
        (State(), r"(State|copyreg|copy_reg)"),
        (Path("x"), r"pathlib"),
        (np.ma.array([1.0]), r"numpy\.ma"),
        (np.zeros(2, dtype=[("a", "f8")]), r"records"),
        (np.array(["2020"], dtype="M8[D]"), r"M8"),
        (np.dtype("f8"), r"type"),
        (np.random.default_rng(0), r"numpy\.random"),
        (print, r"builtin.*\.print"),
        (3j, r"complex"),
    ],
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_anything_else_is_refused_by_name(value: object, name: str, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError, match=rf"^some\.npy: refused: its pickle contains .*{name}"):
        load_plain(HERE, pickle.dumps(value, protocol=protocol))
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    "code",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"c__builtin__\neval\n(S'1'\ntR.",
        b"\x80\x02cnumpy\nload\nX\x01\x00\x00\x00x\x85R.",
        b"\x80\x04\x8c\x05numpy\x8c\x10testing._private\x93.",
        b"\x80\x02cnumpy\nndarray\n(K\x01t\x81.",
        b"\x80\x02\x82\x01.",
        b"Pname\n.",
        b"\x80\x02cnumpy\ndtype\n}X\x05\x00\x00\x00_Evil_K\x01sb.",
    ],
)
def test_hand_written_pickles_are_refused(code: bytes) -> None:
    with pytest.raises(FormatError):
        load_plain(HERE, code)


@pytest.mark.parametrize(
    "code",
    [b"", b"\x80", pickle.dumps(plain())[:90], b"\x80\x04r\xff\xff\xff\x7f.", b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x0f", b"nonsense"],
)
def test_damaged_pickles_get_one_clear_line(code: bytes) -> None:
    with pytest.raises(FormatError, match=r"^some\.npy, the names: its pickle is damaged or truncated") as caught:
        load_plain(HERE, code, "the names")
    assert "\n" not in str(caught.value)


def test_an_array_cannot_claim_more_than_its_bytes() -> None:
    claim = pickle.dumps(np.arange(3, dtype="i1"), protocol=2).replace(b"K\x03\x85", b"K\x7f\x85")
    with pytest.raises(FormatError, match="damaged or truncated"):
        load_plain(HERE, claim)


def test_deep_nesting_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(FormatError, match="deep"):
        load_plain(HERE, pickle.dumps(deep))
