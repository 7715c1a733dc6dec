"""Families of named datasets: the contract and the registry."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar

from ethobench.core import Dataset
from ethobench.core.errors import NotFoundError
from ethobench.core.registry import Registry


class Family:
    """Datasets that are published together.

    A dataset is called ``family/variant``, or just ``family`` if there is only one.

    Attributes
    ----------
    title : str
        Description in one line.
    licence, citation : str
    variants : tuple of str
        Empty if the family is one dataset.
    """

    name: str = ""
    title: ClassVar[str] = ""
    licence: ClassVar[str] = ""
    citation: ClassVar[str] = ""
    variants: ClassVar[tuple[str, ...]] = ()

    def names(self) -> list[str]:
        """Return the full names of the datasets."""
        return [f"{self.name}/{variant}" for variant in self.variants] or [self.name]

    def folder(self, variant: str) -> Path | None:
        """Return the folder of the dataset's files, whether it exists or not; None for simulated datasets."""
        return None

    def is_here(self, variant: str) -> bool:
        """Whether the dataset is on this machine."""
        return True

    def fetch(self, variant: str) -> None:
        """Download the dataset, unless it is on this machine."""

    def load(self, variant: str, **options: Any) -> Dataset:
        """Load the dataset; download it first if necessary."""
        raise NotImplementedError


MODULES = {
    name: f"ethobench.datasets.{name}"
    for name in (
        "banos",
        "bebe",
        "calms21",
        "mabe2025",
        "rodentbench",
        "synthetic",
    )
}

families: Registry[Family] = Registry("dataset", MODULES)
register_dataset = families.register


def split_name(name: str) -> tuple[Family, str]:
    """Return the family and the variant of a dataset's full name."""
    family_name, _, variant = name.partition("/")
    family = families[family_name]
    if variant not in (family.variants or ("",)):
        similar = get_close_matches(name, family.names(), n=1)
        hint = f"; did you mean {similar[0]!r}?" if similar else "."
        raise NotFoundError(f"no dataset {name!r}{hint} Available: {', '.join(family.names())}")
    return family, variant


def all_names() -> list[str]:
    """Return the full names of all named datasets."""
    return [name for family in families for name in family.names()]
