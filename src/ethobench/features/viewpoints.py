"""The same poses from other points of view: in the image's size, in an animal's own frame, with one animal first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.body import Skeleton, place_bodies
from ethobench.features.gaps import Array


def normalized_coordinates(poses: Poses, width: float, height: float) -> tuple[Array, tuple[str, ...]]:
    """Return coordinates as shares of the image's size, as the MABe 2021 baselines take them.

    Nothing is centred or turned; missing keypoints stay NaN.

    Parameters
    ----------
    poses : Poses
    width, height : float
        Of the image, in the tracker's units.

    Returns
    -------
    coordinates : array (n_frames, n_individuals * n_keypoints * 2)
        By individual, then keypoint, then x and y.
    names : tuple of str
    """
    if not (width > 0 and height > 0):
        raise EthobenchError(f"an image has a width and a height above 0, not {width!r} and {height!r}")
    if poses.positions.shape[3] != 2:
        raise MismatchError("only poses with two coordinates lie in an image; these have three")
    values = np.asarray(poses.positions, dtype=np.float64) / np.array([width, height])
    return values.reshape(len(poses), -1), poses.to_signals().channels


def egocentric(poses: Poses, reference: str | None = None, *, keypoints: Mapping[str, Keypoint] | None = None) -> Poses:
    """Move and turn each frame so that an animal's centre is at the origin and its body points along x.

    The body points from the base of the tail to the neck, or along what stands in for them. Frames in which its centre or
    direction is unknown become NaN. A third coordinate stays as it is.

    Parameters
    ----------
    poses : Poses
        With gaps bridged, best of all.
    reference : str, optional
        The animal in whose frame all are seen; each in its own unless given.
    keypoints : mapping of name to Keypoint, optional
        Stated roles; guessed from the names unless given.
    """
    if reference is not None and reference not in poses.individuals:
        raise NotFoundError(f"no animal {reference!r}; there are: {', '.join(poses.individuals)}")
    positions = np.array(poses.positions, dtype=np.float64)
    bodies = place_bodies(positions, Skeleton.of(poses.keypoints, keypoints))
    center, axis = bodies.center, bodies.axis
    if reference is not None:
        place = poses.individuals.index(reference)
        center, axis = center[place : place + 1], axis[place : place + 1]
    with np.errstate(invalid="ignore", divide="ignore"):  # an animal that is missing has no direction
        turned = (bodies.points - center[:, None]) * (axis.conj() / np.abs(axis))[:, None]
    positions[..., 0], positions[..., 1] = turned.real.transpose(2, 0, 1), turned.imag.transpose(2, 0, 1)
    return replace(poses, positions=positions)


def as_seen_by(poses: Poses, subject: str, target: str | None = None) -> Poses:
    """Put one animal first and, where it acts towards another, that one second; the others follow in their order.

    Models of directed behavior see one example for each subject, or for each ordered pair.

    Parameters
    ----------
    poses : Poses
    subject : str
    target : str, optional

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> poses = load_dataset("synthetic/pose", individuals=1, seconds=1).recordings[0].signals
    >>> as_seen_by(poses, "intruder").individuals
    ('intruder', 'resident')
    """
    first = [subject] if target is None else [subject, target]
    for name in first:
        if name not in poses.individuals:
            raise NotFoundError(f"no animal {name!r}; there are: {', '.join(poses.individuals)}")
    if subject == target:
        raise EthobenchError(f"subject and target are two animals, not {subject!r} twice")
    names = (*first, *(name for name in poses.individuals if name not in first))
    places = [poses.individuals.index(name) for name in names]
    return replace(poses, positions=poses.positions[:, places], confidence=poses.confidence[:, places], individuals=names)
