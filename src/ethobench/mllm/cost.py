"""What questions cost: a dated table of prices and limits, an estimate before anything is sent, and a budget that holds."""

from __future__ import annotations

import threading
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ethobench.core.errors import EthobenchError, FormatError
from ethobench.mllm.request import Reply, Request, Text

TABLE = Path(__file__).parent / "prices.toml"
CHARACTERS_PER_TOKEN = 3.0
SECONDS_PER_SEGMENT = 8.0
TOKENS_PER_SEGMENT = 45
THINKING_TOKENS = 1_500
TOKENS_PER_SECOND = 80.0
SECONDS_PER_VIDEO_MINUTE = 2.0
MILLION = 1e6


class BudgetError(EthobenchError):
    """The next question might cost more than is left."""


class ModelSpec(BaseModel):
    """What a model costs (dollars for a million tokens) and takes; fields as told in ``prices.toml``."""

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
        """Whether a price is known."""
        return self.input is not None and self.output is not None

    def dollars(self, input_tokens: float, output_tokens: float, *, batch: bool = False) -> float | None:
        """Return what tokens cost; None where no price is known."""
        if self.input is None or self.output is None:
            return None
        long = self.long_from is not None and input_tokens > self.long_from
        prices = (self.long_input or self.input, self.long_output or self.output) if long else (self.input, self.output)
        return (input_tokens * prices[0] + output_tokens * prices[1]) / MILLION * (self.batch if batch else 1.0)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")
    model: list[ModelSpec] = []
    provider: list[ModelSpec] = []


class PriceTable:
    """The table that comes with the package, with the user's entries in front.

    Parameters
    ----------
    own : Path, optional
        A TOML file in the form of ``prices.toml``.
    """

    def __init__(self, own: Path | None = None) -> None:
        tables = [_read(TABLE), *([_read(own)] if own is not None else [])]
        self._models = {spec.name: spec for table in tables for spec in table.model}
        self._providers = {spec.name: spec for table in tables for spec in table.provider}

    def lookup(self, provider: str, model: str) -> ModelSpec:
        """Return what is known of a model: by its name, by the longest name that it begins with, or by its provider."""
        fitting = [name for name in self._models if model == name or model.startswith((f"{name}-", f"{name}@"))]
        if fitting:
            return self._models[max(fitting, key=len)]
        return self._providers.get(provider, ModelSpec(name=provider)).model_copy(update={"name": model or provider})


def _read(path: Path) -> _Table:
    try:
        return _Table.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise FormatError(path, "there is no such table of prices") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(path, f"this is not valid TOML ({error})") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise FormatError(path, first["msg"].lower(), ".".join(map(str, first["loc"]))) from None


@dataclass(frozen=True)
class Estimate:
    """What questions are expected to take.

    Attributes
    ----------
    questions : int
    input_tokens, output_tokens : int
        Expected.
    dollars : float, optional
        Expected; None where no price is known.
    most : float, optional
        Dollars if every answer were as long as it may be.
    minutes : float
        For one question at a time.
    """

    questions: int
    input_tokens: int
    output_tokens: int
    dollars: float | None
    most: float | None
    minutes: float


def estimate(requests: Iterable[Request], spec: ModelSpec, *, batch: bool = False) -> Estimate:
    """Estimate what questions will take; input is counted generously, since a budget must hold."""
    count = tokens_in = tokens_out = 0
    dollars, most, seconds = 0.0, 0.0, 0.0
    for request in requests:
        video = sum(clip.duration for clip in request.clips)
        told = sum(len(part.text) for part in request.parts if isinstance(part, Text)) + len(request.system)
        given = int(told / CHARACTERS_PER_TOKEN) + int(sum(_clip_tokens(clip.duration, clip.fps, spec) for clip in request.clips))
        asked = request.window[1] - request.window[0] or video
        expected = min(request.max_output_tokens, int(THINKING_TOKENS + TOKENS_PER_SEGMENT * (1 + asked / SECONDS_PER_SEGMENT)))
        count, tokens_in, tokens_out = count + 1, tokens_in + given, tokens_out + expected
        dollars += spec.dollars(given, expected, batch=batch) or 0.0
        most += spec.dollars(given, request.max_output_tokens, batch=batch) or 0.0
        seconds += expected / TOKENS_PER_SECOND + video / 60 * SECONDS_PER_VIDEO_MINUTE
    priced = spec.is_priced
    return Estimate(count, tokens_in, tokens_out, dollars if priced else None, most if priced else None, seconds / 60)


def reply_cost(reply: Reply, spec: ModelSpec, *, batch: bool = False) -> float | None:
    """Return what an answer cost; None where the tokens or the price are not known."""
    if reply.input_tokens is None or reply.output_tokens is None:
        return None
    return spec.dollars(reply.input_tokens, reply.output_tokens, batch=batch)


def _clip_tokens(duration: float, fps: float | None, spec: ModelSpec) -> float:
    return duration * ((fps or spec.fps) * spec.frame_tokens + spec.second_tokens)


class Budget:
    """Dollars that may be spent; a question is sent only if the most it can cost is left.

    Parameters
    ----------
    limit : float, optional
        None: no limit, the sum is kept all the same.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit, self.spent = limit, 0.0
        self._reserved = 0.0
        self._changed = threading.Condition()

    def reserve(self, amount: float | None) -> float:
        """Put the most that a question can cost aside; wait for others to be settled where that may make room.

        Raises
        ------
        BudgetError
            If it cannot fit, or no price is known while there is a limit.
        """
        if self.limit is None:
            return amount or 0.0
        if amount is None:
            raise BudgetError("no price is known for this model, so a limit cannot be kept; give one with --prices")
        with self._changed:
            while self.spent + self._reserved + amount > self.limit + 1e-12:
                if self._reserved <= 0:
                    left = self.limit - self.spent
                    told = f"the next question may cost up to ${amount:.4f}, and ${left:.4f} of ${self.limit:.2f} is left"
                    raise BudgetError(f"stopped before the limit: {told}")
                self._changed.wait()
            self._reserved += amount
        return amount

    def settle(self, reserved: float, spent: float | None) -> None:
        """Give back what was put aside, and count what was spent; what is not known counts in full."""
        with self._changed:
            if self.limit is not None:
                self._reserved = max(0.0, self._reserved - reserved)
            self.spent += reserved if spent is None else spent
            self._changed.notify_all()
