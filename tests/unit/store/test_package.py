import subprocess
import sys

import pytest

import cuarl.store


def test_importing_the_package_and_the_command_loads_no_database_library():
    code = (
        "import sys, cuarl.store, cuarl.cli.commands.db; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'sqlalchemy', 'alembic', 'fsspec', 'torch'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_loaded():
    assert sorted(cuarl.store.__all__) == cuarl.store.__all__
    assert all(getattr(cuarl.store, name) for name in cuarl.store.__all__)
    with pytest.raises(AttributeError):
        _ = cuarl.store.nothing
