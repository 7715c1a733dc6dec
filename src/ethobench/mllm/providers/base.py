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

from ethobench.core.errors import EthobenchError, ParameterError
from ethobench.core.messages import Message, Option
from ethobench.core.registry import Registry
from ethobench.core.wording import join_names
from ethobench.mllm.cost import ModelSpec
from ethobench.mllm.request import Reply, Request

TRANSIENT_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
REDACTED = "***"
MIN_SECRET_CHARS = 8
TRANSFERS = ("auto", "inline", "upload")
SMALLER_VIDEO = Message("use a lower ", Option("height"), " or ", Option("fps"), ", or a ", Option("window"))
"""What to do if a video is too large to be sent."""

BATCH_RUNNING, BATCH_DONE, BATCH_FAILED = "running", "done", "failed"


class ProviderError(EthobenchError):
    """A request got no reply.

    Attributes
    ----------
    transient : bool
        Whether another attempt may succeed.
    retry_after : float, optional
        Seconds to wait that the provider requested.
    billed : bool
        Whether the request may have been billed nevertheless.
    """

    def __init__(self, message: str, *, transient: bool = False, retry_after: float | None = None, billed: bool = False) -> None:
        super().__init__(" ".join(message.split()))
        self.transient, self.retry_after, self.billed = transient, retry_after, billed


@dataclass(frozen=True)
class Access:
    """How a provider is accessed.

    Attributes
    ----------
    base_url : str
        URL of another server than the provider's.
    key_variable : str
        Environment variable that holds the API key, if not the provider's default.
    timeout : float
        Seconds to wait for a reply.
    poll : float
        Seconds between checks of an upload or a batch.
    transfer : {"auto", "inline", "upload"}
        Send videos within the request, or upload them first. "auto" decides by their size.
    answers : Path, optional
        For ``replay``: the folder or file of answers.
    """

    base_url: str = ""
    key_variable: str = ""
    timeout: float = 600.0
    poll: float = 5.0
    transfer: str = "auto"
    answers: Path | None = None

    def __post_init__(self) -> None:
        if self.transfer not in TRANSFERS:
            raise ParameterError(f"`transfer` must be one of {', '.join(TRANSFERS)}, got {self.transfer!r}")


class Provider:
    """A service that replies to requests. Subclasses implement `send`, and the batch methods if they support batches.

    Parameters
    ----------
    model : str
    access : Access
    spec : ModelSpec
        Prices and limits of the model.

    Attributes
    ----------
    title : str
        Description in one line.
    input_types : tuple of str
        Supported types of video input: ``video``, ``frames``, ``link``; the first is the default.
    needs_video : bool
        Whether the provider uses videos at all.
    is_free : bool
        Whether replies cost nothing. They are not cached then.
    can_batch : bool
        Whether the provider supports batches.
    uses_network : bool
        Whether requests leave this computer.
    default_host : str
        Host to which requests are sent, unless another URL is set.
    base_url_variables : tuple of str
        Environment variables from which the provider's client library takes another URL.

    Examples
    --------
    >>> from ethobench.mllm.providers import providers
    >>> providers["gemini"].input_types, providers["chance"].uses_network
    (('video', 'link'), False)
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
        """The provider and its server, as part of the key of each request."""
        return f"{self.name}@{self.access.base_url.rstrip('/')}" if self.access.base_url else self.name

    @property
    def host(self) -> str:
        """The host, with the port if there is one, to which requests are sent."""
        urls = (self.access.base_url, *(os.environ.get(name, "") for name in self.base_url_variables))
        url = next(filter(None, urls), "")
        return urlsplit(url).netloc.rpartition("@")[2] or url or self.default_host or self.name

    @property
    def default_key_variables(self) -> tuple[str, ...]:
        """Environment variables that may hold the API key."""
        return ()

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Environment variables for the API key; the first one that is set is used."""
        return (self.access.key_variable,) if self.access.key_variable else self.default_key_variables

    def send(self, request: Request, folder: Path) -> Reply:
        """Send a request once, without retries.

        Parameters
        ----------
        request : Request
        folder : Path
            For temporary files.

        Raises
        ------
        ProviderError
            If there is no reply. The message never contains a key.
        """
        raise NotImplementedError

    def batch_line(self, request: Request, folder: Path) -> str:
        """Return the line of a batch file for a request; large videos are uploaded here."""
        raise NotImplementedError

    def submit_batch(self, lines: Path, label: str) -> str:
        """Submit a batch file and return the name of the batch."""
        raise NotImplementedError

    def find_batch(self, label: str) -> str | None:
        """Return the name of the batch that was submitted with this label; None if there is none."""
        raise NotImplementedError

    def batch_state(self, name: str) -> tuple[str, str]:
        """Return ``running``, ``done`` or ``failed``, and the provider's description of the state."""
        raise NotImplementedError

    def batch_replies(self, name: str) -> Iterator[tuple[str, Reply | ProviderError]]:
        """Yield the key of each request in a batch, and its reply or error."""
        raise NotImplementedError

    def key(self, *, optional: bool = False) -> str:
        """Return the API key from the environment. From then on it is redacted from everything that is printed or stored."""
        names = self.key_variables
        key = next((os.environ[name].strip() for name in names if os.environ.get(name, "").strip()), "")
        if not key and not optional:
            raise ProviderError(f"{self.name} needs an API key in the environment variable {join_names(names, 'or')}")
        if len(key) >= MIN_SECRET_CHARS:  # local servers accept any word, which may well occur in an answer
            self._secrets = (*self._secrets, key)
        return key

    def redact(self, value: Any) -> Any:
        """Remove API keys from a text, or from all texts in a JSON value."""
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, REDACTED)
            return value
        if isinstance(value, Mapping):
            return {self.redact(str(key)): self.redact(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.redact(item) for item in value]
        return value

    def http_error(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> ProviderError:
        """Return the error for an HTTP status. Redirects are never followed."""
        if 300 <= status < 400:
            location = {key.lower(): value for key, value in (headers or {}).items()}.get("location")
            target = self.redact(location or "another address")
            return ProviderError(
                f"{self.name} returned status {status}, a redirect to {target[:200]}; nothing was sent there, since key and video are only "
                "sent to the address that you state. If the new address is correct, set it as base_url"
            )
        text = f"{self.name} returned status {status}: {self.redact(message)[:300]}"
        return ProviderError(text, transient=status in TRANSIENT_STATUSES, retry_after=parse_retry_after(headers or {}))

    def connection_error(self, error: Exception) -> ProviderError:
        """Return the error for a failed connection. The reply may have been generated and billed."""
        return ProviderError(f"{self.name}: {self.redact(str(error) or type(error).__name__)[:300]}", transient=True, billed=True)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait from the header ``Retry-After``, which holds a number or a date.

    >>> parse_retry_after({"retry-after": "7"}), parse_retry_after({})
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


def transport_errors() -> tuple[type[Exception], ...]:
    """Return the classes of timeouts and broken connections, also those of the HTTP library that is installed."""
    classes: list[type[Exception]] = [ConnectionError, TimeoutError]
    for name in ("httpx", "httpx2"):
        try:
            classes.append(import_module(name).TransportError)
        except ImportError:
            continue
    return tuple(classes)


MODULES = {name: f"ethobench.mllm.providers.{name}" for name in ("chance", "gemini", "openai", "replay")}

providers: Registry[type[Provider]] = Registry("provider", MODULES, classes=True)
register_provider = providers.register
