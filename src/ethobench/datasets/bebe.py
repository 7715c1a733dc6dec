"""BEBE: nine datasets of animal-borne tags, with their published folds."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ethobench.core import Dataset, Ethogram, Recording, Signals
from ethobench.core.errors import FormatError, MismatchError, MissingDataError
from ethobench.datasets.base import Family, register_dataset
from ethobench.datasets.fetch import data_folder, fetch_from_record
from ethobench.formats.bebe import CLIPS, METADATA, read_clip, read_metadata
from ethobench.formats.parse_cache import cache_folder, content_hash

RECORD = "https://zenodo.org/api/records/7947104"


@register_dataset("bebe")
class Bebe(Family):
    """Tags of nine taxa, in the layout of BEBE: ``bebe/<name>/dataset_metadata.yaml``."""

    title = "bio-logger recordings of nine taxa (BEBE, 2024)"
    licence = "see each dataset's own terms in the record (Zenodo 7947104); HAR: no commercial use"
    citation = "Hoffman et al. 2024, Movement Ecology 12:78, doi 10.1186/s40462-024-00511-8"
    variants = (
        "HAR",
        "baglione_crows",
        "desantis_rattlesnakes",
        "friedlaender_whales",
        "jeantet_turtles",
        "ladds_seals",
        "maekawa_gulls",
        "pagano_bears",
        "vehkaoja_dogs",
    )

    def folder(self, variant: str) -> Path:
        return data_folder() / "bebe" / variant

    def is_here(self, variant: str) -> bool:
        return (self.folder(variant) / METADATA).is_file()

    def fetch(self, variant: str) -> None:
        if self.is_here(variant):
            return
        parent = self.folder(variant).parent

        def accept(name: str) -> bool:
            parts = PurePosixPath(name).parts
            return variant in parts[:-1] and (parts[-1] == METADATA or CLIPS in parts)

        fetch_from_record(RECORD, f"{variant}.zip|*{variant}*.zip|*formatted*.zip", parent, accept)
        unpacked = next((p.parent for p in sorted(parent.rglob(METADATA)) if p.parent.name == variant), None)
        if unpacked is None:
            raise MissingDataError(f"the download of bebe/{variant} has no {METADATA}; put the dataset into {self.folder(variant)}")
        if unpacked != self.folder(variant):
            unpacked.replace(self.folder(variant))

    def load(self, variant: str, *, without: str = "", **options: Any) -> Dataset:
        """Load a dataset, except channels whose names start with `without`."""
        self.fetch(variant)
        data = load_folder(self.folder(variant), f"bebe/{variant}", self.licence, self.citation)
        if not without:
            return data
        return replace(data, recordings=tuple(r.copy(signals=partial(_without, r, without)) for r in data))


def _without(recording: Recording, prefix: str) -> Signals:
    """Load the signals of a recording, except channels whose names start with `prefix`."""
    signals = recording.signals
    if not isinstance(signals, Signals):
        raise MismatchError(f"recording {recording.id!r} has no channels")
    kept = [k for k, channel in enumerate(signals.channels) if not channel.startswith(prefix)]
    return Signals(signals.values[:, kept], tuple(signals.channels[k] for k in kept), signals.rate)


def load_folder(root: Path, name: str, licence: str = "", citation: str = "") -> Dataset:
    """Load any dataset in the layout of BEBE, with its folds."""
    metadata = read_metadata(root)
    files = sorted(p.stem for p in (root / CLIPS).glob("*.csv"))
    if sorted(metadata.clip_ids) != files:
        extra, missing = sorted({*files} - {*metadata.clip_ids}), sorted({*metadata.clip_ids} - {*files})
        difference = "; ".join(
            f"{problem}: {', '.join(ids[:5])}{', ...' if len(ids) > 5 else ''}"
            for problem, ids in (("not listed", extra), ("missing", missing))
            if ids
        )
        raise FormatError(root / METADATA, f"the listed clips and the files in {CLIPS} differ ({difference})")
    folds = {clip: fold for fold, clips in metadata.clip_ids_per_fold.items() for clip in clips}
    without_fold = [clip for clip in metadata.clip_ids if folds and clip not in folds]
    if without_fold:
        raise FormatError(root / METADATA, f"clips without a fold: {', '.join(without_fold[:5])}", "clip_ids_per_fold")
    cache = cache_folder() / "arrays"
    digest = hashlib.blake2b(digest_size=8)
    for file in (root / METADATA, *(root / CLIPS / f"{clip}.csv" for clip in files)):
        if file.is_file():
            digest.update(content_hash(file, cache).encode())
    return Dataset(
        recordings=tuple(read_clip(root, metadata, clip) for clip in metadata.clip_ids),
        ethogram=Ethogram(metadata.label_names[1:], exclusive=True),
        name=name,
        folds=folds,
        source=f"{metadata.dataset_name or name}, in BEBE's format",
        licence=licence,
        citation=citation,
        version=digest.hexdigest(),
    )
