from __future__ import annotations

from cuarl.tasks.library import Library
from cuarl.tasks.review import Judged, review


def test_the_shipped_suites_load_and_have_no_findings() -> None:
    library = Library.open()
    judged = [Judged(one, library.role_of(one)) for suite in library.suites for one in suite.located]
    assert [f"{f.where}: {f.task_id}: {f.text}" for f in review(judged) if f.level == "error"] == []
