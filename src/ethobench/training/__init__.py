"""Learning: windows of recordings, the torch loop, losses, self-supervised pretexts."""
