"""Windows changed at random in ways that leave their behavior what it is: poses moved about the arena, tags that sit askew."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from ethobench.core.errors import EthobenchError
from ethobench.features.filters import axis_triples
from ethobench.features.keypoints import guess_mirrors

if TYPE_CHECKING:
    from torch import Generator, Tensor

Augmentation: TypeAlias = "Callable[[Tensor, Layout, Generator], Tensor]"

SHIFT = 0.25  # share of the arena's sides, as published
LOST = 0.1  # chance that a keypoint is lost for some of a window
TILT = math.radians(15)
GROWTH = 1.2


@dataclass(frozen=True)
class Layout:
    """What the channels of a window stand for.

    Attributes
    ----------
    channels : tuple of str
        All of them, in order.
    animals, keypoints : tuple of str
        The first channels are these animals' keypoints, x and y of each; none for tags and features.
    center : (x, y)
        The middle of the arena, in the units of the channels.
    aspect : float
        How much longer one unit of x is than one of y, where coordinates are shares of an arena that is no square.
    mean, scale : tuple of float
        What was taken from each channel, and what it was divided by then; 0 and 1 unless told.
    mirrors : mapping of str to str
        Left and right partners among the keypoints; guessed from their names unless told.
    """

    channels: tuple[str, ...]
    animals: tuple[str, ...] = ()
    keypoints: tuple[str, ...] = ()
    center: tuple[float, float] = (0.5, 0.5)
    aspect: float = 1.0
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    mirrors: dict[str, str] | None = field(default=None, hash=False)

    @property
    def n_coordinates(self) -> int:
        """How many channels are coordinates of keypoints."""
        return 2 * len(self.animals) * len(self.keypoints)

    @cached_property
    def triples(self) -> tuple[tuple[int, ...], ...]:
        """The channels that are x, y and z of one vector, of all that are no keypoint's."""
        first = self.n_coordinates
        return tuple(tuple(first + place for place in places) for places in axis_triples(self.channels[first:]).values())

    @cached_property
    def mirrored(self) -> tuple[int, ...]:
        """The place of each keypoint's partner; its own on the midline."""
        partners = guess_mirrors(self.keypoints) if self.mirrors is None else self.mirrors
        return tuple(self.keypoints.index(partners.get(name, name)) for name in self.keypoints)


def augment(values: Tensor, names: Sequence[str], layout: Layout, random: Generator) -> Tensor:
    """Change windows at random, each on its own, by one augmentation after another.

    A keypoint at exactly (0, 0) stands for one that is missing, a frame of zeros for one beyond the recording's ends: they stay so
    (but for ``published``, which knows no difference).

    Parameters
    ----------
    values : Tensor (n_windows, n_frames, n_channels)
        Left as it is.
    names : sequence of str
        See `AUGMENTATIONS`.
    layout : Layout
    random : torch.Generator
        On the device of the values.
    """
    for name in names:
        values = AUGMENTATIONS[name](values, layout, random)
    return values


def check_augmentations(names: Sequence[str]) -> None:
    """Refuse names that are unknown."""
    unknown = [name for name in names if name not in AUGMENTATIONS]
    if unknown:
        raise EthobenchError(f"no augmentation {', '.join(map(repr, unknown))}; there are: {', '.join(AUGMENTATIONS)}")


def check_layout(names: Sequence[str], layout: Layout) -> None:
    """Refuse augmentations that these channels do not allow."""
    for name in names:
        if name == "rotate_axes" and not layout.triples:
            raise EthobenchError(f"augmentation {name!r} turns x, y and z of a tag, and no three channels belong together so")
        if name == "scale" and not (layout.n_coordinates or layout.triples):
            raise EthobenchError(f"augmentation {name!r} needs keypoints, or three axes of a tag; these inputs have neither")
        if name not in ("rotate_axes", "scale") and not layout.n_coordinates:
            raise EthobenchError(f"augmentation {name!r} moves keypoints, and these inputs have no coordinates of any")


