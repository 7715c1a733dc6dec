"""The local viewer: look at recordings, compare annotators, correct labels, and choose what to label next."""
