"""Match names by their common core: the tokens that a name of one side shares with exactly one name of the other side.

``2024-05-01_m3_topcam_annotations_anna`` and ``m3_topcam`` share ``m3_topcam``. The two are matched only if nothing speaks against it:

- A token of the core is in no other name of either side.
- Numbers agree: only one of the two may have a token with a digit if it is a date and the other name has no date.
- If each of the two has tokens that the other lacks, these are also in other names of their side, so they do not identify a recording.
- Neither name fits a second one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ethobench.datasets.loose_files import TRACKER_SUFFIX

Tokens = tuple[str, ...]
DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)")
DATE_TOKEN = re.compile(r"(19|20)\d{6}$")


class CoreMatch(NamedTuple):
    """Positions of two names that are matched, and the core that they share."""

    first: int
    second: int
    core: str


def split_name(name: str) -> Tokens:
    """Split a name at ``_``, ``-``, ``.`` and spaces, without what pose trackers append; a date is one token.

    Examples
    --------
    >>> split_name("2024-05-01_M3 topcamDLC_resnet50_shuffle1")
    ('20240501', 'm3', 'topcam')
    """
    text = DATE.sub(r"_\1\2\3_", TRACKER_SUFFIX.sub("", name).casefold())
    return tuple(token for token in re.split(r"[_\-.\s]+", text) if token)


def match_by_core(first: Sequence[str], second: Sequence[str]) -> list[CoreMatch]:
    """Match names of two sides by their common core.

    Parameters
    ----------
    first, second : sequence of str
        All names of each side, also those that are matched already: a core must distinguish a name from all of them.

    Examples
    --------
    >>> match_by_core(["2024-05-01_m3_topcam_annotations_anna", "m4_topcam_anna"], ["m3_topcam", "m4_topcam"])
    [CoreMatch(first=0, second=0, core='m3_topcam'), CoreMatch(first=1, second=1, core='m4_topcam')]
    >>> match_by_core(["m1_day1", "m2_day1"], ["m1_day2", "m2_day2"])
    []
    """
    sides = [[split_name(name) for name in names] for names in (first, second)]
    counts = [Counter(token for tokens in side for token in {*tokens}) for side in sides]
    distinguishing = {token for token in counts[0] if counts[0][token] == 1 == counts[1][token]}
    position = {token: j for j, tokens in enumerate(sides[1]) for token in tokens}
    candidates: dict[tuple[int, int], Tokens] = {}
    for i, tokens in enumerate(sides[0]):
        for j in dict.fromkeys(position[token] for token in tokens if token in distinguishing):
            if _can_match((tokens, sides[1][j]), counts):
                candidates[i, j] = _core(tokens, sides[1][j], distinguishing)
    per_name = Counter(key for i, j in candidates for key in (("first", i), ("second", j)))
    return [CoreMatch(i, j, "_".join(core)) for (i, j), core in candidates.items() if per_name["first", i] == 1 == per_name["second", j]]


def _can_match(pair: tuple[Tokens, Tokens], counts: Sequence[Counter[str]]) -> bool:
    """Whether nothing in two names speaks against a match."""
    shared = {*pair[0]} & {*pair[1]}
    numbers = [[token for token in tokens if token in shared and _has_digit(token)] for tokens in pair]
    if numbers[0] != numbers[1]:
        return False
    extra = [[token for token in tokens if token not in shared] for tokens in pair]
    dated = [any(DATE_TOKEN.match(token) for token in tokens) for tokens in pair]
    for side in range(2):
        for token in extra[side]:
            if DATE_TOKEN.match(token):
                is_affix = not dated[1 - side]
            else:
                is_affix = not _has_digit(token) and (not extra[1 - side] or counts[side][token] > 1)
            if not is_affix:
                return False
    return True


def _has_digit(token: str) -> bool:
    return any(character.isdigit() for character in token)


def _core(first: Tokens, second: Tokens, distinguishing: set[str]) -> Tokens:
    """Return the longest run of tokens that both names have and that holds a distinguishing one."""
    runs = {first[i:j] for i in range(len(first)) for j in range(i + 1, len(first) + 1) if distinguishing & {*first[i:j]}}
    common = [run for run in runs if any(second[k : k + len(run)] == run for k in range(len(second)))]
    return max(common, key=lambda run: (len(run), run))
