"""Clips of bouts, one per file or as a grid per behavior, and overlay videos of complete recordings."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ethobench.core import Poses, Recording
from ethobench.core.errors import EthobenchError, FormatError, NotFoundError, ParameterError
from ethobench.core.files import atomic_path, check_new_path
from ethobench.core.names import file_stems
from ethobench.core.progress import progress_range, report_progress
from ethobench.core.video import probe
from ethobench.core.wording import plural
from ethobench.figures.colors import Color, behavior_colors
from ethobench.figures.scenes import DOT, MIN_HEIGHT, ClipStyle, Scene
from ethobench.figures.text_drawing import INK, PADDING, clock_text, fit_text, font_for, text_size
from ethobench.figures.video_writing import video_writer
from ethobench.formats.tables import write_table

INDEX = "clips.csv"
NOTHING = "neither a video nor poses, so there is nothing to show"
COLUMNS = ("file", "recording", "annotator", "behavior", "subject", "target", "start_s", "stop_s")
GRID_SIZE = 16
GRID_SECONDS = 10.0
GRID_WIDTH, GRID_HEIGHT = 1280, 960
GRID_GROUND = (12, 14, 17)
CELL_GAP = 4
MAX_CELLS = 64
MIN_CELL = 160
CAPTION_HEIGHT = 20
OVERLAY_WINDOW = 20.0
"""Seconds of labels that an overlay video shows around the current frame."""
REPORT_EVERY = 10  # pictures between two reports of the progress


@dataclass(frozen=True)
class SelectedBout:
    """A bout to make a clip of.

    Attributes
    ----------
    recording : Recording
    annotator, behavior, subject, target : str
        Subject and target are empty if there is none.
    start, stop : int
        Half-open frames; equal for a point event.
    """

    recording: Recording
    annotator: str
    behavior: str
    start: int
    stop: int
    subject: str = ""
    target: str = ""

    @property
    def rate(self) -> float:
        """Return the frames per second of the recording."""
        return self.recording.annotations[self.annotator].rate

    def margins(self, margin: float, max_seconds: float | None = None) -> tuple[int, int]:
        """Return the first and last frame (exclusive) of a clip with a margin in seconds, within the recording."""
        frames = round(margin * self.rate)
        n_frames = self.recording.n_frames or self.recording.annotations[self.annotator].n_frames
        first, last = max(self.start - frames, 0), min(max(self.stop, self.start + 1) + frames, n_frames)
        if max_seconds is not None:
            last = min(last, first + max(round(max_seconds * self.rate), 1))
        return first, max(last, first + 1)


@dataclass
class ClipSummary:
    """What was written.

    Attributes
    ----------
    files : list of Path
    bouts : list of SelectedBout
        The bouts that the files show.
    notes : list of str
        Recordings that were skipped, problems of videos.
    """

    files: list[Path] = field(default_factory=list)
    bouts: list[SelectedBout] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_notes(self, notes: Iterable[str]) -> None:
        """Add notes that are not in the list yet."""
        self.notes += [note for note in dict.fromkeys(notes) if note not in self.notes]


def can_show(recording: Recording) -> bool:
    """Whether there is anything to draw for a recording: a video file, or poses."""
    has_video = recording.video is not None and recording.video.is_file()
    return has_video or isinstance(recording.signals, Poses)


def select_bouts(
    recordings: Iterable[Recording],
    behaviors: Sequence[str] | None = None,
    annotators: Sequence[str] | None = None,
    *,
    max_bouts: int | None = None,
    seed: int = 0,
) -> list[SelectedBout]:
    """Select bouts by behavior and annotator.

    Parameters
    ----------
    recordings : iterable of Recording
    behaviors : sequence of str, optional
        Default: all except the background.
    annotators : sequence of str, optional
        Default: all.
    max_bouts : int, optional
        Maximum number of bouts of each behavior. If there are more, a random sample over all recordings and annotators.
    seed : int
        Random seed of the sample.

    Returns
    -------
    list of SelectedBout
        By behavior, then in the order of the recordings, annotators and starts.

    Raises
    ------
    NotFoundError
        If there is no such annotator, or no ethogram has one of the behaviors.
    EthobenchError
        If there are no bouts.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> data = load_dataset("synthetic/pose", individuals=2, seconds=30)
    >>> [(bout.recording.id, bout.start, bout.stop) for bout in select_bouts(data, ["mount"], max_bouts=2)]
    [('animal02', 334, 430), ('animal02', 633, 790)]
    """
    recordings = [_on_one_clock(recording) for recording in recordings]
    available = {name: None for recording in recordings for name in recording.annotations}
    for name in annotators or ():
        if name not in available:
            raise NotFoundError(f"no annotator {name!r}; available: {', '.join(available) or 'none'}")
    chosen = [(r, name, a) for r in recordings for name, a in r.annotations.items() if annotators is None or name in annotators]
    ethograms = [annotation.ethogram for _, _, annotation in chosen]
    occurring = dict.fromkeys(name for ethogram in ethograms for name in ethogram.names)
    for behavior in behaviors or ():
        if behavior not in occurring:
            raise NotFoundError(f"no behavior {behavior!r}; available: {', '.join(occurring) or 'none'}")
    backgrounds = {ethogram.background_name for ethogram in ethograms}
    rng = np.random.default_rng(seed)
    selected: list[SelectedBout] = []
    for behavior in behaviors or [name for name in occurring if name not in backgrounds]:
        bouts: list[tuple[Recording, str, int]] = []
        for recording, name, annotation in chosen:
            if behavior in annotation.ethogram:
                code = annotation.ethogram.code(behavior)
                bouts += [(recording, name, int(i)) for i in np.flatnonzero(annotation.behavior == code)]
        if max_bouts is not None and len(bouts) > max_bouts:
            bouts = [bouts[i] for i in sorted(rng.choice(len(bouts), max_bouts, replace=False))]
        selected += [_selected(recording, name, index) for recording, name, index in bouts]
    if not selected:
        if not behaviors:
            raise EthobenchError("there are no bouts of any behavior to show")
        raise EthobenchError(f"there are no bouts of {', '.join(map(repr, behaviors))} to show")
    return selected


def _on_one_clock(recording: Recording) -> Recording:
    """Convert annotations with another frame rate to the clock of the recording."""
    rate = recording.rate
    if rate is None or all(annotation.rate == rate for annotation in recording.annotations.values()):
        return recording
    return recording.copy(annotations={name: a if a.rate == rate else a.resample(rate) for name, a in recording.annotations.items()})


def _selected(recording: Recording, annotator: str, index: int) -> SelectedBout:
    a = recording.annotations[annotator]
    subject, target = (a.names(column[[index]])[0] or "" for column in (a.subject, a.target))
    return SelectedBout(
        recording, annotator, a.ethogram[int(a.behavior[index])].name, int(a.start[index]), int(a.stop[index]), subject, target
    )


def write_clips(
    bouts: Sequence[SelectedBout],
    folder: str | Path,
    *,
    margin: float = 1.0,
    style: ClipStyle | None = None,
    annotators: Sequence[str] | None = None,
    camera: int = 0,
    overwrite: bool = False,
) -> ClipSummary:
    """Write one MP4 file per bout, in one folder per behavior, and a table ``clips.csv`` that lists them.

    Each file appears when it is complete; those written before an error remain.

    Parameters
    ----------
    bouts : sequence of SelectedBout
        See `select_bouts`.
    folder : str or Path
    margin : float
        Seconds before and after each bout.
    style : ClipStyle, optional
        What is drawn on the pictures.
    annotators : sequence of str, optional
        The annotators whose labels are drawn; by default the one of the bout.
    camera : int
        Number of the camera.
    overwrite : bool
        Whether to replace existing files.

    Raises
    ------
    PathExistsError
        If a file exists and `overwrite` is False; nothing is written then.
    EthobenchError
        If there are no bouts, or none of their recordings has a video or poses.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> data = load_dataset("synthetic/pose", individuals=1, seconds=30)
    >>> bouts = select_bouts(data, ["mount"], max_bouts=1)
    >>> summary = write_clips(bouts, folder / "clips", margin=0.1, style=ClipStyle(height=120))
    >>> [path.relative_to(folder).as_posix() for path in summary.files]
    ['clips/mount/animal01.truth.0001.mp4']
    """
    _check_margin(margin)
    folder, summary = Path(folder), ClipSummary()
    shown = _showable(bouts, summary)
    paths = _clip_paths(shown, folder)
    for path in (*paths, folder / INDEX):
        check_new_path(path, overwrite=overwrite)
    colors = _common_colors(shown)
    scenes: dict[tuple[int, str], Scene] = {}
    for number, (bout, path) in enumerate(zip(shown, paths, strict=True)):
        key = (id(bout.recording), bout.annotator)
        if key not in scenes:
            scenes.clear()  # bouts of one recording follow each other, so one scene at a time is enough
            scenes[key] = Scene(bout.recording, annotators or [bout.annotator], style, colors, camera)
        with progress_range(number / len(shown), (number + 1) / len(shown), f"clip {number + 1} of {len(shown)}"):
            _write_clip(scenes[key], bout, path, margin, overwrite=overwrite)
        summary.files.append(path)
        summary.add_notes(scenes[key].notes)
    summary.bouts = shown
    with atomic_path(folder / INDEX, overwrite=overwrite) as temporary:
        write_table(temporary, COLUMNS, [_index_row(bout, path, folder) for bout, path in zip(shown, paths, strict=True)])
    return summary


def write_clip(
    bout: SelectedBout,
    path: str | Path,
    *,
    margin: float = 1.0,
    style: ClipStyle | None = None,
    annotators: Sequence[str] | None = None,
    camera: int = 0,
    overwrite: bool = False,
) -> ClipSummary:
    """Write one bout to an MP4 file; parameters as for `write_clips`."""
    _check_margin(margin)
    scene = Scene(bout.recording, annotators or [bout.annotator], style, None, camera)
    _write_clip(scene, bout, Path(path), margin, overwrite=overwrite)
    return ClipSummary([Path(path)], [bout], list(dict.fromkeys(scene.notes)))


def _write_clip(scene: Scene, bout: SelectedBout, path: Path, margin: float, *, overwrite: bool) -> None:
    frames = scene.frames(*bout.margins(margin))
    mark = (bout.start, bout.stop, scene.colors.get(bout.behavior, INK)) if scene.style.labels else None
    with video_writer(path, scene.rate, overwrite=overwrite) as append:
        for number, image in enumerate(scene.draw(frames, bout=mark)):
            append(image)
            if number % REPORT_EVERY == 0:
                report_progress(bout.behavior, number / len(frames))


def write_grids(
    bouts: Sequence[SelectedBout],
    folder: str | Path,
    *,
    margin: float = 1.0,
    max_seconds: float = GRID_SECONDS,
    style: ClipStyle | None = None,
    camera: int = 0,
    overwrite: bool = False,
) -> ClipSummary:
    """Write one MP4 file per behavior in which all its bouts play side by side.

    A bout starts after the margin in every cell; while it lasts, its cell has a colored border. A cell that has ended keeps its last
    picture, darkened.

    Parameters
    ----------
    bouts : sequence of SelectedBout
        See `select_bouts`; at most 64 of each behavior.
    folder : str or Path
        The files are named after the behaviors: ``attack.grid.mp4``.
    margin : float
        Seconds before and after each bout.
    max_seconds : float
        Longer clips are cut.
    style : ClipStyle, optional
        `height` is ignored: a grid has at most about 1280 x 960 pixels.
    camera : int
        Number of the camera.
    overwrite : bool
        Whether to replace existing files.

    Raises
    ------
    PathExistsError
        If a file exists and `overwrite` is False; nothing is written then.
    """
    _check_margin(margin)
    folder, summary = Path(folder), ClipSummary()
    shown = _showable(bouts, summary)
    groups: dict[str, list[SelectedBout]] = {}
    for bout in shown:
        groups.setdefault(bout.behavior, []).append(bout)
    paths = [folder / f"{stem}.grid.mp4" for stem in file_stems(groups)]
    for path, (behavior, group) in zip(paths, groups.items(), strict=True):
        check_new_path(path, overwrite=overwrite)
        if len(group) > MAX_CELLS:
            raise ParameterError(f"{len(group)} bouts of {behavior!r}: a grid can show at most {MAX_CELLS}; set `max_bouts`")
    colors = _common_colors(shown)
    for number, (path, group) in enumerate(zip(paths, groups.values(), strict=True)):
        with progress_range(number / len(groups), (number + 1) / len(groups), f"grid {number + 1} of {len(groups)}"):
            summary.add_notes(_Grid(group, margin, max_seconds, style or ClipStyle(), colors, camera).write(path, overwrite=overwrite))
        summary.files.append(path)
    summary.bouts = shown
    return summary


class _Grid:
    """Draws bouts of one behavior side by side."""

    def __init__(
        self, bouts: list[SelectedBout], margin: float, max_seconds: float, style: ClipStyle, colors: dict[str, Color], camera: int
    ) -> None:
        self.bouts, self.color = bouts, colors.get(bouts[0].behavior, INK)
        plain = ClipStyle(poses=style.poses, labels=False, time=False)
        recordings = {id(bout.recording): bout.recording for bout in bouts}.values()
        sizes = [Scene(recording, [], plain, colors, camera).picture_size for recording in recordings]
        aspect = float(np.median([height / width for width, height in sizes]))
        self.title = text_size("", 16)[1] + 10 if style.labels else 0
        self.columns, width = _grid_columns(len(bouts), aspect, GRID_HEIGHT - self.title)
        self.rows = -(-len(bouts) // self.columns)
        width = min(width, max(MIN_CELL, *(size[0] for size in sizes)))  # videos are not enlarged
        self.cell = (max(2 * round(width / 2), 32), max(2 * round(width * aspect / 2), 32))
        cell_style = replace(plain, height=max(self.cell[1], MIN_HEIGHT))
        self.scenes = [Scene(bout.recording, [bout.annotator], cell_style, colors, camera) for bout in bouts]
        self.font_size = int(np.clip(self.cell[0] / 22, 9, 14))
        self.caption = text_size("", self.font_size)[1] + 4 if style.labels else 0
        self.rate = max(scene.rate for scene in self.scenes)
        self.spans = [bout.margins(margin, max_seconds) for bout in bouts]
        seconds = [(last - first) / bout.rate for (first, last), bout in zip(self.spans, bouts, strict=True)]
        self.count = max(round(max(seconds) * self.rate), 1)

    @property
    def size(self) -> tuple[int, int]:
        width = self.columns * (self.cell[0] + CELL_GAP) + CELL_GAP
        height = self.title + self.rows * (self.cell[1] + self.caption + CELL_GAP) + CELL_GAP
        return width + width % 2, height + height % 2

    def write(self, path: Path, *, overwrite: bool) -> list[str]:
        from PIL import Image

        ground = self._ground()
        behavior = self.bouts[0].behavior
        with ExitStack() as stack, video_writer(path, self.rate, overwrite=overwrite) as append:
            cells = [self._cell(k) for k in range(len(self.bouts))]
            for cell in cells:
                stack.callback(cell.close)
            current: list[Any] = [None] * len(cells)
            for number in range(self.count):
                image = ground.copy()
                for k, cell in enumerate(cells):
                    picture = next(cell, None)
                    if picture is None and current[k] is not None and not current[k].info.get("ended"):
                        current[k] = Image.blend(current[k], Image.new("RGB", current[k].size, GRID_GROUND), 0.6)
                        current[k].info["ended"] = True
                    current[k] = picture if picture is not None else current[k]
                    if current[k] is not None:
                        image.paste(current[k], self._corner(k))
                append(image)
                if number % REPORT_EVERY == 0:
                    report_progress(behavior, number / self.count)
        return [note for scene in self.scenes for note in scene.notes]

    def _cell(self, k: int) -> Generator[Any, None, None]:
        """Yield the pictures of one cell, in the size of the cell and at the rate of the grid."""
        scene, bout, (first, last) = self.scenes[k], self.bouts[k], self.spans[k]
        count = max(round((last - first) / scene.frame_rate * self.rate), 1)
        frames = np.minimum(first + np.floor(np.arange(count) * scene.frame_rate / self.rate + 1e-6).astype(np.int64), last - 1)
        for image in scene.draw(frames, bout=(bout.start, bout.stop, self.color)):
            yield _fitted(image, self.cell)

    def _corner(self, k: int) -> tuple[int, int]:
        row, column = divmod(k, self.columns)
        x = CELL_GAP + column * (self.cell[0] + CELL_GAP)
        return x, self.title + CELL_GAP + row * (self.cell[1] + self.caption + CELL_GAP)

    def _ground(self) -> Any:
        """Draw title and captions, which do not change."""
        from PIL import Image, ImageDraw

        image = Image.new("RGB", self.size, GRID_GROUND)
        draw = ImageDraw.Draw(image)
        if self.title:
            text = f"{self.bouts[0].behavior}   {plural(len(self.bouts), '{n} bout', '{n} bouts')}"
            draw.text((CELL_GAP + 4, self.title / 2), DOT, self.color, font_for(DOT, 16), anchor="lm")
            draw.text((CELL_GAP + 22, self.title / 2), fit_text(text, 16, self.size[0] - 40), INK, font_for(text, 16), anchor="lm")
        for k, bout in enumerate(self.bouts if self.caption else []):
            x, y = self._corner(k)
            subject_text = f" · {bout.subject}" if bout.subject else ""
            text = f"{clock_text(bout.start / bout.rate, 1)}{subject_text} · {bout.recording.id}"
            text = fit_text(text, self.font_size, self.cell[0] - 2 * PADDING)
            at = (x + PADDING, y + self.cell[1] + self.caption / 2)
            draw.text(at, text, (176, 183, 191), font_for(text, self.font_size), anchor="lm")
        return image


def _grid_columns(n_cells: int, aspect: float, height: int) -> tuple[int, float]:
    """Return the number of columns with the widest cells, of several the one with the fewest empty cells, and the width of a cell.

    >>> _grid_columns(9, 1.0, 930)[0], _grid_columns(4, 0.5, 930)[0]
    (3, 2)
    """

    def width(columns: int) -> float:
        rows = -(-n_cells // columns)
        return min(GRID_WIDTH // columns - CELL_GAP, (height // rows - CELL_GAP - CAPTION_HEIGHT) / aspect)

    best = max(range(1, n_cells + 1), key=lambda columns: (width(columns), -(-n_cells % columns)))
    return best, width(best)


def _fitted(image: Any, size: tuple[int, int]) -> Any:
    """Scale a picture into a cell, centered; the aspect ratio is kept."""
    from PIL import Image

    if image.size == size:
        return image
    scale = min(size[0] / image.width, size[1] / image.height)
    scaled = image.resize((max(round(image.width * scale), 1), max(round(image.height * scale), 1)), Image.Resampling.BILINEAR)
    cell = Image.new("RGB", size, GRID_GROUND)
    cell.paste(scaled, ((size[0] - scaled.width) // 2, (size[1] - scaled.height) // 2))
    return cell


def write_overlay(
    recording: Recording,
    path: str | Path,
    *,
    annotators: Sequence[str] | None = None,
    style: ClipStyle | None = None,
    camera: int = 0,
    start: float = 0.0,
    stop: float | None = None,
    overwrite: bool = False,
) -> ClipSummary:
    """Write a video of a recording with labels, poses and time, and the labels of the surrounding 20 s below the picture.

    Parameters
    ----------
    recording : Recording
        With a video, or with poses.
    path : str or Path
        The MP4 file.
    annotators : sequence of str, optional
        The annotators whose labels are drawn; all by default.
    style : ClipStyle, optional
        What is drawn. Default: poses, labels and time.
    camera : int
        Number of the camera.
    start, stop : float
        Section in seconds; by default the complete recording.
    overwrite : bool
        Whether to replace an existing file.

    Examples
    --------
    >>> from ethobench import load_dataset
    >>> data = load_dataset("synthetic/pose", individuals=1, seconds=10)
    >>> summary = write_overlay(data["animal01"], folder / "overlay.mp4", stop=0.2, style=ClipStyle(height=120))
    >>> summary.files[0].name
    'overlay.mp4'
    """
    check_new_path(path, overwrite=overwrite)
    recording = _on_one_clock(recording)
    for name in annotators or ():
        recording.annotation(name)
    scene = Scene(recording, annotators, style or ClipStyle(poses=True), None, camera)
    first = min(max(round(start * scene.frame_rate), 0), scene.n_frames)
    last = scene.n_frames if stop is None else min(round(stop * scene.frame_rate), scene.n_frames)
    if last <= first:
        if stop is None:
            raise ParameterError(f"recording {recording.id!r} has no frames between {start:g} s and its end")
        raise ParameterError(f"recording {recording.id!r} has no frames between {start:g} s and {stop:g} s")
    frames = scene.frames(first, last)
    with video_writer(path, scene.rate, overwrite=overwrite) as append:
        for number, image in enumerate(scene.draw(frames, window=OVERLAY_WINDOW)):
            append(image)
            if number % REPORT_EVERY == 0:
                report_progress(f"overlay of {recording.id}", number / len(frames))
    return ClipSummary([Path(path)], [], list(dict.fromkeys(scene.notes)))


def _showable(bouts: Sequence[SelectedBout], summary: ClipSummary) -> list[SelectedBout]:
    """Return the bouts of recordings with a video that can be read, or with poses; note the others."""
    if not bouts:
        raise EthobenchError("there are no bouts to make clips of")
    reasons = {key: _why_hidden(recording) for key, recording in {id(bout.recording): bout.recording for bout in bouts}.items()}
    notes = [reason for reason in reasons.values() if reason]
    if len(notes) == len(reasons):
        hint = "state the video in column 'video' of recordings.csv, or pass it with the labels" if NOTHING in notes[0] else ""
        raise EthobenchError("; ".join([*notes[:3], *filter(None, [hint])]))
    summary.add_notes(f"{note}; skipped" for note in notes)
    return [bout for bout in bouts if not reasons[id(bout.recording)]]


def _why_hidden(recording: Recording) -> str:
    """Return why nothing can be shown of a recording; empty if it can."""
    if not can_show(recording):
        return f"{recording.id!r} has {NOTHING}"
    try:
        if recording.video is not None and recording.video.is_file():
            probe(recording.video)
    except FormatError as error:
        return str(error)
    return ""


def _common_colors(bouts: Sequence[SelectedBout]) -> dict[str, Color]:
    recordings = {id(bout.recording): bout.recording for bout in bouts}
    return behavior_colors(a for recording in recordings.values() for a in recording.annotations.values())


def _clip_paths(bouts: Sequence[SelectedBout], folder: Path) -> list[Path]:
    behaviors = dict.fromkeys(bout.behavior for bout in bouts)
    folders = dict(zip(behaviors, file_stems(behaviors), strict=True))
    recordings = dict.fromkeys(bout.recording.id for bout in bouts)
    stems = dict(zip(recordings, file_stems(recordings), strict=True))
    annotators = dict.fromkeys(bout.annotator for bout in bouts)
    names = dict(zip(annotators, file_stems(annotators), strict=True))
    counts: dict[tuple[str, str, str], int] = {}
    paths = []
    for bout in bouts:
        key = (bout.behavior, bout.recording.id, bout.annotator)
        counts[key] = counts.get(key, 0) + 1
        paths.append(folder / folders[bout.behavior] / f"{stems[bout.recording.id]}.{names[bout.annotator]}.{counts[key]:04d}.mp4")
    return paths


def _index_row(bout: SelectedBout, path: Path, folder: Path) -> list[str]:
    seconds = (f"{bout.start / bout.rate:.3f}", f"{bout.stop / bout.rate:.3f}")
    file = path.relative_to(folder).as_posix()
    return [file, bout.recording.id, bout.annotator, bout.behavior, bout.subject, bout.target, *seconds]


def _check_margin(margin: float) -> None:
    if not 0 <= margin < 3600:
        raise ParameterError(f"`margin` must be between 0 and 3600 seconds, got {margin:g}")
