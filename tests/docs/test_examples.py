"""Every example in the README and the guide runs; those that cannot run here are at least well-formed."""

from __future__ import annotations

import configparser
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.docs.blocks import DOCS, PAGES, ROOT, Block, blocks_of, expanded, page_name
from typer.testing import CliRunner

from ethobench.runs import executors

EXAMPLE_FILES = DOCS / "example.md"
SHELLS = ("bash", "sh")
SLOW = (
    "README.md",
    "conventions.md",
    "runs.md",
    "guides/agreement.md",
    "guides/bebe.md",
    "guides/budgets.md",
    "guides/cite.md",
    "guides/clips.md",
    "guides/compare.md",
    "guides/score.md",
    "guides/teach.md",
    "guides/train.md",
    "metrics/index.md",
    "models/index.md",
)
WITH_EXAMPLES = [
    pytest.param(page, marks=pytest.mark.slow if page_name(page) in SLOW else (), id=page_name(page))
    for page in PAGES
    if any(block.reason is None for block in blocks_of(page))
]
NOT_RUN = [block for page in PAGES for block in blocks_of(page) if block.reason is not None]

pytestmark = pytest.mark.filterwarnings("ignore::ethobench.core.errors.ReadWarning")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the files that docs/example.md tells readers to make."""
    folder = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        follow(EXAMPLE_FILES)
    return folder


@pytest.fixture
def own_modules(tmp_path: Path) -> Iterator[None]:
    """Let examples add modules and members of registries without leaving anything behind."""
    from ethobench.datasets import families
    from ethobench.formats import formats
    from ethobench.metrics.base import all_metrics, unregister_metric
    from ethobench.metrics.suites import suites
    from ethobench.mllm.providers import providers
    from ethobench.models import models

    registries = (families, formats, suites, providers, models)
    for registry in registries:
        registry._names = None
    yield
    for name in [n for n, m in sys.modules.items() if str(getattr(m, "__file__", None) or "").startswith(str(tmp_path))]:
        del sys.modules[name]
        for metric in [m for m in all_metrics() if m.startswith(f"{name}.")]:
            unregister_metric(metric)
        for registry in registries:
            registry._members.pop(name, None)
    for registry in registries:
        registry._names = None


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_EXAMPLES)
@pytest.mark.usefixtures("own_modules")
def test_examples_run(page: Path, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page != EXAMPLE_FILES:
        shutil.copytree(lab, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(executors, "process_pool", lambda workers: ThreadPoolExecutor(1))  # processes take long to start
    monkeypatch.setattr(executors, "START_METHOD", "spawn")  # so that nothing is preloaded for processes
    follow(page)


def follow(page: Path) -> None:
    """Do what a page says, in the folder where we are."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page):
        if block.reason is not None:
            continue
        if block.title:
            write(block)
        elif block.language == "python":
            exec(compile(block.compiled_source, str(block.page), "exec"), names)  # noqa: S102
        elif block.language in SHELLS:
            for words in block.commands():
                run(block, words)


def write(block: Block) -> None:
    """Write a file as the page shows it; what pip would make of entry points is made at once."""
    path = Path(block.title)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.code, encoding="utf-8")
    if path.name == "pyproject.toml":
        project = tomllib.loads(block.code)["project"]
        installed = Path(f"{project['name']}-{project['version']}.dist-info")
        installed.mkdir()
        (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
        points = configparser.ConfigParser()
        points.read_dict(project["entry-points"])
        with (installed / "entry_points.txt").open("w") as file:
            points.write(file)


def run(block: Block, words: list[str]) -> None:
    """Run a command of ours; others belong into blocks that are marked."""
    from ethobench.cli import app

    assert words[0] == "ethobench", f"{block.place}: {words[0]!r} cannot be run here; mark the block with <!-- not run: why -->"
    result = CliRunner().invoke(app, expanded(words[1:]))
    output = f"{block.place}: {' '.join(words)}\n{result.output}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(output) from result.exception
    assert result.exit_code == 0, output


@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.place)
def test_examples_that_cannot_run_are_well_formed(block: Block) -> None:
    assert block.reason, "say why it is not run"
    if block.language == "python":
        compile(block.compiled_source, str(block.page), "exec")
    elif block.language in SHELLS:
        for words in block.commands():
            if words[0] == "ethobench":
                parse(words[1:])


@cache
def cli() -> Any:
    """Return our command as its parser sees it."""
    from ethobench.cli import app

    return typer.main.get_command(app)


def parse(words: list[str]) -> None:
    """Let the command's own parser read the words, without running anything."""
    command, name, rest, parent = cli(), "ethobench", list(words), None
    while command is not None:
        parent = command.make_context(name, rest, parent=parent)
        if not hasattr(command, "resolve_command"):
            return
        name, command, rest = command.resolve_command(parent, [*parent._protected_args, *parent.args])


def test_unknown_options_are_noticed() -> None:
    parse(["run", "bebe", "--store", "runs"])
    parse(["datasets", "show", "bebe/HAR"])
    for wrong in (["run", "bebe"], ["score", "a.csv", "b.csv", "--no-such-option"], ["datasets", "shew", "x"], ["skore"]):
        with pytest.raises(Exception, match=r"(?i)missing|no such"):
            parse(wrong)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_code_fence_is_recognized(page: Path) -> None:
    fences = re.findall(r"^```(\w+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(blocks_of(page)) == len(fences)
    assert {*fences} <= {"python", "bash", "sh", "toml", "text", "csv", "matlab", "r"}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_have_a_target(page: Path) -> None:
    generated = {"formats", "metrics", "suites", "models", "api", "tutorials"}
    for target in re.findall(r"\]\(([^)#\s]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        path = (page.parent / target).resolve()
        is_generated = path.is_relative_to(DOCS) and path.parent.name in generated
        assert target.startswith("http") or path.exists() or is_generated, target


def test_the_readme_has_the_first_commands() -> None:
    shown = [words for block in blocks_of(ROOT / "README.md") if block.language in SHELLS for words in block.commands()]
    commands = {words[1] for words in shown if words[0] == "ethobench"}
    assert {"study", "train", "predict", "agreement", "score", "budget"} <= commands
    assert ["make", "demo"] in shown
    assert ["make", "test"] in shown
