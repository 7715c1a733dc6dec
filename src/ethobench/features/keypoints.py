"""What keypoints stand for, read from their names in any tool's parse_name."""

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
NO_ROLE = "none"  # what a manifest says of a keypoint whose name misleads

# Spellings without separators, the best first: of two keypoints that could have a role, the one with the better parse_name gets it.
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
NUMBERED = frozenset({"tail", "spine", "back"})  # their numbers tell points apart; elsewhere a number only counts animals

_MIDLINE = {parse_name: (rank, role) for role, spellings in MIDLINE.items() for rank, parse_name in enumerate(spellings)}
_PAIRED = {parse_name: (rank, part) for part, spellings in PAIRED.items() for rank, parse_name in enumerate(spellings)}


class ParsedName(NamedTuple):
    """A keypoint's name without case, separators and side."""

    side: str
    part: str


def parse_name(name: str) -> ParsedName:
    """Take a name apart: ``"Ear_left"``, ``"leftEar"`` and ``"earL"`` are all the left ear.

    >>> parse_name("B_Left_ear"), parse_name("TailBase")
    (ParsedName(side='left', part='ear'), ParsedName(side='', part='tailbase'))
    """
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
    words = [word.replace("centre", "center") for word in words]
    side = next((SIDES[word] for word in words if word in ("left", "right")), "")
    words = [word for word in words if word not in ("left", "right")]
    if not side:
        words, side = _glued_side(words)
    if len(words) > 1 and words[0] in ANIMALS:
        words = words[2:] if words[1].isdigit() and len(words) > 2 else words[1:]
    if len(words) > 1 and len(words[0]) == 1 and words[0].isalpha():
        words = words[1:]  # one letter in front tells animals apart: B_Nose, W_Nose
    return ParsedName(side, "".join(words))


def guess_roles(names: Sequence[str]) -> dict[str, str]:
    """Guess which keypoint has which role; each role goes to one keypoint, and many keypoints have none.

    >>> guess_roles(["snout", "leftear", "rightear", "tailbase"])
    {'snout': 'nose', 'leftear': 'left_ear', 'rightear': 'right_ear', 'tailbase': 'tail_base'}
    """
    best: dict[str, tuple[int, int]] = {}
    for place, name in enumerate(names):
        found = _role(parse_name(name))
        if found is not None:
            rank, role = found
            best[role] = min(best.get(role, (rank, place)), (rank, place))
    owner = {place: role for role, (_, place) in best.items()}
    return {names[place]: owner[place] for place in sorted(owner)}


def assign_roles(names: Sequence[str], keypoints: Mapping[str, Keypoint] | None = None) -> dict[str, str]:
    """Return the roles of keypoints: those that are stated, and for the rest what their names tell.

    Parameters
    ----------
    names : sequence of str
    keypoints : mapping of name to Keypoint, optional
        Stated roles, as in a manifest's ``keypoints.csv``; ``"none"`` denies one, an empty one leaves it to the name.
    """
    stated = {name: canonical_role(keypoints[name].role) for name in names if keypoints and name in keypoints and keypoints[name].role}
    owners: dict[str, str] = {}
    for name, role in stated.items():
        if role != NO_ROLE and role in owners:
            raise EthobenchError(f"keypoints {owners[role]!r} and {name!r} both have the role {role!r}; a role belongs to one keypoint")
        owners[role] = name
    guessed = guess_roles([name for name in names if name not in stated])
    roles = {**{name: role for name, role in guessed.items() if role not in owners}, **stated}
    return {name: roles[name] for name in names if roles.get(name, NO_ROLE) != NO_ROLE}


def canonical_role(text: str) -> str:
    """Return how a role is written here: ``"Tail base"`` is ``"tail_base"``; a word that is no role stays as it is."""
    plain = text.strip()
    if plain.lower() == NO_ROLE:
        return NO_ROLE
    found = _role(parse_name(plain))
    return found[1] if found else plain


