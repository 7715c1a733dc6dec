"""Large JSON files of numbers, read in chunks into arrays."""

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
MAX_DEPTH = 20
MAX_AXES = 8

_BLANK = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LITERAL = re.compile(rb"-?\d[\d.eE+-]*|true|false|null|NaN|-?Infinity")
_OPENING = re.compile(rb"\[(?:\s*\[)*")
_BRACKET = re.compile(rb'["\[\]{}]')
_ALL_BUT_STRUCTURE = bytes(b for b in range(256) if b not in b"[],")
_ONE_PER_LINE = bytes.maketrans(b",[]\r\n\t", b"\n     ")


class JsonScanner:
    """A parser that walks through a JSON file without creating an object for each number.

    Parameters
    ----------
    path : Path
        For error messages.
    memory : mmap
        Content of the file.
    kind : str
        Expected kind of file, for error messages.

    Attributes
    ----------
    position : int
        Offset in the file, in bytes.
    context : str
        Current location in the content, for error messages; set by the caller.
    """

    def __init__(self, path: Path, memory: mmap.mmap, kind: str = "JSON") -> None:
        self.path, self.memory, self.size, self.kind = path, memory, len(memory), kind
        self.position = 3 if memory[:3] == b"\xef\xbb\xbf" else 0
        self.context = ""

    def members(self) -> Iterator[str]:
        """Yield the names of an object, each time positioned after the colon."""
        self._expect(b"{")
        if self._next() == b"}":
            self.position += 1
            return
        while True:
            yield self._string()
            if self._next() == b",":
                self.position += 1
                continue
            self._expect(b"}")
            return

    def finish(self) -> None:
        """Check that the file ends here."""
        if self._next():
            self._fail("expected the end of the file")

    def numbers(self) -> list[NDArray[np.float64]]:
        """Read a regular, possibly nested array of numbers, in chunks to be concatenated along the first axis.

        It must be a member of an object, because the following name or brace marks its end.
        """
        if self._next() != b"[":
            self._fail("expected an array of numbers")
        begin, end = self.position, self._end_of_numbers()
        opening = _OPENING.match(self.memory, begin, end)
        depth = opening[0].count(b"[") if opening else 0
        if depth > MAX_AXES:
            self._fail(f"expected at most {MAX_AXES} axes, got {depth:,}")
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
            self._fail("invalid array, or rows of different lengths")
        structure = row.translate(None, _ALL_BUT_STRUCTURE)
        chunks = []
        while inside < end - 1:
            cut = between.search(self.memory, inside + CHUNK, end) if inside + CHUNK < end else None
            stop = cut.end() - 1 if cut else end - 1
            chunks.append(self._chunk(inside, stop, structure).reshape(-1, *shape))
            inside = stop + 1
        self.position = end
        return chunks

    def value(self, depth: int = 0) -> Any:
        """Read a small value of any type."""
        start = self._next()
        if depth > MAX_DEPTH:
            self._fail("nested too deeply")
        if start == b'"':
            return self._string(name=False)
        if start == b"{":
            return {name: self.value(depth + 1) for name in self.members()}
        if start == b"[":
            items = []
            self.position += 1
            while self._next() != b"]":
                items.append(self.value(depth + 1))
                if self._next() == b",":
                    self.position += 1
            self.position += 1
            return items
        word = _LITERAL.match(self.memory, self.position)
        if word is None:
            if self.size - self.position < len(b"Infinity"):
                self.position = self.size
            self._fail("expected a value")
        self.position = word.end()
        try:
            return json.loads(word[0])
        except ValueError:
            self._fail(f"{word[0][:20].decode()!r} is not a value")

    def skip(self) -> None:
        """Skip a value of any size."""
        if self._next() not in (b"[", b"{"):
            self.value()
            return
        depth = 0
        while True:
            mark = _BRACKET.search(self.memory, self.position)
            if mark is None:
                self.position = self.size
                self._fail("expected the end of a value")
            self.position = mark.start()
            if mark[0] == b'"':
                self._string(name=False)
                continue
            depth += 1 if mark[0] in b"[{" else -1
            self.position += 1
            if depth == 0:
                return

    def forget(self) -> None:
        """Release the memory pages that were read."""
        if hasattr(self.memory, "madvise"):
            self.memory.madvise(mmap.MADV_DONTNEED)

    def _end_of_numbers(self) -> int:
        """Return the end of an array of numbers, which contains no quotes or braces."""
        end = self.size
        for mark in (b'"', b"}", b"{"):
            offset = self.memory.find(mark, self.position, end)
            end = offset if offset >= 0 else end
        last = self.memory.rfind(b"]", self.position, end)
        if end == self.size or last < 0:
            self.position = end
            self._fail("expected the end of an array")
        return last + 1

    def _chunk(self, start: int, stop: int, structure: bytes) -> NDArray[np.float64]:
        from pyarrow import ArrowInvalid, BufferReader, float64
        from pyarrow import csv as arrow

        text = self.memory[start:stop]
        brackets = text.translate(None, _ALL_BUT_STRUCTURE)
        rows, remainder = divmod(len(brackets) + 1, len(structure) + 1)
        if remainder or brackets != b",".join([structure] * rows):
            self.position = start
            self._fail("rows of different lengths")
        count = brackets.count(b",") + 1
        try:
            column = arrow.read_csv(
                BufferReader(text.replace(b"null", b"NaN").translate(_ONE_PER_LINE)),
                arrow.ReadOptions(use_threads=False, column_names=["number"]),
                arrow.ParseOptions(ignore_empty_lines=False),
                arrow.ConvertOptions(column_types={"number": float64()}, null_values=["NaN"]),
            ).column(0)
        except ArrowInvalid as error:
            self.position = start
            self._fail(f"an array element is not a number ({str(error).splitlines()[0]})")
        if len(column) != count:
            self.position = start
            self._fail("missing number in the array")
        return np.asarray(column.to_numpy(), dtype=np.float64)

    def _string(self, name: bool = True) -> str:
        self._next()
        match = _STRING.match(self.memory, self.position)
        if match is None:
            if self._next() == b'"':
                self.position = self.size
            self._fail("expected a name in quotes")
        try:
            text = str(json.loads(match[0], strict=False))
        except ValueError:
            self._fail("invalid text in quotes")
        self.position = match.end()
        if name:
            self._expect(b":")
        return text

    def _next(self) -> bytes:
        blank = _BLANK.match(self.memory, self.position)
        self.position = blank.end() if blank else self.position
        return self.memory[self.position : self.position + 1]

    def _expect(self, mark: bytes) -> None:
        if self._next() != mark:
            self._fail(f"expected {mark.decode()}")
        self.position += 1

    def _fail(self, problem: str) -> NoReturn:
        truncated = "; the file may be truncated" if self.position >= self.size else ""
        context = f", {self.context}" if self.context else ""
        raise FormatError(self.path, f"not valid {self.kind}: {problem}{truncated}", f"byte {self.position}{context}")
