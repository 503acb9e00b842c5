from tests.unit.cli.conftest import bare_terminal

__all__ = ["bare_terminal"]  # autouse: an empty folder to work in, and a bare environment
