"""Roles of keypoints: guessed from their names in any tool's spelling, and matched between two skeletons."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ethobench.core.errors import EthobenchError, MismatchError, Note
from ethobench.core.signals import Keypoint, Poses
from ethobench.features.missing_data import nan_mean

ROLES = ("nose", "head", "left_ear", "right_ear", "neck", "center", "left_hip", "right_hip", "tail_base", "tail_mid", "tail_tip")
NO_ROLE = "none"  # in a manifest, for a keypoint whose name is misleading

# Spellings without separators, the best first: of two keypoints that could have a role, the one with the earlier spelling gets it.
MIDLINE = {
    "nose": ("nose", "snout", "nosetip", "snouttip", "tipofnose", "muzzle", "beak", "rostrum"),
    "head": ("head", "headcenter", "headmid", "headmidpoint", "headtop", "topofhead", "headf", "skull", "implant", "headpiece", "top"),
    "neck": ("neck", "neckbase", "baseneck", "baseofneck", "nape"),
    "center": (
        *("center", "bodycenter", "centerbody", "centroid", "body", "bodymid", "midbody", "middle", "spinecenter", "centerspine"),
        *("spinemid", "midspine", "spinem", "midback", "backmid", "back", "torso", "trunk", "thorax"),
    ),
    "tail_base": ("tailbase", "basetail", "baseoftail", "tailroot", "tailstart", "tb", "tti", "tail", "rump", "abdomen"),
    "tail_mid": ("tailmid", "midtail", "tailmiddle", "tailmidpoint", "tailcenter", "tailm"),
    "tail_tip": ("tailtip", "tiptail", "tipoftail", "tailend", "endtail", "endoftail", "taile", "ttip", "tt"),
}
PAIRED = {
    "ear": ("ear", "earbase", "eartip", "e"),
    "hip": ("hip", "bhip", "backhip", "hindhip", "lat", "lateral", "flank", "haunch", "midside", "side"),
}
SIDES = {"left": "left", "right": "right", "l": "left", "r": "right"}
ANIMALS = frozenset({"mouse", "rat", "animal", "individual", "ind", "fly", "resident", "intruder", "track"})
NUMBERED = frozenset({"tail", "spine", "back"})  # their numbers distinguish keypoints; elsewhere a number counts animals

# A missing role is estimated as the mean of these; the first group whose keypoints are all present.
SUBSTITUTES: dict[str, tuple[tuple[str, ...], ...]] = {
    "nose": (("head",),),
    "head": (("left_ear", "right_ear"), ("nose",)),
    "neck": (("left_ear", "right_ear"), ("head", "center")),
    "center": (("neck", "left_hip", "right_hip"), ("neck", "tail_base"), ("head", "tail_base"), ("nose", "tail_base")),
    "tail_base": (("left_hip", "right_hip"),),
    "tail_mid": (("tail_base", "tail_tip"),),
}

_MIDLINE = {spelling: (rank, role) for role, spellings in MIDLINE.items() for rank, spelling in enumerate(spellings)}
_PAIRED = {spelling: (rank, role) for role, spellings in PAIRED.items() for rank, spelling in enumerate(spellings)}


class ParsedName(NamedTuple):
    """The name of a keypoint without case, separators and side."""

    side: str
    body_part: str


def parse_name(name: str) -> ParsedName:
    """Split a name into side and body part: ``"Ear_left"``, ``"leftEar"`` and ``"earL"`` are all the left ear.

    >>> parse_name("B_Left_ear"), parse_name("TailBase")
    (ParsedName(side='left', body_part='ear'), ParsedName(side='', body_part='tailbase'))
    """
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
    words = [word.replace("centre", "center") for word in words]
    side = next((SIDES[word] for word in words if word in ("left", "right")), "")
    words = [word for word in words if word not in ("left", "right")]
    if not side:
        words, side = _split_side(words)
    if len(words) > 1 and words[0] in ANIMALS:
        words = words[2:] if words[1].isdigit() and len(words) > 2 else words[1:]
    if len(words) > 1 and len(words[0]) == 1 and words[0].isalpha():
        words = words[1:]  # a single letter in front distinguishes animals: B_Nose, W_Nose
    return ParsedName(side, "".join(words))


def guess_roles(names: Sequence[str]) -> dict[str, str]:
    """Guess the roles of keypoints from their names; each role goes to one keypoint, and many keypoints have none.

    >>> guess_roles(["snout", "leftear", "rightear", "tailbase"])
    {'snout': 'nose', 'leftear': 'left_ear', 'rightear': 'right_ear', 'tailbase': 'tail_base'}
    """
    best: dict[str, tuple[int, int]] = {}
    for index, name in enumerate(names):
        ranked = _rank_and_role(parse_name(name))
        if ranked is not None:
            rank, role = ranked
            best[role] = min(best.get(role, (rank, index)), (rank, index))
    role_of = {index: role for role, (_, index) in best.items()}
    return {names[index]: role_of[index] for index in sorted(role_of)}


def assign_roles(names: Sequence[str], keypoints: Mapping[str, Keypoint] | None = None) -> dict[str, str]:
    """Return the roles of keypoints: the stated ones, and guesses from the names for the others.

    Parameters
    ----------
    names : sequence of str
    keypoints : mapping of name to Keypoint, optional
        Stated roles, as in a manifest's ``keypoints.csv``. ``"none"`` is no role; an empty role is guessed from the name.

    Returns
    -------
    dict of keypoint to role
    """
    stated = {name: canonical_role(keypoints[name].role) for name in names if keypoints and name in keypoints and keypoints[name].role}
    owners: dict[str, str] = {}
    for name, role in stated.items():
        if role != NO_ROLE and role in owners:
            raise EthobenchError(f"keypoints {owners[role]!r} and {name!r} both have the role {role!r}; a role can have one keypoint only")
        owners[role] = name
    guessed = guess_roles([name for name in names if name not in stated])
    roles = {**{name: role for name, role in guessed.items() if role not in owners}, **stated}
    return {name: roles[name] for name in names if roles.get(name, NO_ROLE) != NO_ROLE}


def canonical_role(text: str) -> str:
    """Return the canonical spelling of a role: ``"Tail base"`` is ``"tail_base"``; an unknown role is unchanged."""
    stripped = text.strip()
    if stripped.lower() == NO_ROLE:
        return NO_ROLE
    ranked = _rank_and_role(parse_name(stripped))
    return ranked[1] if ranked else stripped


def guess_mirrors(names: Sequence[str]) -> dict[str, str]:
    """Return the left or right partner of each keypoint; those on the midline have none.

    >>> guess_mirrors(["nose", "ear_left", "ear_right"])
    {'ear_left': 'ear_right', 'ear_right': 'ear_left'}
    """
    name_of = {parse_name(name): name for name in names}
    opposite = {"left": "right", "right": "left"}
    partners = {name: name_of.get(ParsedName(opposite[p.side], p.body_part)) for name in names if (p := parse_name(name)).side}
    return {name: partner for name, partner in partners.items() if partner is not None}


@dataclass(frozen=True)
class KeypointMap:
    """The keypoint of a recording to use for each keypoint of a model.

    Attributes
    ----------
    trained : tuple of str
        The keypoints of the model, in its order.
    read : mapping of str to str
        Trained keypoint to recorded keypoint.
    estimated : mapping of str to tuple of str
        Trained keypoint to the recorded keypoints whose mean replaces it.
    missing : tuple of str
        Trained keypoints that the recording does not have.
    unused : tuple of str
        Recorded keypoints that the model does not have.
    """

    trained: tuple[str, ...]
    read: Mapping[str, str]
    estimated: Mapping[str, tuple[str, ...]]
    missing: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about keypoints that are renamed, estimated, missing or not used."""
        renamed = [f"{recorded} as {name}" for name, recorded in self.read.items() if recorded != name]
        estimated = [f"{name} from {' and '.join(recorded)}" for name, recorded in self.estimated.items()]
        lists = {"read": renamed, "estimated": estimated, "missing": self.missing, "not used": self.unused}
        return tuple(Note(f"keypoints {problem}: {', '.join(names)}") for problem, names in lists.items() if names)

    def apply(self, poses: Poses) -> Poses:
        """Return poses with the keypoints of the model, in its order; NaN where one is missing."""
        column = {name: i for i, name in enumerate(poses.keypoints)}
        needed = (*self.read.values(), *(name for names in self.estimated.values() for name in names))
        absent = [name for name in needed if name not in column]
        if absent:
            raise MismatchError(f"the poses have no keypoint {absent[0]!r}; this keypoint map is for another skeleton")
        shape = (len(poses), len(poses.individuals), len(self.trained))
        positions, confidence = np.full((*shape, poses.positions.shape[3]), np.nan), np.full(shape, np.nan)
        for k, name in enumerate(self.trained):
            if name in self.read:
                positions[:, :, k] = poses.positions[:, :, column[self.read[name]]]
                confidence[:, :, k] = poses.confidence[:, :, column[self.read[name]]]
            elif name in self.estimated:
                columns = [column[recorded] for recorded in self.estimated[name]]
                positions[:, :, k] = nan_mean(poses.positions[:, :, columns], axis=2)
                confidence[:, :, k] = poses.confidence[:, :, columns].min(axis=2)
        return replace(poses, positions=positions, confidence=confidence, keypoints=self.trained)


