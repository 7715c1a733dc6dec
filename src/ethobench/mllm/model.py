"""A multimodal language model as a `Model`: `fit` selects worked examples, `predict` sends the video to a provider."""

from __future__ import annotations

import dataclasses
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
from ethobench.core.errors import EthobenchError, FormatError, ParameterError
from ethobench.core.files import read_json, write_json
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
FORMAT_VERSION = 1


@hyperparameters
class Params(RequestSettings):
    """Hyper-parameters of `Mllm`, in addition to those of `RequestSettings`.

    Attributes
    ----------
    provider : str
        Name of the provider.
    model : str
        The provider's name of the model.
    task : str
        Name or TOML file of a task. Default: the task of the dataset, or one made from its ethogram.
    examples : {"excerpts", "clips", "text"}
        Kind of worked examples; see `select_examples`.
    shots : int
        Number of worked examples.
    example_seconds : float
        Maximum duration of an example in seconds.
    rule : {"repair", "published"}
        How answers are parsed; see `read_replies`.
    base_url, key_variable : str
        See `Access`.
    answers : str
        For ``replay``: the folder or file of answers.
    digest : str
        Digest of those answers, so that a run with other answers is another job.
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
        """Return the request settings."""
        return RequestSettings(**{f.name: getattr(self, f.name) for f in dataclasses.fields(RequestSettings)})

    def access(self) -> Access:
        """Return the access to the provider."""
        return Access(self.base_url, self.key_variable, answers=Path(self.answers) if self.answers else None)


@register_model("mllm")
class Mllm(Model):
    """A multimodal language model that annotates each recording's video. Replies are cached, so a repeated prediction costs nothing.

    Attributes
    ----------
    task : Task
        What to annotate; set by `fit`.
    worked_examples : tuple of Example
        Worked examples in the prompt.
    training_annotations : tuple of Example
        All training annotations, for providers that use no video.
    outcomes : dict of str to AnnotationOutcome
        Outcome of each prediction by recording id.
    """

    title = "a multimodal language model: gemini, openai, answers from files (replay) or guesses (chance)"
    Params = Params
    needs_signals = False
    external_params = ("base_url", "key_variable", "answers", "video_url")

    task: Task

    def __init__(self, *, seed: int = 0, **params: Any) -> None:
        super().__init__(seed=seed, **params)
        if self.params.rule not in RULES:
            raise ParameterError(f"`rule` must be one of {', '.join(RULES)}, got {self.params.rule!r}")
        self.dataset = ""
        self.worked_examples: tuple[Example, ...] = ()
        self.training_annotations: tuple[Example, ...] = ()
        self._example_ids: set[str] = set()
        self.outcomes: dict[str, AnnotationOutcome] = {}

    @cached_property
    def runner(self) -> RequestRunner:
        """The request runner, with Ethobench's shared cache."""
        check_consent(f"model {self.name!r}", self.network_use(), allowed=self.allow_network)
        return RequestRunner(self.provider)

    @cached_property
    def provider(self) -> Provider:
        """The provider."""
        return create_provider(self.params.provider, self.params.model, self.params.access())

    def network_use(self) -> NetworkUse | None:
        """Return the provider and host that predictions contact; None for providers that run on this computer."""
        provider = self.provider
        if not provider.uses_network:
            return None
        content = "video and worked examples" if self.worked_examples else "video"
        return NetworkUse(provider.name, provider.model, provider.host, provider.key_variables, content)

    def fit(self, data: Dataset, *, annotator: str | None = None) -> Mllm:
        """Select worked examples. Without examples (``shots=0``), the dataset may have no recordings.

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
        """Return the requests that annotate a recording."""
        self.check_is_fitted()
        examples = self.worked_examples if self.provider.needs_video else self.training_annotations
        return build_requests(recording, self.task, self.provider, self.params.settings(), examples=examples, seed=self.seed)

    def _fit(self, data: Dataset, truths: Mapping[str, Annotation]) -> None:
        self.task, self.dataset = self._task_for(data), data.name
        params, provider = self.params, self.provider

        def clip(recording: Recording, start: float, stop: float) -> Clip:
            self._example_ids.add(recording.source_id)
            if recording.video is None:
                raise EthobenchError(f"recording {recording.id!r} has no video for an example; use examples='text'")
            return make_clip(recording.video, start, stop, float("inf"), provider, params.settings())

        self._example_ids = set()
        if not provider.needs_video:
            self._example_ids |= {recording.source_id for recording in data}
            longest = max(truth.duration for truth in truths.values())
            self.training_annotations = select_examples(data.recordings, truths, clip, kind="text", shots=len(data), seconds=longest)
        elif params.shots:
            self.worked_examples = select_examples(
                data.recordings, truths, clip, kind=params.examples, shots=params.shots, seconds=params.example_seconds
            )
            if params.examples == "text":
                self._example_ids |= {recording.source_id for recording in data.recordings[: params.shots]}

    def _training_ids(self, training: TrainingData) -> Collection[str]:
        """Return the recordings with examples; the model does not see the others."""
        return self._example_ids

    def _predict(self, recording: Recording, baseline: Any) -> Prediction:
        requests = self.requests(recording)
        results = [self.runner.send(request) for request in requests.requests]
        error = next((result.error for result in results if result.reply is None), "")
        if error:  # a failed request says nothing about the model, so it is not scored as an empty prediction
            raise ProviderError(f"{recording.id}: {error}")
        annotation, outcome = read_replies(requests, results, rule=self.params.rule)
        self.outcomes[recording.id] = outcome
        self.fit_report.setdefault("outcomes", []).append(dataclasses.asdict(outcome))
        if outcome.state != WELL_FORMED:
            warnings.warn(outcome.summary(), AnswerWarning, stacklevel=3)
        if self.params.rule == "repair" and recording.n_frames is not None:  # a video may be slightly shorter than its recording
            length = recording.n_frames
            annotation = annotation.extend(length) if annotation.n_frames < length else annotation.crop(0, length)
        return annotation_to_prediction(annotation, exclusive=requests.task.exclusive)

    def predictable_frames(self, recording: Recording) -> NDArray[np.bool_]:
        """Return all frames: the input is the video, so gaps in the signals do not matter."""
        return np.ones(recording.n_frames or 0, dtype=bool)

    def _task_for(self, data: Dataset) -> Task:
        """Return the task of the hyper-parameter, that of the dataset, or one made from the dataset's ethogram."""
        name = self.params.task or data.name.rpartition("/")[2]
        if not self.params.task and not (data.name.startswith("rodentbench/") and name in task_names()):
            return task_from_ethogram(data.ethogram, name or "custom")
        task = load_task(name)
        missing = [n for n in data.ethogram.names if n not in task.ethogram]
        if missing:
            raise EthobenchError(f"task {task.name!r} lacks behaviors of {data.name or 'the dataset'}: {', '.join(missing)}")
        definitions = {b.name: b.definition for b in task.ethogram}
        behaviors = [dataclasses.replace(b, definition=b.definition or definitions[b.name]) for b in data.ethogram]
        ethogram = Ethogram(behaviors, data.ethogram.background_name)
        aliases = {word: label for word, label in task.aliases.items() if label in ethogram}
        return dataclasses.replace(task, ethogram=ethogram, aliases=aliases)

    def _save(self, folder: Path) -> None:
        examples = []
        for number, example in enumerate(self.worked_examples):
            if example.clip is not None and example.clip.input_type != "link":
                file, _ = example.clip.file(folder)
                shutil.copyfile(file, folder / f"example{number}{file.suffix.lower()}")
                if file.parent == folder:
                    file.unlink()
            examples.append({**dataclasses.asdict(example), "clip": example.clip and example.clip.identity()["clip"]})
        content = {
            "format_version": FORMAT_VERSION,
            "dataset": self.dataset,
            "task": _task_to_dict(self.task),  # complete, so that loading needs no file outside the folder
            "examples": examples,
            "training_annotations": [dataclasses.asdict(example) for example in self.training_annotations],
        }
        write_json(folder / EXAMPLES_FILE, content, indent=None)

    def _load(self, folder: Path) -> None:
        path = folder / EXAMPLES_FILE
        content = read_json(path)
        try:
            if (version := content["format_version"]) != FORMAT_VERSION:
                raise FormatError(path, f"format_version {version!r} is not supported, this version of ethobench reads {FORMAT_VERSION}")
            if content["task"] is None:
                raise FormatError(path, "the task is missing in the model folder; files outside it are not read")
            self.dataset = str(content["dataset"])
            self.task = _task_from_dict(content["task"])
            self.training_annotations = tuple(_example_from_dict(fields, None) for fields in content["training_annotations"])
            self.worked_examples = tuple(
                _example_from_dict(fields, self._load_clip(folder, number, fields)) for number, fields in enumerate(content["examples"])
            )
        except EthobenchError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(path, f"the worked examples are damaged ({error})") from None

    def _load_clip(self, folder: Path, number: int, fields: Mapping[str, Any]) -> Clip | None:
        """Return the video of a worked example: a file in the folder, or a URL below the one that the user has stated."""
        if fields["clip"] is None:
            return None
        clip = Clip(Path(), **fields["clip"])
        if clip.input_type == "link":
            base = self.params.video_url.rstrip("/")
            if not base or not clip.url.startswith(f"{base}/"):
                raise FormatError(folder / EXAMPLES_FILE, f"example {number} is at {clip.url!r}, which is not below the video_url {base!r}")
            return dataclasses.replace(clip, video=Path(clip.url))
        file = next((path for suffix in MIME if (path := folder / f"example{number}{suffix}").is_file()), None)
        if file is None:
            raise FormatError(folder, f"the video of example {number} is missing")
        if not is_video(file):
            raise FormatError(file, f"the video of example {number} is not a video")
        digest = content_hash(file, cache_folder() / "arrays")
        return dataclasses.replace(clip, video=file, digest=digest, start=0.0, stop=float(clip.duration), is_full_video=True, url="")


