"""Labels in files for the recordings of a study: which annotation belongs to which recording."""

from __future__ import annotations

from collections.abc import Sequence

from ethobench.core import Annotation, Recording
from ethobench.core.errors import EthobenchError


def labels_by_recording(labels: Sequence[Recording], recordings: Sequence[Recording], source: str) -> dict[str, Annotation]:
    """Return annotations by the id of the recordings of a study.

    Names are equal, or one is the other with an affix (``m1_predicted`` belongs to ``m1``), if that is unambiguous.

    Parameters
    ----------
    labels : sequence of Recording
        As collated from files, each with one annotator.
    recordings : sequence of Recording
        Of the study.
    source : str
        Where the labels come from, in error messages.

    Raises
    ------
    EthobenchError
        If no recording matches, a recording has several annotators, or two files belong to one recording.

    Examples
    --------
    >>> study = [Recording("m1"), Recording("m12")]
    >>> list(labels_by_recording([Recording("m12_model", annotations={"model": annotation})], study, "predicted/"))
    ['m12']
    """
    matched: dict[str, Annotation] = {}
    unmatched = []
    names = [r.id for r in recordings]
    for labeled in labels:
        if not labeled.annotations:
            continue
        if len(labeled.annotations) > 1:
            raise EthobenchError(
                f"{source}: recording {labeled.id!r} has several annotators ({', '.join(labeled.annotations)}); use a folder for each"
            )
        name = _matching_name(labeled.id, names)
        if name is None:
            unmatched.append(labeled.id)
        elif name in matched:
            raise EthobenchError(f"{source}: several files belong to recording {name!r}, one of them is {labeled.id!r}; keep one of them")
        else:
            matched[name] = labeled.annotation()
    if not matched:
        such = f", such as {unmatched[0]!r}" if unmatched else ""
        raise EthobenchError(f"{source}: no file belongs to a recording of the study{such}; files are matched by the names of recordings")
    return matched


def _matching_name(name: str, names: Sequence[str]) -> str | None:
    """Return the recording of the same name, or the longest one of which `name` is an extension by ``_``, ``-``, ``.`` or a space."""
    if name in names:
        return name
    extended = [candidate for candidate in names if name.startswith(candidate) and name[len(candidate)] in "_-. "]
    contained = [candidate for candidate in names if candidate.startswith(name) and candidate[len(name)] in "_-. "]
    if extended:
        return max(extended, key=len)
    return contained[0] if len(contained) == 1 else None
