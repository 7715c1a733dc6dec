"""The teacher of an open project: training in the background, review of what it suggests, and discovery of behaviors.

One thread does all long computations of a project, one after the other: the features of all recordings when the project is opened, then
trainings. A training interrupts the computation of features, which continues afterwards.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ethobench.app.editing import clear, mark
from ethobench.app.origins import ACCEPTED, CLUSTER, REJECTED, SKIPPED, TEACHER, Origin, Origins
from ethobench.app.project import Project
from ethobench.app.recordings import ANNOTATOR, CORRECTION, OpenRecording
from ethobench.app.video_features import compute_video_features, has_video_features, needs_video_features, read_video_features
from ethobench.core import Annotation, Dataset, Ethogram, Observed
from ethobench.core import Track as ObservedTrack
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, MismatchError, NotFoundError, describe_exception
from ethobench.core.names import file_stem
from ethobench.models.discovery import Cluster, Segment
from ethobench.models.review import Candidate
from ethobench.models.teacher import Teacher, TrainingCancelledError

TRACK = "teacher"
MODELS = "models"
MAX_REVIEW = 200
MAX_SIMILAR = 200
MAX_CLUSTERS = 60
MAX_SEGMENTS = 20_000  # labeled at once when clusters are named
MAX_NAME = 60
IDLE, PREPARING, TRAINING, EVALUATING, FAILED, CANCELLED = "idle", "preparing", "training", "evaluating", "failed", "cancelled"
UNAVAILABLE = "unavailable"  # the recordings have nothing to learn from
ONLY_VIDEOS = "there are no poses or signals, but the teacher can learn from the motion in the videos; its features are computed once"


class _StoppedError(Exception):
    """The features of videos are not wanted anymore. Not an `EthobenchError`, which would only skip one video."""


@dataclass
class _Progress:
    """What the background thread is doing."""

    state: str = IDLE
    stage: str = ""
    fraction: float = 0.0
    message: str = ""


class Teaching:
    """The teacher of an open project.

    Parameters
    ----------
    project : Project
    cache : Path, optional
        Folder for features. Default: the user's cache folder.

    Attributes
    ----------
    teacher : Teacher
    track : str
        Name of the track of its predictions.
    """

    def __init__(self, project: Project, cache: Path | None = None) -> None:
        self.project = project
        self._ids = _unique_ids(project.recordings)
        self._cache = cache
        self.teacher = Teacher(_dataset(project, self._ids), cache=cache)
        names = {track.name for recording in project.recordings for track in recording.tracks}
        self.track = TRACK if TRACK not in names else f"{TRACK} (model)"
        self.origins = Origins(project.corrections.folder)
        self.seconds: float | None = None
        self.prepared = False
        self._progress = _Progress()
        self._cancel, self._interrupt = threading.Event(), threading.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="teacher")
        self._training: Future[None] | None = None
        self._lock = threading.Lock()
        self._skipped: set[tuple[Any, ...]] = set()
        self._queue: list[Candidate] = []

    # Background work

    def prepare(self) -> None:
        """Compute the features of all recordings in the background, unless that is done."""
        if not self.prepared:
            self._thread.submit(self._prepare)

    def embed_videos(self) -> None:
        """Compute motion features of the videos in the background, so that recordings without poses and signals can be learned from.

        Raises
        ------
        EthobenchError
            If there is no such recording.
        """
        if not self._videos():
            raise EthobenchError("no recording has a video whose features are needed")
        self._cancel.clear()
        self._progress = _Progress(PREPARING, "waiting")
        self._thread.submit(self._embed_videos)

    def train(self, annotators: Sequence[str] = ()) -> None:
        """Train in the background on what is labeled so far.

        Parameters
        ----------
        annotators : sequence of str
            Whose labels to use: of each recording, those of the first who labeled it. By default corrections, then other annotators.

        Raises
        ------
        MismatchError
            If a training is running.
        """
        with self._lock:
            if self._training is not None and not self._training.done():
                raise MismatchError("the teacher is being trained; wait until it is done, or cancel it")
            labels = self.labels(annotators)
            self._cancel.clear()
            self._interrupt.set()
            self._progress = _Progress(TRAINING, "waiting")
            self._training = self._thread.submit(self._train, labels)

    def cancel(self) -> None:
        """Cancel the training that is running. The former predictions remain."""
        self._cancel.set()

    def close(self) -> None:
        """Stop what is running, for the end of the program. Nothing is lost: features that were computed remain on disk."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._cancel.set()
        self._interrupt.set()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the training that is running is done."""
        if self._training is not None:
            self._training.result(timeout)

    def labels(self, annotators: Sequence[str] = ()) -> dict[str, Annotation]:
        """Return the labels so far by recording, of those annotators or, by default, corrections before other annotators."""
        labels = {}
        for identifier, recording in zip(self._ids, self.project.recordings, strict=True):
            tracks = [track for track in recording.tracks if track.kind in (CORRECTION, ANNOTATOR)]
            tracks = [track for track in tracks if iv.total(track.annotation.observed.of_any())]
            if annotators:
                tracks = sorted((t for t in tracks if t.name in annotators), key=lambda t: annotators.index(t.name))
            else:
                tracks = sorted(tracks, key=lambda t: t.kind != CORRECTION)
            if tracks:
                labels[identifier] = tracks[0].annotation
        return labels

    def status(self) -> dict[str, Any]:
        """Return what the teacher is doing, and the quality of its last training."""
        progress, teacher = self._progress, self.teacher
        return {
            "state": progress.state,
            "stage": progress.stage,
            "progress": round(progress.fraction, 3),
            "message": progress.message,
            "prepared": self.prepared,
            "track": self.track,
            "trainings": teacher.n_trainings,
            "seconds": self.seconds,
            "notes": teacher.notes[:20],
            "unreadable": dict(list(teacher.unreadable.items())[:20]),
            "quality": None if teacher.quality is None else teacher.quality.to_dict(),
            "history": [_history_row(quality.to_dict()) for quality in teacher.history[-200:]],
            "queued": len(self._queue),
            "videos": len(self._videos()),
        }

    def _videos(self) -> list[OpenRecording]:
        """Return the recordings whose videos have no features yet, if no recording has poses or signals."""
        recordings = self.project.recordings
        if any(recording.recording.has_signals for recording in recordings):
            return []
        candidates = [recording for recording in recordings if needs_video_features(recording)]
        shown = [recording for recording in candidates if self.project.can_show(recording.recording.cameras[0].path)]
        return [recording for recording in shown if not has_video_features(recording)]

    def _embed_videos(self) -> None:
        def listen(stage: str, fraction: float) -> None:
            if self._cancel.is_set():
                raise _StoppedError
            self._progress = _Progress(PREPARING, stage, fraction)

        try:
            failures = compute_video_features(self._videos(), listen)
            self.teacher = Teacher(_dataset(self.project, self._ids), cache=self._cache)
            self._prepare()
            if failures and self.prepared:
                self._progress = _Progress(message="; ".join(failures))
        except _StoppedError:
            self._progress = _Progress(UNAVAILABLE, message="cancelled; the features of finished videos are kept")
        except EthobenchError as error:
            self._progress = _Progress(UNAVAILABLE, message=str(error))
        except Exception as error:
            self._progress = _Progress(UNAVAILABLE, message=f"features cannot be computed: {describe_exception(error)}")

    def _prepare(self) -> None:
        former = self._progress
        try:
            self._interrupt.clear()
            self.teacher.prepare(self._listener(PREPARING, self._interrupt))
            self.prepared = True
            self._progress = former if former.state in (FAILED, CANCELLED) else _Progress()
        except TrainingCancelledError:
            with suppress(RuntimeError):  # closed
                self._thread.submit(self._prepare)  # after the training that interrupted it
        except EthobenchError as error:
            if self.teacher.recordings:
                self._progress = _Progress(FAILED, message=str(error))
            else:
                self._progress = _Progress(UNAVAILABLE, message=ONLY_VIDEOS if self._videos() else str(error))
        except Exception as error:
            self._progress = _Progress(FAILED, message=f"features cannot be computed: {describe_exception(error)}")

    def _train(self, labels: Mapping[str, Annotation]) -> None:
        start, former = time.monotonic(), self.teacher.n_trainings
        try:
            self.teacher.fit(labels, self._listener(TRAINING, self._cancel))
            self._publish()
            self.seconds = round(time.monotonic() - start, 2)
            self.teacher.evaluate(self._listener(EVALUATING, self._cancel))
            self._progress = _Progress()
        except TrainingCancelledError:
            kept = "its predictions remain; " if former else ""
            message = f"training was cancelled; {kept}train again at any time"
            if self.teacher.n_trainings > former:
                message = "the measurement of held-out quality was cancelled; the new predictions are shown"
            self._progress = _Progress(CANCELLED, message=message)
        except EthobenchError as error:
            self._progress = _Progress(FAILED, message=str(error))
        except Exception as error:
            self._progress = _Progress(FAILED, message=f"training failed: {describe_exception(error)}")

    def _publish(self) -> None:
        """Show the predictions as a track of each recording."""
        for identifier, recording in zip(self._ids, self.project.recordings, strict=True):
            prediction = self.teacher.predictions.get(identifier)
            if prediction is not None:
                recording.set_prediction(self.track, prediction)

    def _listener(self, state: str, stop: threading.Event) -> Callable[[str, float], None]:
        def listen(stage: str, fraction: float) -> None:
            if stop.is_set():
                raise TrainingCancelledError("cancelled")
            self._progress = _Progress(state, stage, fraction)

        listen("", 0.0)
        return listen

    # Review

    def review(self, n: int, annotators: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return the bouts to review next, best first: those of named clusters, then those with the largest expected gain.

        Parameters
        ----------
        n : int
        annotators : sequence of str
            The reviewers; see `train`.
        """
        n = _checked_count(n, MAX_REVIEW)
        labels = self.labels(annotators)
        queued = [c for c in self._queue if c.key not in self._skipped and not _is_observed(c, labels.get(c.recording))]
        if self.teacher.model is None and not queued:
            raise EthobenchError("nothing to review yet: label some bouts and train first")
        candidates = queued[:n]
        if self.teacher.model is not None and len(candidates) < n:
            suggested = self.teacher.suggest(n + len(self._skipped), annotations=labels)
            candidates += [c for c in suggested if c.key not in self._skipped]
        return [self._candidate_payload(candidate) for candidate in candidates[:n]]

    def decide(
        self,
        index: int,
        annotator: str,
        decision: str,
        bout: Candidate,
        *,
        adjusted: Candidate | None = None,
        origin: str = TEACHER,
        revision: int | None = None,
        exclusive: bool = True,
    ) -> None:
        """Accept, adjust, reject or skip a suggested bout, and record where the label comes from.

        An accepted or adjusted bout becomes a bout of the reviewer's correction, which is started if there is none. A rejected one marks
        its frames as observed without that behavior; other behaviors remain unobserved there.

        Parameters
        ----------
        index : int
            Of the recording.
        annotator : str
            The reviewer.
        decision : {"accepted", "adjusted", "rejected", "skipped"}
        bout : Candidate
            As suggested.
        adjusted : Candidate, optional
            As the reviewer labels it, if adjusted.
        origin : {"teacher", "similar", "cluster"}
            What suggested it.
        revision : int, optional
            The displayed revision of the correction; the current one by default.
        exclusive : bool
            Remove other behaviors of the subject in these frames.
        """
        recording = self.project.recording(index)
        bout = replace(bout, recording=self._ids[index])
        if decision == SKIPPED:
            self._skipped.add(bout.key)
            return
        labeled = bout if adjusted is None else adjusted
        recording.ethogram.code(labeled.behavior)
        if decision == REJECTED:
            change = partial(reject, start=bout.start, stop=bout.stop, behavior=bout.behavior, subject=bout.subject)
        else:
            change = partial(
                mark,
                start=labeled.start,
                stop=labeled.stop,
                behavior=labeled.behavior,
                subject=labeled.subject,
                target=labeled.target,
                exclusive=exclusive,
            )
        self._start_correction(index, annotator)
        self.project.change(index, annotator, revision, lambda annotation: change(_checked(annotation, labeled)))
        suggested = None if adjusted is None else {"start": bout.start, "stop": bout.stop, "behavior": bout.behavior}
        self.origins.add([self._origin(recording, annotator, labeled, decision, origin, suggested)])

    def recorded_origins(self, index: int) -> list[dict[str, Any]]:
        """Return the decisions about suggested bouts of a recording."""
        identifier = self.project.recording(index).recording.id
        return [_without_none(vars(each)) for each in self.origins.load() if each.recording == identifier]

    def _start_correction(self, index: int, annotator: str) -> None:
        if annotator not in self.project.recording(index).corrections:
            self.project.start(index, annotator)

    def _origin(
        self,
        recording: OpenRecording,
        annotator: str,
        bout: Candidate,
        decision: str,
        origin: str,
        suggested: Mapping[str, Any] | None = None,
    ) -> Origin:
        return Origin(
            recording.recording.id,
            annotator,
            bout.start,
            bout.stop,
            bout.behavior,
            bout.subject,
            bout.target,
            decision,
            origin,
            suggested,
            round(bout.probability, 4) if origin == TEACHER else None,
            self.teacher.n_trainings if origin == TEACHER else None,
        )

    # Discovery

    def similar(self, index: int, start: int, stop: int, n: int, subject: str | None = None) -> list[dict[str, Any]]:
        """Return the segments of all recordings that resemble a marked one most; see `Teacher.find_similar`."""
        self.project.recording(index)
        segments = self.teacher.find_similar(self._ids[index], start, stop, _checked_count(n, MAX_SIMILAR), subject=subject)
        return [self._segment_payload(segment) for segment in segments]

    def clusters(self, n: int, *, by_subject: bool = False) -> list[dict[str, Any]]:
        """Return clusters of segments with examples, as candidates for behaviors; see `Teacher.clusters`."""
        clusters = self.teacher.clusters(_checked_count(n, MAX_CLUSTERS), by_subject=by_subject)
        return [self._cluster_payload(cluster) for cluster in clusters]

    def name_clusters(
        self, n: int, numbers: Sequence[int], behavior: str, annotator: str, *, by_subject: bool = False, as_labels: bool = False
    ) -> dict[str, int]:
        """Name one or several clusters: their segments become suggestions, or labels of the reviewer.

        Parameters
        ----------
        n : int
            Number of clusters, as for `clusters`.
        numbers : sequence of int
            The clusters that are this behavior.
        behavior : str
            A behavior of the ethogram.
        annotator : str
            The reviewer.
        by_subject : bool
            As for `clusters`.
        as_labels : bool
            Label all segments that are not observed yet, instead of suggesting them for review.

        Returns
        -------
        dict
            ``suggested`` or ``labeled``: the number of segments.
        """
        clusters = self.teacher.clusters(_checked_count(n, MAX_CLUSTERS), by_subject=by_subject)
        if not numbers or any(type(number) is not int or not 0 <= number < len(clusters) for number in numbers):
            raise NotFoundError(f"the clusters must be numbers from 0 to {len(clusters) - 1}")
        segments = [segment for number in dict.fromkeys(numbers) for segment in clusters[number].segments]
        if len(segments) > MAX_SEGMENTS:
            raise EthobenchError(f"these clusters have {len(segments)} segments; at most {MAX_SEGMENTS} can be named at once")
        if not any(behavior in recording.ethogram for recording in self.project.recordings):
            raise NotFoundError(f"no behavior {behavior!r} in the ethogram; add it first")
        candidates = [_named(segment, behavior) for segment in sorted(segments, key=lambda segment: segment.distance)]
        if not as_labels:
            waiting = {candidate.key for candidate in self._queue}
            self._queue += [candidate for candidate in candidates if candidate.key not in waiting]
            return {"suggested": len(candidates)}
        return {"labeled": sum(self._label_all(candidates, annotator))}

    def _label_all(self, candidates: Sequence[Candidate], annotator: str) -> list[int]:
        """Label segments of all recordings that are not observed yet; return the number in each recording."""
        labeled = []
        for index, (identifier, recording) in enumerate(zip(self._ids, self.project.recordings, strict=True)):
            chosen = [candidate for candidate in candidates if candidate.recording == identifier]
            if not chosen or recording.locked or chosen[0].behavior not in recording.ethogram:
                continue
            self._start_correction(index, annotator)
            added: list[Candidate] = []

            def label(annotation: Annotation, chosen: Sequence[Candidate] = chosen, added: list[Candidate] = added) -> Annotation:
                added[:] = [candidate for candidate in chosen if not _is_observed(candidate, annotation, 0.0)]
                for each in added:
                    annotation = mark(annotation, each.start, each.stop, each.behavior, subject=each.subject)
                return annotation

            self.project.change(index, annotator, None, label)
            self.origins.add([self._origin(recording, annotator, each, ACCEPTED, CLUSTER) for each in added])
            labeled.append(len(added))
        return labeled

    # Saving

    def save(self, name: str) -> Path:
        """Save the model of the last training to a new folder; return the folder.

        Parameters
        ----------
        name : str
            Of the folder inside ``models`` in the folder of corrections.
        """
        text = name.strip()
        if not text or len(text) > MAX_NAME or not text.isprintable():
            raise EthobenchError(f"the name of a model must have 1 to {MAX_NAME} printable characters")
        folder = self.project.corrections.folder / MODELS
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / file_stem(text)
        self.teacher.save(path)
        return path

    # Payloads

    def _candidate_payload(self, candidate: Candidate) -> dict[str, Any]:
        return {
            **vars(candidate),
            "recording": self._ids.index(candidate.recording),
            "probability": round(candidate.probability, 4),
            "gain": round(candidate.gain, 4),
        }

    def _segment_payload(self, segment: Segment) -> dict[str, Any]:
        return {
            "recording": self._ids.index(segment.recording),
            "start": segment.start,
            "stop": segment.stop,
            "subject": segment.subject,
            "similarity": round(segment.similarity, 4),
        }

    def _cluster_payload(self, cluster: Cluster) -> dict[str, Any]:
        return {
            "number": cluster.number,
            "share": round(cluster.share, 4),
            "recordings": cluster.n_recordings,
            "segments": len(cluster.segments),
            "examples": [self._segment_payload(segment) for segment in cluster.examples],
            "labeled": self._labeled_behaviors(cluster),
        }

    def _labeled_behaviors(self, cluster: Cluster) -> dict[str, float]:
        """Return the share of each behavior in the labeled bouts that overlap a cluster, largest first."""
        labels = self.labels()
        frames: dict[str, int] = {}
        for identifier in {segment.recording for segment in cluster.segments} & {*labels}:
            spans = iv.union(iv.intervals(*zip(*[(s.start, s.stop) for s in cluster.segments if s.recording == identifier], strict=True)))
            annotation = labels[identifier]
            for code, behavior in enumerate(annotation.ethogram):
                if code != annotation.ethogram.background:
                    overlap = iv.overlap(spans, iv.union(annotation.spans(code)))
                    frames[behavior.name] = frames.get(behavior.name, 0) + overlap
        total = sum(frames.values())
        return {name: round(n / total, 3) for name, n in sorted(frames.items(), key=lambda item: -item[1]) if n} if total else {}


