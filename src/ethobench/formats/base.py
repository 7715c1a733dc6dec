"""The contract of a file format, and the registry that finds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from ethobench.core import Recording
from ethobench.core.errors import EthobenchError, FormatError, Note, NotFoundError
from ethobench.core.registry import Registry
from ethobench.formats.text import Head

DETAILS = ("subjects", "targets", "overlaps", "touching", "points", "modifiers", "comments", "confidence", "observed", "length")


class Format:
    """One file format: how to recognise it, list what is inside, read it, and write it where it can hold an annotation.

    A new format is a module of this package with one class under `register_format`; its name is the module's name.

    Attributes
    ----------
    title : str
        What people call it.
    suffixes : tuple of str
        Usual endings of its files; the first one is used for new files.
    contents : tuple of str
        What it can hold: "annotations", "poses", "signals".
    keeps : tuple of str
        Which `DETAILS` of an annotation survive writing; what does not is reported, or refused.
    several : bool
        Whether one file can hold several recordings.
    annotators : bool
        Whether one file can hold several annotators of a recording.
    names_behaviors : bool
        Whether files hold the names of behaviors, not only their numbers.
    """

    name: str = ""
    title: ClassVar[str] = ""
    suffixes: ClassVar[tuple[str, ...]] = ()
    contents: ClassVar[tuple[str, ...]] = ("annotations",)
    keeps: ClassVar[tuple[str, ...]] = ()
    several: ClassVar[bool] = False
    annotators: ClassVar[bool] = False
    names_behaviors: ClassVar[bool] = True

    def sniff(self, path: Path, head: Head) -> float:
        """Return how sure we are that `path` is of this format: 0 = it is not, 1 = it says so itself.

        Must be quick, and looks only at the name and at `head`. If it raises, `detect` takes the file as damaged and not of this
        format, and keeps the reason for its error message.
        """
        return 0.0

    def entries(self, path: Path) -> list[str]:
        """List what can be read on its own: observations, channels, recordings."""
        return [recording.id for recording in self.read(path)]

    def read(self, path: Path, entry: str | None = None, **options: Any) -> list[Recording]:
        """Read one entry, or all of them.

        What was repaired or dropped is in each recording's `notes`. Where the file does not state its frame rate and one is assumed,
        `clock_origin` is ASSUMED.
        """
        raise NotImplementedError

    def write(self, recordings: Sequence[Recording], path: Path, **options: Any) -> list[Note]:
        """Write to `path` (a new, temporary name); return what got lost beyond what `keeps` tells."""
        raise EthobenchError(f"{self.title} files cannot be written: the format holds no annotation of its own")

    @property
    def per_frame(self) -> bool:
        """Whether a file has a label for every frame, so that it is as long as the recording."""
        return "annotations" in self.contents and "touching" not in self.keeps

    @property
    def can_write(self) -> bool:
        """Whether the format has a writer."""
        return type(self).write is not Format.write


MODULES = {
    "anipose": "ethobench.formats.anipose",
    "bebe": "ethobench.formats.bebe",
    "bebe_predictions": "ethobench.formats.bebe",
    "bento": "ethobench.formats.bento",
    "boris": "ethobench.formats.boris",
    "boris_aggregated": "ethobench.formats.boris_exports",
    "boris_tabular": "ethobench.formats.boris_exports",
    "calms21": "ethobench.formats.calms21",
    "caltech": "ethobench.formats.caltech",
    "deepethogram": "ethobench.formats.deepethogram",
    "deeplabcut": "ethobench.formats.deeplabcut",
    "intervals": "ethobench.formats.intervals",
    "jabs": "ethobench.formats.jabs",
    "labels": "ethobench.formats.labels",
    "labels_npy": "ethobench.formats.labels_npy",
    "lightning_pose": "ethobench.formats.deeplabcut",
    "mabe2025": "ethobench.formats.mabe2025",
    "nwb": "ethobench.formats.nwb",
    "observer": "ethobench.formats.observer",
    "onehot": "ethobench.formats.labels",
    "segments": "ethobench.formats.intervals",
    "signals_csv": "ethobench.formats.signals_csv",
    "simba": "ethobench.formats.simba",
    "sleap": "ethobench.formats.sleap",
    "solomon": "ethobench.formats.solomon",
    "tidy": "ethobench.formats.tidy",
    "tidy_parquet": "ethobench.formats.tidy",
}

formats: Registry[Format] = Registry("format", MODULES)
register_format = formats.register


def pick_entry(path: Path, entry: str | None, there: Sequence[str]) -> list[str]:
    """Return the entries to read: all, or the one named; an unknown one is an error that lists those there are."""
    if entry is None:
        return list(there)
    if entry not in there:
        raise NotFoundError(f"{path} has no entry {entry!r}; there are: {', '.join(there) or 'none'}")
    return [entry]


def not_understood(path: Path, message: str, location: str = "") -> NoReturn:
    """Raise the error for a file that is damaged or not what it seems."""
    raise FormatError(path, message, location)
