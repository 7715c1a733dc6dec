"""Deterministic mutations of files: the same seed, file and generator give the same mutant."""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any

NUMBERS = ["0", "-1", "1e300", "-1e300", "nan", "inf", "-inf", "1_000", "0x10", "9" * 30, "1e-320", "2147483648", "-9223372036854775809"]
TOKENS = [
    "", " ", '"', "'", ",", ";", "\t", "\n", "\r", "\r\n\r\n", "\x00", "\ufeff", "\u202e", "null", "true", "{}", "[]", "[[", "}}", "=1+1",
    "#", "../../x", "a" * 300, "é", "😀", "behavior", "start", "frame", "nose_x", "%s", "\\", "&", "<", "-----",
]  # fmt: skip
VALUES: list[Any] = [None, True, -1, 0, 1e308, 10**30, "", "x" * 100, "\ud800", "\x00", [], {}, [[]], {"": {}}, [1, "a", None], "1e999"]
HOSTILE_BYTES = [0, 1, 0x7F, 0x80, 0xFE, 0xFF]


def mutate(content: bytes, name: str, generator: random.Random) -> bytes:
    """Return a mutant of a file: one to four changes, by the structure of the file where it has one."""
    for _ in range(generator.choice([1, 1, 1, 2, 4])):
        content = generator.choice(_mutators(content, name))(content, generator)
    return content


def _mutators(content: bytes, name: str) -> list[Callable[[bytes, random.Random], bytes]]:
    plain = [flip_bytes, truncate, duplicate, delete, swap]
    suffix = name.rpartition(".")[2].lower()
    if content[:4] == b"PK\3\4":
        return [*plain, mutate_member, mutate_member, mutate_member, mutate_member]
    if b"\0" in content[:1000]:
        return [*plain, flip_bytes, flip_bytes, set_integer, set_integer, set_integer]
    text = [*plain, replace_number, replace_number, insert_token]
    if suffix in ("json", "boris", "yaml") or content.lstrip()[:1] in (b"{", b"["):
        return [*text, mutate_json, mutate_json, mutate_json, mutate_json]
    return [*text, mutate_table, mutate_table, mutate_table, reformat]


def _span(content: bytes, generator: random.Random) -> tuple[int, int]:
    start = generator.randint(0, len(content))
    return start, min(len(content), start + generator.choice([1, 2, 4, 8, 30, 200, 2000]))


