"""From the text that a model answers to an annotation, with an account of everything that had to be mended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ethobench.core import Annotation, Ethogram, Observed
from ethobench.core import intervals as iv
from ethobench.core.errors import EthobenchError, Note
from ethobench.formats.bouts import SECONDS_RATE
from ethobench.mllm.fields import Labels
from ethobench.mllm.find_json import MAX_CHARS, find_json
from ethobench.mllm.ledger import Ledger, shorten
from ethobench.mllm.mend import mend
from ethobench.mllm.shapes import MAX_SEGMENTS, segments_of


@dataclass(frozen=True)
class Answer:
    """What a model's answer says.

    Attributes
    ----------
    annotation : Annotation
        Without bouts, and with nothing observed, where the answer could not be read.
    repairs : dict of str to int
        How often what was mended, by kind; empty for a well-formed answer.
    failed : bool
        Whether nothing could be made of the answer.
    reason : str
        Why it failed.
    notes : tuple of Note
        The repairs in words.
    """

    annotation: Annotation
    repairs: Mapping[str, int] = field(default_factory=dict)
    failed: bool = False
    reason: str = ""
    notes: tuple[Note, ...] = ()


def parse_answer(
    text: str,
    ethogram: Ethogram | Iterable[str],
    duration: float = 180,
    rate: float = SECONDS_RATE,
    *,
    aliases: Mapping[str, str] | None = None,
    exclusive: bool = True,
    truncated: bool = False,
) -> Answer:
    r"""Read a language model's answer; mend what can be mended and tell what was.

    Any text at all is parsed or refused in bounded time and memory. Nothing in it is executed or taken for a path.

    Parameters
    ----------
    text : str
        The answer as it came.
    ethogram : Ethogram or iterable of str
        The behaviors that were asked for.
    duration : float
        Length of the video in seconds.
    rate : float
        Frames per second of the annotation's clock.
    aliases : mapping of str to str, optional
        Other words for behaviors.
    exclusive : bool
        One behavior at a time: where segments overlap, the one listed first keeps the time.
    truncated : bool
        Whether the model is known to have been stopped; what follows the last segment is then not observed.

    Examples
    --------
    >>> text = 'Sure! ```json\n{"segments": [{"start_time": "00:05", "end_long_time": "00:09", "behavior": "Grooming"}]}```'
    >>> answer = parse_answer(text, Ethogram(["grooming", "other"], "other"), duration=60, rate=1)
    >>> answer.failed, answer.repairs, answer.annotation.start.tolist(), answer.annotation.stop.tolist()
    (False, {'fence': 1, 'prose': 1, 'key': 1, 'label': 1}, [5], [9])
    """
    if not isinstance(text, str):
        raise EthobenchError(f"an answer is text, not {type(text).__name__}")
    if not duration > 0 or not rate > 0:
        raise EthobenchError(f"a video has a length and a rate above zero, not {duration:g} s at {rate:g} Hz")
    ethogram = ethogram if isinstance(ethogram, Ethogram) else Ethogram(ethogram)
    n_frames = max(1, int(duration * rate + 0.5))
    ledger, labels = Ledger(), Labels(ethogram, aliases)

    def failure(reason: str) -> Answer:
        nothing = Annotation.from_bouts([], [], [], ethogram, rate, n_frames, observed=iv.empty())
        return Answer(nothing, ledger.by_kind(), True, reason, ledger.notes())

    if not text.strip():
        return failure("the answer is empty")
    if len(text) > MAX_CHARS:
        return failure(f"the answer has {len(text):,} characters; {MAX_CHARS:,} are read at most")
    values = find_json(text, ledger)
    if len(values) == 1 and isinstance(values[0], str):
        ledger.add("shape")
        values = find_json(values[0], ledger)
    if not values:
        return failure(f"there is no JSON in the answer; it begins {shorten(text.strip())}")
    segments = segments_of(values, labels, ledger)
    if segments is None:
        return failure(f"there are no segments in the answer; it begins {shorten(text.strip())}")
    if len(segments) > MAX_SEGMENTS:
        return failure(f"the answer has {len(segments):,} segments; {MAX_SEGMENTS:,} are read at most")
    bouts = mend(segments, labels, duration, rate, n_frames, ledger, exclusive=exclusive)
    cut = truncated or "truncated" in ledger.counts
    if cut and not segments:
        return failure("the answer breaks off before its first complete segment")
    if segments and not len(bouts.start):
        told = ", ".join(f"{kind} {count}" for kind, count in ledger.by_kind().items())
        return failure(f"none of the {len(segments)} segments can be used ({told})")
    observed = Observed.full(n_frames)
    if cut:
        ledger.add("truncated", count=int("truncated" not in ledger.counts))
        observed = Observed(iv.intervals([0], [int(bouts.stop.max())]))
    annotation = Annotation.from_bouts(
        bouts.start, bouts.stop, bouts.behavior, ethogram, rate, n_frames, order=bouts.order, observed=observed
    )
    return Answer(annotation, ledger.by_kind(), notes=ledger.notes())
