"""``python -m eltwise`` is the command ``eltwise``."""

from eltwise.cli import main

if __name__ == "__main__":
    main()
