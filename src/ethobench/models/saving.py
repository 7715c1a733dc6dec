"""Save and load models: a folder with a JSON card, a card for people, hashes of all files, and nothing that is a pickle."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ethobench.core import Behavior, Ethogram
from ethobench.core.errors import EthobenchError, FormatError, describe_exception
from ethobench.core.files import atomic_folder, check_new_path, check_self_contained, read_json
from ethobench.core.observation_period import ObservationPeriod
from ethobench.core.wording import plural
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.pooling import checked_thresholds
from ethobench.features.roles import RoleInputs
from ethobench.models.base import Model
from ethobench.models.directed import DirectedExamples
from ethobench.models.held_out import OUT_OF_FOLD, OutOfFoldPredictions, write_predictions
from ethobench.models.input_checks import RequiredInput
from ethobench.models.inputs import feature_inputs
from ethobench.models.network_use import Consent, ConsentError
from ethobench.models.provenance import TrainingData
from ethobench.models.registry import create_model, models

CARD, READABLE_CARD = "model.json", "CARD.md"
FORMAT_VERSION = 2
MAX_RATE = 100_000.0  # Hz; with a damaged card, recordings could otherwise be resampled to any length


def save_model(model: Model, path: str | Path) -> None:
    """Save a fitted model to a new folder; see `Model.save`."""
    path = Path(path)
    check_new_path(path)
    model.check_is_fitted()
    with atomic_folder(path) as temporary:
        model._save(temporary)
        if model.training is not None:
            model.training.write(temporary)
        if model.out_of_fold:
            write_predictions(temporary / OUT_OF_FOLD, model.out_of_fold, model.name)
        card = {**make_card(model), "digest": digest_files(temporary), "files": hash_files(temporary)}
        (temporary / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False), encoding="utf-8")
        (temporary / READABLE_CARD).write_text(format_card(card), encoding="utf-8")


def load_model(path: str | Path, *, allow_network: bool = False, **external: str) -> Model:
    """Load a saved model. The folder cannot make it send data, nor read files outside of the folder.

    Parameters
    ----------
    path : path
        The folder. Links that point outside it are refused.
    allow_network : bool
        Whether the model may contact the provider that it names (model ``mllm``); see `Model.network_use`.
    **external : str
        Settings that are never read from the folder: for model ``mllm`` ``base_url``, ``key_variable``, ``answers`` and ``video_url``.

    Raises
    ------
    FormatError
        If the folder is not a saved model, or a damaged one.
    ConsentError
        If the folder has one of the external settings and it is not stated here.

    Examples
    --------
    >>> from ethobench import create_model, load_dataset, load_model
    >>> data = load_dataset("synthetic/tag", individuals=2, seconds=20)
    >>> create_model("chance").fit(data).save(folder / "model")
    >>> load_model(folder / "model").ethogram == data.ethogram
    True
    """
    path = Path(path)
    card = read_card(path)
    check_files(path, card)  # before any of them is parsed
    model = _create_from_card(path, card, Consent(allow_network, external))
    model.allow_network = allow_network
    try:
        model._load(path)
    except (FormatError, ConsentError):
        raise
    except EthobenchError as error:
        raise FormatError(path, str(error)) from None
    except Exception as error:
        raise FormatError(path, f"a file of the model is damaged: {describe_exception(error)}") from None
    model.training = TrainingData.read(path)
    model.out_of_fold = OutOfFoldPredictions(path / OUT_OF_FOLD, model.ethogram or Ethogram([]))
    return model


def read_card(path: Path) -> dict[str, Any]:
    """Read the JSON card of a saved model.

    Raises
    ------
    FormatError
        If the folder is not a saved model, or was saved in another format version.
    """
    if not (path / CARD).is_file():
        raise FormatError(path, f"not a saved model: it has no {CARD}")
    check_self_contained(path)
    card = read_json(path / CARD)
    if not isinstance(card, dict):
        raise FormatError(path / CARD, "the model card is damaged")
    if (saved_version := card.get("format_version")) != FORMAT_VERSION:
        raise FormatError(
            path / CARD,
            f"format version {saved_version!r} is not supported, only {FORMAT_VERSION}; train the model again, or use the version of "
            "ethobench that saved it",
        )
    return card


def make_card(model: Model) -> dict[str, Any]:
    """Return the card of a fitted model, without the hashes of its files."""
    ethogram = model.check_is_fitted()
    return {
        "format_version": FORMAT_VERSION,
        "model": model.name,
        "revision": model.revision,
        "ethobench": version("ethobench"),
        "params": dataclasses.asdict(model.params),
        "seed": model.seed,
        "behaviors": [dataclasses.asdict(behavior) for behavior in ethogram],
        "background": ethogram.background_name,
        "never_annotated": list(model.never_annotated),
        "rate": model.rate,
        "inputs": list(model.inputs),
        "trained_on": model.trained_on,
        "licence": model.licence,
        "evaluation": model.evaluation,
        "decode": model.decode,
        "decoder": None if model.decoder is None else model.decoder.to_dict(),
        "fit_report": model.fit_report,
        "required_input": dataclasses.asdict(model.required_input),
        "observation_period": None if model.observation_period is None else dataclasses.asdict(model.observation_period),
        "directed": None if model.directed is None else {"targeted": list(model.directed.targeted)},
        "role_inputs": None if model.role_inputs is None else model.role_inputs.to_dict(),
        "condition_thresholds": {value: dict(each) for value, each in model.condition_thresholds.items()},
        "training_recordings": None if model.training is None else len(model.training.recordings),
        "out_of_fold": len(model.out_of_fold),
    }


def _create_from_card(path: Path, card: Mapping[str, Any], consent: Consent) -> Model:
    """Create a model from its card, without its fitted state."""
    try:
        params = {key: tuple(value) if isinstance(value, list) else value for key, value in card["params"].items()}
        params = consent.apply(path, params, models[card["model"]].external_params)
        model = create_model(card["model"], seed=_checked_seed(card["seed"]), decode=card["decode"], **params)
        model.ethogram = Ethogram([Behavior(**b) for b in card["behaviors"]], card["background"])
        model.rate, model.inputs, model.trained_on = _checked_rate(card["rate"]), tuple(map(str, card["inputs"])), str(card["trained_on"])
        model.licence, model.never_annotated = card["licence"], tuple(card["never_annotated"])
        model.evaluation, model.fit_report = dict(card["evaluation"]), dict(card["fit_report"])
        model.decoder = Decoder.from_dict(card["decoder"]) if card["decoder"] else None
        model.required_input = RequiredInput.from_dict(card["required_input"])
        model.observation_period = ObservationPeriod.from_dict(period) if (period := card.get("observation_period")) else None
        model.role_inputs = RoleInputs.from_dict(card["role_inputs"]) if card.get("role_inputs") else None
        by_role = model.role_inputs is not None
        model.directed = DirectedExamples(tuple(card["directed"]["targeted"]), by_role) if card["directed"] else None
        model.condition_thresholds = checked_thresholds(card.get("condition_thresholds", {}))
        revision = card["revision"]
    except (FormatError, ConsentError):
        raise
    except (EthobenchError, KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError) as error:
        raise FormatError(path / CARD, f"the model card is damaged ({error})") from None
    if revision != model.revision:
        raise FormatError(
            path / CARD, f"saved by revision {revision} of model {model.name!r}, but this is revision {model.revision}; train it again"
        )
    return model


def _checked_seed(seed: Any) -> int:
    if type(seed) is not int:
        raise ValueError(f"the seed is {seed!r}")
    return seed


def _checked_rate(rate: Any) -> float | None:
    if rate is not None and not (isinstance(rate, (int, float)) and 0 < rate <= MAX_RATE):
        raise ValueError(f"the rate is {rate!r}")
    return rate


def digest_files(folder: Path) -> str:
    """Hash all files of a saved model except its cards, by name and content."""
    digest = hashlib.blake2b(digest_size=16)
    for name, content in hash_files(folder).items():
        digest.update(name.encode() + b"\0" + bytes.fromhex(content))
    return digest.hexdigest()


def hash_files(folder: Path) -> dict[str, str]:
    """Hash each file of a saved model except its cards and hidden files, which file managers create."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in (CARD, READABLE_CARD))
    names = {path.relative_to(folder).as_posix(): path for path in files if not path.name.startswith(".")}
    return {name: _hash_file(path) for name, path in names.items()}


