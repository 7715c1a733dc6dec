"""Multimodal language models as a `Model`: `fit` keeps worked examples, `predict` asks."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import warnings
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Behavior, Dataset, Ethogram, Prediction, Recording
from ethobench.core.errors import EthobenchError, FormatError, NotFittedError
from ethobench.formats.parse_cache import cache_folder, content_hash
from ethobench.mllm.annotate import (
    RULES,
    WELL_FORMED,
    AnnotationOutcome,
    AnswerWarning,
    RecordingRequests,
    build_requests,
    create_provider,
    make_clip,
    read_replies,
)
from ethobench.mllm.prompts import Example, select_examples
from ethobench.mllm.providers import Access, Provider, ProviderError
from ethobench.mllm.request import Clip, RequestSettings
from ethobench.mllm.runner import RequestRunner
from ethobench.mllm.task import Task, load_task, task_from_ethogram, task_names
from ethobench.mllm.video import MIME, is_video
from ethobench.models import Model, register_model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.network_use import NetworkUse, check_consent
from ethobench.models.provenance import TrainingData

EXAMPLES_FILE = "examples.json"


@hyperparameters
class Params(RequestSettings):
    """Whom to ask, what, and how; the remaining ones are those of `RequestSettings`.

    Attributes
    ----------
    provider : str
    model : str
        As the provider calls it.
    task : str
        A task's name or TOML file; that of the dataset, or one made of its ethogram, unless told.
    examples : {"excerpts", "clips", "text"}
        What worked examples are.
    shots : int
        How many; none, as published, unless told.
    example_seconds : float
        How long each may be.
    rule : {"repair", "published"}
        How answers are read.
    base_url, key_variable : str
        As for `Access`.
    answers : str
        For ``replay``: where the answers lie.
    digest : str
        Of those answers, so that other answers make another job.
    """

    provider: str = "chance"
    model: str = ""
    task: str = ""
    examples: str = "excerpts"
    shots: int = 0
    example_seconds: float = 60.0
    rule: str = "repair"
    base_url: str = ""
    key_variable: str = ""
    answers: str = ""
    digest: str = ""

    def settings(self) -> RequestSettings:
        """Return how questions are put."""
        return RequestSettings(**{f.name: getattr(self, f.name) for f in dataclasses.fields(RequestSettings)})

    def access(self) -> Access:
        """Return how the provider is reached."""
        return Access(self.base_url, self.key_variable, answers=Path(self.answers) if self.answers else None)


@register_model("mllm")
class Mllm(Model):
    """Asks a provider about each recording's video. Answers are kept, so that asking the same again costs nothing."""

    title = "a multimodal language model: gemini, openai, answers from files (replay) or guesses (chance)"
    Params = Params
    needs_signals = False
    external_params = ("base_url", "key_variable", "answers", "address")

    def __init__(self, *, seed: int = 0, **params: Any) -> None:
        super().__init__(seed=seed, **params)
        if self.params.rule not in RULES:
            raise EthobenchError(f"answers are read by the rule {' or '.join(RULES)}, not {self.params.rule!r}")
        self.task: Task | None = None
        self.dataset = ""
        self.worked_examples: tuple[Example, ...] = ()
        self.guide: tuple[Example, ...] = ()
        self._example_ids: set[str] = set()
        self.outcomes: dict[str, AnnotationOutcome] = {}

    @cached_property
    def runner(self) -> RequestRunner:
        """Asks, with the cache that all of Ethobench shares."""
        check_consent(f"model {self.name!r}", self.network_use(), allowed=self.allow_network)
        return RequestRunner(self.provider)

    @cached_property
    def provider(self) -> Provider:
        """Whom to ask."""
        return create_provider(self.params.provider, self.params.model, self.params.access())

    def network_use(self) -> NetworkUse | None:
        """Return provider predicting asks, and where; None for providers that answer on this computer."""
        provider = self.provider
        if not provider.uses_network:
            return None
        content = "video and worked examples" if self.worked_examples else "video"
        return NetworkUse(provider.name, provider.model, provider.host, provider.key_variables, content)

    def fit(self, data: Dataset, *, annotator: str | None = None) -> Mllm:
        """Choose worked examples; where none are wanted, the recordings may be missing altogether.

        Parameters
        ----------
        data : Dataset
        annotator : str, optional
        """
        if not len(data) and not self.params.shots and self.params.provider != "chance":
            self.ethogram, self.task, self.dataset = data.ethogram, self._task_for(data), data.name
            self.trained_on = f"{data.name} (no recordings, version {data.version})"
            self.training = TrainingData(())
            return self
        super().fit(data, annotator=annotator)
        return self

    def requests(self, recording: Recording) -> RecordingRequests:
        """Return the questions about a recording."""
        if self.task is None:
            raise NotFittedError(f"{self!r} is not fitted: call `fit`, or load a saved model")
        shown = self.worked_examples if self.provider.needs_video else self.guide
        return build_requests(recording, self.task, self.provider, self.params.settings(), examples=shown, draw=self.seed)

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        self.task, self.dataset = self._task_for(data), data.name
        params, provider = self.params, self.provider

        def clip(recording: Recording, start: float, stop: float) -> Clip:
            self._example_ids.add(recording.source_id)
            if recording.video is None:
                raise EthobenchError(f"recording {recording.id!r} has no video to show as an example; use examples='text'")
            return make_clip(recording.video, start, stop, float("inf"), provider, params.settings())

        self._example_ids = set()
        if not provider.needs_video:
            self._example_ids |= {recording.source_id for recording in data}
            whole = max(truth.duration for truth in truths.values())
            self.guide = select_examples(data.recordings, truths, clip, kind="text", shots=len(data), seconds=whole)
        elif params.shots:
            chosen = {"kind": params.examples, "shots": params.shots, "seconds": params.example_seconds}
            self.worked_examples = select_examples(data.recordings, truths, clip, **chosen)
            if params.examples == "text":
                self._example_ids |= {recording.source_id for recording in data.recordings[: params.shots]}

    def _training_ids(self, training: TrainingData) -> Collection[str]:
        """Return the recordings that examples come from; the others are not shown to the model."""
        return self._example_ids

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        assignment = self.requests(recording)
        asked = [self.runner.send(request) for request in assignment.requests]
        unanswered = next((one.error for one in asked if one.reply is None), "")
        if unanswered:  # that tells nothing of the model; it is to be asked again
            raise ProviderError(f"{recording.id}: {unanswered}")
        annotation, outcome = read_replies(assignment, asked, rule=self.params.rule)
        self.outcomes[recording.id] = outcome
        self.fit_report.setdefault("outcomes", []).append(dataclasses.asdict(outcome))
        if outcome.state != WELL_FORMED:
            warnings.warn(outcome.summary(), AnswerWarning, stacklevel=3)
        if self.params.rule == "repair" and recording.n_frames is not None:  # a video may be a little shorter than what is known of it
            length = recording.n_frames
            annotation = annotation.extend(length) if annotation.n_frames < length else annotation.crop(0, length)
        return annotation_to_prediction(annotation, exclusive=assignment.task.exclusive)

    def predictable_frames(self, recording: Recording) -> NDArray[np.bool_]:
        """Return all frames: the input is the video, and gaps in tags or poses do not matter."""
        return np.ones(recording.n_frames or 0, dtype=bool)

    def _task_for(self, data: Dataset) -> Task:
        """Return the task that is named, that of the dataset, or one made of its ethogram."""
        name = self.params.task or data.name.rpartition("/")[2]
        if not self.params.task and not (data.name.startswith("rodentbench/") and name in task_names()):
            return task_from_ethogram(data.ethogram, name or "own")
        task = load_task(name)
        missing = [n for n in data.ethogram.names if n not in task.ethogram]
        if missing:
            raise EthobenchError(f"task {task.name!r} does not ask for {', '.join(missing)}, which {data.name or 'the dataset'} has")
        definitions = {b.name: b.definition for b in task.ethogram}
        described = [dataclasses.replace(b, definition=b.definition or definitions[b.name]) for b in data.ethogram]
        ethogram = Ethogram(described, data.ethogram.background_name)
        aliases = {word: label for word, label in task.aliases.items() if label in ethogram}
        return dataclasses.replace(task, ethogram=ethogram, aliases=aliases)

    def _save(self, folder: Path) -> None:
        kept = []
        for number, example in enumerate(self.worked_examples):
            if example.clip is not None and example.clip.input_type != "link":
                file, _ = example.clip.file(folder)
                shutil.copyfile(file, folder / f"example{number}{file.suffix.lower()}")
                if file.parent == folder:
                    file.unlink()
            kept.append({**dataclasses.asdict(example), "clip": example.clip and _plain(example.clip)})
        guide = [dataclasses.asdict(example) for example in self.guide]
        task = None if self.task is None else _task_to_dict(self.task)  # whole, so that loading needs no file outside the folder
        learnt = {"dataset": self.dataset, "task": task, "examples": kept, "guide": guide}
        (folder / EXAMPLES_FILE).write_text(json.dumps(learnt), encoding="utf-8")

    def _load(self, folder: Path) -> None:
        from ethobench.core.files import read_json

        learnt = read_json(folder / EXAMPLES_FILE)
        try:
            self.dataset = str(learnt["dataset"])
            self.task = self._saved_task(folder, learnt.get("task"))
            self.guide = tuple(_example(fields, None) for fields in learnt["guide"])
            self.worked_examples = tuple(_example(fields, self._clip(folder, k, fields)) for k, fields in enumerate(learnt["examples"]))
        except EthobenchError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(folder / EXAMPLES_FILE, f"the worked examples are damaged ({error})") from None

    def _saved_task(self, folder: Path, fields: Mapping[str, Any] | None) -> Task:
        """Return the task as it was saved; folders of earlier versions have only its name."""
        if fields is not None:
            return _task_from_dict(fields)
        if self.params.task and self.params.task not in task_names():
            raise FormatError(
                folder / EXAMPLES_FILE, f"the task {self.params.task!r} was not saved with the model, and no file outside its folder is read"
            )
        return self._task_for(Dataset((), self.ethogram or Ethogram([]), name=self.dataset))

    def _clip(self, folder: Path, number: int, fields: Mapping[str, Any]) -> Clip | None:
        """Return the video of a worked example: a file of the folder, or an address below the one that the user stated."""
        if fields["clip"] is None:
            return None
        clip = Clip(Path(), **fields["clip"])
        if clip.input_type == "link":
            base = self.params.video_url.rstrip("/")
            if not base or not clip.url.startswith(f"{base}/"):
                raise FormatError(folder / EXAMPLES_FILE, f"example {number} is at {clip.url!r}, which is not below the address {base!r}")
            return dataclasses.replace(clip, video=Path(clip.url))
        file = next((path for suffix in MIME if (path := folder / f"example{number}{suffix}").is_file()), None)
        if file is None or not is_video(file):
            raise FormatError(file or folder, f"the video of example {number} is {'missing' if file is None else 'not a video'}")
        digest = content_hash(file, cache_folder() / "arrays")
        return dataclasses.replace(clip, video=file, digest=digest, start=0.0, stop=float(clip.duration), is_full_video=True, video_url="")


