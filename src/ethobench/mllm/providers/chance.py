"""Random answers: the score of guessing, computed in the same way as the score of a model."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

from ethobench.mllm.providers.base import Provider, ProviderError, register_provider
from ethobench.mllm.request import Reply, Request
from ethobench.mllm.task import format_time

KINDS = ("renewal", "random", "majority")
DEFAULT_BOUT_SECONDS = 10.0


@register_provider("chance")
class Chance(Provider):
    """Random answers from the distribution of bouts in the worked examples.

    Without examples, all behaviors are equally likely, in bouts of ten seconds. The model is the kind of guess. ``renewal``: bouts drawn
    with replacement from those of the examples; ``random``: each second drawn by the behaviors' shares of time; ``majority``: always
    the most frequent behavior.
    """

    title = "guesses without using the video: renewal, random or majority"
    needs_video = False
    is_free = True
    uses_network = False

    def send(self, request: Request, folder: Path) -> Reply:
        """Return a random answer."""
        kind = self.model or KINDS[0]
        if kind not in KINDS:
            raise ProviderError(f"the model of provider 'chance' must be one of {', '.join(KINDS)}, got {kind!r}")
        names, duration = list(request.hints["behaviors"]), request.window[1] - request.window[0]
        bouts: list[tuple[float, str]] = [tuple(bout) for bout in request.hints["bouts"]]
        bouts = bouts or [(DEFAULT_BOUT_SECONDS, name) for name in names]
        generator = np.random.default_rng([request.seed, zlib.crc32(f"{request.recording}|{request.window[0]:g}".encode())])
        shares = np.array([sum(length for length, label in bouts if label == name) for name in names])
        if kind == "majority":
            segments = [(0.0, duration, names[int(np.argmax(shares))])]
        elif kind == "random":
            codes = generator.choice(len(names), int(np.ceil(duration)), p=shares / shares.sum())
            segments = [(float(k), min(k + 1.0, duration), names[code]) for k, code in enumerate(codes)]
        else:
            segments = _draw_bouts(bouts, duration, generator)
        rows = [
            {"segment_number": k, "start_time": format_time(a, "seconds"), "end_time": format_time(b, "seconds"), "behavior": name}
            for k, (a, b, name) in enumerate(segments, start=1)
        ]
        return Reply(json.dumps({"segments": rows}), input_tokens=0, output_tokens=0, model=kind)


def _draw_bouts(bouts: list[tuple[float, str]], duration: float, generator: np.random.Generator) -> list[tuple[float, float, str]]:
    segments, start = [], 0.0
    while start < duration - 0.01:
        length, name = bouts[int(generator.integers(len(bouts)))]
        stop = min(start + max(length, 0.05), duration)
        segments.append((start, stop, name))
        start = stop
    return segments