def check_files(folder: Path, card: Mapping[str, Any]) -> None:
    """Refuse a saved model whose files have changed since it was saved. Call it before any of them is parsed.

    Raises
    ------
    FormatError
        Names the first file that was changed, removed or added.
    """
    if card.get("digest", "") in ("", digest_files(folder)):
        return
    saved, present = card.get("files"), hash_files(folder)
    if isinstance(saved, dict):
        for name in sorted({*saved, *present}):
            if saved.get(name) != present.get(name):
                if name not in present:
                    raise FormatError(folder / name, "this file is missing since the model was saved; copy the folder again")
                if name not in saved:
                    raise FormatError(folder / name, "this file was added since the model was saved; copy the folder again")
                raise FormatError(folder / name, "this file was changed since the model was saved; copy the folder again")
    raise FormatError(folder, "files were changed or removed since the model was saved; copy the folder again")


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, hashlib.blake2b).hexdigest()


def format_card(card: Mapping[str, Any]) -> str:
    """Return a model card as Markdown, for people."""
    params = ", ".join(f"{name} {value}" for name, value in card["params"].items())
    never = card["never_annotated"]
    behaviors = ", ".join(b["name"] for b in card["behaviors"] if b["name"] not in never)
    lines = [
        f"# A model of {behaviors}",
        "",
        f"- model: `{card['model']}` ({params or 'no hyper-parameters'}), seed {card['seed']}, ethobench {card['ethobench']}",
        f"- trained on: {card['trained_on']}; {_describe_training(card)}",
        *([f"- never annotated in the training data, so never predicted: {', '.join(never)}"] if never else []),
        f"- inputs: {', '.join(card['inputs']) or 'none'} at {card['rate'] or 'any'} Hz; other rates are resampled, other inputs ignored"
        + ("; features in another order or number, or with other names, are refused" if feature_inputs(card["inputs"]) else ""),
        f"- decoded for: {_decoding_metric(card) or f'no metric; {_decoding_rule(card)}'}",
        f"- licence of the training data: {card['licence'] or 'not stated'}",
        f"- hash of its files: {card['digest']}",
        "",
        *describe_fit(card["fit_report"]),
        *_describe_evaluation(card["evaluation"], never),
    ]
    return "\n".join(lines).rstrip() + "\n"