def match_keypoints(
    trained: Sequence[str],
    recorded: Sequence[str],
    *,
    trained_roles: Mapping[str, Keypoint] | None = None,
    recorded_roles: Mapping[str, Keypoint] | None = None,
) -> KeypointMap:
    """Match the keypoints of a model to those of another skeleton.

    A stated role has priority, then the same name, then the same name in another spelling, then the same guessed role. Keypoints
    without a match are estimated from their neighbors where possible.

    Parameters
    ----------
    trained : sequence of str
        Keypoints of the model.
    recorded : sequence of str
        Keypoints of the recording.
    trained_roles, recorded_roles : mapping of name to Keypoint, optional
        Stated roles, as in a manifest's ``keypoints.csv``.

    Examples
    --------
    >>> match = match_keypoints(["nose", "neck", "tail_base", "tail_tip"], ["snout", "leftear", "rightear", "tailbase"])
    >>> match.read, match.estimated, match.missing
    ({'nose': 'snout', 'tail_base': 'tailbase'}, {'neck': ('leftear', 'rightear')}, ('tail_tip',))
    """
    role_of_trained, role_of_recorded = assign_roles(trained, trained_roles), assign_roles(recorded, recorded_roles)
    stated = {name: canonical_role(point.role) for name, point in (recorded_roles or {}).items() if point.role}
    by_name = [name for name in recorded if stated.get(name) not in (NO_ROLE, *ROLES)]  # a stated role overrides the name
    # Pairs of keys, in order of priority: a trained and a recorded keypoint match where their keys are equal.
    keys: list[tuple[dict[str, object], dict[str, object]]] = [
        (
            {name: role_of_trained.get(name) for name in trained},
            {name: role for name, role in role_of_recorded.items() if name in stated},
        ),
        ({name: name for name in trained}, {name: name for name in by_name}),
        ({name: parse_name(name) for name in trained}, {name: parse_name(name) for name in by_name}),
        ({name: role_of_trained.get(name) for name in trained}, {**role_of_recorded}),
    ]
    read: dict[str, str] = {}
    for trained_keys, recorded_keys in keys:
        free = {key: name for name, key in reversed(recorded_keys.items()) if name not in read.values()}
        read.update({name: free.pop(key) for name, key in trained_keys.items() if name not in read and key in free})
    if not read:
        raise MismatchError(
            f"none of the keypoints {', '.join(trained)} is among {', '.join(recorded)}; state the roles of keypoints in keypoints.csv"
        )
    estimated = _estimate_unmatched([name for name in trained if name not in read], role_of_trained, role_of_recorded)
    used = {*read.values(), *(name for names in estimated.values() for name in names)}
    return KeypointMap(
        tuple(trained),
        {name: read[name] for name in trained if name in read},
        estimated,
        tuple(name for name in trained if name not in read and name not in estimated),
        tuple(name for name in recorded if name not in used),
    )


