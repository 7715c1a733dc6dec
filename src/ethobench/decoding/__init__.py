"""From probabilities to bouts: smoothing, most likely sequences, segment scoring, calibration, blending."""