def annotation_to_prediction(annotation: Annotation, *, exclusive: bool = True) -> Prediction:
    """Return an annotation as a prediction with probabilities 0 and 1; unobserved frames are NaN.

    Parameters
    ----------
    annotation : Annotation
    exclusive : bool
        Whether the task has one behavior at a time. A prediction with overlapping behaviors is never exclusive.
    """
    n_behaviors, ethogram = len(annotation.ethogram), annotation.ethogram
    frames = annotation.to_frames()
    exclusive = exclusive and bool((frames.sum(axis=1) <= 1).all())
    if exclusive and ethogram.background is None:
        frames = np.column_stack([frames, ~frames.any(axis=1)])
    probabilities = frames.astype(np.float32)
    unobserved = np.ones(annotation.n_frames, dtype=bool)
    for start, stop in zip(*annotation.observed.of_any(), strict=True):
        unobserved[start:stop] = False
    probabilities[unobserved & ~frames[:, :n_behaviors].any(axis=1)] = np.nan
    return Prediction(probabilities, ethogram, annotation.rate, annotation=annotation, exclusive=exclusive)


def _task_to_dict(task: Task) -> dict[str, Any]:
    """Return a task, without its published statistics, as values that JSON can hold."""
    fields = {f.name: getattr(task, f.name) for f in dataclasses.fields(task) if f.name not in ("ethogram", "published")}
    behaviors = [dataclasses.asdict(behavior) for behavior in task.ethogram]
    return {**fields, "aliases": dict(task.aliases), "behaviors": behaviors, "background": task.ethogram.background_name}


def _task_from_dict(fields: Mapping[str, Any]) -> Task:
    numbers = {name: None if fields[name] is None else float(fields[name]) for name in ("rate", "short_seconds", "long_seconds")}
    texts = {name: str(fields[name]) for name in ("name", "title", "animals", "view")}
    aliases = {str(word): str(label) for word, label in fields["aliases"].items()}
    ethogram = Ethogram([Behavior(**behavior) for behavior in fields["behaviors"]], fields["background"])
    return Task(**texts, **numbers, exclusive=bool(fields["exclusive"]), ethogram=ethogram, aliases=aliases)  # type: ignore[arg-type]


def _example_from_dict(fields: Mapping[str, Any], clip: Clip | None) -> Example:
    segments = tuple((float(a), float(b), str(name)) for a, b, name in fields["segments"])
    duration = float(fields["duration"])
    if not all(0 <= a <= b < math.inf for a, b, _ in segments) or not 0 <= duration < math.inf:
        raise ValueError("a worked example has times that are negative, reversed or not finite")
    return Example(segments, duration, clip, str(fields["behavior"]))
