"""Write the pages that list what the registries hold: docs/formats.md and docs/metrics.md."""

from __future__ import annotations

from pathlib import Path

from ethobench.formats import formats
from ethobench.formats._base import DETAILS
from ethobench.metrics import all_metrics, suites

HERE = Path(__file__).parent

FORMATS = """\
# Formats

`ethobench inspect FILE` tells what is in a file; `ethobench convert IN OUT` brings it into another format. The format is found
from the content; `format=` (or `--from`) settles doubts.

```python
import ethobench as eb

annotation = eb.Annotation.from_bouts([30], [60], ["attack"], ["attack", "mount"], rate=30, n_frames=90)
for name in ("one.csv", "one.annot", "one.boris"):
    notes = eb.write_annotation(annotation, name)
    print(name, eb.read_annotation(name), *notes)
```

Reading accounts for everything: repairs and drops are in `Recording.notes`, issued as warnings, and printed by the commands.
Existing files are never overwritten unless asked, and a file appears whole or not at all.
"""

METRICS = """\
# Metrics and suites

```python
import ethobench as eb

data = eb.load_dataset("synthetic/pose", individuals=4, seconds=60)
model = {recording.id: recording.annotation().shift(4) for recording in data}
scores = eb.score(model, data)
print(scores.table().head())
print(scores.intervals["overall"]["bout_f1"], scores.per("individual")["animal01"]["overall"]["f1"])
print(scores.compare(eb.score({name: a.shift(4) for name, a in model.items()}, data))["f1"])
```

`suite=` chooses whose definitions are used. How conventions differ is shown in [Conventions](conventions.md).
"""


def formats_page() -> str:
    """Make the table of formats."""
    lines = [FORMATS, "| format | name | holds | written | keeps when written |", "|---|---|---|---|---|"]
    for format in sorted(formats, key=lambda f: f.title.lower()):
        keeps = "everything" if {*format.keeps} == {*DETAILS} else ", ".join(format.keeps)
        written = ", ".join(f"`{s}`" for s in format.suffixes) if format.can_write else "-"
        lines.append(
            f"| {format.title} | `{format.name}` | {', '.join(format.contents)} | {written} | {keeps if format.can_write else ''} |"
        )
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    """Make the tables of suites and metrics."""
    lines = [METRICS, "## Suites", ""]
    for suite in suites:
        lines += [f"### `{suite.name}`", "", suite.title + ".", "", "| measure | metric | brought together |", "|---|---|---|"]
        for m in suite.measures:
            joined = m.over + (", background too" if m.background and not m.of.joint else "") + (", standard deviation" if m.spread else "")
            lines.append(f"| `{m.name}` | [`{m.metric}`](#{m.metric.replace('.', '')}) | {joined} |")
        lines.append("")
    lines.append("## Metrics\n")
    for metric in all_metrics().values():
        facts = [f"best {metric.best:g}", "of all behaviours together" if metric.joint else "of each behaviour"]
        facts += ["the same for swapped annotators"] if metric.symmetric else []
        facts += [] if metric.rate_free else ["depends on the frame rate"]
        lines += [f"### `{metric.name}`", "", f"{metric.definition} *({'; '.join(facts)})*", ""]
    return "\n".join(lines)


def main() -> None:
    """Write both pages."""
    (HERE / "formats.md").write_text(formats_page(), encoding="utf-8")
    (HERE / "metrics.md").write_text(metrics_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
