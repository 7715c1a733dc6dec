"""A model's card: what it was trained on, how good it is, what it takes, for people to read; and whether its files are the ones saved."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ethobench.core.errors import FormatError

CARD, WORDS = "model.json", "CARD.md"


def digest_files(folder: Path) -> str:
    """Hash the files of a saved model, all but its cards, by name and content."""
    digest = hashlib.blake2b(digest_size=16)
    for name, content in hash_files(folder).items():
        digest.update(name.encode() + b"\0" + bytes.fromhex(content))
    return digest.hexdigest()


def hash_files(folder: Path) -> dict[str, str]:
    """Hash each file of a saved model but its cards; hidden files, which file managers leave behind, are not part of a model."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in (CARD, WORDS))
    names = {path.relative_to(folder).as_posix(): path for path in files if not path.name.startswith(".")}
    return {name: _hash_file(path) for name, path in names.items()}


def check_files(folder: Path, card: Mapping[str, Any]) -> None:
    """Refuse a saved model whose files are not the ones that were saved; done before any of them is parsed.

    Raises
    ------
    FormatError
        Names the first file that was changed, lost or added, where the card has a hash of each.
    """
    if card.get("digest", "") in ("", digest_files(folder)):
        return
    saved, present = card.get("files"), hash_files(folder)
    if isinstance(saved, dict):
        for name in sorted({*saved, *present}):
            if saved.get(name) != present.get(name):
                what = "is missing" if name not in present else "was added" if name not in saved else "was changed"
                raise FormatError(folder / name, f"the files are not the ones that were saved: this one {what}; copy the folder again")
    raise FormatError(folder, "its files are not the ones that were saved: some were changed or lost; copy the folder again")


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, hashlib.blake2b).hexdigest()


def in_words(card: Mapping[str, Any]) -> str:
    """Write a card for people."""
    params = ", ".join(f"{name} {value}" for name, value in card["params"].items())
    takes = (
        f"{', '.join(card['inputs']) or 'nothing'} at {card['rate'] or 'any'} Hz; other rates are resampled, further inputs are left aside"
    )
    never = card.get("never_annotated", [])
    lines = [
        f"# A model that tells {', '.join(b['name'] for b in card['behaviors'] if b['name'] not in never)}",
        "",
        f"- model: `{card['model']}` ({params or 'no hyper-parameters'}), seed {card['seed']}, made by ethobench {card['ethobench']}",
        f"- trained on: {card['trained_on']}; {_training_data(card)}",
        *([f"- never annotated in the training data, so never predicted: {', '.join(never)}"] if never else []),
        f"- takes: {takes}",
        f"- decoded for: {_goal(card) or 'nothing in particular; the most probable behavior of each frame'}",
        f"- licence of the training data: {card['licence'] or 'not told'}",
        f"- hash of its files: {card['digest']}",
        "",
        *tried_in_words(card.get("account", {})),
        *_evaluation(card["evaluation"], never),
    ]
    return "\n".join(lines).rstrip() + "\n"


def tried_in_words(account: Mapping[str, Any]) -> list[str]:
    """Tell which candidates were compared, by what, and what came of it; nothing for models that compare none."""
    rows = account.get("candidates", [])
    lines = []
    for row in rows:
        figures = ", ".join(f"{name} {row[name]:.3f}" for name in ("f1", "bout_f1", "log_loss") if name in row)
        judged = f" on individuals it had not seen: {figures}" if figures else ""
        lines.append(f"- tried {row['candidate']}, {row['folds']} times in {row['seconds']:.0f} s;{judged} (weight {row['weight']:g})")
    if rows and "decoded" in account:
        best = account["decoded"]
        lines.append(f"- decoded by the best of {best['tried']} ways: f1 {best['f1']:.3f}, bout_f1 {best['bout_f1']:.3f}")
    lines += [f"- note: {note}" for note in account.get("notes", [])]
    return [*lines, ""] if lines else []


def _training_data(card: Mapping[str, Any]) -> str:
    """Say where the list of training recordings is, and whether there are out-of-fold predictions of them."""
    if card.get("training_recordings") is None:
        return "the recordings are not listed"
    kept = f"out-of-fold predictions of {card['out_of_fold']} of them are kept" if card["out_of_fold"] else "no out-of-fold predictions"
    return f"{card['training_recordings']} recordings are listed in training.json; {kept}"


def _goal(card: Mapping[str, Any]) -> str:
    """Return the metric for which bouts are decoded: asked for by the user, or part of the model."""
    return str(card["decode"] or (card["params"].get("metric", "") if card["decoder"] else ""))


def _evaluation(told: Mapping[str, Any], untrained: Sequence[str] = ()) -> list[str]:
    if not told:
        return ["It was not evaluated: `ethobench train` does so unless told not to."]
    head = [
        f"Scores of suite `{told['suite']}` on recordings that it had not learnt from "
        f"(cross-validated by {told['split']}{_folds_done(told)}), {_based_on(told)}:",
        "",
    ]
    never = told.get("never_annotated", [])
    between = {"all": told.get("intervals", {}), **told.get("behavior_intervals", {})}
    names = [name for name in ("f1", "bout_f1", "precision", "recall") if name in told["figures"]]
    behaviors = {b: figures for b, figures in told.get("behaviors", {}).items() if b not in never or any(n in figures for n in names)}
    table = [f"| behavior | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for behavior, figures in {"all": told["figures"], **behaviors}.items():
        cells = [_cell(figures.get(name), between.get(behavior, {}).get(name)) for name in names]
        table.append(f"| {_plain(behavior)} | {' | '.join(cells)} |")
    lines = {
        "never annotated": [name for name in never if name not in untrained],
        "predicted but never annotated": told.get("only_predicted", []),
    }
    foot = [f"{text.capitalize()}: {', '.join(map(_plain, names))}." for text, names in lines.items() if names]
    return [*head, *table, *(["", *foot] if foot else [])]


def _based_on(told: Mapping[str, Any]) -> str:
    """Say what intervals are based on, or why there are none; cards of earlier versions do not tell."""
    if "n" not in told:
        return "with intervals over individuals"
    return f"n = {told['n']} {told['unit']}; {told['reason'] or 'in brackets 95 % intervals'}"


def _folds_done(told: Mapping[str, Any]) -> str:
    """Say how many folds were done, where it was not all of them."""
    done, planned = told.get("folds", 0), told.get("folds_planned", 0)
    return f", {done} of {planned} folds for want of time" if done < planned else ""


def _cell(value: float | None, between: tuple[float, float] | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if not between else f"{value:.3f} ({between[0]:.3f} to {between[1]:.3f})"


def _plain(name: str) -> str:
    return name.replace("|", "/").replace("\n", " ")
