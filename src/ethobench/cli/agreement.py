"""`ethobench agreement`: how well annotators agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ethobench.core import Annotation


def run(
    paths: Annotated[list[Path], typer.Argument(help="A file or folder for each annotator, or files with several.", metavar="FILE...")],
    rate: Annotated[float | None, typer.Option(help="Frames per second, where files do not tell.", metavar="HZ")] = None,
    tolerance: Annotated[float, typer.Option(help="Seconds around borders that do not count.")] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Say how well annotators agree: Cohen's kappa and F1 of each two, Fleiss' kappa, Krippendorff's alpha, ICC.

    For example:

    [bold]ethobench agreement anna.boris ben.boris[/bold]

    [bold]ethobench agreement anna/ ben/ carla/[/bold]
    """
    from ethobench.cli._occurrence import print_never_annotated
    from ethobench.metrics import agreement

    result = agreement(collect(paths, rate), tolerance=tolerance)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=1, ensure_ascii=False))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, width=None if Console().is_terminal else 160)
    pairs = Table("annotators", "behavior", "kappa", "f1", "agreement", "frames", title="Each two", box=SIMPLE_HEAD, title_justify="left")
    for row in (row for row in result.pairs if row["behavior"] not in result.never_annotated):
        names = f"{row['annotator_1']}, {row['annotator_2']}"
        pairs.add_row(names, row["behavior"] or "(all)", *(_figure(row[k]) for k in ("kappa", "f1", "agreement")), f"{row['frames']:,}")
    together = Table("behavior", "Fleiss", "alpha", "ICC counts", "ICC durations", title="Together", box=SIMPLE_HEAD, title_justify="left")
    for name, value in ((name, value) for name, value in result.fleiss.items() if name not in result.never_annotated):
        others = (result.alpha.get(name), result.icc_count.get(name), result.icc_duration.get(name))
        together.add_row(name or "(all)", _figure(value), *(_figure(v) for v in others))
    console.print(pairs)
    console.print(together)
    print_never_annotated(result.never_annotated)


def collect(paths: list[Path], rate: float | None) -> dict[str, dict[str, Annotation]]:
    """Read annotators from files or folders: recordings' names to annotators' names to annotations.

    A file or folder is an annotator, called by what tells its path from the others; annotators named inside files keep
    their names. Recordings are matched by name; single files for each annotator are one recording.
    """
    from ethobench.cli._files import tell_line
    from ethobench.core.recording import DEFAULT_ANNOTATOR

    sources = [(path, _read(path, rate)) for path in paths]
    own_clocks = {a.rate for _, found in sources for group in found.values() for a, own in group.values() if own}
    if rate is None and len(own_clocks) == 1:
        clock = own_clocks.pop()
        for place, (path, found) in enumerate(sources):
            if any(not own and a.rate != clock for group in found.values() for a, own in group.values()):
                tell_line(f"{path} tells no clock of its own; read on that of the others, {clock:g} Hz")
                sources[place] = (path, _read(path, clock))
    names = _tell_apart(paths)
    single = len(paths) > 1 and all(len(found) == 1 and len(next(iter(found.values()))) == 1 for _, found in sources)
    groups: dict[str, dict[str, Annotation]] = {}
    for (_, found), own in zip(sources, names, strict=True):
        for recording, annotators in found.items():
            key = next(iter(sources[0][1])) if single else recording
            for who, (annotation, _) in annotators.items():
                plain = who in (DEFAULT_ANNOTATOR, recording) or (len(paths) > 1 and len(annotators) == 1)
                groups.setdefault(key, {})[own if plain else who] = annotation
    for recording, group in groups.items():
        longest = max(a.n_frames for a in group.values())
        for who, a in group.items():
            if a.n_frames < longest:
                tell_line(f"{recording}: {who} ends {longest - a.n_frames} frames before the others; the rest does not count")
                group[who] = a.extend(longest)
    alone = [name for name, group in groups.items() if len(group) == 1]
    if alone:
        tell_line(f"{len(alone)} recordings have one annotator only and are left out: {', '.join(alone[:5])}")
    return {name: group for name, group in groups.items() if len(group) > 1}


def _read(path: Path, rate: float | None) -> dict[str, dict[str, tuple[Annotation, bool]]]:
    """Read a file, the files of a folder, or a list of recordings; with whether each annotation tells its own clock."""
    from ethobench.cli._files import is_dataset, read_annotations

    if not is_dataset(path):
        return read_annotations(path, rate)
    from ethobench.datasets import load_dataset

    return {r.id: {who: (a, True) for who, a in r.annotations.items()} for r in load_dataset(path) if r.annotations}


def _tell_apart(paths: list[Path]) -> list[str]:
    """Name paths by the last part in which they differ."""
    from ethobench.cli._files import stem

    stems = [stem(p) for p in paths]
    if len(set(stems)) == len(paths):
        return stems
    parents = [p.resolve().parent.name for p in paths]
    return parents if len(set(parents)) == len(paths) else [str(p) for p in paths]


def _figure(value: Any) -> str:
    from math import isnan

    return "-" if value is None or isnan(value) else f"{value:.3f}"
