"""Designs of comparisons: independent groups, repeated measures or pairs; what can and what cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ethobench.analysis.group_values import Cell, GroupValues, ValueOptions
from ethobench.analysis.prediction_powered import IndependentGroups, RepeatedMeasures
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.messages import Message, Option
from ethobench.core.wording import count_units, join_names, plural

Array = NDArray[np.float64]
Sample: TypeAlias = IndependentGroups | RepeatedMeasures
FEW = 5
"""Below this number of individuals in a group, a note says what the intervals rely on."""

REPORTED = (
    "We report differences with 95 % confidence intervals (t intervals with Satterthwaite's degrees of freedom, Welch 1947), Hedges' g "
    "(Hedges and Olkin 1985), and permutation tests of individuals"
)
REPORTED_WITH_MODEL = (
    "We report differences with 95 % confidence intervals (t intervals with Satterthwaite's degrees of freedom, Welch 1947), Hedges' g "
    "(Hedges and Olkin 1985), and t tests of these estimates"
)


@dataclass(frozen=True)
class GroupDesign:
    """How groups relate to individuals.

    Attributes
    ----------
    is_repeated : bool
        Whether values are compared within units.
    pair : str
        Column of matched individuals; empty if units are individuals.
    has_model : bool
        Whether there are model labels.
    is_adjusted : bool
        Whether there are covariates.
    """

    is_repeated: bool
    pair: str
    has_model: bool
    is_adjusted: bool

    @classmethod
    def detect(cls, values: GroupValues, options: ValueOptions, has_model: bool) -> GroupDesign:
        """Return the design, or raise an error if the groups cannot be compared."""
        if len(values.groups) < 2:
            raise EthobenchError(
                f"{options.groups!r} has one group only ({', '.join(values.groups) or 'none'}); a comparison needs at least two"
            )
        if not values.cells:
            raise EthobenchError(f"nothing to compare: {'; '.join(values.notes) or 'no behavior occurs'}")
        units: dict[str, set[int]] = {}
        for cell in values.cells:
            for unit, members in zip(cell.units, cell.is_member, strict=True):
                units.setdefault(unit, set()).update(np.flatnonzero(members).tolist())
        repeated_units = [unit for unit, group_codes in units.items() if len(group_codes) > 1]
        design = cls(bool(repeated_units) or bool(options.pair), options.pair, has_model, bool(options.covariates))
        complete = [unit for unit, group_codes in units.items() if len(group_codes) == len(values.groups)]
        if design.is_repeated and len(complete) < 2:
            raise EthobenchError(_partly_repeated(options, repeated_units, complete))
        if design.is_repeated and options.covariates:
            raise ParameterError(
                Message(
                    "covariates of repeated measures need a mixed model: use ", Option("mixed", True), " without ", Option("covariates")
                )
            )
        if not design.is_repeated:
            _refuse_pseudoreplication(values, units)
        if has_model:
            _refuse_unlabeled(values, design.is_repeated)
        return design

    @property
    def name(self) -> str:
        """Name of the design."""
        return f"paired by {self.pair}" if self.pair else "repeated measures" if self.is_repeated else "independent"

    def counts(self, values: GroupValues) -> dict[str, dict[str, int]]:
        """Return the numbers of individuals and of labeled individuals of each group, in the first row."""
        cell = values.cells[0]
        counts = {}
        for k, group in enumerate(values.groups):
            counts[group] = {"individuals": int(cell.is_member[:, k].sum())}
            if self.has_model:
                counts[group]["labeled"] = int(values.is_labeled(cell)[:, k].sum())
        return counts

    def sample(self, cell: Cell, covariates: pd.DataFrame, *, with_model: bool = True) -> Sample:
        """Return the values of a cell for estimation."""
        use_model = with_model and cell.model is not None and cell.agrees_where_defined
        if self.is_repeated:
            cell = cell.select(cell.is_member.all(axis=1))
            return RepeatedMeasures(cell.values, *((cell.model, cell.model_labeled) if use_model else ()))
        codes = cell.is_member.argmax(axis=1)
        adjusted = covariates.reindex(cell.units).to_numpy(dtype=float) if self.is_adjusted else None
        model = (_of_group(cell.model, codes), _of_group(cell.model_labeled, codes)) if use_model else ()
        return IndependentGroups(codes, _of_group(cell.values, codes), adjusted, *model)

    def notes(self, values: GroupValues, rows: Sequence[dict[str, Any]]) -> list[str]:
        """Return what a reader of the result should know about the design."""
        notes = []
        members = values.cells[0].is_member
        incomplete = int((members.any(axis=1) & ~members.all(axis=1)).sum())
        if self.is_repeated and incomplete:
            counted = f"{incomplete} values of {self.pair!r}" if self.pair else count_units(incomplete, "individuals")
            notes.append(f"not used, because not in all groups: {counted}")
        names = {*values.metadata["individual"]}
        if names == {*values.metadata["recording"]}:
            notes.append("each recording counts as another individual; if an animal was recorded twice, name it in the column individual")
        differing = list(dict.fromkeys(f"{cell.measure} of {cell.behavior}" for cell in values.cells if not cell.agrees_where_defined))
        if differing:
            cells = join_names(differing, "", most=5)
            notes.append(f"{cells}: people and the model find bouts in different individuals, so human labels alone are used")
        key = "labeled" if self.has_model else "individuals"
        few = [group for group, count in self.counts(values).items() if count[key] < FEW]
        if few:
            groups = ", ".join(few)
            problem = (
                f"fewer than {FEW} individuals with human labels in {groups}"
                if self.has_model
                else f"fewer than {FEW} individuals in {groups}"
            )
            notes.append(f"{problem}: intervals rely on values being about normally distributed")
        smallest = [pair["test"]["smallest_p"] for row in rows for pair in row["pairs"] if pair["test"] and "smallest_p" in pair["test"]]
        if smallest and min(smallest) > 0.05:
            notes.append(f"with so few individuals no permutation test can give p below {min(smallest):.3g}; read the intervals instead")
        return notes

    def methods(self, correct: str, mixed: bool, covariates: Sequence[str]) -> str:
        """Return text for a methods section."""
        unit = self.pair or "individual"
        pooled = "recordings of an individual were pooled, weighted by observed time"
        within = f" Groups were compared within each {unit}." if self.is_repeated else ""
        adjusted = f" Values were adjusted for {', '.join(covariates)} (Freedman and Lane 1983)." if covariates else ""
        corrections = {"holm": "Holm's method (Holm 1979)", "fdr": "the false discovery rate (Benjamini and Hochberg 1995)"}
        corrected = f"; p values were corrected over behaviors by {corrections[correct]}" if correct in corrections else ", uncorrected"
        powered = (
            " Labels of a model were corrected by human labels of a part of the individuals (prediction-powered inference with a tuned "
            "weight, Angelopoulos et al. 2023)."
            if self.has_model
            else ""
        )
        mixed_text = " Mixed models had individuals as random intercepts (statsmodels)." if mixed else ""
        return (
            f"Groups were compared with ethobench; the unit of analysis was the {unit} ({pooled})."
            f"{within}{adjusted}{powered} {REPORTED_WITH_MODEL if self.has_model else REPORTED}{corrected}.{mixed_text}"
        )


def _of_group(table: Array | None, codes: NDArray[np.int64]) -> Array:
    """Return the value of each unit in its group."""
    if table is None:
        return np.full(len(codes), np.nan)
    return np.asarray(table[np.arange(len(codes)), codes])


def _partly_repeated(options: ValueOptions, repeated_units: Sequence[str], complete: Sequence[str]) -> Message:
    if options.pair:
        return Message(f"only {len(complete)} values of {options.pair!r} have individuals in all groups; pairs need at least two")
    return Message(
        f"{len(repeated_units)} individuals are in several groups, but {len(complete)} in all of them, such as {repeated_units[0]!r}: the "
        "values are neither independent nor complete pairs. Leave these individuals out, or compare groups in which they are complete"
    )


def _refuse_pseudoreplication(values: GroupValues, units: dict[str, set[int]]) -> None:
    for k, group in enumerate(values.groups):
        members = [unit for unit, group_codes in units.items() if k in group_codes]
        if len(members) < 2:
            count = values.recordings.get(members[0], 1) if members else 0
            recorded = f" ({count} recordings)" if count > 1 else ""
            raise EthobenchError(
                f"group {group!r} has one individual, {members[0] if members else ''!r}{recorded}. Recordings of one animal are not "
                f"independent, so nothing can be said about other animals; at least two, better {FEW}, individuals per group are needed"
            )


def _refuse_unlabeled(values: GroupValues, is_repeated: bool) -> None:
    """Raise an error if the errors of the model are not known in each group."""
    cell = values.cells[0]
    has_labels = values.is_labeled(cell)
    if is_repeated:
        if int(has_labels.all(axis=1).sum()) < 2:
            raise EthobenchError("fewer than two individuals have human labels in all groups; label more of them by hand")
        return
    for k, group in enumerate(values.groups):
        n = int(has_labels[:, k].sum())
        if n < 2:
            candidates = [
                u for u, member, labeled in zip(cell.units, cell.is_member[:, k], has_labels[:, k], strict=True) if member and not labeled
            ]
            such = f", such as {', '.join(candidates[:2])}" if candidates else ""
            problem = plural(
                n,
                "only one individual of group {group!r} has human labels",
                "no individual of group {group!r} has human labels",
                group=group,
            )
            effect = "so the errors of the model in this group are not known"
            raise EthobenchError(f"{problem}, {effect}; label at least two by hand, better {FEW}{such}")
