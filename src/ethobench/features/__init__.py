"""From signals and poses to features: filters, windows, wavelets, spectra, body geometry and kinematics.

`nathan` and `wavelets` are the feature sets of BEBE, `pose` describes tracked animals, `biologging` describes tags, and `multiscale`
combines both with windows of several lengths.
"""