def guess_mirrors(names: Sequence[str]) -> dict[str, str]:
    """Find left and right partners among names; those on the midline have none.

    >>> guess_mirrors(["nose", "ear_left", "ear_right"])
    {'ear_left': 'ear_right', 'ear_right': 'ear_left'}
    """
    place = {parse_name(name): name for name in names}
    other = {"left": "right", "right": "left"}
    partners = {name: place.get(ParsedName(other[s.side], s.part)) for name in names if (s := parse_name(name)).side}
    return {name: partner for name, partner in partners.items() if partner is not None}


def _glued_side(words: list[str]) -> tuple[list[str], str]:
    """Find a side that is a single letter (``ear_l``, ``earL``) or grown together with the part (``leftear``, ``earleft``)."""
    for at, word in enumerate(words):
        for side in ("left", "right"):
            for part in (word.removeprefix(side), word.removesuffix(side)):
                if part and part != word:
                    return [*words[:at], part, *words[at + 1 :]], side
    for at, word in enumerate(words):
        rest = words[:at] + words[at + 1 :]
        if word in SIDES and rest and (at == len(words) - 1 or "".join(rest) in _PAIRED or not rest[-1].isalpha()):
            return rest, SIDES[word]
    if words and words[-1] not in _MIDLINE and words[-1][:-1] in _PAIRED and words[-1][-1] in SIDES:
        return [*words[:-1], words[-1][:-1]], SIDES[words[-1][-1]]
    if words and words[-1][1:] in _PAIRED and words[-1][0] in SIDES:
        return [*words[:-1], words[-1][1:]], SIDES[words[-1][0]]
    return words, ""


def _role(found: ParsedName) -> tuple[int, str] | None:
    """Return how well a parse_name fits its role, and the role."""
    part, penalty = found.part, 0
    if part not in _MIDLINE and part not in _PAIRED:
        part, penalty = part.rstrip("0123456789"), 100
        if part in NUMBERED:
            return None
    if found.side and part in _PAIRED:
        rank, name = _PAIRED[part]
        return rank + penalty, f"{found.side}_{name}"
    if not found.side and part in _MIDLINE:
        rank, role = _MIDLINE[part]
        return rank + penalty, role
    return None


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
                positions[:, :, k] = nan_mean(poses.positions[:, :, parts], axis=2)
                confidence[:, :, k] = poses.confidence[:, :, parts].min(axis=2)
        return replace(poses, positions=positions, confidence=confidence, keypoints=self.trained)


def match_keypoints(
    trained: Sequence[str],
    found: Sequence[str],
    *,
    trained_roles: Mapping[str, Keypoint] | None = None,
    recorded_roles: Mapping[str, Keypoint] | None = None,
) -> KeypointMap:
    """Find, for each keypoint that a model knows, the one to read in another skeleton.

    A stated role counts most, then the same name, then the same name in another parse_name, then the same guessed role.
    What is still missing is estimated from its neighbours where that makes sense.

    Parameters
    ----------
    trained, found : sequence of str
    trained_roles, recorded_roles : mapping of name to Keypoint, optional
        Stated roles, as in a manifest's ``keypoints.csv``.

    Examples
    --------
    >>> fit = match_keypoints(["nose", "neck", "tail_base", "tail_tip"], ["snout", "leftear", "rightear", "tailbase"])
    >>> fit.read, fit.estimated, fit.missing
    ({'nose': 'snout', 'tail_base': 'tailbase'}, {'neck': ('leftear', 'rightear')}, ('tail_tip',))
    """
    wanted, there = assign_roles(trained, trained_roles), assign_roles(found, recorded_roles)
    said = {name: canonical_role(point.role) for name, point in (recorded_roles or {}).items() if point.role}
    named = [name for name in found if said.get(name) not in (NO_ROLE, *ROLES)]  # the others are what they are said to be
    keys: list[tuple[dict[str, object], dict[str, object]]] = [
        ({name: wanted.get(name) for name in trained}, {name: role for name, role in there.items() if name in said}),
        ({name: name for name in trained}, {name: name for name in named}),
        ({name: parse_name(name) for name in trained}, {name: parse_name(name) for name in named}),
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