def reject(annotation: Annotation, start: int, stop: int, behavior: str, subject: str | None = None) -> Annotation:
    """Mark ``[start, stop)`` as observed without a behavior; its bouts are cut, and other behaviors remain as they are.

    Parameters
    ----------
    annotation : Annotation
    start, stop : int
    behavior : str
    subject : str, optional
        Only of this subject; of all subjects if None.

    Examples
    --------
    >>> a = Annotation.from_bouts([], [], [], ["rest", "run"], rate=10, n_frames=60, observed=iv.empty())
    >>> rejected = reject(a, 10, 20, "run")
    >>> iv.total(rejected.observed.of("run")), iv.total(rejected.observed.of("rest"))
    (10, 0)
    """
    frames = iv.intervals([start], [stop])
    cut = clear(annotation, start, stop, behavior=behavior, subject=subject).with_observed(annotation.observed)
    observed = annotation.observed
    named = {track.subject for track in observed.tracks if track.subject is not None}
    subjects = [subject] if subject is not None else [None, *sorted(named)]
    tracks = dict(observed.tracks)
    for name in subjects:
        former = observed.of(behavior, name) if name is not None else observed.tracks.get(ObservedTrack(behavior), observed.frames)
        if iv.overlap(former, frames) < iv.total(frames):
            tracks[ObservedTrack(behavior, name)] = iv.union_all([former, frames])
    return cut.with_observed(Observed(observed.frames, tracks))


