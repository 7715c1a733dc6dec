"""How a run shows what it does: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ethobench.runs import Outcome
    from ethobench.runs.execute import Watch


@contextmanager
def shown_progress() -> Iterator[Watch]:
    """Yield what the engine tells its lines to."""
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False)
    if not console.is_terminal:
        yield lambda line, outcome: typer.echo(f"[{counts(outcome)}] {line}")
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    told = TextColumn("{task.description}", markup=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), told)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("planning", total=None)

        def show(line: str, outcome: Outcome) -> None:
            ended = outcome.done + len(outcome.failed)
            words = f"{outcome.running} running, {len(outcome.failed)} failed, {outcome.there} were there{best_so_far(outcome)}"
            progress.update(task, completed=ended, total=ended + outcome.running + outcome.waiting, description=words)
            if not line.endswith(": done"):
                progress.console.print(line, markup=False)

        yield show


def counts(outcome: Outcome) -> str:
    """Tell how far a run is, in few words."""
    ended = outcome.done + len(outcome.failed)
    return f"{ended}/{ended + outcome.running + outcome.waiting}"


def best_so_far(outcome: Outcome) -> str:
    """Tell the best final result, if there is one."""
    if outcome.best is None or outcome.best.headline is None:
        return ""
    job = outcome.best.job
    return f"; best {outcome.best.headline:.3f} ({job.model}, {job.dataset})"
