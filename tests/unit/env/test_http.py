"""What is told of a request that failed: that it never went out, that nobody knows, or that its reply was lost."""

from __future__ import annotations

import anyio
import pytest
import stamina

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from cuarl.env.http import LostReply, Service, UnknownOutcome
from cuarl.errors import EnvError
from cuarl.local.faults import dropped
from cuarl.local.threads import served


class Answering:
    """A server that gives these statuses in turn, then 200; 0 breaks the connection off."""

    def __init__(self):
        self.statuses, self.asked = [], 0

    async def answer(self, request):
        self.asked += 1
        status = self.statuses.pop(0) if self.statuses else 200
        return Response("{}", status) if status else dropped()


@pytest.fixture(scope="module")
def server():
    answering = Answering()
    with served(Starlette(routes=[Route("/act", answering.answer, methods=["GET", "POST"])])) as url:
        yield answering, url


def asked(server, statuses, **options):
    """What comes of one request, and how often it was sent."""
    server[0].statuses, server[0].asked = list(statuses), 0

    async def run():
        service = Service("the device", server[1])
        try:
            return (await service.send("POST", "act", **options)).status_code
        except EnvError as error:
            return type(error)
        finally:
            await service.close()

    with stamina.set_testing(True, attempts=4):
        return anyio.run(run), server[0].asked


@pytest.mark.parametrize(
    ("status", "kind"),
    [(0, LostReply), (502, LostReply), (504, LostReply), (500, UnknownOutcome), (503, UnknownOutcome), (404, EnvError)],
)
def test_request_that_changes_something_is_sent_once_and_its_outcome_named(status, kind, server):
    assert asked(server, [status]) == (kind, 1)


@pytest.mark.parametrize("status", [0, 429, 500, 502, 503, 504, 529])
def test_b21_request_that_may_be_repeated_is_sent_again(status, server):
    assert asked(server, [status, status], repeatable=True) == (200, 3)


def test_refusal_for_the_moment_was_not_carried_out_and_is_sent_again(server):
    assert asked(server, [429]) == (200, 2)


def test_request_that_never_went_out_is_no_unknown_outcome():
    async def run(url):
        service = Service("the device", url)
        try:
            await service.send("POST", "act")
        finally:
            await service.close()

    for url in ("http://127.0.0.1:9", "ftp://127.0.0.1", "http://["):
        with stamina.set_testing(True, attempts=1), pytest.raises(EnvError) as caught:
            anyio.run(run, url)
        assert not isinstance(caught.value, UnknownOutcome), url
