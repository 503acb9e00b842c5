"""``python -m cuarl`` is the ``cuarl`` command; ``accelerate launch -m cuarl`` needs it."""

from cuarl.cli.app import main

if __name__ == "__main__":
    main()
