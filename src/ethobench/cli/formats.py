"""`ethobench formats`: list the file formats."""

from __future__ import annotations

from typing import Annotated

import typer

from ethobench.cli.output import echo, echo_json


def run(as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False) -> None:
    """List the file formats that can be read, and those that can be written.

    Example: [bold]ethobench formats[/bold]
    """
    from ethobench.formats import formats

    rows = [
        {"name": f.name, "title": f.title, "contents": list(f.contents), "writes": list(f.suffixes) if f.can_write else []} for f in formats
    ]
    if as_json:
        echo_json(rows, ensure_ascii=True)
        return
    for row in rows:
        written = f"  writes {', '.join(row['writes'])}" if row["writes"] else ""
        echo(f"{row['name']:18} {row['title']} ({', '.join(row['contents'])}){written}")