def annotation_to_prediction(annotation: Annotation, *, exclusive: bool = True) -> Prediction:
    """Return an annotation as probabilities of 0 and 1; frames that were not observed have none.

    Parameters
    ----------
    annotation : Annotation
    exclusive : bool
        Whether the task has one behavior at a time. An annotation with overlapping behaviors is not exclusive.
    """
    n, ethogram = len(annotation.ethogram), annotation.ethogram
    frames = annotation.to_frames()
    exclusive = exclusive and bool((frames.sum(axis=1) <= 1).all())
    if exclusive and ethogram.background is None:
        frames = np.column_stack([frames, ~frames.any(axis=1)])
    probabilities = frames.astype(np.float32)
    hidden = np.ones(annotation.n_frames, dtype=bool)
    for start, stop in zip(*annotation.observed.of_any(), strict=True):
        hidden[start:stop] = False
    probabilities[hidden & ~frames[:, :n].any(axis=1)] = np.nan
    return Prediction(probabilities, ethogram, annotation.rate, annotation=annotation, exclusive=exclusive)


def _task_to_dict(task: Task) -> dict[str, Any]:
    """Return plain values that JSON can hold; published scores are left out."""
    fields = {f.name: getattr(task, f.name) for f in dataclasses.fields(task) if f.name not in ("ethogram", "published")}
    behaviors = [dataclasses.asdict(behavior) for behavior in task.ethogram]
    return {**fields, "aliases": dict(task.aliases), "behaviors": behaviors, "background": task.ethogram.background_name}


def _task_from_dict(fields: Mapping[str, Any]) -> Task:
    numbers = {name: None if fields[name] is None else float(fields[name]) for name in ("rate", "short_seconds", "long_seconds")}
    words = {name: str(fields[name]) for name in ("name", "title", "animals", "view")}
    aliases = {str(word): str(label) for word, label in fields["aliases"].items()}
    ethogram = Ethogram([Behavior(**behavior) for behavior in fields["behaviors"]], fields["background"])
    return Task(**words, **numbers, exclusive=bool(fields["exclusive"]), ethogram=ethogram, aliases=aliases)  # type: ignore[arg-type]


def _plain(clip: Clip) -> dict[str, Any]:
    plain: dict[str, Any] = clip.identity()["clip"]
    return plain


def _example(fields: Mapping[str, Any], clip: Clip | None) -> Example:
    segments = tuple((float(a), float(b), str(name)) for a, b, name in fields["segments"])
    duration = float(fields["duration"])
    if not all(0 <= a <= b < math.inf for a, b, _ in segments) or not 0 <= duration < math.inf:
        raise ValueError("a worked example has times that are no seconds")
    return Example(segments, duration, clip, str(fields["behavior"]))
