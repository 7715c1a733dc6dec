"""BANOS: ten recordings of mice, each annotated by two people, frame by frame."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from ethobench.core import Dataset, Recording
from ethobench.core.errors import EthobenchError, MissingDataError
from ethobench.datasets.base import Family, register_dataset
from ethobench.datasets.fetch import RemoteFile, data_folder, download, unpack
from ethobench.formats import read_recordings

# No checksum is pinned: GitHub generates this archive and does not publish one. The files are checked when they are read.
ARCHIVE = RemoteFile(url="https://github.com/BelloneLab/BANOS/archive/refs/tags/v0.2.3.zip", name="BANOS-0.2.3.zip")
FOLDER = "dataset_human_vs_human"
RATE = 30.0


@register_dataset("banos")
class Banos(Family):
    """Two annotators of ten CalMS21 recordings: ``banos/Recording_1/humanAnnotation_1.csv``. No poses."""

    title = "ten CalMS21 recordings, two human annotators (BANOS, 2025)"
    licence = "MIT (package); annotations of CalMS21 videos"
    citation = "Chindemi, Girard and Bellone 2025, doi 10.48550/arXiv.2508.04255"

    def folder(self, variant: str) -> Path:
        return data_folder() / "banos"

    def is_here(self, variant: str) -> bool:
        return any(self.folder(variant).glob("Recording_*/humanAnnotation_*.csv"))

    def fetch(self, variant: str) -> None:
        if self.is_here(variant):
            return
        folder = self.folder(variant)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            archive = download(ARCHIVE, folder)
        except EthobenchError:
            raise
        except (OSError, ValueError) as error:
            raise MissingDataError(
                f"the BANOS recordings could not be downloaded ({type(error).__name__}); "
                f"put the Recording_* folders of {ARCHIVE.url} into {folder}"
            ) from None
        for file in unpack(archive, folder, lambda name: f"{FOLDER}/Recording_" in name and name.endswith(".csv")):
            parts = PurePosixPath(file.relative_to(folder).as_posix()).parts
            destination = folder.joinpath(*parts[parts.index(FOLDER) + 1 :])
            destination.parent.mkdir(parents=True, exist_ok=True)
            file.replace(destination)
        archive.unlink()

    def load(self, variant: str, **options: Any) -> Dataset:
        self.fetch(variant)
        recordings = []
        for folder in sorted(self.folder(variant).glob("Recording_*"), key=_number):
            annotations = {}
            for file in sorted(folder.glob("humanAnnotation_*.csv"), key=_number):
                annotations[f"human{_number(file)}"] = read_recordings(file, "onehot", rate=RATE, warn=False)[0].annotation()
            recordings.append(Recording(folder.name, annotations=annotations))
        return Dataset(
            recordings=tuple(recordings),
            ethogram=recordings[0].annotation("human1").ethogram,
            name=self.name,
            source=ARCHIVE.url,
            licence=self.licence,
            citation=self.citation,
            version="0.2.3",
        )


def _number(path: Path) -> int:
    """Return the number at the end of a file name."""
    match = re.search(r"(\d+)(?=\.\w+$|$)", path.name)
    return int(match.group(1)) if match else 0
