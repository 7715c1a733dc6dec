"""Let `python -m ethobench` be the `ethobench` command."""

from ethobench.cli import main

if __name__ == "__main__":
    main()
