"""Reference pages: one for each format, metric, suite and model, from its attributes and docstrings."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from _docstrings import markdown, parse, plain, table

from ethobench.formats import formats
from ethobench.formats.base import DETAILS, Format
from ethobench.metrics import Measure, Metric, Suite, all_metrics
from ethobench.metrics.suites import suites
from ethobench.models import Model, models

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
PACKAGES = ("ethobench.formats", "ethobench.models", "ethobench.decoding", "ethobench.training", "ethobench.mllm")
FAMILIES = {
    "frames": "Frames",
    "seconds": "Seconds",
    "bouts": "Bouts",
    "segments": "Segments",
    "agreement": "Agreement",
    "probabilities": "Probabilities",
    "budgets": "Time budgets",
}
KINDS = {
    "counts": "The statistics are counts that are summed over recordings before division.",
    "histogram": "The statistics are histograms with fixed bins, summed over recordings.",
    "rows": "Each recording has its own value; the score is their mean.",
}
OVER = {
    "pooled": "statistics summed over recordings",
    "recordings": "mean over recordings",
    "individuals": "mean over individuals",
    "cells": "mean over all (recording, behavior) cells",
}


@dataclasses.dataclass(frozen=True)
class Page:
    """A generated page: file name, link text, content, and columns for the list of its section."""

    name: str
    label: str
    text: str
    facts: dict[str, str]
    group: str = ""


def format_pages() -> list[Page]:
    """Make a page for each format."""
    return [_format_page(each) for each in sorted(formats, key=lambda f: f.title.lower())]


def _format_page(each: Format) -> Page:
    keeps = "everything" if {*each.keeps} == {*DETAILS} else ", ".join(each.keeps) or "behaviors and times"
    written = ", ".join(f"`{s}`" for s in each.suffixes) if each.can_write else "no"
    holds = ", ".join(each.contents)
    facts = [("name in commands", f"`{each.name}`"), ("holds", holds), ("several recordings in a file", _yes(each.multiple_recordings))]
    facts += [("several annotators of a recording", _yes(each.multiple_annotators)), ("written", written)]
    commands = [f"ethobench inspect FILE --from {each.name}"]
    if each.can_write and "annotations" in each.contents:
        facts.append(("keeps when written", keeps))
        commands.append(f"ethobench convert IN OUT{each.suffixes[0]} --to {each.name}")
    options = _options("reading", each.read) + (_options("writing", each.write) if each.can_write else [])
    parts = [f"# {each.title}", markdown(inspect.getdoc(type(each))), table(("", ""), facts)]
    parts += ["## Options", table(("option", "when", "default"), options)] if options else []
    parts += [needed(type(each)), "## Example", _shell(commands), "## What the files are like", _module_text(type(each))]
    return Page(each.name, each.title, _joined(parts), {"name": f"`{each.name}`", "holds": holds, "written": written})


def _options(when: str, function: Any) -> list[tuple[str, ...]]:
    return [(f"`{p.name}`", when, f"`{p.default!r}`") for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]


def metric_pages() -> list[Page]:
    """Make a page for each metric."""
    every = list(all_metrics().values())
    place = {family: i for i, family in enumerate((*FAMILIES, *suites.names()))}
    return [_metric_page(metric) for metric in sorted(every, key=lambda m: (place.get(m.family, len(place)), m.name))]


def _metric_page(metric: Metric) -> Page:
    used = [(suite, m) for suite in suites for m in suite.measures if m.metric_name == metric.name]
    facts = [
        ("best value", f"{metric.best:g}"),
        ("other end", f"{metric.worst:g}"),
        ("of", "all behaviors together" if metric.joint else "each behavior"),
        ("the same for swapped annotators", _yes(metric.symmetric)),
        ("the same at another frame rate", _yes(metric.rate_free)),
        ("needs probabilities", _yes(metric.probabilistic)),
        ("counts point events", _yes(metric.points)),
    ]
    rows = [(f"[`{suite.name}`](../suites/{suite.name}.md)", f"`{m.name}`", _aggregation(m)) for suite, m in used]
    parts = [f"# `{metric.name}`", plain(metric.definition), KINDS[metric.kind], table(("", ""), facts)]
    parts += ["## In suites", table(("suite", "called", "brought together"), rows)] if used else []
    if used:
        suite, measure = next(((s, m) for s, m in used if s.name == "ethobench"), used[0])
        chosen = "" if suite.name == "ethobench" else f" --suite {suite.name}"
        parts += ["## Example", _shell([f"ethobench score PRED TRUTH{chosen} --metrics {measure.name}"])]
    parts += ["## Conventions of its family", _module_text(metric.value)]
    family = FAMILIES.get(metric.family, f"As published: {metric.family}")
    return Page(metric.name, f"`{metric.name}`", _joined(parts), {"definition": plain(metric.definition)}, family)


def suite_pages() -> list[Page]:
    """Make a page for each suite."""
    return [_suite_page(suite) for suite in suites]


def _suite_page(suite: Suite) -> Page:
    rows = [
        (f"`{m.name}`", f"[`{m.metric_name}`](../metrics/{m.metric_name}.md)", _aggregation(m), plain(m.metric.definition))
        for m in suite.measures
    ]
    facts = [
        ("shown by default", ", ".join(f"`{name}`" for name in suite.headline)),
        ("prediction and truth may differ in length", _yes(suite.lengths)),
        ("they may differ in their behaviors", _yes(suite.labels)),
        ("frames without a bout are the named background", _yes(suite.fill_background)),
    ]
    parts = [f"# Suite `{suite.name}`", f"{suite.title}.", _module_text(type(suite)), table(("", ""), facts)]
    parts += ["## Measures", table(("measure", "metric", "aggregation", "definition"), rows)]
    parts += ["## Example", _shell([f"ethobench score PRED TRUTH --suite {suite.name}"])]
    return Page(suite.name, f"`{suite.name}`", _joined(parts), {"definitions of": suite.title, "measures": str(len(suite.measures))})


def _aggregation(measure: Measure) -> str:
    text = OVER[measure.over]
    if measure.spread:
        text = "standard deviation over individuals"
    return text + (", background too" if measure.background and not measure.metric.joint else "")


def model_pages() -> list[Page]:
    """Make a page for each model."""
    return [_model_page(name, models[name]) for name in models.names()]


def _model_page(name: str, model: type[Model]) -> Page:
    entries = {k: v for cls in reversed(model.Params.__mro__) for k, v in parse(cls.__dict__.get("__doc__")).meanings().items()}
    rows = []
    for each in dataclasses.fields(model.Params):
        entry = entries.get(each.name)
        default = each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
        grid_values = ", ".join(f"`{value}`" for value in model.grid.get(each.name, ()))
        rows.append((f"`{each.name}`", f"`{default!r}`", entry.meaning if entry else "", grid_values))
    parts = [f"# Model `{name}`", f"{_sentence(model.title)}", markdown(model.__doc__), _module_text(model), needed(model)]
    parts += ["" if model.needs_signals else "Does not need signals."]
    parts += ["## Hyper-parameters", table(("name", "default", "meaning", "published grid"), rows) if rows else "None."]
    parts += ["## Example", _shell([f"ethobench train my_study/ --model {name} --out models/{name}"])]
    extra = ", ".join(f"`{e}`" for e in extras_of(model)) or "-"
    return Page(name, f"`{name}`", _joined(parts), {"what it is": model.title, "extra": extra})


def needed(cls: type) -> str:
    """Return a sentence about the optional libraries of a class and the extra that installs them."""
    extras = extras_of(cls)
    if not extras:
        return ""
    libraries = ", ".join(sorted({name for names in extras.values() for name in names}))
    return f"Optional libraries: {libraries}. Install them with `pip install 'ethobench[{','.join(extras)}]'`."


def extras_of(cls: type) -> dict[str, list[str]]:
    """Return the extras that install the libraries that a class's modules import, also inside functions."""
    imported = {_distribution(name) for base in cls.__mro__ if base.__module__.startswith(PACKAGES) for name in _imports(base.__module__)}
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    core = {_requirement(line) for line in project["dependencies"]}
    provides = {
        e: {_requirement(line) for line in lines} for e, lines in project["optional-dependencies"].items() if e not in ("all", "dev")
    }
    missing = {name for name in imported - core if any(name in libraries for libraries in provides.values())}
    chosen: dict[str, list[str]] = {}
    while missing:
        extra = max(provides, key=lambda e: len(provides[e] & missing))
        chosen[extra] = sorted(provides[extra] & missing)
        missing -= provides[extra]
    return chosen


