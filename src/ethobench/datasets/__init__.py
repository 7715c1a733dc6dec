"""Named datasets, synthetic ones, and your own."""
