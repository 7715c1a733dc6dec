"""Quarantine: where damaged jobs of a store are moved, so that the next run repeats them and nothing is deleted."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from ethobench.runs.leases import StoreError

JOB_KEY = re.compile(r"[0-9a-f]{24}")


@dataclass(frozen=True)
class Damage:
    """Damage to a job, or to a file of it, that was detected while reading.

    Attributes
    ----------
    path : Path
        Folder of the job, or a single file.
    reason : str
        What is wrong.
    is_excluded : bool
        Whether the job is excluded from results until it has been repeated. Damage to files that no score depends on is only reported.
    """

    path: Path
    reason: str
    is_excluded: bool = True


class Quarantine:
    """The folder of a store to which damaged jobs are moved.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> list[str]:
        """Return the names of all entries, each of which starts with the key of a job."""
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(path.name for path in paths if JOB_KEY.match(path.name))

    def move(self, damage: Damage) -> Path | None:
        """Move a damaged job, or the record of a failed one, here; return its new path, or None if it has been moved already.

        Raises
        ------
        StoreError
            If it cannot be moved.
        """
        if not damage.path.exists():
            return None
        target = self.folder / f"{damage.path.name}-{time.time_ns()}"
        try:
            damage.path.replace(target)
        except OSError as error:
            raise StoreError(
                f"{damage.path} is damaged ({damage.reason}) and cannot be moved to {self.folder} ({error.strerror}); "
                "make the store writable, or remove it by hand"
            ) from None
        return target
