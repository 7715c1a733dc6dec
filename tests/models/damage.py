"""Damage the files of saved models at random, with a digest that fits again, and see what loading and predicting makes of it.

Run as a script, since a parser in native code may take the process down: ``python -m tests.models.damage ROOT [MUTANTS] [SEED]``.
ROOT has a folder for each saved model. Prints one JSON line before each mutant is loaded, and one with what came of it.
"""

from __future__ import annotations

import faulthandler
import json
import random
import re
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ethobench import EthobenchError, Recording, load_dataset, load_model
from ethobench.models.saving import CARD, READABLE_CARD, digest_files

SECONDS = 20.0  # after which a mutant counts as hanging
NUMBERS = (b"-1", b"0", b"7", b"-2", b"99999", b"2147483647", b"-2147483648", b"99999999999999999999", b"1e999", b"nan", b"0.5", b"")


def main(root: str, mutants: str = "3", seed: str = "0") -> None:
    """Damage every file of every model a few times."""
    warnings.simplefilter("ignore")
    faulthandler.enable()
    generator = random.Random(int(seed))  # noqa: S311
    recording = load_dataset("synthetic/tag", individuals=2, seconds=20).recordings[0]
    for folder in sorted(Path(root).iterdir()):
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != READABLE_CARD):
            for number in range(int(mutants)):
                with tempfile.TemporaryDirectory() as temporary:
                    copy = Path(shutil.copytree(folder, Path(temporary) / folder.name))
                    victim = copy / path.relative_to(folder)
                    victim.write_bytes(damaged(victim, generator))
                    renew_digests(copy)
                    name = f"{path.relative_to(root)} #{number}"
                    report(mutant=name)
                    report(mutant=name, outcome=outcome(copy, recording))


def report(**fields: str) -> None:
    """Print a line of JSON at once, so that it is there if the process ends."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def outcome(folder: Path, recording: Recording) -> str:
    """Load a model and predict; "refused" and "usable" are sound outcomes."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        model = load_model(folder)
    except EthobenchError as error:
        return "refused" if str(folder) in str(error) else f"refused without naming a file: {error}"
    except Exception as error:
        return f"load: {type(error).__name__}: {error}"
    try:
        prediction = model.predict(recording)
        for recording_id in model.out_of_fold:
            _ = model.out_of_fold[recording_id]
    except EthobenchError:
        return "refused"
    except Exception as error:
        return f"predict: {type(error).__name__}: {error}"
    finally:
        faulthandler.cancel_dump_traceback_later()
    return "usable" if len(prediction.probabilities) == recording.n_frames else "of another length"


def damaged(path: Path, generator: random.Random) -> bytes:
    """Return the content of a file with one change."""
    content = path.read_bytes()
    if zipfile.is_zipfile(path) and generator.random() < 0.7:
        return b"".join(_damaged_archive(path, generator))
    return _damaged(content, generator)


def _damaged(content: bytes, generator: random.Random) -> bytes:
    numbers = [match.span() for match in re.finditer(rb"-?\d+(\.\d+)?", content)]
    kind = generator.choice(["flip", "cut", "number", "number", "number", "repeat"])
    at = generator.randrange(max(len(content), 1))
    if kind == "number" and numbers:
        start, stop = generator.choice(numbers)
        return content[:start] + generator.choice(NUMBERS) + content[stop:]
    if kind == "cut":
        return content[:at]
    if kind == "repeat":
        return content[:at] + content[at : at + 50] * 2 + content[at + 50 :]
    return content[:at] + bytes([content[at] ^ (1 << generator.randrange(8))]) + content[at + 1 :] if content else b"0"


def _damaged_archive(path: Path, generator: random.Random) -> Iterator[bytes]:
    """Change one member, so that checksums fit again and the reader of the format sees it."""
    with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(path) as archive:
        victim = generator.choice(archive.namelist())
        target = Path(temporary) / "copy.zip"
        with zipfile.ZipFile(target, "w") as copy:
            for name in archive.namelist():
                content = archive.read(name)
                copy.writestr(name, _damaged_member(content, generator) if name == victim else content)
        yield target.read_bytes()


def _damaged_member(content: bytes, generator: random.Random) -> bytes:
    """Change a value of an array within its data, or anything of another file."""
    if not content.startswith(b"\x93NUMPY") or generator.random() < 0.3:
        return _damaged(content, generator)
    start = content.index(b"\n") + 1
    at = generator.randrange(start, max(len(content), start + 1))
    value = generator.choice([b"\xff" * 8, b"\x7f" + b"\0" * 7, np.float64("nan").tobytes(), np.int64(5000).tobytes()])
    at -= (at - start) % 8
    return content[:at] + value + content[at + 8 :]


def renew_digests(folder: Path) -> None:
    """Write digests that fit the files again, inner folders first."""
    for card in sorted(folder.rglob(CARD), key=lambda path: -len(path.parts)):
        try:
            content = json.loads(card.read_text(encoding="utf-8"))
            content |= {"digest": digest_files(card.parent)}
        except (ValueError, TypeError, UnicodeDecodeError):
            continue  # the card itself was damaged
        card.write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
