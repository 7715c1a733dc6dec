"""How a model that knows one skeleton reads another lab's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ethobench.core.errors import MismatchError, Note
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.gaps import mean_known
from ethobench.features.pose_roles import NO_ROLE, ROLES, canonical_role, roles_of, spelling

# Where a role is missing, the middle of these stands in for it; the first whose keypoints are all there.
STAND_INS: dict[str, tuple[tuple[str, ...], ...]] = {
    "nose": (("head",),),
    "head": (("left_ear", "right_ear"), ("nose",)),
    "neck": (("left_ear", "right_ear"), ("head", "center")),
    "center": (("neck", "left_hip", "right_hip"), ("neck", "tail_base"), ("head", "tail_base"), ("nose", "tail_base")),
    "tail_base": (("left_hip", "right_hip"),),
    "tail_mid": (("tail_base", "tail_tip"),),
}


@dataclass(frozen=True)
class KeypointMap:
    """Which keypoint of a recording to read for each one that a model knows.

    Attributes
    ----------
    trained : tuple of str
        The keypoints that the model knows, in its order.
    read : mapping of str to str
        Trained to found.
    estimated : mapping of str to tuple of str
        Trained to the found keypoints whose middle stands in for it.
    missing : tuple of str
        Trained keypoints that the recording does not have.
    unused : tuple of str
        Found keypoints that the model does not know.
    """

    trained: tuple[str, ...]
    read: Mapping[str, str]
    estimated: Mapping[str, tuple[str, ...]]
    missing: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a user should know: other names, stand-ins, what is missing and what is not used."""
        renamed = [f"{found} as {name}" for name, found in self.read.items() if found != name]
        stand_ins = [f"{name} from {' and '.join(found)}" for name, found in self.estimated.items()]
        told = {"read": renamed, "estimated": stand_ins, "missing": self.missing, "not used": self.unused}
        return tuple(Note(f"keypoints {what}: {', '.join(names)}") for what, names in told.items() if names)

    def apply(self, poses: Poses) -> Poses:
        """Return poses with the keypoints that the model knows, in its order; NaN where one is missing."""
        place = {name: i for i, name in enumerate(poses.keypoints)}
        lacking = [name for name in (*self.read.values(), *(n for names in self.estimated.values() for n in names)) if name not in place]
        if lacking:
            raise MismatchError(f"the poses have no keypoint {lacking[0]!r}; the map was made for others")
        shape = (len(poses), len(poses.individuals), len(self.trained))
        positions, confidence = np.full((*shape, poses.positions.shape[3]), np.nan), np.full(shape, np.nan)
        for k, name in enumerate(self.trained):
            if name in self.read:
                positions[:, :, k] = poses.positions[:, :, place[self.read[name]]]
                confidence[:, :, k] = poses.confidence[:, :, place[self.read[name]]]
            elif name in self.estimated:
                parts = [place[part] for part in self.estimated[name]]
                positions[:, :, k] = mean_known(poses.positions[:, :, parts], axis=2)
                confidence[:, :, k] = poses.confidence[:, :, parts].min(axis=2)
        return replace(poses, positions=positions, confidence=confidence, keypoints=self.trained)


def match_keypoints(
    trained: Sequence[str],
    found: Sequence[str],
    *,
    trained_roles: Mapping[str, Keypoint] | None = None,
    found_roles: Mapping[str, Keypoint] | None = None,
) -> KeypointMap:
    """Find, for each keypoint that a model knows, the one to read in another skeleton.

    A stated role counts most, then the same name, then the same name in another spelling, then the same guessed role.
    What is still missing is estimated from its neighbours where that makes sense.

    Parameters
    ----------
    trained, found : sequence of str
    trained_roles, found_roles : mapping of name to Keypoint, optional
        Stated roles, as in a manifest's ``keypoints.csv``.

    Examples
    --------
    >>> fit = match_keypoints(["nose", "neck", "tail_base", "tail_tip"], ["snout", "leftear", "rightear", "tailbase"])
    >>> fit.read, fit.estimated, fit.missing
    ({'nose': 'snout', 'tail_base': 'tailbase'}, {'neck': ('leftear', 'rightear')}, ('tail_tip',))
    """
    wanted, there = roles_of(trained, trained_roles), roles_of(found, found_roles)
    said = {name: canonical_role(point.role) for name, point in (found_roles or {}).items() if point.role}
    named = [name for name in found if said.get(name) not in (NO_ROLE, *ROLES)]  # the others are what they are said to be
    keys: list[tuple[dict[str, object], dict[str, object]]] = [
        ({name: wanted.get(name) for name in trained}, {name: role for name, role in there.items() if name in said}),
        ({name: name for name in trained}, {name: name for name in named}),
        ({name: spelling(name) for name in trained}, {name: spelling(name) for name in named}),
        ({name: wanted.get(name) for name in trained}, {**there}),
    ]
    read: dict[str, str] = {}
    for mine, theirs in keys:
        free = {key: name for name, key in reversed(theirs.items()) if name not in read.values()}
        read.update({name: free.pop(key) for name, key in mine.items() if name not in read and key in free})
    if not read:
        raise MismatchError(
            f"none of the keypoints {', '.join(trained)} is among {', '.join(found)}; say in keypoints.csv which keypoint has which role"
        )
    owner = {role: name for name, role in there.items()}
    estimated = {}
    for name in trained:
        choices = STAND_INS.get(wanted.get(name, ""), ()) if name not in read else ()
        fit = next((parts for parts in choices if all(part in owner for part in parts)), None)
        if fit is not None:
            estimated[name] = tuple(owner[part] for part in fit)
    used = {*read.values(), *(part for parts in estimated.values() for part in parts)}
    return KeypointMap(
        tuple(trained),
        {name: read[name] for name in trained if name in read},
        estimated,
        tuple(name for name in trained if name not in read and name not in estimated),
        tuple(name for name in found if name not in used),
    )
