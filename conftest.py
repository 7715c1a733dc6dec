"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side; more threads than cores cost far more than they bring

# The same examples every time, so that a change is judged by what it changes. HYPOTHESIS_PROFILE=explore draws new ones.
settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", settings.get_profile("default"), max_examples=15)
settings.register_profile("explore", deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def data() -> Path:
    """Give the folder of real recordings, or skip the test where there is none."""
    folder = os.environ.get("ETHOBENCH_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data: $ETHOBENCH_DATA names no folder")
    return Path(folder)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the tests out of the user's cache folder."""
    monkeypatch.setenv("ETHOBENCH_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def _doctest_names(request: pytest.FixtureRequest, doctest_namespace: dict[str, object], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give examples in docstrings a folder to write to and an annotation to write."""
    if not isinstance(request.node, pytest.DoctestItem):
        return
    from ethobench import Annotation

    doctest_namespace["folder"] = tmp_path_factory.mktemp("example")
    doctest_namespace["annotation"] = Annotation.from_bouts(
        [0, 10], [5, 20], ["attack", "mount"], ["attack", "mount"], rate=30, n_frames=100
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what is slow throughout where only the fast tests are wanted: the libraries it needs load slowly."""
    if config.option.markexpr == "not slow" and collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        return "\npytestmark = pytest.mark.slow\n" in collection_path.read_text(encoding="utf-8") or None
    return None
