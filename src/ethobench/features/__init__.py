"""Features: what models see of a recording, one row per frame."""