def _estimate_unmatched(
    unmatched: Sequence[str], role_of_trained: Mapping[str, str], role_of_recorded: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the recorded keypoints whose mean replaces each unmatched one, where there are any."""
    name_of_role = {role: name for name, role in role_of_recorded.items()}
    estimated = {}
    for name in unmatched:
        groups = SUBSTITUTES.get(role_of_trained.get(name, ""), ())
        available = next((roles for roles in groups if all(role in name_of_role for role in roles)), None)
        if available is not None:
            estimated[name] = tuple(name_of_role[role] for role in available)
    return estimated


def _split_side(words: list[str]) -> tuple[list[str], str]:
    """Return a side that is a single letter (``ear_l``, ``earL``) or joined to the body part (``leftear``, ``earleft``)."""
    for i, word in enumerate(words):
        for side in ("left", "right"):
            for rest in (word.removeprefix(side), word.removesuffix(side)):
                if rest and rest != word:
                    return [*words[:i], rest, *words[i + 1 :]], side
    for i, word in enumerate(words):
        others = words[:i] + words[i + 1 :]
        if word in SIDES and others and (i == len(words) - 1 or "".join(others) in _PAIRED or not others[-1].isalpha()):
            return others, SIDES[word]
    if words and words[-1] not in _MIDLINE and words[-1][:-1] in _PAIRED and words[-1][-1] in SIDES:
        return [*words[:-1], words[-1][:-1]], SIDES[words[-1][-1]]
    if words and words[-1][1:] in _PAIRED and words[-1][0] in SIDES:
        return [*words[:-1], words[-1][1:]], SIDES[words[-1][0]]
    return words, ""


def _rank_and_role(parsed: ParsedName) -> tuple[int, str] | None:
    """Return the rank of a name's spelling for its role (0 is the best), and the role."""
    body_part, penalty = parsed.body_part, 0
    if body_part not in _MIDLINE and body_part not in _PAIRED:
        body_part, penalty = body_part.rstrip("0123456789"), 100
        if body_part in NUMBERED:
            return None
    if parsed.side and body_part in _PAIRED:
        rank, name = _PAIRED[body_part]
        return rank + penalty, f"{parsed.side}_{name}"
    if not parsed.side and body_part in _MIDLINE:
        rank, role = _MIDLINE[body_part]
        return rank + penalty, role
    return None
