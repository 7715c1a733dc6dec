"""CalMS21 (MABe 2021): poses of resident and intruder mice, three tasks and an unlabeled set."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ethobench.core import ClockOrigin, Dataset, Ethogram, Recording, Signals
from ethobench.core.errors import MissingDataError
from ethobench.datasets.base import Family, register_dataset
from ethobench.datasets.fetch import data_folder, fetch_from_record
from ethobench.formats import read_recordings
from ethobench.formats.parse_cache import cache_folder, content_hash

RECORD = "https://data.caltech.edu/api/records/s0vdx-0k302"
# CaltechDATA publishes MD5 checksums only; a "sha256:..." computed from a verified download would be stronger. Archives without a pinned
# checksum are verified against the one in the record.
ARCHIVES = {
    "task1": ("task1_classic_classification.zip", "md5:8a02654fddae28614ee24a6a082261b8"),
    "task2": ("task2_annotation_styles.zip|task2*.zip", None),
    "task3": ("task3_new_behaviors.zip|task3*.zip", None),
    "unlabeled": ("unlabeled_videos.zip|unlabeled*.zip", "md5:35ab3acdeb231a3fe1536e38ad223b2e"),
}
SPLITS = ("train", "test")
FEATURES = "taskprog_features_"


@register_dataset("calms21")
class Calms21(Family):
    """``calms21/<any folder>/calms21_task1_train.json`` and so on, as in the unpacked archives; NPY files work, too."""

    title = "poses and social behavior of two mice (CalMS21 / MABe 2021)"
    licence = "CC BY-NC-SA (data)"
    citation = "Sun et al. 2021, The Multi-Agent Behavior Dataset: Mouse Dyadic Social Interactions, arXiv:2104.02710"
    variants = ("task1", "task2", "task3", "unlabeled")

    def folder(self, variant: str) -> Path:
        return data_folder() / "calms21"

    def is_here(self, variant: str) -> bool:
        return bool(self.files(variant))

    def files(self, variant: str) -> list[Path]:
        """Return the existing files of the dataset; JSON is preferred to NPY, poses to files with features."""
        paths: dict[str, Path] = {}
        for suffix in ("_features.npy", ".npy", ".json"):
            for path in sorted(self.folder(variant).rglob(f"calms21_{variant}*{suffix}")):
                paths[path.name.removesuffix(suffix)] = path
        return [paths[name] for name in sorted(paths, key=lambda n: ("test" in n, n))]

    def _features(self, variant: str, split: str, digest: Any) -> dict[str, Recording]:
        """Read the task-programmed features of a split, by sequence; empty if there are none."""
        recordings: dict[str, Recording] = {}
        for path in sorted(self.folder(variant).rglob(f"{FEATURES}{variant}*{split}*.json")):
            digest.update(content_hash(path, cache_folder() / "arrays").encode())
            recordings |= {recording.id: recording for recording in read_recordings(path, "calms21", warn=False)}
        return recordings

    def fetch(self, variant: str) -> None:
        if self.is_here(variant):
            return
        pattern, pinned = ARCHIVES[variant]

        def accept(name: str) -> bool:
            file_name = PurePosixPath(name).name
            return file_name.startswith(("calms21_", FEATURES)) and file_name.endswith(".json")

        fetch_from_record(RECORD, pattern, self.folder(variant), accept, pinned)
        if not self.is_here(variant):
            raise MissingDataError(
                f"the download of calms21/{variant} has no calms21_{variant}*.json; put these files into {self.folder(variant)}"
            )

    def load(self, variant: str, **options: Any) -> Dataset:
        self.fetch(variant)
        recordings, splits, ethogram = [], {}, Ethogram([])
        digest = hashlib.blake2b(digest_size=8)
        for path in self.files(variant):
            digest.update(content_hash(path, cache_folder() / "arrays").encode())
            split = next((s for s in SPLITS if s in path.name), "unlabeled")
            features = self._features(variant, split, digest)
            for recording in read_recordings(path, "calms21", warn=False):
                recording.clock_origin = ClockOrigin.STATED  # by the publication
                source = features.get(recording.id)
                recordings.append(recording if source is None else recording.copy(features=partial(_features_of, source)))
                splits[recording.id] = split
                for annotation in recording.annotations.values():
                    ethogram = ethogram.join(annotation.ethogram)
        return Dataset(
            recordings=tuple(recordings),
            ethogram=ethogram,
            name=f"{self.name}/{variant}",
            splits=splits,
            source=RECORD,
            licence=self.licence,
            citation=self.citation,
            version=digest.hexdigest(),
        )


def _features_of(recording: Recording) -> Signals | None:
    return recording.features
