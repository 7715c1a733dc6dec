"""Hyper-parameters that all networks on trajectories share."""

from __future__ import annotations

from ethobench.core.errors import EthobenchError
from ethobench.models.hyperparameters import Integers, Names, hyperparameters
from ethobench.training.augmentation import check_augmentations
from ethobench.training.fine_tuning import RECIPES
from ethobench.training.trajectories import Reach, check_weight
from ethobench.training.trajectory_inputs import KINDS

CONDITIONS = ("none", "annotator")
SHAPE = ("past", "future", "gap", "inputs", "layers", "kernel")
"""What a network has in common with the one that it begins with."""


@hyperparameters
class TrajectoryParams:
    """Hyper-parameters of every network on trajectories.

    Attributes
    ----------
    past, future, gap : int
        A window has so many frames before the current one and after it, `gap` frames apart. ``future=0`` looks at nothing to come.
    inputs : {"coordinates", "egocentric", "features", "coordinates+given"}
        What is seen of poses: coordinates as shares of the arena, as published; as the first animal sees them, in body lengths; the
        pose features; coordinates and the features that came with the data. Channels of a tag are taken as they are, standardised.
    min_confidence : float
        Keypoints of which the tracker is less sure count as missing; 0 trusts all, as published.
    layers : tuple of int
    dropout : float
    learning_rate : float
    epochs : int
    batch : int
    samples : int, optional
        The most frames that an epoch learns from, drawn anew for each; all of them unless given.
    together : int
        Frames in a row that an example has: 1 as published. Convolutions learn 20 in a row about nine times as fast, as what
        neighbours share is computed once; `batch` then counts stretches (64, say). Much longer ones make batches too alike.
    augment : tuple of str
        Some of ``published``, ``rotation``, ``translation``, ``reflection``, ``swap``, ``dropout`` for coordinates,
        ``rotate_axes`` and ``scale`` for tags.
    class_weight : {"none", "balanced"} or float
        ``balanced`` makes all behaviors count alike; a number is the weight of every behavior against the background.
    init : str
        A saved model of the same kind to begin with (its read-out too, where the behaviors are the same), or what
        `pretrain_poses` made.
    recipe : {"paper", "code"}
        How to go on from `init`: as the paper tells, or as its code did in effect (see `plan_phases`).
    head_epochs : int
        Epochs in which only the read-out learns, before the others; with `init` only.
    head_learning_rate : float, optional
        Of these epochs.
    condition : {"none", "annotator"}
        ``annotator``: one network for all annotators, each with a read-out of their own on top of the common one.
    """

    past: int = 100
    future: int = 100
    gap: int = 2
    inputs: str = "coordinates"
    min_confidence: float = 0.0
    layers: Integers = (128, 64, 32)
    dropout: float = 0.5
    learning_rate: float = 1e-3
    epochs: int = 15
    batch: int = 128
    samples: int | None = None
    together: int = 1
    augment: Names = ()
    class_weight: str | float = "none"
    init: str = ""
    recipe: str = "paper"
    head_epochs: int = 0
    head_learning_rate: float | None = None
    condition: str = "none"

    def __post_init__(self) -> None:
        Reach(self.past, self.future, self.gap)
        check_augmentations(self.augment)
        check_weight(self.class_weight)
        for name, allowed in (("inputs", KINDS), ("recipe", RECIPES), ("condition", CONDITIONS)):
            if getattr(self, name) not in allowed:
                raise EthobenchError(f"{name} is one of {', '.join(allowed)}, not {getattr(self, name)!r}")
        if not self.layers or min(self.layers) < 1 or not 0 <= self.dropout < 1:
            raise EthobenchError("a network needs at least one layer of at least one unit, and a dropout from 0 to below 1")
        if self.together < 1:
            raise EthobenchError(f"an example has at least one frame, not {self.together}")
        if self.batch < 2 or (self.samples is not None and self.samples < 2):
            raise EthobenchError("a batch, and an epoch, have at least two examples")
        if min(self.epochs, self.head_epochs) < 0 or not (self.epochs or self.init):
            raise EthobenchError("a network that does not begin with what another learnt needs at least one epoch")
        if self.head_epochs and not self.init:
            raise EthobenchError("epochs for the read-out alone (head_epochs) need a network to begin with (init)")
