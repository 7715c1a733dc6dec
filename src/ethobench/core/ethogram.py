"""Ethograms: the behaviors that an annotation may name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from ethobench.core.errors import EthobenchError, NotFoundError
from ethobench.core.notebook_html import html_table

BACKGROUND_NAMES = frozenset({"other", "background", "none", "base", "no behavior", "no_behavior", "nothing"})


@dataclass(frozen=True)
class Behavior:
    """One entry of an ethogram.

    Parameters
    ----------
    name : str
        Name in annotation files.
    definition : str
        How a person recognizes the behavior.
    point : bool
        Whether it is an event without duration, such as a bite.
    key : str
        Key that scores it in annotation tools.
    channel : str
        Channel of the annotation file that it belongs to; empty for all.

    Examples
    --------
    >>> Behavior("bite", definition="teeth touch the skin of the other animal", point=True, key="b").point
    True
    """

    name: str
    definition: str = ""
    point: bool = False
    key: str = ""
    channel: str = ""


class Ethogram:
    """An ordered set of behaviors; the position of a behavior is its code.

    Parameters
    ----------
    behaviors : iterable of str or Behavior
        Unique names, in the order of their codes.
    background : str, optional
        The behavior that means "none of the others".
    exclusive : bool, optional
        Whether one behavior excludes the others; None if not stated. Not compared by ``==``.

    Raises
    ------
    EthobenchError
        If a name is empty or a duplicate.
    NotFoundError
        If `background` is not among the behaviors.

    Examples
    --------
    >>> ethogram = Ethogram(["attack", "mount", "other"], background="other")
    >>> ethogram.code("mount"), ethogram[0].name, ethogram.background
    (1, 'attack', 2)
    >>> "mount" in ethogram
    True
    """

    def __init__(self, behaviors: Iterable[str | Behavior], background: str | None = None, *, exclusive: bool | None = None) -> None:
        self._behaviors = tuple(b if isinstance(b, Behavior) else Behavior(str(b)) for b in behaviors)
        self._codes = {b.name: i for i, b in enumerate(self._behaviors)}
        if len(self._codes) != len(self._behaviors):
            names = [b.name for b in self._behaviors]
            duplicates = sorted({n for n in names if names.count(n) > 1})
            raise EthobenchError(f"duplicate behaviors in the ethogram: {', '.join(map(repr, duplicates))}")
        if "" in self._codes:
            raise EthobenchError("a behavior of the ethogram has an empty name")
        self.background: int | None = None if background is None else self.code(background)
        self.exclusive = exclusive

    def __len__(self) -> int:
        return len(self._behaviors)

    def __getitem__(self, index: int | str) -> Behavior:
        """Return the behavior with this code or name."""
        return self._behaviors[self.code(index) if isinstance(index, str) else index]

    def __iter__(self) -> Iterator[Behavior]:
        return iter(self._behaviors)

    def __contains__(self, item: object) -> bool:
        return item in self._codes if isinstance(item, str) else item in self._behaviors

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ethogram):
            return NotImplemented
        return self._behaviors == other._behaviors and self.background == other.background

    def __hash__(self) -> int:
        return hash((self._behaviors, self.background))

    def __repr__(self) -> str:
        background = "" if self.background_name is None else f", background={self.background_name!r}"
        return f"Ethogram({list(self.names)!r}{background})"

    def _repr_html_(self) -> str:
        """Return a table of the behaviors for notebooks."""
        rows = [
            (code, b.name, "point" if b.point else "background" if code == self.background else "state", b.key, b.definition)
            for code, b in enumerate(self)
        ]
        return html_table(("code", "behavior", "type", "key", "definition"), rows, f"Ethogram of {len(self)} behaviors")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the behaviors, in the order of their codes."""
        return tuple(b.name for b in self._behaviors)

    @property
    def background_name(self) -> str | None:
        """Name of the background behavior; None if there is none."""
        return None if self.background is None else self._behaviors[self.background].name

    def code(self, name: str) -> int:
        """Return the code of a behavior.

        Raises
        ------
        NotFoundError
            Lists the behaviors of the ethogram.
        """
        try:
            return self._codes[name]
        except KeyError:
            similar = get_close_matches(name, self._codes, n=1, cutoff=0.7)
            hint = f"; did you mean {similar[0]!r}?" if similar else ""
            names = ", ".join(self._codes) or "it is empty"
            raise NotFoundError(f"no behavior {name!r} in the ethogram ({names}){hint}") from None

    def restrict(self, names: Iterable[str]) -> Ethogram:
        """Keep only these behaviors, in the order given."""
        kept = [self._behaviors[self.code(name)] for name in ([names] if isinstance(names, str) else names)]
        background = self.background_name if self.background_name in {b.name for b in kept} else None
        return Ethogram(kept, background, exclusive=self.exclusive)

    def rename(self, names: Mapping[str, str]) -> Ethogram:
        """Rename behaviors, old name to new name; those with the same new name are merged, at the position of the first.

        Examples
        --------
        >>> Ethogram(["sniff", "follow", "rest"]).rename({"sniff": "social", "follow": "social"})
        Ethogram(['social', 'rest'])
        """
        for old in names:
            self.code(old)
        merged: dict[str, Behavior] = {}
        for behavior in self._behaviors:
            new = names.get(behavior.name, behavior.name)
            if new not in merged or behavior.name == new:
                merged[new] = replace(behavior, name=new)
        background = None if self.background_name is None else names.get(self.background_name, self.background_name)
        return Ethogram(merged.values(), background, exclusive=self.exclusive)

    def join(self, other: Ethogram) -> Ethogram:
        """Return this ethogram followed by the behaviors that only `other` has."""
        added = [b for b in other if b.name not in self]
        background = self.background_name or other.background_name
        stated = {side.exclusive for side in (self, other) if len(side)}
        return Ethogram([*self, *added], background, exclusive=stated.pop() if len(stated) == 1 else None)


def join_ethograms(ethograms: Iterable[Ethogram]) -> Ethogram:
    """Join ethograms by name, in the order of first appearance.

    Examples
    --------
    >>> join_ethograms([Ethogram(["rest", "walk"]), Ethogram(["walk", "groom"])])
    Ethogram(['rest', 'walk', 'groom'])
    """
    joined = Ethogram([])
    for ethogram in ethograms:
        joined = joined.join(ethogram)
    return joined


def check_renames(names: Mapping[str, str], ethograms: Iterable[Ethogram]) -> None:
    """Raise a `NotFoundError` if an old name in `names` is in none of the ethograms."""
    labels = Ethogram(dict.fromkeys(name for ethogram in ethograms for name in ethogram.names))
    for old in names:
        labels.code(old)


def guess_background(names: Iterable[str]) -> str | None:
    """Return the name that commonly means background ("other", "base", ...), if there is exactly one."""
    candidates = [name for name in names if name.strip().lower() in BACKGROUND_NAMES]
    return candidates[0] if len(candidates) == 1 else None
