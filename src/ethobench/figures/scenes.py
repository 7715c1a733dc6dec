"""Pictures of a recording: its video or a plain ground, with poses, labels, time, and a strip of the labels below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethobench.core import Annotation, Poses, Recording
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.intervals import IntArray
from ethobench.core.video import Camera, Pictures, probe
from ethobench.datasets.frame_times import FrameTimes, camera_times, frame_times
from ethobench.figures.colors import ANIMALS, Color, behavior_colors, rgb
from ethobench.figures.skeletons import arena, bones
from ethobench.figures.text_drawing import INK, PADDING, clock_text, dim, fit_text, font_for, missing_characters, text_size

GROUND = (22, 25, 30)
LANE = (42, 47, 54)
UNOBSERVED = (66, 72, 80)
MUTED = (164, 171, 180)
PLAYHEAD = (255, 255, 255)
MAX_LANES = 8
MAX_LABELS = 8
MAX_SAMPLES = 20_000  # frames from which skeleton and arena are estimated
MIN_HEIGHT, MAX_HEIGHT = 64, 2160
MAX_RATE = 60.0  # pictures per second of a clip
SUPERSAMPLING = 2
MIN_CONFIDENCE = 0.05
PLAIN_HEIGHT = 480
NO_PICTURE = "no video at this time"
DOT = "●"


@dataclass(frozen=True)
class ClipStyle:
    """What is drawn on the pictures of a clip.

    Attributes
    ----------
    poses : bool
        Draw keypoints and skeletons over the video. Recordings without a video always show them.
    labels : bool
        Draw the names of the behaviors, and a strip of the labels of all annotators below the picture.
    time : bool
        Draw time and frame.
    height : int
        Maximum height of the picture in pixels; videos are never enlarged.

    Examples
    --------
    >>> ClipStyle(poses=True, height=360)
    ClipStyle(poses=True, labels=True, time=True, height=360)
    """

    poses: bool = False
    labels: bool = True
    time: bool = True
    height: int = 720

    def __post_init__(self) -> None:
        if not MIN_HEIGHT <= self.height <= MAX_HEIGHT:
            raise ParameterError(f"`height` must be between {MIN_HEIGHT} and {MAX_HEIGHT} pixels, got {self.height}")


@dataclass(frozen=True)
class Lane:
    """The bouts of one annotator and one subject, to find those in a range of frames quickly."""

    annotator: str
    subject: str
    annotation: Annotation

    @cached_property
    def reach(self) -> IntArray:
        """Return the latest stop of all bouts up to each."""
        return np.maximum.accumulate(self.annotation.stop) if len(self.annotation) else self.annotation.stop

    @cached_property
    def unobserved(self) -> iv.Intervals:
        """Return the frames that were not observed."""
        a = self.annotation
        return iv.complement(a.observed.of_all(a.ethogram.names, self.subject or None), a.n_frames)

    def between(self, first: int, last: int) -> IntArray:
        """Return the indices of the bouts that overlap with frames, without those of the background."""
        a = self.annotation
        candidates = np.arange(np.searchsorted(self.reach, first, "left"), np.searchsorted(a.start, last, "right"))
        is_point = a.start[candidates] == a.stop[candidates]
        overlaps = np.where(is_point, a.start[candidates] >= first, a.stop[candidates] > first) & (a.start[candidates] < last)
        background = -1 if a.ethogram.background is None else a.ethogram.background
        return np.asarray(candidates[overlaps & (a.behavior[candidates] != background)], dtype=np.int64)


class Scene:
    """Draws the frames of a recording.

    Parameters
    ----------
    recording : Recording
        With a video, or with poses.
    annotators : sequence of str, optional
        The annotators whose labels are drawn; all by default.
    style : ClipStyle
    colors : mapping of str to color, optional
        By behavior, if several recordings are to have the same colors.
    camera : int
        Number of the camera.

    Attributes
    ----------
    rate : float
        Pictures per second: the frame rate of the recording or, if lower, that of the video; at most 60.
    size : tuple of int
        Width and height of the pictures, including the strip of labels.
    notes : list of str
        Problems of the video; complete once all pictures were drawn.

    Raises
    ------
    EthobenchError
        If there is neither a video nor poses.
    FormatError
        If the video cannot be read.
    """

    def __init__(
        self,
        recording: Recording,
        annotators: Sequence[str] | None = None,
        style: ClipStyle | None = None,
        colors: Mapping[str, Color] | None = None,
        camera: int = 0,
    ) -> None:
        self.recording, self.style = recording, style or ClipStyle()
        self.notes: list[str] = []
        self.frame_rate = float(recording.rate or 0)
        if not self.frame_rate:
            raise EthobenchError(f"recording {recording.id!r} has no frame rate")
        names = [*recording.annotations] if annotators is None else [name for name in annotators if name in recording.annotations]
        self.annotations = {name: recording.annotations[name] for name in names}
        self.colors = dict(colors) if colors is not None else behavior_colors(self.annotations.values())
        self.camera = _readable_camera(recording, camera)
        self.poses = recording.signals if isinstance(recording.signals, Poses) else None
        self._times = FrameTimes(self.frame_rate)
        self.rate = self.frame_rate
        if self.camera is not None:
            video = probe(self.camera.path)
            self._times = frame_times(recording)
            self.rate = min(self.frame_rate, video.rate) if self._times.times is None else self.frame_rate
            scale = min(1.0, self.style.height / video.height)
            self._placement = (0.0, 0.0, scale)
            self.picture_size = (_even(video.width * scale), _even(video.height * scale))
        elif self.poses is not None:
            self._placement, self.picture_size = self._plain_ground(self.poses, min(self.style.height, PLAIN_HEIGHT))
        else:
            raise EthobenchError(f"recording {recording.id!r} has neither a video nor poses, so there is nothing to show")
        self.rate = min(self.rate, MAX_RATE)
        self.font_size = int(np.clip(self.picture_size[1] / 30, 10, 28))
        self.lanes = self._lanes() if self.style.labels else []
        self.lane_height = max(round(self.font_size * 1.1), 12)
        strip = len(self.lanes) * (self.lane_height + 3) + 3 if self.lanes else 0
        self.size = (self.picture_size[0], self.picture_size[1] + _even(strip))
        self._strip: tuple[tuple[int, int], Any] | None = None
        self._note_missing_characters()

    @property
    def n_frames(self) -> int:
        """Return the length of the recording in frames."""
        lengths = [a.n_frames for a in self.annotations.values()]
        return self.recording.n_frames or (len(self.poses) if self.poses is not None else max(lengths, default=0))

    def frames(self, start: int, stop: int) -> IntArray:
        """Return the frames of the recording that the pictures of a clip show."""
        count = max(round((stop - start) / self.frame_rate * self.rate), 1)
        steps = np.floor(np.arange(count) * self.frame_rate / self.rate + 1e-6).astype(np.int64)
        return np.asarray(np.minimum(start + steps, max(stop - 1, start)), dtype=np.int64)

    def keypoint_pixels(self, frames: IntArray, individual: str | None = None) -> NDArray[np.float64]:
        """Return where the keypoints of all animals, or of one, are in the pictures: (n, 2) in pixels, without missing ones."""
        if self.poses is None:
            return np.zeros((0, 2))
        frames = frames[frames < len(self.poses)]
        names = [*self.poses.individuals]
        chosen = [names.index(individual)] if individual in names else list(range(len(names)))
        x, y, scale = self._placement
        points = (np.asarray(self.poses.positions[frames][:, chosen, :, :2], dtype=np.float64) - (x, y)) * scale
        points[np.nan_to_num(self.poses.confidence[frames][:, chosen], nan=1.0) < MIN_CONFIDENCE] = np.nan
        points = points.reshape(-1, 2)
        return np.asarray(points[np.isfinite(points).all(axis=1)])

    def draw(self, frames: IntArray, *, bout: tuple[int, int, Color] | None = None, window: float | None = None) -> Iterator[Any]:
        """Draw frames of the recording, in increasing order.

        Parameters
        ----------
        frames : array of int
        bout : tuple of (start, stop, color), optional
            A bout that is marked by a border.
        window : float, optional
            Seconds that the strip of labels covers, around the current frame. Default: from the first to the last frame.

        Yields
        ------
        PIL.Image.Image
            RGB, of size `size`.
        """
        first, last = int(frames[0]), int(frames[-1]) + 1
        for frame, picture in zip(frames.tolist(), self._pictures(frames), strict=True):
            image = self._ground(picture)
            if self.poses is not None and (self.style.poses or picture is None) and frame < len(self.poses):
                self._draw_poses(image, frame)
            if bout is not None and (bout[0] <= frame < bout[1] or frame == bout[0]):
                _draw_border(image, self.picture_size, bout[2])
            if self.style.labels:
                self._draw_labels(image, frame)
            if self.style.time:
                self._draw_time(image, frame)
            if self.lanes:
                half = 0 if window is None else max(round(window * self.frame_rate / 2), 1)
                self._draw_strip(image, frame, (first, last) if window is None else (frame - half, frame + half))
            yield image

    def _pictures(self, frames: IntArray) -> Iterator[Any]:
        """Yield the picture of each frame as a PIL image; None where the video has none."""
        if self.camera is None:
            yield from (None for _ in frames)
            return
        pictures, missing = Pictures(self.camera.path), 0
        width, height = self.picture_size
        for picture in pictures.at(camera_times(self._times, self.camera, frames).tolist()):
            missing += picture is None
            yield None if picture is None else picture.reformat(width=width, height=height, format="rgb24").to_image()
        if missing:
            seconds = missing / self.rate
            self.notes.append(
                f"{self.camera.path.name} has no picture for {seconds:.1f} s of {self.recording.id!r}; is it shorter than the labels?"
            )
        if pictures.damaged:
            self.notes.append(f"{self.camera.path.name} is damaged: {pictures.damaged} packets were skipped")

    def _ground(self, picture: Any) -> Any:
        from PIL import Image, ImageDraw

        image = Image.new("RGB", self.size, GROUND)
        if picture is not None:
            image.paste(picture, (0, 0))
        elif self.camera is not None:
            draw = ImageDraw.Draw(image)
            draw.text((PADDING, self.picture_size[1] - 2 * self.font_size), NO_PICTURE, MUTED, font_for(NO_PICTURE, self.font_size))
        return image

    def _plain_ground(self, poses: Poses, height: int) -> tuple[tuple[float, float, float], tuple[int, int]]:
        """Return the placement of coordinates (x and y of the origin, scale) and the size of a picture that shows the arena."""
        left, top, right, bottom = arena(self._sample(poses))
        margin = 0.06 * max(right - left, bottom - top, 1e-6)
        width, high = right - left + 2 * margin, bottom - top + 2 * margin
        scale = min(height / high, 2 * height / width)
        return (left - margin, top - margin, scale), (_even(max(width * scale, MIN_HEIGHT)), _even(max(high * scale, MIN_HEIGHT)))

    def _sample(self, poses: Poses) -> NDArray[np.float64]:
        return np.asarray(poses.positions[:: max(len(poses) // MAX_SAMPLES, 1), ..., :2], dtype=np.float64)

    @cached_property
    def _bones(self) -> list[list[int]]:
        return [] if self.poses is None else bones(self._sample(self.poses))

    def _draw_poses(self, image: Any, frame: int) -> None:
        """Draw keypoints and skeletons, at twice the resolution and then reduced, so that lines are smooth."""
        from PIL import Image, ImageDraw

        poses = self.poses
        if poses is None:
            return
        x, y, scale = self._placement
        points = (np.asarray(poses.positions[frame, ..., :2], dtype=np.float64) - (x, y)) * scale
        confidence = np.asarray(poses.confidence[frame], dtype=np.float64)
        points[np.nan_to_num(confidence, nan=1.0) < MIN_CONFIDENCE] = np.nan
        visible = np.isfinite(points).all(axis=-1)
        inside = np.asarray(visible & (points > -50).all(axis=-1) & (points < np.add(self.picture_size, 50)).all(axis=-1))
        if not inside.any():
            return
        radius = max(self.picture_size[1] / 180, 1.5)
        pad = int(radius * 3) + 2
        low = np.maximum(np.floor(points[inside].min(axis=0)).astype(int) - pad, 0)
        high = np.minimum(np.ceil(points[inside].max(axis=0)).astype(int) + pad, self.picture_size)
        if (high <= low).any():
            return
        n = SUPERSAMPLING
        layer = Image.new("RGBA", tuple((n * (high - low)).tolist()))
        draw = ImageDraw.Draw(layer)
        for animal in range(len(poses.individuals)):
            color = rgb(ANIMALS[animal % len(ANIMALS)])
            at = [tuple(((point - low) * n).tolist()) if ok else () for point, ok in zip(points[animal], inside[animal], strict=True)]
            for a, b in self._bones:
                if at[a] and at[b]:
                    draw.line([at[a], at[b]], (*color, 215), width=max(round(radius * n * 0.9), 1))
            for k, point in enumerate(at):
                if point:
                    r = radius * n * (1.5 if k == 0 else 1.0)
                    ring = r + n * 0.6
                    draw.ellipse([point[0] - ring, point[1] - ring, point[0] + ring, point[1] + ring], (12, 14, 18, 200))
                    draw.ellipse([point[0] - r, point[1] - r, point[0] + r, point[1] + r], (*color, 255))
        layer = layer.reduce(n)
        image.paste(layer, tuple(low.tolist()), layer)

    def _lanes(self) -> list[Lane]:
        lanes = []
        for name, annotation in self.annotations.items():
            subjects = sorted({int(code) for code in annotation.subject})
            for code in subjects or [-1]:
                subject = "" if code < 0 else annotation.subjects[code]
                chosen = annotation.take(np.flatnonzero(annotation.subject == code)) if len(subjects) > 1 else annotation
                lanes.append(Lane(name, subject, chosen))
        if len(lanes) > MAX_LANES:
            self.notes.append(
                f"{self.recording.id!r}: labels of {len(lanes)} annotators and subjects; the strip shows the first {MAX_LANES}"
            )
        return lanes[:MAX_LANES]

    def _note_missing_characters(self) -> None:
        texts = [text for lane in self.lanes for text in (lane.annotator, lane.subject, *lane.annotation.ethogram.names)]
        missing = missing_characters(texts)
        if missing:
            self.notes.append(f"no font of this machine has the characters {missing[:20]!r}; they are drawn as boxes")

    def _draw_labels(self, image: Any, frame: int) -> None:
        """Draw the behaviors at a frame into the upper left corner."""
        from PIL import ImageDraw

        rows = []
        for lane in self.lanes:
            a = lane.annotation
            for i in lane.between(frame, frame + 1)[:MAX_LABELS]:
                behavior, target = a.ethogram[int(a.behavior[i])].name, a.names(a.target[[i]])[0]
                animals = lane.subject + (f" → {target}" if target else "")
                text = " · ".join(text for text in (lane.annotator if len(self.annotations) > 1 else "", animals, behavior) if text)
                rows.append((self.colors.get(behavior, MUTED), text))
        if not rows:
            return
        size, (width, _) = self.font_size, self.picture_size
        rows = [(color, fit_text(text, size, width - 4 * PADDING - size)) for color, text in rows[:MAX_LABELS]]
        line = text_size("", size)[1]
        right = max(text_size(text, size)[0] for _, text in rows) + size + 3 * PADDING
        dim(image, (0, 0, right, len(rows) * line + 2 * PADDING))
        draw = ImageDraw.Draw(image)
        for number, (color, text) in enumerate(rows):
            y = PADDING + number * line
            draw.text((PADDING, y + line / 2), DOT, color, font_for(DOT, size), anchor="lm")
            draw.text((2 * PADDING + text_size(DOT, size)[0], y + line / 2), text, INK, font_for(text, size), anchor="lm")

    def _draw_time(self, image: Any, frame: int) -> None:
        """Draw time and frame into the lower right corner of the picture."""
        from PIL import ImageDraw

        size, (width, height) = self.font_size, self.picture_size
        text = f"{clock_text(frame / self.frame_rate)}  frame {frame}"
        wide, high = text_size(text, size)
        dim(image, (width - wide - 2 * PADDING, height - high - PADDING, width, height))
        draw = ImageDraw.Draw(image)
        draw.text((width - PADDING, height - (high + PADDING) / 2), text, INK, font_for(text, size), anchor="rm")

    def _draw_strip(self, image: Any, frame: int, window: tuple[int, int]) -> None:
        """Draw the labels of a range of frames below the picture, and the playhead."""
        from PIL import ImageDraw

        if self._strip is None or self._strip[0] != window:
            self._strip = (window, self._make_strip(window))
        image.paste(self._strip[1], (0, self.picture_size[1]))
        gutter = self._gutter
        x = gutter + (frame + 0.5 - window[0]) / max(window[1] - window[0], 1) * (self.size[0] - gutter - PADDING)
        draw = ImageDraw.Draw(image)
        draw.rectangle([round(x) - 1, self.picture_size[1] + 1, round(x), self.size[1] - 2], PLAYHEAD)

    @cached_property
    def _gutter(self) -> int:
        """Return the width of the column with the names of annotators and subjects."""
        wide = max((text_size(self._lane_name(lane), self._small)[0] for lane in self.lanes), default=0)
        return min(wide, round(self.size[0] * 0.3)) + 2 * PADDING if wide else PADDING

    @property
    def _small(self) -> int:
        return max(round(self.font_size * 0.85), 9)

    def _lane_name(self, lane: Lane) -> str:
        annotator = lane.annotator if len(self.annotations) > 1 or not lane.subject else ""
        return " ".join(text for text in (annotator, lane.subject) if text)

    def _make_strip(self, window: tuple[int, int]) -> Any:
        from PIL import Image, ImageDraw

        (first, last), gutter, size = window, self._gutter, self._small
        right = self.size[0] - PADDING
        strip = Image.new("RGB", (self.size[0], self.size[1] - self.picture_size[1]), GROUND)
        draw = ImageDraw.Draw(strip)

        def x(at: float) -> float:
            return gutter + (min(max(at, first), last) - first) / max(last - first, 1) * (right - gutter)

        for number, lane in enumerate(self.lanes):
            top = 3 + number * (self.lane_height + 3)
            bottom = top + self.lane_height - 1
            name = fit_text(self._lane_name(lane), size, gutter - 2 * PADDING)
            draw.text((PADDING, (top + bottom) / 2), name, MUTED, font_for(name, size), anchor="lm")
            if x(self.n_frames) > x(0):
                draw.rectangle([x(0), top, x(self.n_frames), bottom], LANE)
            for start, stop in zip(*iv.clip(lane.unobserved, max(first, 0), max(last, 1)), strict=True):
                draw.rectangle([x(start), (top + bottom) // 2, x(stop), (top + bottom) // 2 + 1], UNOBSERVED)
            a = lane.annotation
            for i in lane.between(first, last):
                color = self.colors.get(a.ethogram[int(a.behavior[i])].name, MUTED)
                begin, end = x(float(a.start[i])), x(float(a.stop[i]))
                draw.rectangle([begin, top, max(end - 1, begin + 1), bottom], color)
        return strip


def _draw_border(image: Any, size: tuple[int, int], color: Color) -> None:
    from PIL import ImageDraw

    ImageDraw.Draw(image).rectangle([0, 0, size[0] - 1, size[1] - 1], outline=color, width=max(size[1] // 120, 2))


def _readable_camera(recording: Recording, number: int) -> Camera | None:
    """Return a camera of a recording; None if the recording has no video file."""
    if not 0 <= number < max(len(recording.cameras), 1):
        raise ParameterError(f"recording {recording.id!r} has {len(recording.cameras)} cameras, so there is no camera {number}")
    camera = recording.cameras[number] if recording.cameras else None
    return camera if camera is not None and camera.path.is_file() else None


def _even(length: float) -> int:
    """Round to an even number of pixels, as most codecs require."""
    return max(2 * round(length / 2), 0)
