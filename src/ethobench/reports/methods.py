"""Text for the methods section of a paper: what was computed, on which data, with which version, and what to cite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ethobench
from ethobench.core.errors import ParameterError
from ethobench.core.wording import count_units, join_names
from ethobench.metrics import Scores
from ethobench.metrics.base import measure_label
from ethobench.metrics.rater_agreement import Agreement
from ethobench.models import Model

REFERENCES = {
    "Angelopoulos et al. 2023": "Angelopoulos AN, Bates S, Fannjiang C, Jordan MI, Zrnic T (2023). Prediction-powered inference. "
    "Science 382, 669-674.",
    "Benjamini and Hochberg 1995": "Benjamini Y, Hochberg Y (1995). Controlling the false discovery rate. Journal of the Royal Statistical "
    "Society B 57, 289-300.",
    "Breiman 2001": "Breiman L (2001). Random forests. Machine Learning 45, 5-32.",
    "Chindemi et al. 2025": "Chindemi G, Bellone C, Girard B (2025). From eye to AI: studying rodent social behavior in the era of "
    "machine learning. arXiv:2508.04255.",
    "Cohen 1960": "Cohen J (1960). A coefficient of agreement for nominal scales. Educational and Psychological Measurement 20, 37-46.",
    "Field and Welsh 2007": "Field CA, Welsh AH (2007). Bootstrapping clustered data. "
    "Journal of the Royal Statistical Society B 69, 369-390.",
    "Fleiss 1971": "Fleiss JL (1971). Measuring nominal scale agreement among many raters. Psychological Bulletin 76, 378-382.",
    "Freedman and Lane 1983": "Freedman D, Lane D (1983). A nonstochastic interpretation of reported significance levels. Journal of "
    "Business and Economic Statistics 1, 292-298.",
    "Hedges and Olkin 1985": "Hedges LV, Olkin I (1985). Statistical Methods for Meta-Analysis. Academic Press.",
    "Hesterberg 2015": "Hesterberg TC (2015). What teachers should know about the bootstrap. The American Statistician 69, 371-386.",
    "Hoffman et al. 2024": "Hoffman B, Cusimano M, Baglione V, et al. (2024). A benchmark for computational analysis of animal behavior, "
    "using animal-borne tags. Movement Ecology 12, 78.",
    "Holm 1979": "Holm S (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6, 65-70.",
    "Krippendorff 2019": "Krippendorff K (2019). Content Analysis: An Introduction to Its Methodology, 4th edition. SAGE.",
    "McGraw and Wong 1996": "McGraw KO, Wong SP (1996). Forming inferences about some intraclass correlation coefficients. Psychological "
    "Methods 1, 30-46.",
    "Phipson and Smyth 2010": "Phipson B, Smyth GK (2010). Permutation p-values should never be zero. "
    "Statistical Applications in Genetics and "
    "Molecular Biology 9, 39.",
    "Sun et al. 2021": "Sun JJ, Karigo T, Chakraborty D, et al. (2021). "
    "The Multi-Agent Behavior Dataset: mouse dyadic social interactions. "
    "NeurIPS Datasets and Benchmarks.",
    "Welch 1947": "Welch BL (1947). The generalization of Student's problem when several different population variances are involved. "
    "Biometrika 34, 28-35.",
    "van Rijsbergen 1979": "van Rijsbergen CJ (1979). Information Retrieval, 2nd edition. Butterworths.",
}
"""Short citation to full reference; only those that a text cites are listed below it."""
SUITES = {"banos": "Chindemi et al. 2025", "bebe": "Hoffman et al. 2024", "calms21": "Sun et al. 2021"}
MODELS = {"rf": "Breiman 2001"}


def methods_text(
    scores: Scores | None = None,
    *,
    agreement: Agreement | None = None,
    model: Model | None = None,
    comparison: Mapping[str, Any] | None = None,
) -> str:
    """Return text for a methods section, followed by the references that it cites.

    Parameters
    ----------
    scores : Scores, optional
        As `score` returns them.
    agreement : Agreement, optional
        As `agreement` returns it.
    model : Model, optional
        The model whose predictions were used.
    comparison : mapping, optional
        As `compare_groups` returns it.

    Returns
    -------
    str
        Paragraphs of plain text, then a list of references. Check it before it is printed: it states what was computed, not why.

    Raises
    ------
    ParameterError
        If there is nothing to describe.

    Examples
    --------
    >>> import ethobench as eb
    >>> text = methods_text(eb.score(annotation, annotation))
    >>> print(text.partition(". ")[0])
    Scores were computed with ethobench ... (suite ethobench) on 1 recording of 2 behaviors (attack and mount)
    """
    paragraphs, references = describe_methods(scores, agreement=agreement, model=model, comparison=comparison)
    listed = [f"- {reference}" for reference in references]
    return "\n\n".join([*paragraphs, *(["References\n" + "\n".join(listed)] if listed else [])])


def describe_methods(
    scores: Scores | None = None,
    *,
    agreement: Agreement | None = None,
    model: Model | None = None,
    comparison: Mapping[str, Any] | None = None,
) -> tuple[list[str], list[str]]:
    """Return the paragraphs of a methods section, and the references that they cite; see `methods_text`."""
    paragraphs = [
        *([_model_paragraph(model)] if model is not None else []),
        *([_score_paragraph(scores)] if scores is not None else []),
        *([_agreement_paragraph(agreement)] if agreement is not None else []),
        *([_comparison_paragraph(comparison)] if comparison is not None else []),
    ]
    if not paragraphs:
        raise ParameterError("there is nothing to describe: pass scores, an agreement, a model or a comparison")
    text = " ".join(paragraphs)
    return paragraphs, [reference for name, reference in REFERENCES.items() if name in text]


def _score_paragraph(scores: Scores) -> str:
    suite, names = scores.suite, [b.name for b in scores.ethogram if b.name != scores.ethogram.background_name]
    n = len(scores.recordings)
    counted = [count_units(n, "recordings"), count_units(len(names), "behaviors")]
    if scores.unit != "recordings":
        counted.insert(1, count_units(len(scores.individuals), scores.unit))
    source = f"; {SUITES[suite.name]}" if suite.name in SUITES else ""
    measures = _listed([measure_label(name) for name in suite.headline])
    sentences = [
        f"Scores were computed with ethobench {ethobench.__version__} (suite {suite.name}{source}) on {' of '.join(counted)} "
        f"({_listed(names, limit=20)}).",
        f"We report {measures}; F1 is the harmonic mean of precision and recall (van Rijsbergen 1979).",
    ]
    reason = scores.intervals["reason"]
    if reason is None:
        sentences.append(
            f"95 % confidence intervals are t intervals with standard errors from resampling complete {scores.unit} (Field and Welsh 2007; "
            f"Hesterberg 2015); n = {scores.intervals['n']} {scores.unit}."
        )
    else:
        sentences.append(f"There are no confidence intervals ({reason}).")
    unobserved = 1 - scores.coverage
    if scores.pairs and unobserved > 0.0005:
        sentences.append(f"{100 * unobserved:.1f} % of the frames were not observed and did not count.")
    if scores.undefined_behaviors:
        sentences.append(f"No score is defined for {_listed(scores.undefined_behaviors)}, which did not occur.")
    return " ".join(sentences)


def _agreement_paragraph(result: Agreement) -> str:
    n, unit, reason = (result.intervals[key] for key in ("n", "unit", "reason"))
    has_several = len(result.annotators) > 2
    all_together = ", Fleiss' kappa (Fleiss 1971)" if has_several else ""
    intervals = (
        f"95 % confidence intervals are t intervals with standard errors from resampling complete {unit} (Field and Welsh 2007); n = {n}."
        if reason is None
        else f"There are no confidence intervals ({reason})."
    )
    annotators = count_units(len(result.annotators), "annotators")
    return (
        f"Agreement of {annotators} was measured with ethobench {ethobench.__version__} by Cohen's kappa "
        f"of frames (Cohen 1960){all_together}, Krippendorff's alpha (Krippendorff 2019), and the intraclass correlation ICC(2,1) of "
        f"bout counts and total durations over recordings (McGraw and Wong 1996). {intervals}"
    )


def _model_paragraph(model: Model) -> str:
    citation = f" ({MODELS[model.name]})" if model.name in MODELS else ""
    names = [] if model.ethogram is None else [name for name in model.ethogram.names if name != model.ethogram.background_name]
    trained = ""
    if model.training is not None:
        recordings = model.training.recordings
        trained = f" trained on {count_units(len(recordings), 'recordings')}"
    labeled = f" Behaviors: {_listed(names, limit=20)}." if names else ""
    settings = ", ".join(f"{name} = {value}" for name, value in model.get_params().items() if value not in ("", None))
    made_by = f"the model {model.name} of ethobench {ethobench.__version__}{citation}{trained}"
    return f"Behaviors were predicted by {made_by} ({settings}).{labeled}"


def _comparison_paragraph(comparison: Mapping[str, Any]) -> str:
    text = str(comparison.get("methods", "")).strip()
    if not text:
        raise ParameterError("`comparison` has no entry 'methods'; pass the result of compare_groups")
    text = text.replace("with ethobench;", f"with ethobench {ethobench.__version__};", 1)
    return text.replace("permutation tests of individuals", "permutation tests of individuals (Phipson and Smyth 2010)", 1)


def _listed(names: Sequence[str], limit: int = 12) -> str:
    """Return names as text: "a, b and c"; of many, the first and the number of the others."""
    return join_names(names, most=limit) or "none"
