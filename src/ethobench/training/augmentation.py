"""Random augmentations of windows that do not change the behavior: moved and mirrored poses, rotated tags."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.features.filters import axis_triples
from ethobench.features.keypoints import guess_mirrors

if TYPE_CHECKING:
    from torch import Generator, Tensor

Augmentation: TypeAlias = "Callable[[Tensor, Layout, Generator], Tensor]"

MAX_SHIFT = 0.25  # as a fraction of the arena, as published
DROPOUT_PROBABILITY = 0.1  # of a keypoint, in a run of frames of a window
MAX_TILT = math.radians(15)  # of a tag
MAX_SCALE = 1.2


@dataclass(frozen=True)
class Layout:
    """The meaning of the channels of a window.

    Attributes
    ----------
    channels : tuple of str
        Names of all channels, in order.
    animals, keypoints : tuple of str
        The first channels are x and y of the keypoints of these animals; empty for tags and features.
    center : (x, y)
        Center of the arena, in the units of the channels.
    aspect : float
        Length of one unit of x relative to one of y, where coordinates are fractions of an arena that is not square.
    mean, scale : tuple of float
        Subtracted from each channel, and divided by, before; 0 and 1 by default.
    mirrors : mapping of str to str
        Left and right partners among the keypoints; guessed from their names by default.
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
        """Number of channels that are coordinates of keypoints."""
        return 2 * len(self.animals) * len(self.keypoints)

    @cached_property
    def triples(self) -> tuple[tuple[int, ...], ...]:
        """The channels that are x, y and z of one sensor; coordinates of keypoints are not considered."""
        first = self.n_coordinates
        return tuple(tuple(first + column for column in columns) for columns in axis_triples(self.channels[first:]).values())

    @cached_property
    def mirrored(self) -> tuple[int, ...]:
        """Index of each keypoint's mirror partner; its own index on the midline."""
        partners = guess_mirrors(self.keypoints) if self.mirrors is None else self.mirrors
        return tuple(self.keypoints.index(partners.get(name, name)) for name in self.keypoints)


def augment(values: Tensor, names: Sequence[str], layout: Layout, random: Generator) -> Tensor:
    """Apply augmentations one after the other, each window with its own random numbers.

    A keypoint at exactly (0, 0) is missing, and a frame of zeros is beyond the ends of the recording: they stay zero (except with
    ``published``, which makes no difference).

    Parameters
    ----------
    values : Tensor (n_windows, n_frames, n_channels)
        Not changed.
    names : sequence of str
        Names in `AUGMENTATIONS`.
    layout : Layout
    random : torch.Generator
        On the device of the values.

    Returns
    -------
    Tensor (n_windows, n_frames, n_channels)
    """
    for name in names:
        values = AUGMENTATIONS[name](values, layout, random)
    return values


def check_augmentations(names: Sequence[str]) -> None:
    """Refuse unknown names."""
    unknown = [name for name in names if name not in AUGMENTATIONS]
    if unknown:
        raise ParameterError(f"unknown augmentation {', '.join(map(repr, unknown))}; available: {', '.join(AUGMENTATIONS)}")


def check_layout(names: Sequence[str], layout: Layout) -> None:
    """Refuse augmentations that do not apply to these channels."""
    for name in names:
        if name == "rotate_axes" and not layout.triples:
            raise EthobenchError(f"augmentation {name!r} needs x, y and z of a sensor, and no three channels are")
        if name == "scale" and not (layout.n_coordinates or layout.triples):
            raise EthobenchError(f"augmentation {name!r} needs keypoints, or x, y and z of a sensor; these inputs have neither")
        if name not in ("rotate_axes", "scale") and not layout.n_coordinates:
            raise EthobenchError(f"augmentation {name!r} needs coordinates of keypoints, and these inputs have no coordinates")


