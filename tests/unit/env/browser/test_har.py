"""Recordings of HTTP, read and found, without a browser."""

from __future__ import annotations

import base64
import json
import time

import pytest
from pydantic import ValidationError

from cuarl.config.schema import ExperimentConfig
from cuarl.env.browser.backend import check_options
from cuarl.env.browser.har import body_digest, read_folder, start_digest
from cuarl.env.browser.options import Options
from cuarl.env.browser.replay import Missing, Recordings
from cuarl.env.browser.storage import lasting, read_storage, write_storage
from cuarl.errors import ConfigError
from cuarl.tasks.task import Task

SITE = "http://a.test:8000"


def entry(method, path, text="", *, status=200, kind="text/html", headers=(), body=None, **content):
    request = {"method": method, "url": f"{SITE}{path}"}
    if body is not None:
        request["postData"] = {"mimeType": "text/plain", "text": body}
    told = [{"name": name, "value": value} for name, value in headers]
    response = {"status": status, "headers": told, "content": {"mimeType": kind, "text": text, **content}}
    return {"startedDateTime": "2020-02-03T04:05:06.000Z", "request": request, "response": response}


@pytest.fixture
def replay(tmp_path):
    def make(*entries, after="writes", session="", **log):
        path = tmp_path / "site.har"
        path.write_text(json.dumps({"log": {"version": "1.2", "entries": list(entries), **log}}))
        return Recordings(read_folder(path), after).replay("", session)

    return make


def get(replay, path, *, page=True):
    return replay.answer("GET", f"{SITE}{path}", b"", "", opens_page=page)


def post(replay, path, body):
    return replay.answer("POST", f"{SITE}{path}", body, "text/plain", opens_page=False)


def test_what_other_programs_export_is_read(replay):
    png = base64.b64encode(b"\x89PNG").decode()
    told = replay(
        entry("GET", "/", "<p>é", headers=[("Content-Length", "9"), (":status", "200"), ("X-A", "1"), ("x-a", "2")]),
        entry("GET", "/a.png", png, kind="image/png", encoding="base64"),
    )
    page = get(told, "/#part")
    assert page.body == "<p>é".encode()
    assert page.headers == {"x-a": "1, 2", "content-type": "text/html"}
    assert get(told, "/a.png").body == b"\x89PNG"
    assert told.began.year == 2020


def test_the_nth_request_gets_the_nth_answer_and_then_the_last(replay):
    told = replay(entry("GET", "/now", "1"), entry("GET", "/now", "2"))
    assert [get(told, "/now").body for _ in range(3)] == [b"1", b"2", b"2"]


def test_an_answer_stands_after_what_went_before_it(replay):
    recorded = (
        entry("GET", "/cart", "empty"),
        entry("POST", "/buy", "ok", body="lamp"),
        entry("GET", "/cart", "lamp"),
        entry("GET", "/style", "p{}", kind="text/css"),
    )
    told = replay(*recorded)
    assert get(told, "/style").body == b"p{}", "styles are the same anywhere"
    with pytest.raises(Missing, match=r"no answer to POST http://a.test:8000/buy\n"):
        post(told, "/buy", b"chair")
    assert get(told, "/cart").body == b"empty"
    assert post(told, "/buy", b"lamp").body == b"ok"
    assert get(told, "/cart").body == b"lamp"
    with pytest.raises(Missing, match=r"POST http://a.test:8000/buy after what this episode has done") as missing:
        post(told, "/buy", b"lamp")
    assert "--browser-har-after nothing" in missing.value.hint
    assert get(replay(*recorded, after="nothing"), "/cart").body == b"empty"


def test_pages_are_sent_on_by_a_script_and_other_requests_get_the_end(replay):
    moved = [("Location", "/new?x=</script>"), ("Set-Cookie", "a=1; Expires=Mon, 03 Feb 2020 05:00:00 GMT; Path=/")]
    told = replay(
        entry(
            "GET", "/old", status=302, headers=[*moved, ("Set-Cookie", "gone=; expires=Thu, 01 Jan 1970 00:00:00 GMT")]
        ),
        entry("GET", "/new?x=</script>", "here"),
        entry("GET", "/round", status=302, headers=[("Location", "/round")]),
    )
    page = get(told, "/old")
    assert page.status == 200
    assert b'location.replace("http://a.test:8000/new?x=\\u003c/script>")' in page.body
    assert page.headers["set-cookie"] == "a=1; Path=/\ngone=; expires=Thu, 01 Jan 1970 00:00:00 GMT"
    assert get(told, "/old", page=False).body == b"here"
    with pytest.raises(Missing, match="on and on"):
        get(told, "/round", page=False)