def _imports(module: str) -> set[str]:
    """Return what a module imports, directly or through other modules of the package; ``base`` modules are skipped."""
    imported: set[str] = set()
    pending, done = [module], set()
    while pending:
        name = pending.pop()
        done.add(name)
        if name.endswith(".base"):
            continue
        imported |= _direct_imports(name)
        pending += [other for other in _direct_imports(name) if other.startswith(PACKAGES) and other not in (*PACKAGES, *done, *pending)]
    return imported


@cache
def _direct_imports(module: str) -> frozenset[str]:
    spec = find_spec(module)
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else "")
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    plainly = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    return frozenset(plainly | {node.module for node in imports if isinstance(node, ast.ImportFrom) and node.module})


def _distribution(module: str) -> str:
    parts = module.split(".")
    return "-".join(parts[:2]) if parts[0] == "google" else parts[0].replace("_", "-")


def _requirement(line: str) -> str:
    return line.partition(">")[0].strip().lower()


def _module_text(thing: Any) -> str:
    """Return the docstring of the module that defines something, without headings."""
    parts = parse(sys.modules[thing.__module__].__doc__)
    return "\n\n".join([parts.text, *(plain(text) for text in parts.prose.values())]).strip()


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _shell(commands: list[str]) -> str:
    return "```bash\n" + "\n".join(commands) + "\n```"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _joined(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"
