"""Hyper-parameters of models: pydantic dataclasses, validated in one place, with error messages in plain words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, TypeAlias, TypeVar, cast, dataclass_transform

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from ethobench.core.errors import ParameterError
from ethobench.core.wording import join_names

T = TypeVar("T")


def _as_tuple(value: Any) -> Any:
    """Return a single number or text as a tuple of one, and a list as a tuple."""
    if isinstance(value, (str, int, float)):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


Count: TypeAlias = Annotated[int, Field(ge=1)]
"""A number of something, at least one."""
Integers: TypeAlias = Annotated[tuple[int, ...], BeforeValidator(_as_tuple)]
"""One or several integers, such as the sizes of layers."""
Names: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
"""One or several texts, such as the names of augmentations."""

EXPECTED: Mapping[str, str] = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "tuple": "a list",
    "finite": "a finite number",
}
"""What a value should have been, by the first word of pydantic's error type."""
COMPARED: Mapping[str, tuple[str, str]] = {
    "greater_than": ("gt", ">"),
    "greater_than_equal": ("ge", ">="),
    "less_than": ("lt", "<"),
    "less_than_equal": ("le", "<="),
}
"""Pydantic's error types for numbers out of range: where the error has the limit, and how to write the comparison."""


@dataclass_transform(frozen_default=True)
def hyperparameters(cls: type[T]) -> type[T]:
    """Turn a class with annotations and defaults into a frozen dataclass whose values are validated.

    Types are strict: ``"100"`` is not an integer and ``1.0`` is not one either, but an integer is accepted as a float.
    """
    return cast("type[T]", pydantic_dataclass(frozen=True, config=ConfigDict(strict=True, allow_inf_nan=False))(cls))


def parameter_names(params: type) -> list[str]:
    """Return the names of the hyper-parameters of a dataclass."""
    return [field.name for field in dataclasses.fields(params)]


def make_params(model: str, params: type, values: Mapping[str, Any]) -> Any:
    """Create the hyper-parameters of a model.

    Parameters
    ----------
    model : str
        Name of the model, for messages.
    params : type
        The dataclass.
    values : mapping of str to value
        The defaults are used for all others.

    Raises
    ------
    ParameterError
        If a name is not a hyper-parameter of the model, or a value is not valid.
    """
    names = parameter_names(params)
    for name in values:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"; did you mean `{near[0]}`?" if near else "."
            raise ParameterError(f"model {model!r} has no parameter `{name}`{hint} Available: {', '.join(names) or 'none'}")
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
    try:
        return params(**plain)
    except ValidationError as error:
        raise ParameterError(f"model {model!r}: {describe_errors(error)}") from None


def describe_errors(error: ValidationError) -> str:
    """Return what is wrong with the first invalid parameter, such as "`trees` must be >= 1, got 0"."""
    errors = error.errors(include_url=False)
    name = str(errors[0]["loc"][0]) if errors[0]["loc"] else ""
    same = [each for each in errors if not name or each["loc"][0] == name]
    if same[0]["type"] == "value_error":  # raised by the dataclass itself, as a complete sentence
        return str(same[0]["ctx"]["error"])
    expected = join_names(dict.fromkeys(_expected(each) for each in same), "or")
    return f"`{name}` must be {expected}, got {same[0]['input']!r}"


def _expected(error: Mapping[str, Any]) -> str:
    kind, limits = str(error["type"]), error.get("ctx", {})
    if kind in COMPARED:
        key, sign = COMPARED[kind]
        return f"{sign} {limits[key]:g}"
    if kind == "literal_error":
        return f"one of {limits['expected']}"
    return EXPECTED.get(kind.partition("_")[0], str(error["msg"]))
