"""The page's script: ES modules that are files of their own here, and one inline script in the page."""

from __future__ import annotations

import re
from collections.abc import Callable

IMPORT = re.compile(r'^import \{ (\w+(?:, \w+)*) \} from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:class|const|function) (\w+))", re.MULTILINE)


def join_modules(entry: str, read: Callable[[str], str]) -> str:
    """Put a module and all that it imports into one script, in which each keeps a scope of its own.

    Only named imports and exports on lines of their own are known, which is all that our modules use: a page without
    a server cannot import from other files, and its policy allows no other sources.

    Parameters
    ----------
    entry : str
        The module that is run.
    read : callable
        Returns the text of a module by its name.
    """
    parts: dict[str, str] = {}

    def add(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise ValueError(f"modules import each other in a circle: {' > '.join((*path, name))}")
        if name in parts:
            return
        text = read(name)
        for _, needed in IMPORT.findall(text):
            add(needed, (*path, name))
        body = EXPORT.sub("", IMPORT.sub(r"const { \1 } = \2_module;", text)).strip()
        if re.search(r"^(import|export)\b", body, re.MULTILINE):
            raise ValueError(f"{name}.js imports or exports in a way that join_modules does not know")
        parts[name] = f"const {name}_module = (() => {{\n{body}\nreturn {{ {', '.join(EXPORT.findall(text))} }};\n}})();\n"

    add(entry, ())
    return "\n".join(parts.values())
