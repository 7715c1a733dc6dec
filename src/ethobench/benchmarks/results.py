"""From a store to one tidy table."""

from __future__ import annotations

from typing import Any

import numpy as np

from ethobench.metrics import Scores
from ethobench.runs import Store

COLUMNS = ("benchmark", "dataset", "model", "setting", "suite", "metric", "mean", "std", "n", "over")


def results_table(store: Store) -> list[dict[str, Any]]:
    """Bring the final jobs of each benchmark, dataset, model and setting together.

    Returns
    -------
    list of dict
        Sorted; the same for the same jobs. ``mean`` is the suite's own figure of all test recordings together, ``std`` the
        standard deviation over individuals (population), ``n`` their number.
    """
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for key in list(store.finished()):
        found = store.read(key)
        if found is None or found["job"]["stage"] != "final":
            continue
        job = found["job"]
        for suite, part in found["scores"]["suites"].items():
            groups.setdefault((job["benchmark"], job["dataset"], job["model"], job["setting"], suite), []).append(part["state"])
    rows = []
    for name, states in sorted(groups.items()):
        scores = Scores.from_states(sorted(states, key=lambda s: s["recordings"]), resamples=0)
        parts = scores.per("individual")
        for measure, value in scores.overall.items():
            each = np.array([part["overall"][measure] for part in parts.values()], dtype=float)
            known = each[np.isfinite(each)]
            spread = float(known.std()) if len(known) else None
            rows.append(dict(zip(COLUMNS, (*name, measure, _plain(value), spread, len(known), "individuals"), strict=True)))
    return rows


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None