def flip_bytes(content: bytes, generator: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(generator.choice([1, 1, 2, 8]) if changed else 0):
        i = generator.randrange(len(changed))
        changed[i] = generator.choice([changed[i] ^ (1 << generator.randrange(8)), generator.randrange(256), *HOSTILE_BYTES])
    return bytes(changed)


def set_integer(content: bytes, generator: random.Random) -> bytes:
    """Overwrite two to eight aligned bytes as a size or offset would be stored."""
    width = generator.choice([2, 4, 8])
    if len(content) <= width:
        return content
    i = generator.randrange(len(content) - width) // width * width
    value = generator.choice([0, 1, (1 << 8 * width) - 1, 1 << (8 * width - 1), 1 << (8 * width - 4), generator.randrange(1 << 16)])
    return content[:i] + value.to_bytes(width, "little") + content[i + width :]


def truncate(content: bytes, generator: random.Random) -> bytes:
    return content[: generator.randint(0, len(content))]


def duplicate(content: bytes, generator: random.Random) -> bytes:
    start, stop = _span(content, generator)
    return content[:stop] + content[start:stop] * generator.choice([1, 1, 2, 50]) + content[stop:]


def delete(content: bytes, generator: random.Random) -> bytes:
    start, stop = _span(content, generator)
    return content[:start] + content[stop:]


def swap(content: bytes, generator: random.Random) -> bytes:
    (a, b), (c, d) = sorted([_span(content, generator), _span(content, generator)])
    return content if b > c else content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def replace_number(content: bytes, generator: random.Random) -> bytes:
    numbers = list(re.finditer(rb"-?\d+(?:\.\d+)?", content))
    if not numbers:
        return content
    match = generator.choice(numbers)
    return content[: match.start()] + generator.choice(NUMBERS).encode() + content[match.end() :]


def insert_token(content: bytes, generator: random.Random) -> bytes:
    start, stop = _span(content, generator)
    return content[:start] + generator.choice(TOKENS).encode() + content[generator.choice([start, stop]) :]


def mutate_json(content: bytes, generator: random.Random) -> bytes:
    """Replace, remove, repeat or nest one value of a JSON document."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return insert_token(content, generator)
    containers: list[Any] = []

    def collect(value: Any) -> None:
        if isinstance(value, (dict, list)):
            if value:
                containers.append(value)
            for inner in value.values() if isinstance(value, dict) else value:
                collect(inner)

    collect(document)
    if not containers:
        return json.dumps(generator.choice(VALUES)).encode()
    container = generator.choice(containers)
    key = generator.choice(list(container) if isinstance(container, dict) else range(len(container)))
    action = generator.randrange(6)
    if action == 0:
        del container[key]
    elif action == 1:
        container[key] = [container[key]] * generator.choice([1, 2, 100])
    elif action == 2 and isinstance(container, dict):
        container[generator.choice(TOKENS)] = container.pop(key)
    elif action == 3:
        container[key] = json.loads(json.dumps(generator.choice(containers)))
    else:
        container[key] = generator.choice(VALUES)
    return json.dumps(document).encode()


def mutate_table(content: bytes, generator: random.Random) -> bytes:
    """Change a cell, a row or a column of delimited text."""
    lines = content.split(b"\n")
    delimiter = max(b",;\t|", key=lambda byte: content.count(bytes([byte])))
    i = generator.randrange(len(lines))
    cells = lines[i].split(bytes([delimiter]))
    j = generator.randrange(len(cells))
    action = generator.randrange(7)
    if action == 0:
        del lines[i]
    elif action == 1:
        lines.insert(generator.randint(0, len(lines)), lines[i])
    elif action == 2:
        lines[i] = bytes([delimiter]).join(cells[:j] + cells[j + 1 :])
    elif action == 3:
        lines[i] = bytes([delimiter]).join(cells[: j + 1] + cells[j:])
    elif action == 4:
        split = [line.split(bytes([delimiter])) for line in lines]
        lines = [bytes([delimiter]).join(row[:j] + row[j + 1 :]) for row in split]
    else:
        cells[j] = generator.choice([*NUMBERS, *TOKENS]).encode()
        lines[i] = bytes([delimiter]).join(cells)
    return b"\n".join(lines)


def reformat(content: bytes, generator: random.Random) -> bytes:
    """Write the same text as another program would: other quotes, line ends, delimiters, encoding."""
    action = generator.randrange(8)
    if action == 0:
        return b"\n".join(b",".join(b'"' + cell + b'"' for cell in line.split(b",")) for line in content.split(b"\n"))
    if action == 1:
        return content.replace(b"\n", b"\r\n")
    if action == 2:
        return content.replace(b",", generator.choice([b";", b"\t", b"|"]))
    if action == 3:
        return content.decode("utf-8", "replace").encode(generator.choice(["utf-16", "utf-8-sig", "utf-32", "utf-7"]))
    if action == 4:
        return content.replace(b"\n", b" \n")
    if action == 5:
        return b"\n" * generator.choice([1, 3]) + content
    if action == 6:
        return content.replace(b".", b",")
    return content.upper()


def mutate_member(content: bytes, generator: random.Random) -> bytes:
    """Change one member of a zip archive and pack it again."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()}
    except Exception:  # an earlier change has damaged the archive
        return flip_bytes(content, generator)
    if not members:
        return content
    name = generator.choice(list(members))
    change = generator.choice([flip_bytes, truncate, duplicate, delete, replace_number, replace_number, replace_number, insert_token])
    members[name] = change(members[name], generator)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