def published(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Turn and shift as the MABe 2021 baselines did.

    One angle about the origin, which is a corner of the image, in coordinates that were divided by its width and height, so that
    bodies are sheared; then one shift of each axis. All frames, also those of zeros beyond the ends, and all animals alike.
    """
    angle, shift = _uniform(len(values), math.pi, random), _uniform(len(values), SHIFT, random, 2)
    points, rest = _split(values, layout)
    return _join(_turned(points, angle) + _each(shift, points), rest)


def rotation(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Turn about the middle of the arena by any angle; shapes stay what they are, though the arena be no square."""
    angle = _uniform(len(values), math.pi, random)
    return _moved(values, layout, lambda offsets: _turned(offsets, angle))


def translation(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Shift by up to a quarter of the arena along each axis."""
    shift = _uniform(len(values), SHIFT, random, 2) * values.new_tensor([layout.aspect, 1.0])
    return _moved(values, layout, lambda offsets: offsets + _each(shift, offsets))


def reflection(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """See half of the windows in a mirror, where left keypoints are right ones."""
    import torch

    points, rest = _split(values, layout)
    flipped = torch.rand((len(values),), generator=random, device=values.device) < 0.5
    partners = points[..., list(layout.mirrored), :]
    there = (partners != 0).any(dim=-1, keepdim=True)
    seen = torch.stack([partners[..., 0], 2 * layout.center[1] - partners[..., 1]], dim=-1).where(there, partners)
    return _join(seen.where(_each(flipped, points), points), rest)


def swap(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Deal the identities anew, for behaviors in which it does not matter who is who."""
    import torch

    points, rest = _split(values, layout)
    order = torch.rand((len(values), len(layout.animals)), generator=random, device=values.device).argsort(dim=1)
    return _join(points.gather(2, order[:, None, :, None, None].expand_as(points)), rest)


def dropout(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Lose single keypoints for a stretch of the window."""
    import torch

    points, rest = _split(values, layout)
    n, frames, animals, keypoints, _ = points.shape
    first, length, chance = torch.rand((3, n, 1, animals, keypoints, 1), generator=random, device=values.device)
    place = torch.linspace(0, 1, frames, device=values.device)[:, None, None, None]
    lost = (chance < LOST) & (place >= first) & (place <= first + length)
    return _join(points.masked_fill(lost, 0.0), rest)


def rotate_axes(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Turn the x, y and z of a tag by a small angle, as if it sat askew; all vectors of a window alike."""
    import torch

    axis = torch.nn.functional.normalize(torch.randn((len(values), 3), generator=random, device=values.device), dim=1)
    angle = _uniform(len(values), TILT, random)
    turn = torch.linalg.matrix_exp(torch.linalg.cross(torch.eye(3, device=values.device)[None], (axis * angle[:, None])[:, None, :]))
    return _changed(values, layout, lambda vectors: torch.einsum("nftc,ndc->nftd", vectors, turn))


def scale(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Make the vectors of a tag longer or shorter by up to a fifth; the same for bodies and distances of poses."""
    factor = GROWTH ** _uniform(len(values), 1.0, random)
    if layout.n_coordinates:
        values = _moved(values, layout, lambda offsets: offsets * _each(factor, offsets))
    return _changed(values, layout, lambda vectors: vectors * _each(factor, vectors)) if layout.triples else values


AUGMENTATIONS: dict[str, Augmentation] = {
    each.__name__: each for each in (published, rotation, translation, reflection, swap, dropout, rotate_axes, scale)
}


def _split(values: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """Take keypoints (window, frame, animal, keypoint, axis) from the other channels."""
    n = layout.n_coordinates
    return values[..., :n].reshape(*values.shape[:-1], len(layout.animals), len(layout.keypoints), 2), values[..., n:]


def _join(points: Tensor, rest: Tensor) -> Tensor:
    import torch

    return torch.cat([points.flatten(-3), rest], dim=-1)


def _to_offsets(points: Tensor, layout: Layout) -> Tensor:
    """Measure from the middle of the arena, in units that are as long along x as along y."""
    return (points - points.new_tensor(layout.center)) * points.new_tensor([layout.aspect, 1.0])


def _from_offsets(offsets: Tensor, layout: Layout) -> Tensor:
    return offsets / offsets.new_tensor([layout.aspect, 1.0]) + offsets.new_tensor(layout.center)


def _moved(values: Tensor, layout: Layout, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Change where the keypoints are that are there."""
    points, rest = _split(values, layout)
    there = (points != 0).any(dim=-1, keepdim=True)
    return _join(_from_offsets(change(_to_offsets(points, layout)), layout).where(there, points), rest)


def _changed(values: Tensor, layout: Layout, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Change the vectors (window, frame, vector, axis) of a tag, in the units in which they were measured."""
    places = list(layout.triples)
    flat = [place for triple in places for place in triple]
    size, middle = (
        values.new_tensor([told[place] for place in flat]) if told else values.new_full((len(flat),), usual)
        for told, usual in ((layout.scale, 1.0), (layout.mean, 0.0))
    )
    vectors = (values[..., flat] * size + middle).reshape(*values.shape[:-1], len(places), 3)
    result = values.clone()
    result[..., flat] = (change(vectors).flatten(-2) - middle) / size
    return result.where((values != 0).any(dim=-1, keepdim=True), values)


def _turned(points: Tensor, angle: Tensor) -> Tensor:
    import torch

    x, y = points.unbind(dim=-1)
    cos, sin = _each(angle.cos(), x), _each(angle.sin(), x)
    return torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1)


def _each(per_window: Tensor, like: Tensor) -> Tensor:
    """Let a number (or a pair, for x and y) of each window stand for all of its values."""
    tail = per_window.shape[1:]
    return per_window.reshape(len(per_window), *[1] * (like.ndim - 1 - len(tail)), *tail)


def _uniform(n: int, most: float, random: Generator, *tail: int) -> Tensor:
    """Draw from -most to most."""
    import torch

    return (2 * torch.rand((n, *tail), generator=random, device=random.device) - 1) * most
