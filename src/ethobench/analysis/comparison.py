"""The result of a comparison of groups: a dict that is JSON, with a table and a view for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pandas as pd

from ethobench.core.notebook_html import html_table
from ethobench.core.wording import join_names


def rounded(value: Any) -> float | None:
    """Return a number for JSON: None if it is undefined or infinite, else with ten significant digits.

    >>> rounded(np.nan), rounded(1 / 3)
    (None, 0.3333333333)
    """
    if value is None or not np.isfinite(value):
        return None
    return float(f"{float(value):.10g}")


class Comparison(dict[str, Any]):
    """The result of `compare_groups`, with the same content as the JSON of ``ethobench compare``.

    Examples
    --------
    >>> import ethobench as eb
    >>> data = eb.load_dataset("synthetic/tag", individuals=6, seconds=60)
    >>> recordings = [r.copy(metadata={"sex": "fm"[k % 2]}) for k, r in enumerate(data)]
    >>> table = eb.compare_groups(recordings, "sex", measures="share").table()
    >>> {"behavior", "difference", "low", "high", "p_corrected"} <= set(table.columns)
    True
    """

    def table(self) -> pd.DataFrame:
        """Return one row for each measure, stratum, behavior and pair of groups."""
        rows = []
        for row in self["rows"]:
            for pair in row["pairs"]:
                first, second = (row["groups"][name] for name in pair["groups"])
                rows.append(
                    {
                        "measure": row["measure"],
                        **row.get("by", {}),
                        "behavior": row["behavior"],
                        "reference": pair["groups"][0],
                        "group": pair["groups"][1],
                        **{f"{key}_reference": first[key] for key in ("n", "mean", "low", "high", "sd")},
                        **{f"{key}_group": second[key] for key in ("n", "mean", "low", "high", "sd")},
                        **{key: value for key, value in pair.items() if not isinstance(value, (dict, list))},
                        "test": (pair["test"] or {}).get("method", ""),
                        "exact": (pair["test"] or {}).get("exact", False),
                        **({"p_all_groups": row["p"], "p_all_groups_corrected": row["p_corrected"]} if "p" in row else {}),
                        **_flat(pair),
                    }
                )
        return pd.DataFrame(rows)

    def _repr_html_(self) -> str:
        strata = list(self["rows"][0].get("by") or {}) if self["rows"] else []
        header = ["measure", *strata, "behavior", "groups", "means", "difference", "ratio", "Hedges' g", "p"]
        rows = [
            [
                row["measure"],
                *(row["by"][name] for name in strata),
                row["behavior"],
                join_names(pair["groups"]),
                join_names(_number(row["groups"][name]["mean"]) for name in pair["groups"]),
                _with_interval(pair, "difference", "low", "high"),
                _with_interval(pair, "ratio", "ratio_low", "ratio_high"),
                _with_interval(pair, "effect_size", "effect_low", "effect_high"),
                _p_text(pair["p_corrected"]),
            ]
            for row in self["rows"]
            for pair in row["pairs"]
        ]
        caption = f"{self['column']}: {self['design']}, unit of analysis: {self['unit']}; 95 % intervals"
        lines = [*self["warnings"], *self["notes"]]
        notes = "".join(f"<li>{escape(str(line))}</li>" for line in lines)
        return f"<div>{html_table(header, rows, caption)}{f'<ul>{notes}</ul>' if notes else ''}</div>"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _with_interval(pair: dict[str, Any], value: str, low: str, high: str) -> str:
    """Return a value and its interval as text, such as "0.091 (0.02 to 0.163)"."""
    if pair[value] is None or pair[low] is None:
        return _number(pair[value])
    return f"{_number(pair[value])} ({_number(pair[low])} to {'infinite' if pair[high] is None else _number(pair[high])})"


def _p_text(value: float | None) -> str:
    if value is None or np.isnan(value):
        return "-"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _flat(pair: dict[str, Any]) -> dict[str, Any]:
    """Return the nested entries of a pair as columns."""
    flat = {}
    for name in ("labels_to_halve", "human_labels_alone", "model_labels_alone", "mixed_model"):
        for key, value in (pair.get(name) or {}).items():
            flat[f"{name}_{key}"] = value
    return flat
