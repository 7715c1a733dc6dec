"""The behaviors that an annotation may name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from ethobench.core.errors import EthobenchError, NotFoundError

BACKGROUND_NAMES = frozenset({"other", "background", "none", "base", "no behavior", "no_behavior", "nothing"})


@dataclass(frozen=True)
class Behavior:
    """One entry of an ethogram.

    Parameters
    ----------
    name : str
        What the annotation files call it.
    definition : str
        How a person recognises it.
    point : bool
        An event without duration, such as a bite.
    key : str
        The key that scores it in annotation tools.
    channel : str
        The channel of the annotation file that it belongs to; empty for all.
    """

    name: str
    definition: str = ""
    point: bool = False
    key: str = ""
    channel: str = ""


class Ethogram:
    """An ordered set of behaviors; the place of a behavior in it is its code.

    Parameters
    ----------
    behaviors : iterable of str or Behavior
        Unique names, in the order of their codes.
    background : str, optional
        The behavior that means "none of the others".
    exclusive : bool, optional
        Whether one behavior excludes the others; None where it is not stated. Not compared by ``==``.

    Examples
    --------
    >>> ethogram = Ethogram(["attack", "mount", "other"], background="other")
    >>> ethogram.code("mount"), ethogram[0].name, ethogram.background
    (1, 'attack', 2)
    """

    def __init__(self, behaviors: Iterable[str | Behavior], background: str | None = None, *, exclusive: bool | None = None) -> None:
        self._behaviors = tuple(b if isinstance(b, Behavior) else Behavior(str(b)) for b in behaviors)
        self._codes = {b.name: i for i, b in enumerate(self._behaviors)}
        if len(self._codes) != len(self._behaviors):
            names = [b.name for b in self._behaviors]
            twice = sorted({n for n in names if names.count(n) > 1})
            raise EthobenchError(f"an ethogram names each behavior once, but {', '.join(map(repr, twice))} stand twice")
        if "" in self._codes:
            raise EthobenchError("a behavior needs a name, and one is empty")
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

    @property
    def names(self) -> tuple[str, ...]:
        """The behaviors' names, in the order of their codes."""
        return tuple(b.name for b in self._behaviors)

    @property
    def background_name(self) -> str | None:
        """The name of the background behavior, if there is one."""
        return None if self.background is None else self._behaviors[self.background].name

    def code(self, name: str) -> int:
        """Return the code of a behavior, or raise an error that lists the names there are."""
        try:
            return self._codes[name]
        except KeyError:
            near = get_close_matches(name, self._codes, n=1, cutoff=0.7)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            known = ", ".join(self._codes) or "no behavior at all"
            raise NotFoundError(f"no behavior {name!r} in the ethogram ({known}){hint}") from None

    def restrict(self, names: Iterable[str]) -> Ethogram:
        """Keep only these behaviors, in the order given."""
        kept = [self._behaviors[self.code(name)] for name in ([names] if isinstance(names, str) else names)]
        background = self.background_name if self.background_name in {b.name for b in kept} else None
        return Ethogram(kept, background, exclusive=self.exclusive)

    def rename(self, names: Mapping[str, str]) -> Ethogram:
        """Rename behaviors; those that get the same name become one, at the first one's place."""
        for old in names:
            self.code(old)
        merged: dict[str, Behavior] = {}
        for behavior in self._behaviors:
            new = names.get(behavior.name, behavior.name)
            if new not in merged or behavior.name == new:
                place = replace(behavior, name=new)
                merged = {**merged, new: place}
        background = None if self.background_name is None else names.get(self.background_name, self.background_name)
        return Ethogram(merged.values(), background, exclusive=self.exclusive)

    def join(self, other: Ethogram) -> Ethogram:
        """Return this ethogram followed by the behaviors that only `other` has."""
        extra = [b for b in other if b.name not in self]
        background = self.background_name or other.background_name
        stated = {side.exclusive for side in (self, other) if len(side)}
        return Ethogram([*self, *extra], background, exclusive=stated.pop() if len(stated) == 1 else None)


def check_renames(names: Mapping[str, str], ethograms: Iterable[Ethogram]) -> None:
    """Raise a `NotFoundError` that lists the behaviors there are if none of the ethograms has one of the old names."""
    labels = Ethogram(dict.fromkeys(name for ethogram in ethograms for name in ethogram.names))
    for old in names:
        labels.code(old)


def guess_background(names: Iterable[str]) -> str | None:
    """Return the one name that usually means background ("other", "base", ...), if exactly one is there."""
    found = [name for name in names if name.strip().lower() in BACKGROUND_NAMES]
    return found[0] if len(found) == 1 else None
