"""Estimators of scikit-learn in skops files, read so that a damaged or hostile file is refused before it can do harm.

skops accepts every class of scikit-learn, and scikit-learn follows the nodes of a tree without looking. Here only the classes that our
models save are accepted, every array is checked, and only what prediction needs is copied into an estimator that we make.
"""

from __future__ import annotations

import json
import zipfile
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
MOST_EXPANSION = 20  # of a file when it is unpacked; ours are not compressed


def read_estimator(path: Path) -> Any:
    """Read the estimator of a skops file whose classes are all among those that our models save.

    Raises
    ------
    FormatError
        For any other file.
    """
    import skops.io

    try:
        _check_archive(path)
        return skops.io.load(path, trusted=list(TRUSTED))
    except Exception as error:
        raise FormatError(path, f"refused: this is not a saved estimator, or a damaged one: {describe_exception(error)}") from None


def restore(empty: Any, loaded: Any, n_codes: int, *, exclusive: bool) -> Any:
    """Copy what was learnt from an estimator that was read into an empty one of the same class, after a check.

    Parameters
    ----------
    empty : estimator
        A decision tree, a random forest or a linear SVM that is not fitted.
    loaded : estimator
        From `read_estimator`.
    n_codes : int
        Number of behaviors, an implicit background included.
    exclusive : bool
        Whether the estimator tells behaviors apart; else it has an output for each.

    Raises
    ------
    ValueError
        Says what is wrong with `loaded`.
    """
    if type(loaded) is not type(empty):
        raise ValueError(f"it holds {type(loaded).__name__}, where {type(empty).__name__} is expected")
    empty.n_features_in_ = _count(loaded.n_features_in_)
    if not hasattr(empty, "criterion"):  # no tree and no forest, so a linear SVM
        return _restore_linear(empty, loaded, n_codes, exclusive=exclusive)
    _restore_classes(empty, loaded, n_codes, exclusive=exclusive)
    if not hasattr(empty, "n_estimators"):
        empty.tree_ = _checked_tree(loaded.tree_, empty)
        return empty
    from sklearn.tree import DecisionTreeClassifier

    empty.estimators_ = []
    for part in loaded.estimators_:
        tree = DecisionTreeClassifier()
        tree.n_features_in_, tree.n_outputs_, tree.n_classes_ = empty.n_features_in_, empty.n_outputs_, empty.n_classes_
        tree.classes_ = part.classes_ if exclusive else [np.asarray(each) for each in part.classes_]
        tree.tree_ = _checked_tree(part.tree_, empty)
        empty.estimators_.append(tree)
    if not empty.estimators_:
        raise ValueError("the forest has no trees")
    return empty


def _check_archive(path: Path) -> None:
    """Refuse archives that grow when unpacked, and classes that our models do not save."""
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MOST_EXPANSION * path.stat().st_size:
            raise ValueError("it grows too much when it is unpacked")
        schema = json.loads(archive.read(SCHEMA))
    pending: list[Any] = [schema]
    while pending:
        entry = pending.pop()
        if isinstance(entry, dict):
            if "__class__" in entry and entry["__class__"] not in CLASSES.get(str(entry.get("__module__")), ()):
                raise ValueError(f"it holds {entry.get('__module__')}.{entry['__class__']}")
            pending += entry.values()
        elif isinstance(entry, list):
            pending += entry


def _restore_classes(empty: Any, loaded: Any, n_codes: int, *, exclusive: bool) -> None:
    """Copy the codes that each output tells apart."""
    outputs = [loaded.classes_] if exclusive else list(loaded.classes_)
    outputs = [np.asarray(codes) for codes in outputs]
    if not exclusive and len(outputs) != n_codes:
        raise ValueError(f"it has {len(outputs)} outputs for {n_codes} behaviors")
    for codes in outputs:
        _check_codes(codes, n_codes if exclusive else 2)
    empty.n_outputs_ = len(outputs)
    if len(outputs) == 1:
        empty.classes_, empty.n_classes_ = (outputs[0] if exclusive else outputs), len(outputs[0])
    else:
        empty.classes_, empty.n_classes_ = outputs, [len(codes) for codes in outputs]


def _check_codes(codes: NDArray[Any], n_codes: int) -> None:
    if codes.ndim != 1 or codes.dtype.kind not in "iu" or not len(codes) or len(np.unique(codes)) < len(codes):
        raise ValueError("its classes are not different whole numbers")
    if codes.min() < 0 or codes.max() >= n_codes:
        raise ValueError(f"it has a class that is not among the {n_codes} there are")


def _checked_tree(tree: Any, owner: Any) -> Any:
    """Return the nodes of a tree, after a look at whether following them ends and stays within the arrays."""
    from sklearn.tree._tree import Tree

    sizes = np.atleast_1d(np.asarray(owner.n_classes_))
    if type(tree) is not Tree or not 0 < tree.node_count <= tree.capacity or tree.n_features != owner.n_features_in_:
        raise ValueError("a tree has no nodes, or other features")
    if tree.n_outputs != owner.n_outputs_ or not np.array_equal(tree.n_classes, sizes) or tree.max_n_classes != sizes.max():
        raise ValueError("a tree has other classes than the model")
    left, right, count = tree.children_left, tree.children_right, tree.node_count
    splits = np.flatnonzero(left != -1)
    if not np.array_equal(splits, np.flatnonzero(right != -1)):
        raise ValueError("a node of a tree has one child")
    for side in (left[splits], right[splits]):
        if ((side <= splits) | (side >= count)).any():
            raise ValueError("a tree's nodes lead out of it, or round in a circle")
    features = tree.feature[splits]
    # an infinite threshold is how scikit-learn splits known from missing values
    if ((features < 0) | (features >= tree.n_features)).any() or np.isnan(tree.threshold[splits]).any():
        raise ValueError("a tree splits by a feature that there is not, or by no number")
    if tree.value.shape != (count, tree.n_outputs, tree.max_n_classes) or not (np.isfinite(tree.value) & (tree.value >= 0)).all():
        raise ValueError("the leaves of a tree hold no probabilities")
    return tree


def _restore_linear(empty: Any, loaded: Any, n_codes: int, *, exclusive: bool) -> Any:
    classes = np.asarray(loaded.classes_)
    _check_codes(classes, n_codes)
    n_planes = 1 if exclusive and len(classes) <= 2 else len(classes)
    if not exclusive and len(classes) != n_codes:
        raise ValueError(f"it has {len(classes)} outputs for {n_codes} behaviors")
    shapes = {"coef_": (n_planes, empty.n_features_in_), "intercept_": (n_planes,), "means_": (empty.n_features_in_,)}
    for name, shape in shapes.items():
        values = np.asarray(getattr(loaded, name))
        if values.dtype.kind != "f" or values.shape != shape or not np.isfinite(values).all():
            raise ValueError(f"{name} is not {shape} finite numbers")
        setattr(empty, name, values)
    empty.classes_ = classes
    return empty


def _count(value: Any) -> int:
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"the number of features is {value!r}")
    return int(value)
