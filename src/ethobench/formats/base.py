"""The `Format` contract and the registry of formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from ethobench.core import Recording
from ethobench.core.errors import EthobenchError, Note, NotFoundError
from ethobench.core.registry import Registry
from ethobench.formats.text import Head

DETAILS = ("subjects", "targets", "overlaps", "touching", "points", "modifiers", "comments", "confidence", "observed", "length")
"""What an annotation can hold besides behavior, start and stop. "touching" means that adjacent bouts of a behavior stay separate."""


class Format:
    """A file format: detection, reading and, for formats that hold annotations, writing.

    A new format is a subclass decorated with ``@register_format("name")`` and a line in `MODULES`.

    Attributes
    ----------
    title : str
        Name of the format in messages and documentation.
    suffixes : tuple of str
        Common file name suffixes. New files get the first one.
    contents : tuple of str
        What files can hold: "annotations", "poses", "signals".
    keeps : tuple of str
        The `DETAILS` of an annotation that survive writing. The writer reports or refuses the others.
    multiple_recordings : bool
        Whether one file can hold several recordings.
    multiple_annotators : bool
        Whether one file can hold several annotators of a recording.
    names_behaviors : bool
        Whether files hold the names of behaviors, not only their codes.

    Examples
    --------
    >>> formats["boris"].title, formats["boris"].suffixes
    ('BORIS project', ('.boris',))
    """

    name: str = ""
    title: ClassVar[str] = ""
    suffixes: ClassVar[tuple[str, ...]] = ()
    contents: ClassVar[tuple[str, ...]] = ("annotations",)
    keeps: ClassVar[tuple[str, ...]] = ()
    multiple_recordings: ClassVar[bool] = False
    multiple_annotators: ClassVar[bool] = False
    names_behaviors: ClassVar[bool] = True

    def sniff(self, path: Path, head: Head) -> float:
        """Return the confidence that a file is of this format, from 0 (it is not) to 1 (the file states it).

        Runs for every file that is detected, so it must be quick. If it raises, `detect` treats the file as damaged and not of this
        format, and includes the reason in its error message.

        Parameters
        ----------
        path : Path
            File or folder.
        head : Head
            Beginning of the file: raw bytes, text, rows.
        """
        return 0.0

    def entries(self, path: Path) -> list[str]:
        """Return the names of what can be read separately: observations, channels or recordings."""
        return [recording.id for recording in self.read(path)]

    def read(self, path: Path, entry: str | None = None, **options: Any) -> list[Recording]:
        """Read all entries of a file, or one of them.

        Parameters
        ----------
        path : Path
            File or folder.
        entry : str, optional
            One of `entries`.
        **options
            Options of the format, as keyword-only parameters.

        Returns
        -------
        list of Recording
            The `notes` of each say what was repaired, dropped or assumed. If the file does not state its frame rate, `clock_origin`
            is `ClockOrigin.ASSUMED`.

        Raises
        ------
        FormatError
            If the file is damaged or not of this format. The message names the file and the location in it.
        """
        raise NotImplementedError

    def write(self, recordings: Sequence[Recording], path: Path, **options: Any) -> list[Note]:
        """Write recordings to one file.

        Parameters
        ----------
        recordings : sequence of Recording
            Exactly one, unless `multiple_recordings` is true.
        path : Path
            An empty temporary file, renamed by `write_recordings` when the writer succeeds.
        **options
            Options of the format, as keyword-only parameters.

        Returns
        -------
        list of Note
            Losses that do not follow from `keeps`.
        """
        raise EthobenchError(f"{self.title} files cannot be written: the format does not hold annotations")

    @property
    def per_frame(self) -> bool:
        """Whether files hold a label for every frame, so that they state the length of the recording."""
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
    "labeled_signals": "ethobench.formats.signals_csv",
    "labels": "ethobench.formats.labels",
    "labels_npy": "ethobench.formats.labels_npy",
    "lightning_pose": "ethobench.formats.deeplabcut",
    "mabe2025": "ethobench.formats.mabe2025",
    "matlab": "ethobench.formats.matlab",
    "nwb": "ethobench.formats.nwb",
    "observer": "ethobench.formats.observer",
    "onehot": "ethobench.formats.labels",
    "segments": "ethobench.formats.intervals",
    "signals_csv": "ethobench.formats.signals_csv",
    "simba": "ethobench.formats.simba",
    "sleap": "ethobench.formats.sleap",
    "sleap_events": "ethobench.formats.sleap_events",
    "solomon": "ethobench.formats.solomon",
    "tidy": "ethobench.formats.tidy",
    "tidy_parquet": "ethobench.formats.tidy",
}

formats: Registry[Format] = Registry("format", MODULES)
register_format = formats.register


def ignored_columns(names: Sequence[str], kind: str = "columns", location: str = "") -> list[Note]:
    """Return a note that lists the columns (or keys, fields) that a reader ignored; no note if there are none."""
    return [Note(f"ignored unknown {kind}: {', '.join(names)}", location, "ignored-columns")] if names else []


def select_entries(path: Path, entry: str | None, available: Sequence[str]) -> list[str]:
    """Return the entries to read: all of them, or the one that is named.

    Raises
    ------
    NotFoundError
        If the file has no such entry. The message lists the available ones.
    """
    if entry is None:
        return list(available)
    if entry not in available:
        raise NotFoundError(f"{path} has no entry {entry!r}; available: {', '.join(available) or 'none'}")
    return [entry]
