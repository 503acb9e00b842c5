"""Every mistake of ``tests.mistakes`` is told in one error, with its exit code, and leaves nothing half-made."""

from __future__ import annotations

import pytest

from tests.integration.rollout_place import bare
from tests.mistakes import MISTAKES, make

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.command.replace("/", "-"))
def test_a_mistake_is_told_and_makes_nothing(mistake, monkeypatch, tmp_path):
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    told = make(mistake)
    if "is not installed" in told.err and mistake.code != told.code:
        pytest.skip(told.err.splitlines()[0])
    assert mistake.said in told.err, told.err
    assert told.code == mistake.code, told.err
    assert "Traceback" not in told.err and "unexpected" not in told.err
    assert sum(line.startswith("error:") for line in told.err.splitlines()) == 1 or "Usage:" in told.err
    assert told.left == []
