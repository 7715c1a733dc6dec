"""Poses of another lab, as a model knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ethobench.core import Poses, Recording
from ethobench.core.errors import MismatchError, Note
from ethobench.core.signals import Keypoint
from ethobench.features.keypoints import match_keypoints


def as_known(
    recording: Recording,
    inputs: Sequence[str],
    roles: Mapping[str, Keypoint],
    recorded_roles: Mapping[str, Keypoint],
    *,
    keep_names: bool = False,
) -> Recording:
    """Return a recording with the animals and keypoints that a model learnt from, where others stand for them.

    Keypoints are matched by their roles and names, animals of other names by their order. What was done is told in the notes.

    Parameters
    ----------
    recording : Recording
        With poses.
    inputs : sequence of str
        What the model knows, as ``animal/keypoint``.
    roles, recorded_roles : mapping of name to Keypoint
        Stated roles of the model's keypoints and of the recording's.
    keep_names : bool
        Leave the animals their names, whatever those are in `inputs`.
    """
    poses = recording.signals
    if not isinstance(poses, Poses):
        return recording
    animals = tuple(dict.fromkeys(name.rpartition("/")[0] for name in inputs))
    keypoints = tuple(dict.fromkeys(name.rpartition("/")[2] for name in inputs))
    notes: list[Note] = []
    if not {*animals} <= {*poses.individuals}:
        if len(animals) != len(poses.individuals):
            raise MismatchError(
                f"recording {recording.id!r} has {len(poses.individuals)} animals ({', '.join(poses.individuals)}), "
                f"the model learnt from {len(animals)} ({', '.join(animals)})"
            )
        if not keep_names:
            notes.append(Note(f"animals read: {', '.join(f'{a} as {b}' for a, b in zip(poses.individuals, animals, strict=True))}"))
            poses = replace(poses, individuals=animals)
    if not {*keypoints} <= {*poses.keypoints}:
        matched = match_keypoints(keypoints, poses.keypoints, trained_roles=roles, recorded_roles=recorded_roles)
        notes += matched.notes
        poses = matched.apply(poses)
    return recording.copy(signals=poses, notes=(*recording.notes, *notes)) if notes else recording
