"""What keypoints stand for, read from their names in any tool's spelling."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ethobench.core.errors import EthobenchError
from ethobench.core.signals import Keypoint

ROLES = ("nose", "head", "left_ear", "right_ear", "neck", "center", "left_hip", "right_hip", "tail_base", "tail_mid", "tail_tip")
NO_ROLE = "none"  # what a manifest says of a keypoint whose name misleads

# Spellings without separators, the best first: of two keypoints that could have a role, the one with the better spelling gets it.
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

_MIDLINE = {spelling: (rank, role) for role, spellings in MIDLINE.items() for rank, spelling in enumerate(spellings)}
_PAIRED = {spelling: (rank, part) for part, spellings in PAIRED.items() for rank, spelling in enumerate(spellings)}


class Spelling(NamedTuple):
    """A keypoint's name without case, separators and side."""

    side: str
    part: str


def spelling(name: str) -> Spelling:
    """Take a name apart: ``"Ear_left"``, ``"leftEar"`` and ``"earL"`` are all the left ear.

    >>> spelling("B_Left_ear"), spelling("TailBase")
    (Spelling(side='left', part='ear'), Spelling(side='', part='tailbase'))
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
    return Spelling(side, "".join(words))


def guess_roles(names: Sequence[str]) -> dict[str, str]:
    """Guess which keypoint has which role; each role goes to one keypoint, and many keypoints have none.

    >>> guess_roles(["snout", "leftear", "rightear", "tailbase"])
    {'snout': 'nose', 'leftear': 'left_ear', 'rightear': 'right_ear', 'tailbase': 'tail_base'}
    """
    best: dict[str, tuple[int, int]] = {}
    for place, name in enumerate(names):
        found = _role(spelling(name))
        if found is not None:
            rank, role = found
            best[role] = min(best.get(role, (rank, place)), (rank, place))
    owner = {place: role for role, (_, place) in best.items()}
    return {names[place]: owner[place] for place in sorted(owner)}


def roles_of(names: Sequence[str], keypoints: Mapping[str, Keypoint] | None = None) -> dict[str, str]:
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
    found = _role(spelling(plain))
    return found[1] if found else plain


def guess_mirrors(names: Sequence[str]) -> dict[str, str]:
    """Find left and right partners among names; those on the midline have none.

    >>> guess_mirrors(["nose", "ear_left", "ear_right"])
    {'ear_left': 'ear_right', 'ear_right': 'ear_left'}
    """
    place = {spelling(name): name for name in names}
    other = {"left": "right", "right": "left"}
    partners = {name: place.get(Spelling(other[s.side], s.part)) for name in names if (s := spelling(name)).side}
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


def _role(found: Spelling) -> tuple[int, str] | None:
    """Return how well a spelling fits its role, and the role."""
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
