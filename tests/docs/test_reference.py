"""The reference pages: one for each member of the registries, made from what it says of itself."""

from __future__ import annotations

import dataclasses
import re
import sys
from types import ModuleType

import pytest
from tests.docs.blocks import DOCS, PAGES, page_name
from tests.docs.test_examples import parse

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        import _generate

        yield _generate
    for name in ("_generate", "_reference", "_reference_api", "_docstrings"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def pages(generate: ModuleType) -> dict[str, str]:
    return {f"{section}/{page.name}.md": page.text for section, section_pages in generate.sections().items() for page in section_pages}


def test_every_member_has_a_page(pages: dict[str, str]) -> None:
    from ethobench.formats import formats
    from ethobench.metrics import all_metrics
    from ethobench.metrics.suites import suites
    from ethobench.models import models

    expected = {"formats": formats.names(), "suites": suites.names(), "models": models.names(), "metrics": all_metrics()}
    generated = {section: {name.split("/")[1][:-3] for name in pages if name.startswith(section)} for section in expected}
    assert generated == {section: {*names} for section, names in expected.items()}


def test_every_public_name_is_described(pages: dict[str, str]) -> None:
    import ethobench

    for name in ethobench.__all__:
        assert name == "__version__" or f"\n## `{name}`\n\n" in pages["api/ethobench.md"]


def test_a_model_page_has_every_hyper_parameter_with_default_and_grid(pages: dict[str, str]) -> None:
    from ethobench.models import models

    for name in models.names():
        for field in dataclasses.fields(models[name].Params):
            assert f"| `{field.name}` | `" in pages[f"models/{name}.md"]
    page = pages["models/rf.md"]
    assert "| `seconds` | `2.0` | Length of the window. | `0.5`, `1.0`, `2.0`, `4.0`, `8.0`, `16.0` |" in page
    assert "| `max_samples` | `0.1` | Share of the frames that each tree is fitted to. |" in page


def test_pages_say_which_extra_is_needed(pages: dict[str, str]) -> None:
    assert "pip install 'ethobench[nn]'" in pages["models/crnn.md"]
    assert "pip install 'ethobench[pose]'" in pages["formats/sleap.md"]
    assert "pip install" not in pages["models/rf.md"]
    assert "pip install" not in pages["formats/boris.md"]


def test_example_commands_are_well_formed(pages: dict[str, str]) -> None:
    commands = {line for text in pages.values() for line in re.findall(r"^ethobench .*$", text, re.MULTILINE)}
    assert len(commands) > 80
    for command in commands:
        parse(command.split()[1:])


def test_generated_lists_replace_their_placeholders(generate: ModuleType) -> None:
    requested = {page_name(page).partition("/")[0] for page in PAGES if generate.LIST.search(page.read_text(encoding="utf-8"))}
    assert requested == {*generate.sections()}
    filled = generate.with_lists("before\n<!-- list: suites -->\nafter")
    assert "[`banos`](banos.md)" in filled
    assert "list:" not in filled


def test_pages_are_reproducible(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        assert not re.search(r" at 0x[0-9a-f]+|/(home|root|tmp|work)/", text), name


def test_docstrings_are_parsed(generate: ModuleType) -> None:
    from _docstrings import markdown, parse, signature

    def f(a, b=1, *, c=None):
        """Do a thing.

        Parameters
        ----------
        a, b : int
            Both ``x`` | y,
            in two lines.
        c : str, optional

        Examples
        --------
        >>> f(1)
        """

    parts = parse(f.__doc__)
    assert parts.text == "Do a thing."
    assert parts.meanings()["b"].meaning == "Both `x` | y, in two lines."
    assert "| `a`, `b` | int | Both `x` \\| y, in two lines. |" in markdown(f.__doc__)
    assert "```pycon\n>>> f(1)\n```" in markdown(f.__doc__)
    assert signature("f", f) == "f(a, b=1, *, c=None)"
    assert signature("f" * 90, f).splitlines()[1:] == ["    a,", "    b=1,", "    *,", "    c=None,", ")"]
