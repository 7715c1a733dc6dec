"""Constants, default values and properties of metrics, as recorded in definitions.json.

Bins, thresholds, tolerances and defaults define what scores mean and how files look, and users rely on them. A change must be intended:
record it with ``python -m tests.core.test_definitions`` and name it in the changelog.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import json
import pkgutil
import re
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import ethobench.core
import ethobench.metrics

RECORD = "if the change is intended, run `python -m tests.core.test_definitions`"
FILE = Path(__file__).with_name("definitions.json")


def modules() -> list[ModuleType]:
    packages = (ethobench.core, ethobench.metrics)
    names = [m.name for p in packages for m in pkgutil.walk_packages(p.__path__, f"{p.__name__}.")]
    return [importlib.import_module(name) for name in sorted(names)]


def plain(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return repr(value)
    return value.pattern if isinstance(value, re.Pattern) else f"<{type(value).__name__}>"


def defaults(function: Any) -> dict[str, Any]:
    return {
        name: plain(parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if isinstance(parameter.default, bool | int | float | str)
    }


def definitions(module: ModuleType) -> dict[str, Any]:
    """Return the constants, defaults, dataclasses and class attributes of a module."""
    recorded: dict[str, Any] = {}
    for name, value in vars(module).items():
        is_local = getattr(value, "__module__", "") == module.__name__
        if name.isupper() or (name.startswith("_") and name[1:].isupper()):
            recorded[name] = plain(value)
        elif is_local and isinstance(value, FunctionType | functools._lru_cache_wrapper):
            recorded[name] = defaults(value)
        elif is_local and isinstance(value, type):
            recorded[name] = class_definitions(value)
    return {name: value for name, value in recorded.items() if has_number(value)}


def has_number(value: Any) -> bool:
    """Whether a recorded value holds anything but names."""
    if isinstance(value, dict | list):
        return any(has_number(item) for item in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, bool | int) or (isinstance(value, str) and re.search("[0-9]", value) is not None)


def class_definitions(cls: type) -> dict[str, Any]:
    recorded: dict[str, Any] = {}
    for name, value in vars(cls).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if isinstance(function, FunctionType) and not (name == "__init__" and dataclasses.is_dataclass(cls)):
            recorded[name] = defaults(function)
        elif isinstance(value, bool | int | float | str | tuple) and not name.startswith("__"):
            recorded[name] = [repr(item) for item in value] if isinstance(value, tuple) else plain(value)
    if dataclasses.is_dataclass(cls):
        recorded["compared by value"] = cls.__eq__ is not object.__eq__
        recorded["hashed by identity"] = cls.__hash__ is object.__hash__
        recorded["fields"] = {f.name: plain(f.default) for f in dataclasses.fields(cls) if f.default is not dataclasses.MISSING}
    return {name: value for name, value in recorded.items() if has_number(value)}


def metrics() -> dict[str, Any]:
    """Return the properties of all metrics that the package defines."""
    return {
        name: {
            field.name: plain(getattr(metric, field.name))
            for field in dataclasses.fields(metric)
            if isinstance(getattr(metric, field.name), bool | int | float | str)
        }
        for name, metric in sorted(ethobench.metrics.all_metrics().items())
        if metric.statistics.__module__.startswith("ethobench.")
    }


def everything() -> dict[str, Any]:
    recorded = {module.__name__: definitions(module) for module in modules()}
    return {**{name: value for name, value in recorded.items() if value}, "metrics": metrics()}


@pytest.mark.parametrize("name", sorted(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.exists() else [])
def test_definitions_are_those_recorded(name):
    expected = json.loads(FILE.read_text(encoding="utf-8"))[name]
    assert (metrics() if name == "metrics" else json.loads(json.dumps(definitions(importlib.import_module(name))))) == expected, RECORD


def test_every_module_with_definitions_is_recorded():
    assert {*everything()} == {*json.loads(FILE.read_text(encoding="utf-8"))}, RECORD


if __name__ == "__main__":
    FILE.write_text(json.dumps(everything(), indent=1) + "\n", encoding="utf-8")
