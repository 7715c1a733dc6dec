"""Consent: what a model would send over the network, and what of its folder a user has to confirm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ethobench.core.errors import EthobenchError
from ethobench.core.messages import Message, Option
from ethobench.core.wording import join_names, plural


class ConsentError(EthobenchError):
    """A saved model would use the network, or something outside its folder, without the consent of the user."""


@dataclass(frozen=True)
class NetworkUse:
    """What a model sends over the network.

    Attributes
    ----------
    provider, model : str
        Name in the registry of providers, and the provider's name of the model.
    host : str
        Where it is sent: ``api.openai.com``, ``127.0.0.1:8000``, ...
    key_variables : tuple of str
        Environment variables; the first one that is set has the key that is sent. Empty if no key is sent.
    content : str
        What is sent.
    """

    provider: str
    model: str
    host: str
    key_variables: tuple[str, ...] = ()
    content: str = "video"

    def describe(self, n_recordings: int | None = None) -> str:
        """Return a description of what is sent where.

        Examples
        --------
        >>> NetworkUse("openai", "gpt-5", "api.openai.com", ("OPENAI_API_KEY",)).describe(2)
        'video of 2 recordings to openai (gpt-5) at api.openai.com, with the key in OPENAI_API_KEY'
        """
        content = self.content
        if n_recordings is not None:
            content = plural(n_recordings, "{content} of {n} recording", "{content} of {n} recordings", content=content)
        model = f" ({_printable(self.model)})" if self.model else ""
        use = f"{content} to {self.provider}{model} at {_printable(self.host)}"
        return f"{use}, with the key in {join_names(self.key_variables, 'or')}" if self.key_variables else f"{use}, without a key"


@dataclass(frozen=True)
class Consent:
    """What the user of a saved model allows.

    Attributes
    ----------
    allow_network : bool
        Whether it may contact the provider that it names.
    settings : mapping of hyper-parameter to value
        Stated by the user instead of the folder: settings that refer to something outside the folder.
    """

    allow_network: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    def apply(self, folder: object, params: Mapping[str, object], external: tuple[str, ...]) -> dict[str, object]:
        """Return hyper-parameters without those of the folder that refer to something outside of it.

        Parameters
        ----------
        folder : path
            Of the saved model, for messages.
        params : mapping
            As saved in the folder.
        external : tuple of str
            Hyper-parameters of the model that refer to something outside the folder.

        Raises
        ------
        ConsentError
            If the folder sets one of them and the user has not stated it.
        """
        if unknown := [name for name in self.settings if name not in external]:
            available = "nothing can be set" if not external else f"only {', '.join(external)} can be set"
            raise EthobenchError(f"{folder}: {', '.join(unknown)} cannot be set for a saved model of this kind; {available}")
        unstated = {name: params[name] for name in external if params.get(name) and name not in self.settings}
        if unstated:
            named = join_names(f"{name} {value!r}" for name, value in unstated.items())
            options = Message(*(component for name in unstated for component in (" ", Option(name, flag=f"--param {name}="))))
            message = f"{folder}: this model names {named}, which a model folder may not set. Nothing was sent or read. "
            raise ConsentError(Message(message, "Set your own when you load it, or the same if you trust it:", options))
        return {**params, **self.settings}


def _printable(text: str) -> str:
    """Replace control characters, which could hide text on a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def check_consent(model_name: str, use: NetworkUse | None, *, allowed: bool, n_recordings: int | None = None) -> None:
    """Refuse to use the network for a saved model without the consent of the user."""
    if use is not None and not allowed:
        message = f"{model_name} would send {use.describe(n_recordings)}. Nothing was sent. To allow this, load it with "
        raise ConsentError(Message(message, Option("allow_network", True)))
