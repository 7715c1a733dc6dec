"""From probabilities of frames to bouts: thresholds, smoothing, Viterbi decoding, segment rescoring, calibration and blending."""

from ethobench.decoding.abstention import abstain
from ethobench.decoding.calibration import Calibration, fit_calibration
from ethobench.decoding.decoder import Decoder
from ethobench.decoding.search import fit_decoder

__all__ = ["Calibration", "Decoder", "abstain", "fit_calibration", "fit_decoder"]
