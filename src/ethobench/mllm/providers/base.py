"""The contract of a provider, and the registry of providers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ethobench.core.errors import EthobenchError
from ethobench.core.registry import Registry
from ethobench.mllm.cost import ModelSpec
from ethobench.mllm.request import Reply, Request

TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
HIDDEN = "***"
SHORTEST_SECRET = 8
TRANSFERS = ("auto", "inline", "upload")
RUNNING, DONE, FAILED_BATCH = "running", "done", "broken"


class ProviderError(EthobenchError):
    """A question was not answered.

    Attributes
    ----------
    transient : bool
        Whether asking again may help.
    after : float, optional
        Seconds that the provider asks to wait.
    billed : bool
        Whether it may have been charged all the same.
    """

    def __init__(self, message: str, *, transient: bool = False, after: float | None = None, billed: bool = False) -> None:
        super().__init__(" ".join(message.split()))
        self.transient, self.retry_after, self.billed = transient, after, billed


@dataclass(frozen=True)
class Access:
    """How a provider is reached.

    Attributes
    ----------
    base_url : str
        Another address than the provider's own.
    key_variable : str
        The environment variable that holds the key, where it is not the usual one.
    timeout : float
        Seconds after which a question counts as lost.
    poll : float
        Seconds between looks at an upload or a batch.
    send : {"auto", "inline", "upload"}
        Whether videos go with the question or are uploaded before; by their size unless told.
    answers : Path, optional
        For ``replay``: where the answers lie.
    """

    base_url: str = ""
    key_variable: str = ""
    timeout: float = 600.0
    poll: float = 5.0
    send: str = "auto"
    answers: Path | None = None

    def __post_init__(self) -> None:
        if self.send not in TRANSFERS:
            raise EthobenchError(f"videos are sent {', '.join(TRANSFERS)}, not {self.send!r}")


class Provider:
    """Somebody who answers questions; its name is the module's name.

    Attributes
    ----------
    title : str
        Who it is, in one line.
    forms : tuple of str
        How it can be shown a video: ``video``, ``frames``, ``link``; the first is its own choice.
    needs_video : bool
        Whether it looks at videos at all.
    is_free : bool
        Whether answers cost nothing and are not kept in the cache.
    can_batch : bool
        Whether it takes many questions in one file.
    uses_network : bool
        Whether questions leave this computer.
    default_host : str
        Where questions are sent, unless an address is given.
    base_url_variables : tuple of str
        Environment variables by which the provider's client takes another address.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    input_types: ClassVar[tuple[str, ...]] = ("video",)
    needs_video: ClassVar[bool] = True
    is_free: ClassVar[bool] = False
    can_batch: ClassVar[bool] = False
    uses_network: ClassVar[bool] = True
    default_host: ClassVar[str] = ""
    base_url_variables: ClassVar[tuple[str, ...]] = ()

    def __init__(self, model: str, access: Access, spec: ModelSpec) -> None:
        self.model, self.access, self.spec = model, access, spec
        self._secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"{self.identity}/{self.model}"

    @property
    def identity(self) -> str:
        """Who answers: part of every question's key."""
        return f"{self.name}@{self.access.base_url.rstrip('/')}" if self.access.base_url else self.name

    @property
    def host(self) -> str:
        """The host, and port if one is given, that questions are sent to."""
        addresses = (self.access.base_url, *(os.environ.get(name, "") for name in self.base_url_variables))
        address = next(filter(None, addresses), "")
        return urlsplit(address).netloc.rpartition("@")[2] or address or self.default_host or self.name

    @property
    def default_key_variables(self) -> tuple[str, ...]:
        """The environment variables that hold the key, unless another is named."""
        return ()

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The environment variables, the first of which that is set holds the key."""
        return (self.access.key_variable,) if self.access.key_variable else self.default_key_variables

    def send(self, request: Request, folder: Path) -> Reply:
        """Ask once; `folder` is for files that have to be made for it.

        Raises
        ------
        ProviderError
            Says whether asking again may help. Never holds a key.
        """
        raise NotImplementedError

    def batch_line(self, request: Request, folder: Path) -> str:
        """Return the line of a batch file that asks a question; videos are uploaded where needed."""
        raise NotImplementedError

    def submit_batch(self, lines: Path, label: str) -> str:
        """Hand a batch in and return its name."""
        raise NotImplementedError

    def find_batch(self, label: str) -> str | None:
        """Return the name of a batch that was handed in under a label."""
        raise NotImplementedError

    def batch_state(self, name: str) -> tuple[str, str]:
        """Return ``running``, ``done`` or ``broken``, and what the provider says of it."""
        raise NotImplementedError

    def batch_replies(self, name: str) -> Iterator[tuple[str, Reply | ProviderError]]:
        """Yield keys of questions and what came of them."""
        raise NotImplementedError

    def key(self, *, optional: bool = False) -> str:
        """Return the API key from the environment; it is taken out of everything that is told or kept from then on."""
        names = self.key_variables
        found = next((os.environ[name].strip() for name in names if os.environ.get(name, "").strip()), "")
        if not found and not optional:
            raise ProviderError(f"{self.name} needs a key in the environment variable {' or '.join(names)}")
        if len(found) >= SHORTEST_SECRET:  # local servers take any word, which may well occur in an answer
            self._secrets = (*self._secrets, found)
        return found

    def redact(self, value: Any) -> Any:
        """Take keys out of a text, or out of everything in a JSON value."""
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, HIDDEN)
            return value
        if isinstance(value, Mapping):
            return {self.redact(str(key)): self.redact(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.redact(item) for item in value]
        return value

    def http_error(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> ProviderError:
        """Make the error for an HTTP status."""
        if 300 <= status < 400:
            location = {key.lower(): value for key, value in (headers or {}).items()}.get("location")
            target = self.redact(location or "another address")
            return ProviderError(
                f"{self.name} answered {status}, a redirect to {target[:200]}; nothing was sent there: neither key nor video leaves for an "
                "address that you did not name. If it is the right one, give it as base_url"
            )
        told = self.redact(message)[:300]
        return ProviderError(f"{self.name} answered {status}: {told}", transient=status in TRANSIENT, after=retry_after(headers or {}))

    def connection_error(self, error: Exception) -> ProviderError:
        """Make the error for a connection that failed; the answer may have been on its way, and charged."""
        return ProviderError(f"{self.name}: {self.redact(str(error) or type(error).__name__)[:300]}", transient=True, billed=True)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how long a response asks to wait: in seconds, or until a date.

    >>> retry_after({"retry-after": "7"}), retry_after({})
    (7.0, None)
    """
    text = next((value for key, value in headers.items() if key.lower() == "retry-after"), "").strip()
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None


MODULES = {
    name: f"ethobench.mllm.providers.{name}"
    for name in (
        "chance",
        "gemini",
        "openai",
        "replay",
    )
}

providers: Registry[type[Provider]] = Registry("provider", MODULES, classes=True)
register_provider = providers.register


def transport_errors() -> tuple[type[Exception], ...]:
    """Return the classes of timeouts, broken connections and bodies that break off."""
    found: list[type[Exception]] = [ConnectionError, TimeoutError]
    for name in ("httpx", "httpx2"):
        try:
            found.append(import_module(name).TransportError)
        except ImportError:
            continue
    return tuple(found)
