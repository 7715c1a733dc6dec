"""The text of a LightGBM model, checked before LightGBM parses it.

LightGBM's parser trusts its input: a wrong number in it ends the process, and a child out of range reads memory that is not the model's.
So everything that it reads is checked here first, and what prediction does not need (importances, training parameters) is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

INTEGER = re.compile(r"-?\d{1,9}")
NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d{1,3})?")
VERSIONS = ("v3", "v4")
HEADER = ("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective", "feature_names", "feature_infos")
SPLIT_INTEGERS = ("split_feature", "decision_type", "left_child", "right_child", "internal_count")
SPLIT_NUMBERS = ("split_gain", "threshold", "internal_value", "internal_weight")
LEAF_NUMBERS = ("leaf_value", "leaf_weight")
SCALARS = ("num_leaves", "num_cat", "is_linear", "shrinkage")
DECISIONS = (0, 2, 4, 6, 8, 10)  # numerical splits: bit 0 would be categorical, bit 1 is the default side, then how gaps are treated
END = "end of trees\n"
TAIL = f"{END}\npandas_categorical:null\n"


def check_lightgbm_text(text: str, n_classes: int) -> str:
    """Return what LightGBM needs of the text of a model, after all of it was checked.

    Parameters
    ----------
    text : str
        As `Booster.model_to_string` writes it, with numerical splits and constant leaves.
    n_classes : int
        That the model is to tell apart, two or more.

    Raises
    ------
    ValueError
        Says what is wrong.
    """
    if not text.isascii() or "\0" in text:
        raise ValueError("it has other characters than a model's text")
    head, separator, _ = text.partition("\nTree=0\n")
    if not separator:
        raise ValueError("it has no trees")
    first = len(head) + 1
    lines = head.rstrip("\n").split("\n")
    if lines[0] != "tree" or head != "\n".join(lines) + "\n":
        raise ValueError("it does not begin as a model does")
    header = _fields(lines[1:], (*HEADER, "tree_sizes"))
    n_features, per_round = _check_header(header, n_classes)
    position, sizes = first, _integers(header["tree_sizes"])
    if not sizes or len(sizes) % per_round:
        raise ValueError(f"{len(sizes)} trees are not a multiple of {per_round}")
    for number, size in enumerate(sizes):
        block = text[position : position + size]
        if size <= 0 or not block.startswith(f"Tree={number}\n") or not block.endswith("\n\n"):
            raise ValueError(f"the size of tree {number} is wrong")
        try:
            _check_tree(block.rstrip("\n").split("\n")[1:], n_features)
        except ValueError as error:
            raise ValueError(f"tree {number}: {error}") from None
        position += size
    if not text.startswith(END, position):
        raise ValueError("the trees do not end where they should")
    return text[:position] + TAIL


def _check_header(header: Mapping[str, str], n_classes: int) -> tuple[int, int]:
    """Return the number of features, and of trees for each round of boosting."""
    if header["version"] not in VERSIONS:
        raise ValueError(f"version {header['version']!r} is not supported")
    per_round = n_classes if n_classes > 2 else 1
    expected = f"multiclass num_class:{n_classes}" if n_classes > 2 else "binary sigmoid:1"
    if header["objective"] != expected or {_integer(header[name]) for name in ("num_class", "num_tree_per_iteration")} != {per_round}:
        raise ValueError(f"it does not tell {n_classes} classes apart")
    n_features = _integer(header["max_feature_idx"]) + 1
    if n_features < 1 or _integer(header["label_index"]) != 0:
        raise ValueError("the number of features is wrong")
    for name in ("feature_names", "feature_infos"):
        if len(header[name].split(" ")) != n_features:
            raise ValueError(f"there are not {n_features} {name}")
    for info in header["feature_infos"].split(" "):
        low, colon, high = info.removeprefix("[").removesuffix("]").partition(":")
        if info != "none" and not (info == f"[{low}:{high}]" and colon and NUMBER.fullmatch(low) and NUMBER.fullmatch(high)):
            raise ValueError(f"the range {info[:40]!r} of a feature is wrong")
    return n_features, per_round


def _check_tree(lines: list[str], n_features: int) -> None:
    names = (*SCALARS[:2], *SPLIT_INTEGERS, *SPLIT_NUMBERS, *LEAF_NUMBERS, "leaf_count", *SCALARS[2:])
    fields = _fields(lines, names)
    n_leaves = _integer(fields["num_leaves"])
    if n_leaves < 1 or fields["num_cat"] != "0" or fields["is_linear"] != "0":
        raise ValueError("it has no leaves, or is of another kind than those trained here")
    _numbers(fields["shrinkage"], 1)
    for name in LEAF_NUMBERS:
        if fields[name] or n_leaves > 1 or name == "leaf_value":
            _numbers(fields[name], n_leaves)
    n_splits = n_leaves - 1
    for name in SPLIT_NUMBERS:
        _numbers(fields[name], n_splits)
    if fields["leaf_count"] or n_leaves > 1:
        _integers(fields["leaf_count"], n_leaves)
    features, decisions, left, right, _ = (_integers(fields[name], n_splits) for name in SPLIT_INTEGERS)
    if any(not 0 <= feature < n_features for feature in features) or any(decision not in DECISIONS for decision in decisions):
        raise ValueError("a split uses a feature that there is not, or is of another kind than those trained here")
    children = sorted([*left, *right])  # leaves are -1, -2, ...; each node but the root is the child of one other
    if n_splits and children != [*range(-n_leaves, 0), *range(1, n_splits)]:
        raise ValueError("its nodes do not make up a tree")
    if any(child <= node for side in (left, right) for node, child in enumerate(side) if child >= 0):
        raise ValueError("its nodes go round in a circle")


def _fields(lines: list[str], names: tuple[str, ...]) -> dict[str, str]:
    """Read ``name=value`` lines, which must have these names, each once."""
    fields: dict[str, str] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or name not in names or name in fields:
            raise ValueError(f"the line {line[:40]!r} is not expected")
        fields[name] = value
    if missing := [name for name in names if name not in fields]:
        raise ValueError(f"{missing[0]} is missing")
    return fields


def _integer(text: str) -> int:
    if not INTEGER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a whole number")
    return int(text)


def _integers(text: str, count: int | None = None) -> list[int]:
    values = [_integer(part) for part in text.split(" ")] if text else []
    if count is not None and len(values) != count:
        raise ValueError(f"it has {len(values)} values where {count} are expected")
    return values


def _numbers(text: str, count: int) -> None:
    parts = text.split(" ") if text else []
    if len(parts) != count or not all(NUMBER.fullmatch(part) and math.isfinite(float(part)) for part in parts):
        raise ValueError(f"{count} finite numbers are expected, not {text[:40]!r}")
