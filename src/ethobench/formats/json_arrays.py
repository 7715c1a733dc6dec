"""Large JSON files of numbers, read piece by piece into arrays."""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError

CHUNK = 1 << 23
DEEPEST = 20
MAX_AXES = 8

_BLANK = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PLAIN = re.compile(rb"-?\d[\d.eE+-]*|true|false|null|NaN|-?Infinity")
_OPENING = re.compile(rb"\[(?:\s*\[)*")
_BRACKET = re.compile(rb'["\[\]{}]')
_ALL_BUT_STRUCTURE = bytes(b for b in range(256) if b not in b"[],")
_ONE_PER_LINE = bytes.maketrans(b",[]\r\n\t", b"\n     ")


class JsonScanner:
    """Walks through a JSON file without making an object of each number.

    Parameters
    ----------
    path : Path
        Named in errors.
    memory : mmap
        The file's content.
    what : str
        What the file should be, for errors.

    Attributes
    ----------
    where : str
        Where in the content it is, for errors; set by the caller.
    """

    def __init__(self, path: Path, memory: mmap.mmap, what: str = "JSON") -> None:
        self.path, self.memory, self.size, self.what = path, memory, len(memory), what
        self.position = 3 if memory[:3] == b"\xef\xbb\xbf" else 0
        self.where = ""

    def members(self) -> Iterator[str]:
        """Go through an object, stopping behind the colon of each name."""
        self._take(b"{")
        if self._next() == b"}":
            self.position += 1
            return
        while True:
            yield self._string()
            if self._next() == b",":
                self.position += 1
                continue
            self._take(b"}")
            return

    def finish(self) -> None:
        """Make sure that nothing follows."""
        if self._next():
            self._fail("something follows where the file should end")

    def numbers(self) -> list[NDArray[np.float64]]:
        """Read an array of numbers, nested to any depth but regular, as pieces to be joined along its first axis.

        It must be a member of an object: its end is told by the name or the brace that follows.
        """
        if self._next() != b"[":
            self._fail("an array of numbers was expected")
        begin, end = self.position, self._end_of_numbers()
        opening = _OPENING.match(self.memory, begin, end)
        depth = opening[0].count(b"[") if opening else 0
        if depth > MAX_AXES:
            self._fail(f"arrays nested {depth:,} deep, and at most {MAX_AXES} axes are expected")
        inside = begin + 1
        if end - inside < 100 and not self.memory[inside : end - 1].strip():
            self.position = end
            return [np.empty(0)]
        between = re.compile(rb"\s*".join([rb"\]"] * (depth - 1) + [rb","]))
        first = between.search(self.memory, inside, end)
        row = self.memory[inside : first.end() - 1 if first else end - 1]
        try:
            shape = np.asarray(json.loads(row), dtype=np.float64).shape
        except ValueError:
            self._fail("the array is damaged or its rows differ in length")
        structure = row.translate(None, _ALL_BUT_STRUCTURE)
        pieces = []
        while inside < end - 1:
            cut = between.search(self.memory, inside + CHUNK, end) if inside + CHUNK < end else None
            stop = cut.end() - 1 if cut else end - 1
            pieces.append(self._piece(inside, stop, structure).reshape(-1, *shape))
            inside = stop + 1
        self.position = end
        return pieces

    def value(self, depth: int = 0) -> Any:
        """Read any small value."""
        start = self._next()
        if depth > DEEPEST:
            self._fail("the JSON is nested too deeply")
        if start == b'"':
            return self._string(name=False)
        if start == b"{":
            return {name: self.value(depth + 1) for name in self.members()}
        if start == b"[":
            found = []
            self.position += 1
            while self._next() != b"]":
                found.append(self.value(depth + 1))
                if self._next() == b",":
                    self.position += 1
            self.position += 1
            return found
        word = _PLAIN.match(self.memory, self.position)
        if word is None:
            if self.size - self.position < len(b"Infinity"):
                self.position = self.size
            self._fail("a value was expected")
        self.position = word.end()
        try:
            return json.loads(word[0])
        except ValueError:
            self._fail(f"{word[0][:20].decode()!r} is no value")

    def skip(self) -> None:
        """Pass over a value of any size."""
        if self._next() not in (b"[", b"{"):
            self.value()
            return
        depth = 0
        while True:
            mark = _BRACKET.search(self.memory, self.position)
            if mark is None:
                self.position = self.size
                self._fail("the end of a value was expected")
            self.position = mark.start()
            if mark[0] == b'"':
                self._string(name=False)
                continue
            depth += 1 if mark[0] in b"[{" else -1
            self.position += 1
            if depth == 0:
                return

    def forget(self) -> None:
        """Let the system take back the pages that were read."""
        if hasattr(self.memory, "madvise"):
            self.memory.madvise(mmap.MADV_DONTNEED)

    def _end_of_numbers(self) -> int:
        """Return where an array of numbers ends: no quote or brace can stand in it."""
        end = self.size
        for mark in (b'"', b"}", b"{"):
            found = self.memory.find(mark, self.position, end)
            end = found if found >= 0 else end
        last = self.memory.rfind(b"]", self.position, end)
        if end == self.size or last < 0:
            self.position = end
            self._fail("the end of an array was expected")
        return last + 1

    def _piece(self, start: int, stop: int, structure: bytes) -> NDArray[np.float64]:
        from pyarrow import ArrowInvalid, BufferReader, float64
        from pyarrow import csv as arrow

        text = self.memory[start:stop]
        found = text.translate(None, _ALL_BUT_STRUCTURE)
        rows, rest = divmod(len(found) + 1, len(structure) + 1)
        if rest or found != b",".join([structure] * rows):
            self.position = start
            self._fail("the rows of the array differ in length")
        count = found.count(b",") + 1
        try:
            column = arrow.read_csv(
                BufferReader(text.replace(b"null", b"NaN").translate(_ONE_PER_LINE)),
                arrow.ReadOptions(use_threads=False, column_names=["number"]),
                arrow.ParseOptions(ignore_empty_lines=False),
                arrow.ConvertOptions(column_types={"number": float64()}, null_values=["NaN"]),
            ).column(0)
        except ArrowInvalid as error:
            self.position = start
            self._fail(f"the array holds something that is no number ({str(error).splitlines()[0]})")
        if len(column) != count:
            self.position = start
            self._fail("a number is missing in the array")
        return np.asarray(column.to_numpy(), dtype=np.float64)

    def _string(self, name: bool = True) -> str:
        self._next()
        found = _STRING.match(self.memory, self.position)
        if found is None:
            if self._next() == b'"':
                self.position = self.size
            self._fail("a name in quotes was expected")
        try:
            text = str(json.loads(found[0], strict=False))
        except ValueError:
            self._fail("the text in quotes is damaged")
        self.position = found.end()
        if name:
            self._take(b":")
        return text

    def _next(self) -> bytes:
        blank = _BLANK.match(self.memory, self.position)
        self.position = blank.end() if blank else self.position
        return self.memory[self.position : self.position + 1]

    def _take(self, mark: bytes) -> None:
        if self._next() != mark:
            self._fail(f"{mark.decode()} was expected")
        self.position += 1

    def _fail(self, trouble: str) -> NoReturn:
        cut = "; the file seems cut off" if self.position >= self.size else ""
        where = f", {self.where}" if self.where else ""
        raise FormatError(self.path, f"this is no sound {self.what}: {trouble}{cut}", f"byte {self.position}{where}")
