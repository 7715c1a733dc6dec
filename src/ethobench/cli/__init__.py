"""The `ethobench` command: one module per subcommand."""

from __future__ import annotations

import os
import sys
import warnings
from typing import NoReturn, TextIO

import typer

from ethobench import __version__
from ethobench.cli import (
    agreement,
    annotate,
    budget,
    clean,
    clips,
    compare,
    convert,
    datasets,
    demo,
    embed,
    formats,
    inspect,
    models,
    movement,
    plot,
    predict,
    pretrain,
    published,
    report,
    results,
    run,
    score,
    status,
    study,
    train,
    view,
)
from ethobench.cli.output import VisibleCommand, VisibleGroup, echo, print_note, secho
from ethobench.core.messages import Message

app = typer.Typer(
    name="ethobench",
    cls=VisibleGroup,
    help="Turn recordings of animals into behavior annotations, and score any annotation.\n\n"
    "To try it on synthetic data: [bold]ethobench demo[/bold]",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        echo(f"ethobench {__version__}")
        raise typer.Exit


@app.callback()
def _options(version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version.")) -> None:
    """Options of the command itself."""


COMMANDS = {
    "Files": (demo, inspect, convert, formats, view, clips, clean),
    "Score": (score, agreement, budget, movement, compare, plot),
    "Annotate": (models, train, predict, embed, pretrain, annotate),
    "Benchmark": (status, results, published, report),
}
for purpose, commands in COMMANDS.items():
    for command in commands:
        app.command(command.__name__.rpartition(".")[2], cls=VisibleCommand, rich_help_panel=purpose)(command.run)
app.add_typer(datasets.app, name="datasets", rich_help_panel="Files")
app.add_typer(study.app, name="study", rich_help_panel="Files")
app.add_typer(run.app, name="run", rich_help_panel="Benchmark")


def main() -> None:
    """Run the command. Errors are printed as one message, with exit code 1."""
    from ethobench.core.errors import EthobenchError, ReadWarning

    warnings.simplefilter("always", ReadWarning)
    warnings.showwarning = _show_warning
    try:
        app(prog_name="ethobench")
    except EthobenchError as error:
        _fail(error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        _fail("not enough memory; crop the recording, or resample it to a lower rate")
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"{error.filename}: {error.strerror}")


def _fail(message: object) -> NoReturn:
    secho(Message("error: ", message), err=True, fg=typer.colors.RED)
    sys.exit(1)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
) -> None:
    print_note(str(message))
