"""Named datasets, synthetic datasets, and your own studies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ethobench.core import Dataset
from ethobench.core.errors import NotFoundError
from ethobench.core.ethogram import check_renames
from ethobench.datasets.base import Family, all_names, families, register_dataset, split_name
from ethobench.datasets.corrections import with_corrections
from ethobench.datasets.fetch import data_folder
from ethobench.datasets.manifest import load_manifest
from ethobench.datasets.manifest_tables import MANIFEST

__all__ = ["Family", "all_names", "data_folder", "families", "load_dataset", "register_dataset", "split_name"]


def load_dataset(
    name: str | Path,
    *,
    corrections: str | Path | None = None,
    rename: Mapping[str, str] | None = None,
    check_rename: bool = True,
    **options: Any,
) -> Dataset:
    """Load a dataset by name, from a folder, or from a ``recordings.csv`` of your own.

    Parameters
    ----------
    name : str or Path
        ``"bebe/HAR"``, ``"calms21/task1"``, ``"banos"``, ``"synthetic/pose"``, ...; or a path.
    corrections : path, optional
        Folder with corrections saved by the viewer, to add as further annotators. Corrections beside a ``recordings.csv`` are always
        added.
    rename : mapping of str to str, optional
        Behaviors to rename, old name to new name, such as ``{"i": "interact"}``.
    check_rename : bool
        Whether an unknown old name is an error.
    **options
        Options of the dataset, such as ``individuals``, ``seconds`` and ``seed`` of synthetic ones.

    Raises
    ------
    NotFoundError
        If the name is unknown, or the folder is not a dataset.
    MissingDataError
        If the dataset is not on this machine and could not be downloaded.

    See Also
    --------
    collate : match loose files without a ``recordings.csv``.

    Examples
    --------
    >>> data = load_dataset("synthetic/pose", individuals=2, seconds=20, seed=1)
    >>> len(data), data.ethogram.names
    (2, ('attack', 'investigation', 'mount', 'other'))
    """
    path = Path(name)
    if path.suffix == ".csv" or (path / MANIFEST).is_file():
        manifest = path if path.suffix == ".csv" else path / MANIFEST
        data = load_manifest(manifest, rename=rename, check_rename=check_rename, **options)
    else:
        data = _load(name, options)
        if rename and check_rename:
            check_renames(rename, [data.ethogram])
        data = data.rename(rename) if rename else data
    return data if corrections is None else with_corrections(data, Path(corrections), rename or {})


def _load(name: str | Path, options: dict[str, Any]) -> Dataset:
    path = Path(name)
    if path.is_dir() or len(path.parts) > 2:
        return _load_folder(path)
    family, variant = split_name(str(name))
    return family.load(variant, **options)


def _load_folder(path: Path) -> Dataset:
    from ethobench.datasets.bebe import load_folder
    from ethobench.formats.bebe import METADATA

    if (path / METADATA).is_file():
        return load_folder(path, path.name)
    if not path.exists():
        raise NotFoundError(f"{path}: no such folder")
    raise NotFoundError(
        f"{path} is not a dataset: it has neither {MANIFEST} nor {METADATA}; "
        f"`ethobench study make {path}` drafts a {MANIFEST} from the files in it"
    )
