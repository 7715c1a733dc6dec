"""Mutated files, answers and requests against everything that reads what others wrote; see docs/threat_model.md."""
