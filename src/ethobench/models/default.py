"""The model that is trained where none is named, and what is lost where its packages are not installed.

The numbers in the notes are measured: ``benchmarks/results/rats.md`` (46 recordings of two rats, five folds), ``bebe_har.md`` and
``bebe_seals.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

DEFAULT, FALLBACK = "auto", "rf"
NO_TREES = (
    "lightgbm is not installed, so the model is rf, a random forest, instead of auto. rf finds fewer bouts: bout F1 .64 against .67 and "
    "BANOS F1 .60 against .69 on the rats, and that with decoding, which is on here (without it, bout F1 .17); and it labels fewer frames "
    "right: F1 .92 against .99 on HAR, .59 against .65 on the seals (rf frame by frame there). "
    'To get auto: pip install "ethobench[boost,nn]"'
)
NO_NETWORK = (
    "torch is not installed, so auto uses boosted trees alone, without its network. On the rats that makes no measurable difference (bout "
    "F1 -.003, 95 % interval -.026 to .021, over 28 recordings); on other data the network may add something. "
    'To get it: pip install "ethobench[nn]"'
)


@dataclass(frozen=True)
class DefaultModel:
    """The model to train where none is named.

    Attributes
    ----------
    name : str
    decode : str
        The metric for which its bouts are decoded; empty for a model that does so by itself.
    note : str
        What is lost because a package is not installed, and how to install it; empty where nothing is.
    """

    name: str
    decode: str = ""
    note: str = ""


def default_model() -> DefaultModel:
    """Return the best model without tuning that the installed packages allow."""
    if find_spec("lightgbm") is None:
        return DefaultModel(FALLBACK, "balanced", NO_TREES)
    return DefaultModel(DEFAULT, note="" if find_spec("torch") is not None else NO_NETWORK)


def install_command(packages: Mapping[str, str]) -> str:
    """Return the command that installs what a model lacks; empty where nothing is missing.

    Parameters
    ----------
    packages : mapping of str to str
        Packages, and the extra of ethobench that has each (`Model.packages`).
    """
    extras = sorted({extra for package, extra in packages.items() if find_spec(package) is None})
    return f'pip install "ethobench[{",".join(extras)}]"' if extras else ""
