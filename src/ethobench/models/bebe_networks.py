"""An encoder of acceleration that was pre-trained on people's wrists (or on your own animals), under a recurrent layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ethobench.core import Recording
from ethobench.core.errors import EthobenchError
from ethobench.features.filters import axis_triples
from ethobench.models.base import register_model
from ethobench.models.hyperparameters import hyperparameters
from ethobench.models.network import NetworkModel, NetworkParams
from ethobench.training.clips import Clips
from ethobench.training.encoder_files import FRAMES, HOME, read_encoder
from ethobench.training.streams import Stream, unit_factors

if TYPE_CHECKING:
    import torch

MODES = ("frozen", "unfrozen", "random")


@hyperparameters
class Params(NetworkParams):
    """Hyper-parameters, beside those of every network.

    Attributes
    ----------
    config : {"harnet30", "harnet10", "harnet5", "small"}
        The shape of the encoder, and with it the usual window: 900, 300, 150 or 900 frames.
    mode : {"frozen", "unfrozen", "random"}
        ``frozen``: the encoder stays as it was pre-trained; ``unfrozen``: it learns on; ``random``: it learns from nothing.
    rate : float, optional
        Bring signals to this rate (Hz) first, e.g. to the 30 Hz that encoders are pre-trained at; as published, they are not.
    weights : str
        Where the pre-trained weights lie: your own download of a published checkpoint, or a folder that ``pretrain`` made.
    """

    config: str = "harnet30"
    mode: str = "frozen"
    rate: float | None = None
    weights: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, allowed in (("config", tuple(FRAMES)), ("mode", MODES)):
            if getattr(self, name) not in allowed:
                raise EthobenchError(f"the {name} of a harnet is one of {', '.join(allowed)}, not {getattr(self, name)!r}")
        if self.rate is not None and not self.rate > 0:
            raise EthobenchError(f"a rate is a number of Hz above 0, not {self.rate}")
        if self.cutoff:
            raise EthobenchError("harnet takes accelerations whole: its cutoff is 0")
        if self.mode == "random" and self.weights:
            raise EthobenchError("harnet with mode 'random' takes no weights; mode 'unfrozen' learns on from them")


@register_model("harnet")
class Harnet(NetworkModel):
    """BEBE's harnet, done right: where the encoder is not frozen, it does learn (in BEBE's own code it never did)."""

    title = "encoder pre-trained on people's acceleration, then a recurrent layer (harnet, BEBE)"
    Params = Params
    grid = {"learning_rate": (0.01, 0.003, 0.001)}  # noqa: RUF012

    def build(self, n_inputs: int, n_outputs: int) -> torch.nn.Module:
        """Build the network; the encoder reads every three axes that belong together."""
        from ethobench.training.encoders import EncodedNetwork

        triples = list(axis_triples(self.inputs).values()) if len(self.inputs) == n_inputs else []
        return EncodedNetwork(self.params.config, triples, n_inputs, n_outputs, frozen=self.params.mode == "frozen")

    def _initialize(self, module: torch.nn.Module, clips: Clips) -> None:
        from ethobench.training.encoders import EncodedNetwork

        if self.params.mode == "random" or not isinstance(module, EncodedNetwork):
            return
        if not self.params.weights:
            raise EthobenchError(
                f"harnet needs pre-trained weights: download a checkpoint yourself from {HOME} (mind its licence), or make your own "
                "with `ethobench pretrain`, and name it as weights=; mode='random' needs none"
            )
        module.encoder.load(read_encoder(self.params.weights), self.params.weights)

    def _usual_window(self) -> int:
        return FRAMES[self.params.config]

    def _stream(self, recording: Recording) -> Stream:
        stream = super()._stream(recording)
        if self.params.rate and self.params.rate != stream.rate:
            stream = stream.resampled(self.params.rate)
        return stream.scaled(unit_factors(stream))
