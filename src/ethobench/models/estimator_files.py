"""Safe loading of estimators: a damaged or hostile file of scikit-learn or LightGBM is refused before it can do harm.

skops accepts every class of scikit-learn, and scikit-learn does not check the nodes of a tree. Here, only the classes that our models
save are accepted, every array is checked, and only what prediction needs is copied into a new estimator.

LightGBM's parser trusts its input: a wrong number ends the process, and a child out of range reads memory outside of the model. So
the complete text is checked first, and what prediction does not need (importances, training parameters) is removed.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core.errors import FormatError, describe_exception

TRUSTED = ("numpy.dtype", "sklearn.tree._tree.Tree")
CLASSES = {
    "builtins": {"dict", "list", "tuple", "str", "int", "float", "bool", "NoneType"},
    "numpy": {"ndarray", "dtype", "int8", "int32", "int64", "float32", "float64", "bool_", "bool"},
    "sklearn.ensemble._forest": {"RandomForestClassifier"},
    "sklearn.tree._classes": {"DecisionTreeClassifier"},
    "sklearn.tree._tree": {"Tree"},
    "sklearn.svm._classes": {"LinearSVC"},
}
SCHEMA = "schema.json"
MAX_EXPANSION = 20  # unpacked size relative to the file; our files are not compressed

INTEGER = re.compile(r"-?\d{1,9}")
NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d{1,3})?")
VERSIONS = ("v3", "v4")
HEADER = ("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective", "feature_names", "feature_infos")
SPLIT_INTEGERS = ("split_feature", "decision_type", "left_child", "right_child", "internal_count")
SPLIT_NUMBERS = ("split_gain", "threshold", "internal_value", "internal_weight")
LEAF_NUMBERS = ("leaf_value", "leaf_weight")
SCALARS = ("num_leaves", "num_cat", "is_linear", "shrinkage")
DECISIONS = (
    0,
    2,
    4,
    6,
    8,
    10,
)  # numerical splits: bit 0 is categorical, bit 1 the default side, then how missing values are treated
END = "end of trees\n"
TAIL = f"{END}\npandas_categorical:null\n"


def read_estimator(path: Path) -> Any:
    """Read an estimator from a skops file that holds only classes that our models save.

    Raises
    ------
    FormatError
        For any other file.
    """
    from ethobench.models.skops_files import skops_io

    try:
        _check_archive(path)
        return skops_io.load(path, trusted=list(TRUSTED))
    except Exception as error:
        raise FormatError(path, f"refused: not a saved estimator, or a damaged one: {describe_exception(error)}") from None


def restore_estimator(empty: Any, loaded: Any, n_codes: int, *, exclusive: bool) -> Any:
    """Copy the fitted state of a loaded estimator into an unfitted one of the same class, after checking it.

    Parameters
    ----------
    empty : estimator
        An unfitted decision tree, random forest or linear SVM.
    loaded : estimator
        From `read_estimator`.
    n_codes : int
        Number of behaviors, an implicit background included.
    exclusive : bool
        Whether behaviors are classes of one output; else each behavior has its own output.

    Raises
    ------
    ValueError
        If `loaded` is not valid.
    """
    if type(loaded) is not type(empty):
        raise ValueError(f"the file holds a {type(loaded).__name__}, expected a {type(empty).__name__}")
    empty.n_features_in_ = _count(loaded.n_features_in_)
    if not hasattr(empty, "criterion"):  # neither a tree nor a forest: a linear SVM
        return _restore_linear(empty, loaded, n_codes, exclusive=exclusive)
    _restore_classes(empty, loaded, n_codes, exclusive=exclusive)
    if not hasattr(empty, "n_estimators"):
        empty.tree_ = _checked_tree(loaded.tree_, empty)
        return empty
    from sklearn.tree import DecisionTreeClassifier

    empty.estimators_ = []
    for loaded_tree in loaded.estimators_:
        tree = DecisionTreeClassifier()
        tree.n_features_in_, tree.n_outputs_, tree.n_classes_ = empty.n_features_in_, empty.n_outputs_, empty.n_classes_
        tree.classes_ = loaded_tree.classes_ if exclusive else [np.asarray(codes) for codes in loaded_tree.classes_]
        tree.tree_ = _checked_tree(loaded_tree.tree_, empty)
        empty.estimators_.append(tree)
    if not empty.estimators_:
        raise ValueError("the forest has no trees")
    return empty


def _check_archive(path: Path) -> None:
    """Refuse compressed archives, and classes that our models do not save."""
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_EXPANSION * path.stat().st_size:
            raise ValueError("the archive is too large when unpacked")
        schema = json.loads(archive.read(SCHEMA))
    pending: list[Any] = [schema]
    while pending:
        entry = pending.pop()
        if isinstance(entry, dict):
            if "__class__" in entry and entry["__class__"] not in CLASSES.get(str(entry.get("__module__")), ()):
                raise ValueError(f"the file holds a {entry.get('__module__')}.{entry['__class__']}")
            pending += entry.values()
        elif isinstance(entry, list):
            pending += entry


def _restore_classes(empty: Any, loaded: Any, n_codes: int, *, exclusive: bool) -> None:
    """Copy the classes of each output."""
    outputs = [loaded.classes_] if exclusive else list(loaded.classes_)
    outputs = [np.asarray(codes) for codes in outputs]
    if not exclusive and len(outputs) != n_codes:
        raise ValueError(f"{len(outputs)} outputs for {n_codes} behaviors")
    for codes in outputs:
        _check_codes(codes, n_codes if exclusive else 2)
    empty.n_outputs_ = len(outputs)
    if len(outputs) == 1:
        empty.classes_, empty.n_classes_ = (outputs[0] if exclusive else outputs), len(outputs[0])
    else:
        empty.classes_, empty.n_classes_ = outputs, [len(codes) for codes in outputs]


def _check_codes(codes: NDArray[Any], n_codes: int) -> None:
    if codes.ndim != 1 or codes.dtype.kind not in "iu" or not len(codes) or len(np.unique(codes)) < len(codes):
        raise ValueError("the classes are not distinct integers")
    if codes.min() < 0 or codes.max() >= n_codes:
        raise ValueError(f"a class is not among the {n_codes} classes of the model")


def _checked_tree(tree: Any, owner: Any) -> Any:
    """Return a tree after checking that every path ends in a leaf and stays within the arrays."""
    from sklearn.tree._tree import Tree

    sizes = np.atleast_1d(np.asarray(owner.n_classes_))
    if type(tree) is not Tree or not 0 < tree.node_count <= tree.capacity or tree.n_features != owner.n_features_in_:
        raise ValueError("a tree has no nodes, or another number of features than the model")
    if tree.n_outputs != owner.n_outputs_ or not np.array_equal(tree.n_classes, sizes) or tree.max_n_classes != sizes.max():
        raise ValueError("a tree has other classes than the model")
    left, right, count = tree.children_left, tree.children_right, tree.node_count
    splits = np.flatnonzero(left != -1)
    if not np.array_equal(splits, np.flatnonzero(right != -1)):
        raise ValueError("a node of a tree has only one child")
    for side in (left[splits], right[splits]):
        if ((side <= splits) | (side >= count)).any():
            raise ValueError("the nodes of a tree lead out of it, or form a cycle")
    features = tree.feature[splits]
    # scikit-learn splits present from missing values by an infinite threshold
    if ((features < 0) | (features >= tree.n_features)).any() or np.isnan(tree.threshold[splits]).any():
        raise ValueError("a tree splits by a feature that does not exist, or by a threshold that is not a number")
    if tree.value.shape != (count, tree.n_outputs, tree.max_n_classes) or not (np.isfinite(tree.value) & (tree.value >= 0)).all():
        raise ValueError("the leaves of a tree do not hold probabilities")
    return tree


def _restore_linear(empty: Any, loaded: Any, n_codes: int, *, exclusive: bool) -> Any:
    classes = np.asarray(loaded.classes_)
    _check_codes(classes, n_codes)
    n_problems = 1 if exclusive and len(classes) <= 2 else len(classes)
    if not exclusive and len(classes) != n_codes:
        raise ValueError(f"{len(classes)} outputs for {n_codes} behaviors")
    shapes = {"coef_": (n_problems, empty.n_features_in_), "intercept_": (n_problems,), "means_": (empty.n_features_in_,)}
    for name, shape in shapes.items():
        values = np.asarray(getattr(loaded, name))
        if values.dtype.kind != "f" or values.shape != shape or not np.isfinite(values).all():
            raise ValueError(f"{name} does not have shape {shape} or is not finite")
        setattr(empty, name, values)
    empty.classes_ = classes
    return empty


def _count(value: Any) -> int:
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"the number of features is {value!r}")
    return int(value)


def check_lightgbm_text(text: str, n_classes: int) -> str:
    """Check the complete text of a LightGBM model; return what prediction needs of it.

    Parameters
    ----------
    text : str
        As `Booster.model_to_string` writes it, with numerical splits and constant leaves.
    n_classes : int
        Number of classes, at least two.

    Raises
    ------
    ValueError
        If the text is not valid.
    """
    if not text.isascii() or "\0" in text:
        raise ValueError("the text has characters that a model does not have")
    head, separator, _ = text.partition("\nTree=0\n")
    if not separator:
        raise ValueError("the text has no trees")
    first = len(head) + 1
    lines = head.rstrip("\n").split("\n")
    if lines[0] != "tree" or head != "\n".join(lines) + "\n":
        raise ValueError("the text does not start like a model")
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
    """Return the number of features, and the number of trees of each boosting round."""
    if header["version"] not in VERSIONS:
        raise ValueError(f"version {header['version']!r} is not supported")
    per_round = n_classes if n_classes > 2 else 1
    expected = f"multiclass num_class:{n_classes}" if n_classes > 2 else "binary sigmoid:1"
    if header["objective"] != expected or {_integer(header[name]) for name in ("num_class", "num_tree_per_iteration")} != {per_round}:
        raise ValueError(f"the model does not have {n_classes} classes")
    n_features = _integer(header["max_feature_idx"]) + 1
    if n_features < 1 or _integer(header["label_index"]) != 0:
        raise ValueError("the number of features is wrong")
    for name in ("feature_names", "feature_infos"):
        if len(header[name].split(" ")) != n_features:
            raise ValueError(f"{name} does not have {n_features} entries")
    for info in header["feature_infos"].split(" "):
        low, colon, high = info.removeprefix("[").removesuffix("]").partition(":")
        if info != "none" and not (info == f"[{low}:{high}]" and colon and NUMBER.fullmatch(low) and NUMBER.fullmatch(high)):
            raise ValueError(f"the range {info[:40]!r} of a feature is not valid")
    return n_features, per_round


def _check_tree(lines: list[str], n_features: int) -> None:
    names = (*SCALARS[:2], *SPLIT_INTEGERS, *SPLIT_NUMBERS, *LEAF_NUMBERS, "leaf_count", *SCALARS[2:])
    fields = _fields(lines, names)
    n_leaves = _integer(fields["num_leaves"])
    if n_leaves < 1 or fields["num_cat"] != "0" or fields["is_linear"] != "0":
        raise ValueError("it has no leaves, or has categorical splits or linear leaves")
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
        raise ValueError("a split uses a feature that does not exist, or is not numerical")
    children = sorted([*left, *right])  # leaves are -1, -2, ...; each node except the root is the child of one node
    if n_splits and children != [*range(-n_leaves, 0), *range(1, n_splits)]:
        raise ValueError("the nodes do not form a tree")
    if any(child <= node for side in (left, right) for node, child in enumerate(side) if child >= 0):
        raise ValueError("the nodes form a cycle")


def _fields(lines: list[str], names: tuple[str, ...]) -> dict[str, str]:
    """Read ``name=value`` lines, which must have exactly these names, each once."""
    fields: dict[str, str] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or name not in names or name in fields:
            raise ValueError(f"unexpected line {line[:40]!r}")
        fields[name] = value
    if missing := [name for name in names if name not in fields]:
        raise ValueError(f"{missing[0]} is missing")
    return fields


def _integer(text: str) -> int:
    if not INTEGER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not an integer")
    return int(text)


def _integers(text: str, count: int | None = None) -> list[int]:
    values = [_integer(word) for word in text.split(" ")] if text else []
    if count is not None and len(values) != count:
        raise ValueError(f"expected {count} values, got {len(values)}")
    return values


def _numbers(text: str, count: int) -> None:
    words = text.split(" ") if text else []
    if len(words) != count or not all(NUMBER.fullmatch(word) and math.isfinite(float(word)) for word in words):
        raise ValueError(f"expected {count} finite numbers, got {text[:40]!r}")