def describe_fit(fit_report: Mapping[str, Any]) -> list[str]:
    """Return lines about the candidates that were compared, their scores, and notes; empty for a model without either."""
    rows = fit_report.get("candidates", [])
    most_folds = max((row["folds"] for row in rows), default=0)
    lines = []
    for row in rows:
        values = ", ".join(f"{name} {row[name]:.3f}" for name in ("f1", "bout_f1", "log_loss") if name in row)
        evaluated = "held-out individuals" if row["folds"] == most_folds else "held-out individuals of fewer folds"
        scores = f"; on {evaluated}: {values}" if values else ""
        folds = plural(row["folds"], "{n} fold", "{n} folds")
        lines.append(f"- candidate {row['candidate']}: {folds}, {row['seconds']:.0f} s{scores} (weight {row['weight']:g})")
    if rows and "decoded" in fit_report:
        best = fit_report["decoded"]
        lines.append(f"- best of {best['tried']} decoders: f1 {best['f1']:.3f}, bout_f1 {best['bout_f1']:.3f}")
    lines += [f"- note: {note}" for note in fit_report.get("notes", [])]
    return [*lines, ""] if lines else []


def _describe_training(card: Mapping[str, Any]) -> str:
    """Return where the training recordings are listed, and whether there are out-of-fold predictions of them."""
    if card["training_recordings"] is None:
        return "the recordings are not listed"
    listed = f"{card['training_recordings']} recordings are listed in training.json"
    if not card["out_of_fold"]:
        return f"{listed}, no out-of-fold predictions"
    return f"{listed}, with out-of-fold predictions of {card['out_of_fold']} of them"


def _decoding_rule(card: Mapping[str, Any]) -> str:
    """Return how bouts are decoded where no metric was stated."""
    if card["decoder"]:
        return "probabilities are smoothed, and bouts shorter than the labeled ones are removed"
    return "the most probable behavior of each frame"


def _decoding_metric(card: Mapping[str, Any]) -> str:
    """Return the metric for which bouts are decoded: chosen by the user, or part of the model."""
    return str(card["decode"] or (card["params"].get("metric", "") if card["decoder"] else ""))


def _describe_evaluation(evaluation: Mapping[str, Any], untrained: Sequence[str] = ()) -> list[str]:
    if not evaluation:
        return ["Not evaluated: the model was trained without cross-validation."]
    head = [
        f"Scores of suite `{evaluation['suite']}` on held-out recordings "
        f"(cross-validated by {evaluation['split']}{_folds_done(evaluation)}), "
        f"n = {evaluation['n']} {evaluation['unit']}; {evaluation['reason'] or 'in brackets 95 % intervals'}:",
        "",
    ]
    never = evaluation.get("never_annotated", [])
    intervals = {"all": evaluation.get("intervals", {}), **evaluation.get("behavior_intervals", {})}
    names = [name for name in ("f1", "bout_f1", "precision", "recall") if name in evaluation["scores"]]
    behaviors = {b: scores for b, scores in evaluation.get("behaviors", {}).items() if b not in never or any(n in scores for n in names)}
    table = [f"| behavior | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for behavior, scores in {"all": evaluation["scores"], **behaviors}.items():
        cells = [_cell(scores.get(name), intervals.get(behavior, {}).get(name)) for name in names]
        table.append(f"| {_escape(behavior)} | {' | '.join(cells)} |")
    remarks = {
        "Never annotated": [name for name in never if name not in untrained],
        "Predicted but never annotated": evaluation.get("only_predicted", []),
    }
    foot = [f"{text}: {', '.join(map(_escape, names))}." for text, names in remarks.items() if names]
    return [*head, *table, *(["", *foot] if foot else [])]


def _folds_done(evaluation: Mapping[str, Any]) -> str:
    """Return how many folds were run, if not all."""
    done, planned = evaluation.get("folds", 0), evaluation.get("folds_planned", 0)
    return f", {done} of {planned} folds because of the time budget" if done < planned else ""


def _cell(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if not interval else f"{value:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"


def _escape(name: str) -> str:
    return name.replace("|", "/").replace("\n", " ")
