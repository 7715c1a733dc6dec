"""Rendering of a report as one self-contained HTML file.

Nothing that came from a user's file can be executed in the page: the template escapes all text, the data are JSON in which no tag can start
or end, the script creates text nodes only, and the content security policy allows our script and style by their hashes and nothing else.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from ethobench.core.files import atomic_path, check_new_path
from ethobench.reports.report_data import Figure, Report
from ethobench.reports.tables import pivot

HERE = files("ethobench.reports")
IMPORT = re.compile(r'^import \{ (\w+(?:, \w+)*) \} from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:class|const|function) (\w+))", re.MULTILINE)
ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def write_report(path: str | Path, report: Report, *, overwrite: bool = False) -> None:
    """Write a report as an HTML file, atomically.

    Parameters
    ----------
    path : str or Path
    report : dict
        As `summarize_scores` and `summarize_store` return it.
    overwrite : bool
        Replace an existing file. By default, that is an error.

    Examples
    --------
    >>> from ethobench import score
    >>> from ethobench.reports import summarize_scores
    >>> write_report(folder / "report.html", summarize_scores({"model": score(annotation, annotation)}))
    """
    path = Path(path)
    check_new_path(path, overwrite=overwrite)
    text = render_report(report)
    with atomic_path(path, overwrite=True) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def render_report(report: Report) -> str:
    """Return a report as the text of an HTML page."""
    from markupsafe import Markup

    style, script = _static()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    text: str = _template().render(
        report=report,
        policy=policy,
        pivot=pivot,
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        data=Markup(embed(_packed(report))),  # noqa: S704
    )
    return text


def embed(value: Any) -> str:
    r"""Return a value as JSON that is safe in a script element: no tag, comment or line can start or end in it.

    >>> print(embed({"</script>": 1}))
    {"\u003c/script\u003e":1}
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(ESCAPES)


def _packed(report: Report) -> dict[str, Any]:
    """Return the data for the script, by column instead of by row; text columns become levels and indices."""
    groups = []
    for group in report["groups"]:
        figures = [{**figure, "columns": _columns(figure), "rows": None} for figure in group["figures"]]
        groups.append({**group, "figures": [{k: v for k, v in figure.items() if v is not None} for figure in figures]})
    return {"groups": groups}


def _columns(figure: Figure) -> list[dict[str, Any]]:
    columns = []
    for index, name in enumerate(figure["columns"]):
        values = [row[index] for row in figure["rows"]]
        packed: dict[str, Any] = {"name": name, "values": values}
        if values and all(isinstance(value, str) for value in values):
            levels = {value: k for k, value in enumerate(dict.fromkeys(values))}
            packed = {"name": name, "levels": list(levels), "values": [levels[value] for value in values]}
        columns.append(packed)
    return columns


def join_modules(entry: str, read: Callable[[str], str]) -> str:
    """Bundle an ES module and all that it imports into one script, in which each has its own scope.

    Only named imports and exports on separate lines are supported, which is all that our modules use. A page without
    a server cannot import other files, and its policy allows no other sources.

    Parameters
    ----------
    entry : str
        The module to run.
    read : callable
        Returns the text of a module by its name.
    """
    bundled: dict[str, str] = {}

    def add(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise ValueError(f"circular import of modules: {' > '.join((*path, name))}")
        if name in bundled:
            return
        text = read(name)
        for _, needed in IMPORT.findall(text):
            add(needed, (*path, name))
        body = EXPORT.sub("", IMPORT.sub(r"const { \1 } = \2_module;", text)).strip()
        if re.search(r"^(import|export)\b", body, re.MULTILINE):
            raise ValueError(f"{name}.js has an import or export that join_modules does not support")
        bundled[name] = f"const {name}_module = (() => {{\n{body}\nreturn {{ {', '.join(EXPORT.findall(text))} }};\n}})();\n"

    add(entry, ())
    return "\n".join(bundled.values())


@cache
def _static() -> tuple[str, str]:
    def read(name: str) -> str:
        return (HERE / "static" / name).read_text(encoding="utf-8").replace("\r\n", "\n")

    return read("report.css"), join_modules("main", lambda name: read(f"{name}.js"))


@cache
def _template() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def load(name: str) -> str:
        return (HERE / "templates" / name).read_text(encoding="utf-8")

    environment = Environment(loader=FunctionLoader(load), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("report.html")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