def published(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Rotate and shift as in the MABe 2021 baselines.

    The rotation is about the origin, which is a corner of the image, in coordinates that were divided by its width and height, so that
    bodies are sheared. All animals and all frames, including the zeros beyond the ends, are moved alike.
    """
    angle, shift = _uniform(len(values), math.pi, random), _uniform(len(values), MAX_SHIFT, random, 2)
    points, rest = _split(values, layout)
    return _join(_rotate(points, angle) + _broadcast(shift, points), rest)


def rotation(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Rotate about the center of the arena by any angle; bodies keep their shape even if the arena is not square."""
    angle = _uniform(len(values), math.pi, random)
    return _transform_points(values, layout, lambda offsets: _rotate(offsets, angle))


def translation(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Shift by up to a quarter of the arena along each axis."""
    shift = _uniform(len(values), MAX_SHIFT, random, 2) * values.new_tensor([layout.aspect, 1.0])
    return _transform_points(values, layout, lambda offsets: offsets + _broadcast(shift, offsets))


def reflection(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Mirror half of the windows, and exchange left and right keypoints."""
    import torch

    points, rest = _split(values, layout)
    flipped = torch.rand((len(values),), generator=random, device=values.device) < 0.5
    partners = points[..., list(layout.mirrored), :]
    present = (partners != 0).any(dim=-1, keepdim=True)
    mirrored = torch.stack([partners[..., 0], 2 * layout.center[1] - partners[..., 1]], dim=-1).where(present, partners)
    return _join(mirrored.where(_broadcast(flipped, points), points), rest)


def swap(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Permute the animals, for behaviors in which their identity does not matter."""
    import torch

    points, rest = _split(values, layout)
    order = torch.rand((len(values), len(layout.animals)), generator=random, device=values.device).argsort(dim=1)
    return _join(points.gather(2, order[:, None, :, None, None].expand_as(points)), rest)


def dropout(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Remove single keypoints in a run of frames."""
    import torch

    points, rest = _split(values, layout)
    n, frames, animals, keypoints, _ = points.shape
    first, length, draw = torch.rand((3, n, 1, animals, keypoints, 1), generator=random, device=values.device)
    time = torch.linspace(0, 1, frames, device=values.device)[:, None, None, None]
    removed = (draw < DROPOUT_PROBABILITY) & (time >= first) & (time <= first + length)
    return _join(points.masked_fill(removed, 0.0), rest)


def rotate_axes(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Rotate x, y and z of a tag by a small angle, as if it were attached differently; all sensors of a window alike."""
    import torch

    axis = torch.nn.functional.normalize(torch.randn((len(values), 3), generator=random, device=values.device), dim=1)
    angle = _uniform(len(values), MAX_TILT, random)
    rotation_matrix = torch.linalg.matrix_exp(
        torch.linalg.cross(torch.eye(3, device=values.device)[None], (axis * angle[:, None])[:, None, :])
    )
    return _transform_vectors(values, layout, lambda vectors: torch.einsum("nftc,ndc->nftd", vectors, rotation_matrix))


def scale(values: Tensor, layout: Layout, random: Generator) -> Tensor:
    """Scale the vectors of a tag, or the poses, by a factor between 1 / 1.2 and 1.2."""
    factor = MAX_SCALE ** _uniform(len(values), 1.0, random)
    if layout.n_coordinates:
        values = _transform_points(values, layout, lambda offsets: offsets * _broadcast(factor, offsets))
    return _transform_vectors(values, layout, lambda vectors: vectors * _broadcast(factor, vectors)) if layout.triples else values


AUGMENTATIONS: dict[str, Augmentation] = {
    function.__name__: function for function in (published, rotation, translation, reflection, swap, dropout, rotate_axes, scale)
}


def _split(values: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """Separate keypoints (window, frame, animal, keypoint, axis) from the other channels."""
    n = layout.n_coordinates
    return values[..., :n].reshape(*values.shape[:-1], len(layout.animals), len(layout.keypoints), 2), values[..., n:]


def _join(points: Tensor, rest: Tensor) -> Tensor:
    import torch

    return torch.cat([points.flatten(-3), rest], dim=-1)


def _to_offsets(points: Tensor, layout: Layout) -> Tensor:
    """Return positions relative to the center of the arena, in units that are equally long along x and y."""
    return (points - points.new_tensor(layout.center)) * points.new_tensor([layout.aspect, 1.0])


def _from_offsets(offsets: Tensor, layout: Layout) -> Tensor:
    return offsets / offsets.new_tensor([layout.aspect, 1.0]) + offsets.new_tensor(layout.center)


def _transform_points(values: Tensor, layout: Layout, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Transform the positions of keypoints that are not missing."""
    points, rest = _split(values, layout)
    present = (points != 0).any(dim=-1, keepdim=True)
    return _join(_from_offsets(change(_to_offsets(points, layout)), layout).where(present, points), rest)


def _transform_vectors(values: Tensor, layout: Layout, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Transform the vectors (window, frame, vector, axis) of a tag, in their original units."""
    columns = [column for triple in layout.triples for column in triple]
    scale = values.new_tensor([layout.scale[column] for column in columns] if layout.scale else [1.0] * len(columns))
    mean = values.new_tensor([layout.mean[column] for column in columns] if layout.mean else [0.0] * len(columns))
    vectors = (values[..., columns] * scale + mean).reshape(*values.shape[:-1], len(layout.triples), 3)
    result = values.clone()
    result[..., columns] = (change(vectors).flatten(-2) - mean) / scale
    return result.where((values != 0).any(dim=-1, keepdim=True), values)


def _rotate(points: Tensor, angle: Tensor) -> Tensor:
    import torch

    x, y = points.unbind(dim=-1)
    cos, sin = _broadcast(angle.cos(), x), _broadcast(angle.sin(), x)
    return torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1)


def _broadcast(per_window: Tensor, like: Tensor) -> Tensor:
    """Reshape a number (or a pair, for x and y) per window so that it broadcasts over all values of the window."""
    tail = per_window.shape[1:]
    return per_window.reshape(len(per_window), *[1] * (like.ndim - 1 - len(tail)), *tail)


def _uniform(n: int, limit: float, random: Generator, *tail: int) -> Tensor:
    """Draw from -limit to limit."""
    import torch

    return (2 * torch.rand((n, *tail), generator=random, device=random.device) - 1) * limit
