"""schemathesis asks both APIs of the monitor for what their OpenAPI document allows, and for what it doesn't.

No answer is a fault of the server's, and each has a status, a content type and a body as the document says.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cuarl.monitor.ingest.batch import REFERENCES, SOURCES
from cuarl.monitor.web import openapi
from cuarl.store.ingest import Ingest, Sent
from cuarl.workflow.monitoring import Options, monitor_app
from tests.unit.monitor.web.conftest import fill, store
from tests.unit.monitor.web.made import PICTURE
from tests.unit.store.databases import sqlite_tables, sqlite_url

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: make trackers")
checks = pytest.importorskip("schemathesis.specs.openapi.checks")
__all__ = ["sqlite_tables", "sqlite_url", "store"]
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
THERE = {
    "run_id": ("base", "better"),
    "episode_id": ("base.1.0.0", "base.2.1.1", "better.3.0.0", "better.2.11.0"),
    "turn": (0, 1, 3),
    "id": ("base.eval.2", "base:1", "better:2"),
    "name": (PICTURE.digest,),
}
"""What the store has, which nobody would find by chance."""


@pytest.fixture
def app(store):
    fill(store, "<script>\x00\u202e")
    rows = [Sent(kind, "first", {}, 1 if refers else None) for kind, refers in REFERENCES.items()]
    Ingest(store.engine).keep("phones", rows, at=1.7e9)
    return monitor_app(store, Options(hosts=("testserver",)))  # what schemathesis calls it


@pytest.fixture
def secret(store):
    return Ingest(store.engine).create_token("phones", at=1.7e9)[1]


def asked(schema, method, path, headers, examples):
    """Make the requests; gives how often each status was answered."""
    found = {}
    operation = schema[path][method.upper()]
    modes = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
    cases = st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes])

    @given(case=cases, data=st.data())
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case, data):
        for name in case.path_parameters or {}:
            if data.draw(st.integers(0, 4)):
                case.path_parameters[name] = data.draw(st.sampled_from(THERE.get(name, ("step", "eval"))))
        if path.endswith("batch"):
            known_references(case.body, data)
        answer = case.call(headers=headers)
        found[answer.status_code] = found.get(answer.status_code, 0) + 1
        case.validate_response(answer, checks=CHECKS)  # that it is no fault of the server's among them

    ask()
    return found


def known_references(body, data):
    """Let most rows refer to rows that are there: of each kind the first has the number 1."""
    for kind, rows in body.items() if isinstance(body, dict) else ():
        for row in rows if isinstance(rows, list) else ():
            for key in REFERENCES.get(kind, {}) if isinstance(row, dict) else ():
                if key in row and data.draw(st.integers(0, 4)):
                    row[key] = 1
            if kind == "rollouts" and isinstance(row, dict) and row.get("source_type") in SOURCES:
                for source, key in SOURCES.items():
                    row[key] = 1 if source == row["source_type"] else None


@pytest.mark.parametrize("examples", [10, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_every_answer_is_one_of_the_document(app, secret, examples):
    schema, told = schemathesis.openapi.from_asgi(openapi.PATH, app), {}
    for path, methods in openapi.document()["paths"].items():
        headers = {"authorization": f"Bearer {secret}"} if "ingest" in path else {}
        for method in methods:
            told[f"{method} {path}"] = asked(schema, method, path, headers, examples)
    for name, found in told.items():
        print(f"{name}: {dict(sorted(found.items()))}")
    assert all(200 in found for found in told.values()), "it asks for something that is there, too"
