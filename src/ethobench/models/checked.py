"""Hyper-parameters, looked at before they are used."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from ethobench.core.errors import EthobenchError

PLAIN: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (bool, "true or false"),
    "str": (str, "a word"),
    "None": (type(None), "none"),
}
"""Types of hyper-parameters that can be told apart at a glance, and what they are called."""


def checked(kind: type, told: Mapping[str, Any]) -> Any:
    """Make hyper-parameters, after a look at whether numbers are numbers and words are words."""
    for field in dataclasses.fields(kind):
        wanted = [name.strip() for name in str(field.type).split("|")]
        if field.name not in told or not all(name in PLAIN for name in wanted):
            continue
        value = told[field.name]
        fits = (isinstance(value, PLAIN[name][0]) and (name == "bool" or not isinstance(value, bool)) for name in wanted)
        if not any(fits):
            raise EthobenchError(f"{field.name} is {' or '.join(PLAIN[name][1] for name in wanted)}, not {value!r}")
    return kind(**told)
