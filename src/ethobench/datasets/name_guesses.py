"""Guess from names of files and folders which animal a recording is of, and which folders are recordings.

A name is split at ``_``, ``-``, ``.`` and spaces. Words with a number are recognized: ``mouse7``, ``sub-01`` and ``rat 3`` are animals,
``day2``, ``ses-02`` and ``trial3`` are sessions, ``cohort1`` and ``cage4`` are groups, which belong to the name of an animal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

ANIMAL = (
    "sub|subj|subject|animal|individual|ind|mouse|mus|rat|gerbil|hamster|vole|rabbit|pig|cow|calf|sheep|goat|horse|dog|cat|ferret|bat|fox|wolf|"
    "deer|monkey|macaque|marmoset|chimp|human|person|participant|bird|finch|zebrafinch|crow|gull|chick|hen|penguin|fish|zebrafish|cichlid|"
    "seal|whale|dolphin|turtle|shark|fly|bee|ant|worm|pair|dyad"
)
SESSION = (
    "ses|sess|session|day|d|week|wk|trial|run|rec|recording|block|part|clip|segment|seg|chunk|rep|repetition|visit|take|cam|camera|view"
)
GROUP = "cohort|cage|group|grp|exp|experiment|batch|litter|lab|site|tank|box|pen|nest|hive|colony"
DATE = r"(19|20)\d{2}[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])([-_T]?\d{4,6})?"

_WORD = re.compile(
    rf"(?<![^\W_])((?P<date>{DATE})|(?P<animal>(?:{ANIMAL})[-_ ]?\d+[a-z]?)|(?P<session>(?:{SESSION})[-_ ]?\d+[a-z]?)|"
    rf"(?P<group>(?:{GROUP})[-_ ]?\d+[a-z]?))(?![^\W_])",
    re.IGNORECASE,
)


def find_words(text: str, kind: str) -> list[str]:
    """Return the words of a kind in a name: ``"animal"``, ``"session"``, ``"group"`` or ``"date"``.

    Examples
    --------
    >>> find_words("cage2_mouse7_day2", "animal"), find_words("sub-01_ses-02", "session")
    (['mouse7'], ['ses-02'])
    """
    return [match[kind] for match in _WORD.finditer(text) if match[kind]]


def names_recording(folder: str) -> bool:
    """Whether the name of a folder names an animal, a session or a date, and so a recording rather than a person."""
    return _WORD.search(folder) is not None


def guess_individual(name: str, folders: Sequence[str] = ()) -> str:
    """Guess the animal that a recording is of, or several separated by semicolons; empty if neither its name nor its folders tell.

    Parameters
    ----------
    name : str
        Name of the recording.
    folders : sequence of str
        Folders of its files, outermost first.

    Examples
    --------
    >>> guess_individual("mouse7_day2"), guess_individual("trial1", ["cohort2", "rat 3"]), guess_individual("m1_20240501")
    ('mouse7', 'cohort2_rat 3', 'm1')
    >>> guess_individual("anna_rest")
    ''
    """
    for text in (name, "/".join(folders)):
        animals = dict.fromkeys(find_words(text, "animal"))
        if animals:
            groups = find_words(name, "group") or find_words("/".join(folders), "group")
            return ";".join("_".join([*dict.fromkeys(groups), animal]) for animal in animals)
    if find_words(name, "session") or find_words(name, "date"):
        rest = _WORD.sub(lambda match: match[0] if match["group"] else "", name)
        rest = re.sub(r"[\W_]*[_\-. ]{2,}[\W_]*", "_", rest).strip("_-. ")
        return rest if re.search(r"\w", rest) else ""
    return ""