def test_the_session_of_a_recording_is_that_of_the_episode(replay):
    told = replay(
        entry("GET", "/?s=0123456789ab", "for 0123456789ab"),
        session="fedcba987654",
        _cuarl={"session": "0123456789ab"},
    )
    assert get(told, "/?s=fedcba987654").body == b"for fedcba987654"


def test_a_request_without_an_answer_is_none_but_one_that_changes_something_counts(replay):
    told = replay(entry("GET", "/lost", status=-1), entry("POST", "/ping", status=-1, body="x"), entry("GET", "/", "1"))
    with pytest.raises(Missing):
        get(told, "/lost")
    assert post(told, "/ping", b"x").status < 100
    assert get(told, "/").body == b"1"


def test_a_forms_boundary_does_not_count():
    first, second = (body_digest(f"--{b}\nx\n--{b}--".encode(), f"multipart/form-data; boundary={b}", "") for b in "ab")
    assert first == second != body_digest(b"--a\ny\n--a--", "multipart/form-data; boundary=a", "")


def test_beginnings_differ_by_what_the_application_is_set_to():
    assert start_digest({"url": "u"}, 1) == start_digest({"url": "u"}, 2)
    assert start_digest({"url": "u", "reset": "r"}, 1) != start_digest({"url": "u", "reset": "r"}, 2)
    assert start_digest({"url": "u", "set": {"a": 1}}, 1) != start_digest({"url": "u", "set": {"a": 2}}, 1)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"log": {"entries": [{}]}}'])
def test_what_is_no_recording_is_refused(tmp_path, text):
    path = tmp_path / "x.har"
    path.write_text(text)
    with pytest.raises(ConfigError, match="no recording in the HAR format"):
        read_folder(path)
    path.unlink()
    with pytest.raises(ConfigError, match="there is no recording"):
        read_folder(tmp_path)


def test_a_recording_names_files_beside_it_alone(tmp_path):
    path = tmp_path / "x.har"
    path.write_text(json.dumps({"log": {"entries": [entry("GET", "/", _file="../secret")]}}))
    with pytest.raises(ConfigError, match="no file beside"):
        read_folder(path)


def cookie(domain, expires=-1):
    return {"name": "a", "value": "b", "domain": domain, "path": "/", "expires": expires}


def test_a_sign_in_is_for_the_tasks_pages_and_not_expired(tmp_path):
    path, origins = tmp_path / "in" / "login.json", ["https://shop.a.test:443"]

    def read(*cookies, stored=()):
        write_storage(path, {"cookies": list(cookies), "origins": [{"origin": origin} for origin in stored]})
        return read_storage(path, origins)

    assert read(cookie(".a.test"))["cookies"][0]["value"] == "b"
    assert read(cookie("b.test"), stored=["https://shop.a.test"])["origins"]
    with pytest.raises(ConfigError, match=r"is for \.b\.test, xa\.test, and no task"):
        read(cookie("xa.test"), cookie(".b.test"))
    with pytest.raises(ConfigError, match="expired") as told:
        read(cookie("shop.a.test", time.time() - 5))
    assert told.value.hint == f"cuarl tasks sign-in https://shop.a.test:443 --out {path}"
    assert lasting({"cookies": [cookie("a", 5)], "origins": []})["cookies"][0]["expires"] == -1
    path.write_text('{"cookies": [{}], "origins": []}')
    with pytest.raises(ConfigError, match="no storage state"):
        read_storage(path, origins)
    with pytest.raises(ConfigError, match="can't read"):
        read_storage(tmp_path / "none.json", origins)


@pytest.mark.parametrize("field", ["storage", "har", "har_record"])
def test_pages_that_are_files_have_no_traffic(field, tmp_path):
    file = Task(id="f", description="d", env="browser", preset={"url": "file:///srv/page.html"})
    miniwob = Task(id="m", description="d", env="browser", preset={"page": "click-test"})
    web = Task(id="w", description="d", env="browser", preset={"url": "http://127.0.0.1:1/"})
    given = Options.model_validate({"type": "browser", field: str(tmp_path)})
    for tasks in ([file], [miniwob], [file, miniwob]):
        with pytest.raises(ConfigError, match=rf"env\.{field} has no effect: the tasks' pages are files"):
            check_options(given, tasks)
    check_options(given, [file, web])


def test_a_recording_is_replayed_or_made():
    env = {"type": "browser", "har": "a", "har_record": "b"}
    with pytest.raises(ValidationError, match="set one of them"):
        ExperimentConfig.model_validate({"env": env})
    with pytest.raises(ValidationError, match=r"env\.har_missing has no effect with env\.har unset"):
        ExperimentConfig.model_validate({"env": {"type": "browser", "har_missing": "block"}})
