"""The contract of a family of named datasets, and the registry that finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ethobench.core import Dataset
from ethobench.core.errors import NotFoundError
from ethobench.core.registry import Registry


class Family:
    """Datasets that are published together; its name is the module's name.

    A dataset is called ``family/variant``, or just ``family`` where there is only one.

    Attributes
    ----------
    title : str
        What it is, in one line.
    licence, citation : str
    variants : tuple of str
        Empty where the family is one dataset.
    """

    name: str = ""
    title: ClassVar[str] = ""
    licence: ClassVar[str] = ""
    citation: ClassVar[str] = ""
    variants: ClassVar[tuple[str, ...]] = ()

    def names(self) -> list[str]:
        """List the full names of the datasets."""
        return [f"{self.name}/{variant}" for variant in self.variants] or [self.name]

    def folder(self, variant: str) -> Path | None:
        """Return where the dataset's files lie or would lie; None for datasets made on the spot."""
        return None

    def is_here(self, variant: str) -> bool:
        """Whether the dataset can be loaded without a download."""
        return True

    def fetch(self, variant: str) -> None:
        """Download what is missing."""

    def load(self, variant: str, **options: Any) -> Dataset:
        """Load the dataset; fetch it first where needed."""
        raise NotImplementedError


MODULES = {
    name: f"ethobench.datasets.{name}"
    for name in (
        "banos",
        "bebe",
        "calms21",
        "rodentbench",
        "synthetic",
    )
}

families: Registry[Family] = Registry("dataset", MODULES)
register_dataset = families.register


def split_name(name: str) -> tuple[Family, str]:
    """Return the family and variant that a dataset's full name stands for."""
    family_name, _, variant = name.partition("/")
    family = families[family_name]
    if variant not in (family.variants or ("",)):
        raise NotFoundError(f"no dataset {name!r}; there are: {', '.join(family.names())}")
    return family, variant


def all_names() -> list[str]:
    """List the full names of all named datasets."""
    return [name for family in families for name in family.names()]
