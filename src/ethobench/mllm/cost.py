"""Cost of requests: a table of prices and limits, an estimate before anything is sent, and a budget that is never exceeded."""

from __future__ import annotations

import threading
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.core.messages import Message, Option
from ethobench.mllm.request import Reply, Request, Text

PRICE_FILE = Path(__file__).parent / "prices.toml"
CHARACTERS_PER_TOKEN = 3.0
SECONDS_PER_SEGMENT = 8.0
TOKENS_PER_SEGMENT = 45
THINKING_TOKENS = 1_500
OUTPUT_TOKENS_PER_SECOND = 80.0
PROCESSING_SECONDS_PER_VIDEO_MINUTE = 2.0
MILLION = 1e6


class BudgetError(EthobenchError):
    """The next request could exceed the maximum cost."""


class ModelSpec(BaseModel):
    """Prices (US dollars per million tokens) and limits of a model. ``prices.toml`` explains the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    date: str = ""
    source: str = ""
    input: float | None = Field(default=None, ge=0)
    output: float | None = Field(default=None, ge=0)
    long_from: int | None = None
    long_input: float | None = None
    long_output: float | None = None
    batch: float = 1.0
    frame_tokens: float = Field(default=300, ge=0)
    second_tokens: float = Field(default=0, ge=0)
    fps: float = Field(default=1.0, gt=0)
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int = 8_192
    inline_bytes: int = 10_000_000
    file_bytes: int = 2_000_000_000

    @property
    def is_priced(self) -> bool:
        """Whether the table has a price for the model."""
        return self.input is not None and self.output is not None

    def dollars(self, input_tokens: float, output_tokens: float, *, batch: bool = False) -> float | None:
        """Return the cost of a request in US dollars; None without a price."""
        if self.input is None or self.output is None:
            return None
        long = self.long_from is not None and input_tokens > self.long_from
        prices = (self.long_input or self.input, self.long_output or self.output) if long else (self.input, self.output)
        return (input_tokens * prices[0] + output_tokens * prices[1]) / MILLION * (self.batch if batch else 1.0)


class _PriceFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    model: list[ModelSpec] = []
    provider: list[ModelSpec] = []


class PriceTable:
    """The prices that come with the package, overridden by those of the user.

    Parameters
    ----------
    path : Path, optional
        A TOML file of the same form as ``prices.toml``.

    Attributes
    ----------
    models, providers : dict of str to ModelSpec
        Entries by name. Those of a provider apply to its models that are not listed.
    """

    def __init__(self, path: Path | None = None) -> None:
        tables = [_read_prices(PRICE_FILE), *([_read_prices(path)] if path is not None else [])]
        self.models = {spec.name: spec for table in tables for spec in table.model}
        self.providers = {spec.name: spec for table in tables for spec in table.provider}

    def lookup(self, provider: str, model: str) -> ModelSpec:
        """Return the entry of a model: by its name, by the longest name it starts with, or else that of its provider."""
        matching = [name for name in self.models if model == name or model.startswith((f"{name}-", f"{name}@"))]
        if matching:
            return self.models[max(matching, key=len)]
        return self.providers.get(provider, ModelSpec(name=provider)).model_copy(update={"name": model or provider})


def _read_prices(path: Path) -> _PriceFile:
    try:
        return _PriceFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise FormatError(path, "no such price file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(path, f"not valid TOML ({error})") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise FormatError(path, first["msg"].lower(), ".".join(map(str, first["loc"]))) from None


@dataclass(frozen=True)
class CostEstimate:
    """Estimated cost and duration of requests.

    Attributes
    ----------
    requests : int
        Number of requests.
    input_tokens, output_tokens : int
        Expected number of tokens.
    dollars : float, optional
        Expected cost in US dollars; None without a price.
    max_dollars : float, optional
        Cost if every answer has its maximum length.
    minutes : float
        Expected duration if requests are sent one after the other.
    """

    requests: int
    input_tokens: int
    output_tokens: int
    dollars: float | None
    max_dollars: float | None
    minutes: float


def estimate_cost(requests: Iterable[Request], spec: ModelSpec, *, batch: bool = False) -> CostEstimate:
    """Estimate cost and duration of requests. Input tokens are overestimated, so that a budget is not exceeded.

    Parameters
    ----------
    requests : iterable of Request
    spec : ModelSpec
    batch : bool
        Whether the batch discount applies.
    """
    count = total_input = total_output = 0
    dollars, max_dollars, seconds = 0.0, 0.0, 0.0
    for request in requests:
        video_seconds = sum(clip.duration for clip in request.clips)
        characters = sum(len(item.text) for item in request.parts if isinstance(item, Text)) + len(request.system)
        video_tokens = sum(_clip_tokens(clip.duration, clip.fps, spec) for clip in request.clips)
        input_tokens = int(characters / CHARACTERS_PER_TOKEN) + int(video_tokens)
        window_seconds = request.window[1] - request.window[0] or video_seconds
        answer_tokens = int(THINKING_TOKENS + TOKENS_PER_SEGMENT * (1 + window_seconds / SECONDS_PER_SEGMENT))
        output_tokens = min(request.max_output_tokens, answer_tokens)
        count, total_input, total_output = count + 1, total_input + input_tokens, total_output + output_tokens
        dollars += spec.dollars(input_tokens, output_tokens, batch=batch) or 0.0
        max_dollars += spec.dollars(input_tokens, request.max_output_tokens, batch=batch) or 0.0
        seconds += output_tokens / OUTPUT_TOKENS_PER_SECOND + video_seconds / 60 * PROCESSING_SECONDS_PER_VIDEO_MINUTE
    priced = spec.is_priced
    return CostEstimate(count, total_input, total_output, dollars if priced else None, max_dollars if priced else None, seconds / 60)


def reply_cost(reply: Reply, spec: ModelSpec, *, batch: bool = False) -> float | None:
    """Return the cost of a reply in US dollars; None if its tokens or the price are unknown."""
    if reply.input_tokens is None or reply.output_tokens is None:
        return None
    return spec.dollars(reply.input_tokens, reply.output_tokens, batch=batch)


def _clip_tokens(duration: float, fps: float | None, spec: ModelSpec) -> float:
    return duration * ((fps or spec.fps) * spec.frame_tokens + spec.second_tokens)


class Budget:
    """A limit on the total cost. A request is sent only if its maximum cost fits into the remaining budget.

    Parameters
    ----------
    limit : float, optional
        Maximum total in US dollars. Without a limit, the total is still counted.

    Attributes
    ----------
    spent : float
        US dollars spent so far.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit, self.spent = limit, 0.0
        self._reserved = 0.0
        self._changed = threading.Condition()

    def reserve(self, amount: float | None) -> float:
        """Reserve the maximum cost of a request. Waits while requests of other threads may still free reserved money.

        Parameters
        ----------
        amount : float, optional
            US dollars; None if the price is unknown.

        Raises
        ------
        BudgetError
            If the amount does not fit, or there is a limit and the price is unknown.
        """
        if self.limit is None:
            return amount or 0.0
        if amount is None:
            message = "the maximum cost cannot be checked, since this model has no price; add one with "
            raise BudgetError(Message(message, Option("prices")))
        with self._changed:
            while self.spent + self._reserved + amount > self.limit + 1e-12:
                if self._reserved <= 0:
                    remaining = self.limit - self.spent
                    raise BudgetError(
                        f"stopped before the maximum cost of ${self.limit:.2f}: "
                        f"the next request may cost up to ${amount:.4f}, and ${remaining:.4f} remains"
                    )
                self._changed.wait()
            self._reserved += amount
        return amount

    def settle(self, reserved: float, spent: float | None) -> None:
        """Release a reserved amount and add the actual cost; an unknown cost (None) counts as the reserved amount."""
        with self._changed:
            if self.limit is not None:
                self._reserved = max(0.0, self._reserved - reserved)
            self.spent += reserved if spent is None else spent
            self._changed.notify_all()
