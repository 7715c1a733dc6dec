"""The registry of models: names, the module of each, and `create_model`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.files import read_json
from ethobench.core.registry import Registry
from ethobench.core.wording import join_names

if TYPE_CHECKING:
    from ethobench.models.base import Model

MODULES = {
    "attention": "ethobench.models.calms21_networks",
    "auto": "ethobench.models.auto",
    "boost": "ethobench.models.boost",
    "chance": "ethobench.models.chance",
    "cnn": "ethobench.models.bebe_networks",
    "conv1d": "ethobench.models.calms21_networks",
    "crnn": "ethobench.models.bebe_networks",
    "dense": "ethobench.models.calms21_networks",
    "dt": "ethobench.models.frame_classifiers",
    "gmm": "ethobench.models.unsupervised",
    "harnet": "ethobench.models.bebe_networks",
    "hmm": "ethobench.models.unsupervised",
    "kmeans": "ethobench.models.unsupervised",
    "lstm": "ethobench.models.calms21_networks",
    "mllm": "ethobench.mllm.model",
    "rf": "ethobench.models.frame_classifiers",
    "rnn": "ethobench.models.bebe_networks",
    "svm": "ethobench.models.frame_classifiers",
    "tcn": "ethobench.models.tcn",
    "wavelet_dt": "ethobench.models.frame_classifiers",
    "wavelet_rf": "ethobench.models.frame_classifiers",
    "wavelet_rnn": "ethobench.models.bebe_networks",
    "wavelet_svm": "ethobench.models.frame_classifiers",
}

LIBRARIES = {
    "ethobench.models.bebe_networks": ("torch",),
    "ethobench.models.boost": ("lightgbm",),
    "ethobench.models.calms21_networks": ("torch",),
    "ethobench.models.frame_classifiers": ("ethobench.models.skops_files",),
    "ethobench.models.tcn": ("torch",),
}
"""What the modules of models import when they load a saved model, and what takes long to import."""

OPTIMIZER = "torch._dynamo"  # which the optimizers of torch import
TRAINING_LIBRARIES = {
    **{name: (*libraries, OPTIMIZER) if "torch" in libraries else libraries for name, libraries in LIBRARIES.items()},
    "ethobench.models.auto": ("lightgbm", "torch", OPTIMIZER, "sklearn.linear_model"),
    "ethobench.models.frame_classifiers": ("sklearn.ensemble",),
}
"""What the modules of models import when they are trained, and what takes long to import."""

models: Registry[type[Model]] = Registry("model", MODULES, classes=True)
register_model = models.register


def create_model(name: str, *, seed: int = 0, decode: str = "", **params: Any) -> Model:
    """Create an unfitted model.

    Parameters
    ----------
    name : str
        ``"auto"`` (the default of `ethobench train`), ``"boost"``, ``"rf"``, ...
    seed : int
        Random seed.
    decode : str
        The metric for which probabilities are decoded into bouts: ``"f1"``, ``"bout_f1"``, ``"balanced"``, ...; empty for the most
        probable behavior of each frame.
    **params
        Hyper-parameters. The published values are the defaults.

    Examples
    --------
    >>> create_model("auto", metric="bout_f1")
    auto(metric='bout_f1', ...)
    """
    kind = models[name]
    if missing := [package for package in kind.packages if find_spec(package) is None]:
        raise EthobenchError(f"model {name!r} needs {join_names(missing)}: {install_command(kind.packages)}")
    return kind(seed=seed, decode=decode, **params)


def install_command(packages: Mapping[str, str]) -> str:
    """Return the command that installs the missing packages of a model; empty if none is missing.

    Parameters
    ----------
    packages : mapping of str to str
        Packages, and the extra of ethobench that installs each (`Model.packages`).
    """
    extras = sorted({extra for package, extra in packages.items() if find_spec(package) is None})
    return f'pip install "ethobench[{",".join(extras)}]"' if extras else ""


def modules_of_saved_model(folder: Path) -> list[str]:
    """List the modules that a saved model needs, and those of the models that it combines. Nothing is imported.

    Parameters
    ----------
    folder : Path
        Folder of the model. If it is not a valid one, modules are missing from the list, and `load_model` says why.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> create_model("chance").fit(load_dataset("synthetic/tag", individuals=2, seconds=20)).save(folder / "model")
    >>> modules_of_saved_model(folder / "model")
    ['ethobench.models.chance']
    """
    modules = []
    for path in sorted(folder.glob("**/model.json")):
        with suppress(OSError, FormatError, AttributeError):
            modules.append(MODULES.get(str(read_json(path).get("model")), ""))
    return [name for module in dict.fromkeys(filter(None, modules)) for name in (module, *LIBRARIES.get(module, ()))]


def modules_for_training(names: Iterable[str]) -> list[str]:
    """List the modules that the training of models needs. Nothing is imported.

    Parameters
    ----------
    names : iterable of str
        Names of models; those of other distributions are skipped.

    Examples
    --------
    >>> modules_for_training(["chance", "rf", "svm"])
    ['ethobench.models.chance', 'ethobench.models.frame_classifiers', 'sklearn.ensemble']
    """
    modules = dict.fromkeys(MODULES[name] for name in names if name in MODULES)
    return [name for module in modules for name in (module, *TRAINING_LIBRARIES.get(module, ()))]
