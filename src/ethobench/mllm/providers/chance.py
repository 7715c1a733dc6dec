"""Answers that look at nothing: what guessing would score, by the same road as a model's answers."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

from ethobench.mllm.providers.base import Provider, ProviderError, register_provider
from ethobench.mllm.request import Reply, Request
from ethobench.mllm.task import format_time

KINDS = ("renewal", "random", "majority")
USUAL_SECONDS = 10.0


@register_provider("chance")
class Chance(Provider):
    """Guesses from the worked examples' bouts; without examples, all behaviors are equally likely and last about ten seconds.

    The model is how it guesses. ``renewal``: bouts drawn by the behaviors' counts, with lengths drawn from theirs;
    ``random``: each second drawn by the behaviors' shares of time; ``majority``: always the most frequent one.
    """

    title = "guesses without looking: renewal, random or majority (--model)"
    needs_video = False
    is_free = True
    uses_network = False

    def send(self, request: Request, folder: Path) -> Reply:
        """Guess."""
        kind = self.model or KINDS[0]
        if kind not in KINDS:
            raise ProviderError(f"chance guesses by {', '.join(KINDS)}, not {kind!r}")
        names, duration = list(request.hints["behaviors"]), request.window[1] - request.window[0]
        bouts: list[tuple[float, str]] = [tuple(bout) for bout in request.hints["bouts"]] or [(USUAL_SECONDS, name) for name in names]
        generator = np.random.default_rng([request.seed, zlib.crc32(f"{request.recording}|{request.window[0]:g}".encode())])
        shares = np.array([sum(length for length, label in bouts if label == name) for name in names])
        if kind == "majority":
            segments = [(0.0, duration, names[int(np.argmax(shares))])]
        elif kind == "random":
            drawn = generator.choice(len(names), int(np.ceil(duration)), p=shares / shares.sum())
            segments = [(float(k), min(k + 1.0, duration), names[code]) for k, code in enumerate(drawn)]
        else:
            segments = _renew(bouts, duration, generator)
        rows = [
            {"segment_number": k, "start_time": format_time(a, "seconds"), "end_time": format_time(b, "seconds"), "behavior": name}
            for k, (a, b, name) in enumerate(segments, start=1)
        ]
        return Reply(json.dumps({"segments": rows}), input_tokens=0, output_tokens=0, model=kind)


def _renew(bouts: list[tuple[float, str]], duration: float, generator: np.random.Generator) -> list[tuple[float, float, str]]:
    segments, at = [], 0.0
    while at < duration - 0.01:
        length, name = bouts[int(generator.integers(len(bouts)))]
        end = min(at + max(length, 0.05), duration)
        segments.append((at, end, name))
        at = end
    return segments
