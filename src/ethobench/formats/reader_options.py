"""Options of readers: which a format has, and values written as text on the command line or in a manifest."""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.wording import join_names, plural
from ethobench.formats.base import Format
from ethobench.formats.text import is_number

TRUE, FALSE, NOTHING = ("true", "yes", "1"), ("false", "no", "0"), ("none", "null", "")


def reader_options(reader: Format) -> list[str]:
    """Return the names of the options that a format has for reading.

    Examples
    --------
    >>> from ethobench.formats import formats
    >>> reader_options(formats["labels"])
    ['rate', 'behaviors', 'column']
    """
    return [name for name, p in inspect.signature(reader.read).parameters.items() if p.kind is p.KEYWORD_ONLY]


def check_options(readers: Iterable[Format], options: Mapping[str, Any] | None) -> None:
    """Raise an error if an option exists in none of the formats of some files; it suggests a similar one and lists all.

    Raises
    ------
    ParameterError
    """
    distinct = {reader.name: reader for reader in readers}
    if not options or not distinct:
        return
    allowed = list(dict.fromkeys(name for reader in distinct.values() for name in reader_options(reader)))
    for name in options:
        if name not in allowed:
            similar = get_close_matches(name, allowed, n=1)
            hint = f"; did you mean {similar[0]!r}?" if similar else "."
            titles = [reader.title for reader in distinct.values()]
            problem = plural(
                len(titles), "{titles} has no option {name!r}", "{titles} have no option {name!r}", titles=join_names(titles), name=name
            )
            raise ParameterError(f"{problem}{hint} Options: {', '.join(allowed) or 'none'}")


def options_for(reader: Format, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options that a format has, with values that are text converted to the type of the option.

    Parameters
    ----------
    reader : Format
    options : mapping of str to object, optional
        Options of any format. Lists and mappings may be JSON text, and lists also ``"a,b"`` where the reader accepts it.

    Raises
    ------
    ParameterError
        If a text is not a value of the option.

    Examples
    --------
    >>> from ethobench.formats import formats
    >>> options_for(formats["intervals"], {"inclusive": "true", "columns": '{"behavior": "Code"}', "units": "g"})
    {'inclusive': True, 'columns': {'behavior': 'Code'}}
    """
    if not options:
        return {}
    hints = typing.get_type_hints(type(reader).read)
    allowed = reader_options(reader)
    return {
        name: _converted(reader, name, value, hints.get(name)) if isinstance(value, str) else value
        for name, value in options.items()
        if name in allowed
    }


def entries_with(reader: Format, path: Path, options: Mapping[str, Any]) -> list[str]:
    """Return the entries of a file that may need options to be read; see `Format.entries`."""
    needed = {name: value for name, value in options_for(reader, options).items() if name != "rate"}
    return [recording.id for recording in reader.read(path, **needed)] if needed else reader.entries(path)


def parse_option_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Parse ``name=value`` pairs.

    Raises
    ------
    ParameterError
        If a pair has no name or no ``=``, or a name occurs twice with different values.

    Examples
    --------
    >>> parse_option_pairs(["label=behaviour", "units=g"])
    {'label': 'behaviour', 'units': 'g'}
    """
    options: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = (text.strip() for text in pair.partition("="))
        if not (name and equals):
            raise ParameterError(f"{pair!r} is not NAME=VALUE, such as label=behavior")
        if options.setdefault(name, value) != value:
            raise ParameterError(f"option {name!r} is set to both {options[name]!r} and {value!r}")
    return options


def option_text(options: Mapping[str, Any]) -> str:
    """Return options as the text of a cell in the column ``options`` of a manifest; `parse_option_text` reads it.

    Raises
    ------
    EthobenchError
        If a value has a semicolon, which separates options.
    """
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
    for name, text in texts.items():
        if ";" in text:
            raise EthobenchError(f"option {name!r} cannot be written to a manifest, since its value has a semicolon: {text!r}")
    return ";".join(f"{name}={text}" for name, text in texts.items())


def parse_option_text(text: str) -> dict[str, str]:
    """Parse the text of a cell such as ``label=behaviour;units=g``.

    Examples
    --------
    >>> parse_option_text("label=behaviour; units=g")
    {'label': 'behaviour', 'units': 'g'}
    """
    return parse_option_pairs(pair for pair in text.split(";") if pair.strip())


def _converted(reader: Format, name: str, text: str, hint: Any) -> Any:
    members = set(typing.get_args(hint)) if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union else {hint}
    plain = text.strip()
    if plain[:1] in ("[", "{"):
        try:
            value = json.loads(plain)
        except ValueError as error:
            raise ParameterError(f"{reader.title}: option {name!r} is not valid JSON ({error}): {plain}") from None
        return tuple(value) if isinstance(value, list) else value
    if str in members:
        return text
    if plain.lower() in NOTHING and type(None) in members:
        return None
    if bool in members and plain.lower() in (*TRUE, *FALSE):
        return plain.lower() in TRUE
    if members & {int, float} and is_number(plain):
        return float(plain)
    if any(typing.get_origin(member) is not None and "Sequence" in str(member) for member in members):
        return tuple(word.strip() for word in plain.split(","))
    expected = "true or false" if bool in members else "a number" if members & {int, float} else 'JSON such as {"behavior": "Code"}'
    raise ParameterError(f"{reader.title}: option {name!r} must be {expected}, got {text!r}")