def _checked(annotation: Annotation, bout: Candidate) -> Annotation:
    if not 0 <= bout.start < bout.stop <= annotation.n_frames:
        raise MismatchError(f"a bout must have 0 <= start < stop <= {annotation.n_frames}, got {bout.start} to {bout.stop}")
    return annotation


def _is_observed(candidate: Candidate, labels: Annotation | None, max_share: float = 0.5) -> bool:
    """Return whether more than a share of a candidate's frames was observed."""
    if labels is None:
        return False
    before = iv.covered_before(labels.observed.of(candidate.behavior, candidate.subject), [candidate.start, candidate.stop])
    return bool(before[1] - before[0] > max_share * (candidate.stop - candidate.start))


def _named(segment: Segment, behavior: str) -> Candidate:
    return Candidate(
        segment.recording,
        segment.start,
        segment.stop,
        behavior,
        segment.subject,
        probability=segment.similarity,
        kind=CLUSTER,
        reason="segment of a cluster that was named",
    )


def _checked_count(n: int, maximum: int) -> int:
    if type(n) is not int or not 1 <= n <= maximum:
        raise EthobenchError(f"the number must be an integer from 1 to {maximum}, got {n!r}")
    return n


def _unique_ids(recordings: Sequence[OpenRecording]) -> list[str]:
    """Return an id for each recording; those of several datasets may share one."""
    names = [recording.recording.id for recording in recordings]
    return [name if names.count(name) == 1 else f"{name} ({index})" for index, name in enumerate(names)]


def _dataset(project: Project, ids: Sequence[str]) -> Dataset:
    """Return the recordings of a project without annotations; signals are read when they are used."""
    recordings = []
    for identifier, recording in zip(ids, project.recordings, strict=True):
        read = _read_signals if recording.recording.has_signals else read_video_features if _has_only_video(recording) else None
        signals = None if read is None else partial(read, recording)
        source = recording.recording
        recordings.append(source.copy(id=identifier, rate=recording.rate, n_frames=None, annotations={}, signals=signals))
    return Dataset(tuple(recordings), Ethogram([]), name=project.name, keypoints=project.keypoints)


def _has_only_video(recording: OpenRecording) -> bool:
    return needs_video_features(recording) and has_video_features(recording)


def _read_signals(recording: OpenRecording) -> Any:
    return recording.signals


def _history_row(quality: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an evaluation that a chart over time needs."""
    names = ("training", "labeled_bouts", "labeled_seconds", "f1", "bout_f1", "withheld")
    f1 = {row["behavior"]: row["f1"] for row in quality["behaviors"]}
    return {**{name: quality[name] for name in names}, "behaviors": f1}


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
