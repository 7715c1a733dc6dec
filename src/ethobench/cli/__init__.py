"""The `ethobench` command."""
