"""Fixtures that all tests share."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, Phase, settings

TESTS = Path(__file__).parent / "tests"
PACKAGE = Path(__file__).parent / "src" / "ethobench"

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side; more threads than cores cost far more than they bring

# The same examples every time, so that a change is judged by what it changes. HYPOTHESIS_PROFILE=explore draws new ones.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", settings.get_profile("default"), max_examples=5)
ANY_FAILURE = [Phase.explicit, Phase.generate]  # the smallest one is not searched for
settings.register_profile("mutants", settings.get_profile("default"), max_examples=10, phases=ANY_FAILURE)
settings.register_profile("explore", deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def data() -> Path:
    """Give the folder of real recordings, or skip the test where there is none."""
    folder = os.environ.get("ETHOBENCH_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data: $ETHOBENCH_DATA names no folder")
    return Path(folder)


@pytest.fixture(scope="session", autouse=True)
def _separate_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests out of the user's cache folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ETHOBENCH_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _commands_built_once() -> Iterator[None]:
    """Build the command line once per process: Typer builds every subcommand anew in each call, which takes longer than most of them."""
    import typer.main
    import typer.testing

    build = functools.cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", build)
        patch.setattr(typer.testing, "_get_command", build)
        yield


@pytest.fixture(scope="session", autouse=True)
def _workers_import_once() -> Iterator[None]:
    """Let the server that worker processes of all tests are forked from import what most of them need, whichever test starts it."""
    from multiprocessing import forkserver

    set_preload = forkserver.set_forkserver_preload
    libraries = ["ethobench.app.server", "ethobench.runs.prediction_worker", "ethobench.formats.tidy", "scipy.signal", "pyarrow.parquet"]
    libraries += ["ethobench.models.frame_classifiers", "ethobench.models.skops_files"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forkserver, "set_forkserver_preload", lambda modules: set_preload([*modules, *libraries]))
        yield


@pytest.fixture(autouse=True)
def _doctest_names(request: pytest.FixtureRequest) -> None:
    """Give examples in docstrings a folder to write to and an annotation to write."""
    if not isinstance(request.node, pytest.DoctestItem):
        return
    from ethobench import Annotation

    namespace = request.getfixturevalue("doctest_namespace")
    namespace["folder"] = request.getfixturevalue("tmp_path_factory").mktemp("example")
    namespace["annotation"] = Annotation.from_bouts([0, 10], [5, 20], ["attack", "mount"], ["attack", "mount"], rate=30, n_frames=100)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules without examples, nor files without fast tests if only these are selected.

    PyTorch alone takes as long to import as hundreds of tests, and skops imports all of scikit-learn.
    """
    if collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    if PACKAGE in collection_path.parents and ">>>" not in text:
        return True
    if config.option.markexpr != "not slow":
        return None
    return "\npytestmark = pytest.mark.slow\n" in text or "\nimport torch\n" in text or None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Collect examples in docstrings from the package only."""
    collectors = yield
    return [node for node in collectors if not (isinstance(node, DoctestModule) and TESTS in file_path.parents)]
