import http.server
import json
import threading

import pytest

from cuarl.cli.app import run
from cuarl.errors import PrerequisiteError
from cuarl.settings import Settings
from cuarl.workflow import checks
from cuarl.workflow.checks import Check


@pytest.fixture
def settings(tmp_path):
    return Settings.load(runs_dir=tmp_path / "runs")


@pytest.fixture
def server():
    """A model server that answers with the status it is told to."""
    answers = {"status": 200, "keys": []}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            answers["keys"].append((self.path, self.headers.get("Authorization")))
            self.send_response(answers["status"])
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        answers["url"] = f"http://127.0.0.1:{one.server_port}/v1"
        yield answers
        one.shutdown()
        thread.join()


def test_the_cheap_checks_pass_on_this_machine(settings):
    for check in (checks.python, checks.packages, checks.machine, checks.gpu, checks.runs_folder, checks.extras):
        assert check(settings).status == "ok", check(settings)
    assert "will be made" in checks.runs_folder(settings).detail


def test_what_a_desktop_lacks_is_named_with_the_command_and_is_no_fault(settings, monkeypatch):
    monkeypatch.setattr(checks.sys, "platform", "linux")
    monkeypatch.setenv("PATH", "/nowhere")
    found = checks.desktop(settings)
    assert found.status == "ok"
    assert "lacks Xvfb, openbox, dbus-daemon" in found.detail
    assert "apt-get install xvfb openbox dbus" in found.fix


def test_missing_and_wrong_packages_are_named(settings, monkeypatch):
    versions = {"pydantic": None, "typer": "0.1"}
    real = checks.facts.package_version
    monkeypatch.setattr(checks.facts, "package_version", lambda name: versions.get(name, real(name)))
    found = checks.packages(settings)
    assert found.status == "fail"
    assert "pydantic is missing" in found.detail and "typer 0.1 is not <1,>=0.29" in found.detail


def test_a_folder_that_cannot_be_written_fails(tmp_path, monkeypatch):
    def refuse(**arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checks.tempfile, "TemporaryFile", refuse)
    found = checks.runs_folder(Settings.load(runs_dir=tmp_path / "deep" / "er"))
    assert found.status == "fail" and "Permission denied" in found.detail and "CUARL_RUNS_DIR" in found.fix


@pytest.mark.parametrize(("free_gib", "status"), [(100, "ok"), (2, "warn"), (0.1, "fail")])
def test_room_on_the_disk_is_judged(settings, monkeypatch, free_gib, status):
    usage = type(checks.shutil.disk_usage("/"))(0, 0, int(free_gib * 2**30))
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda path: usage)
    assert checks.disk(settings).status == status


def test_a_database_that_is_not_there_yet_is_no_fault(settings, tmp_path):
    found = checks.database(settings)
    assert found.status == "ok" and "will be made" in found.detail
    assert not (tmp_path / "runs").exists()


def test_a_check_that_cannot_be_made_fails_with_its_reason(settings):
    def database(settings):
        raise PrerequisiteError("no server at postgresql://u:secret-pass@h", hint="pg_ctl start")

    found = checks._guarded(database, settings)
    assert found == Check("database", "fail", "no server at postgresql://u:***@h", "pg_ctl start")


@pytest.mark.parametrize(("status", "expected"), [(200, "ok"), (401, "fail")])
def test_a_model_server_is_asked_for_its_models(server, monkeypatch, status, expected):
    server["status"] = status
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1234567")
    found = checks.endpoint(Settings.load(model_base_url=server["url"]))
    assert found.status == expected
    assert server["keys"] == [("/v1/models", "Bearer sk-canary-1234567")]
    assert "canary" not in found.detail


def test_a_model_server_that_is_down_fails():
    found = checks.endpoint(Settings.load(model_base_url="http://127.0.0.1:9/v1"))
    assert found.status == "fail" and "ConnectError" in found.detail


def test_credentials_are_named_and_never_shown(monkeypatch):
    monkeypatch.setenv("GBOX_API_KEY", "gbox-canary-1")
    found = checks.secrets(Settings.load())
    assert "GBOX_API_KEY" in found.detail and "canary" not in found.detail


def test_a_torch_that_crashes_is_reported_by_its_last_words(settings, monkeypatch):
    monkeypatch.setattr(checks, "_ASK_TORCH", "import sys; sys.exit('libcuda.so: wrong version')")
    found = checks.torch(settings)
    assert (found.status, found.detail) == ("fail", "can't be loaded: libcuda.so: wrong version")


@pytest.mark.parametrize(("worst", "code"), [("ok", 0), ("warn", 0), ("fail", 1)])
def test_the_exit_code_follows_the_worst_line(monkeypatch, capsys, worst, code):
    monkeypatch.setattr(checks, "run_checks", lambda settings: [Check("a", "ok", "x"), Check("b", worst, "y", "cmd")])
    assert run(["doctor"]) == code
    out, err = capsys.readouterr()
    assert out.splitlines()[2].split() == ["b", worst, "y", "cmd"]
    assert ("to be fixed: b" in err) == (worst == "fail")
    assert run(["doctor", "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    assert report["checks"][1] == {"name": "b", "status": worst, "detail": "y", "fix": "cmd"}


def test_cluster_is_asked_what_may_be_done_there(monkeypatch, tmp_path):
    pytest.importorskip("uvicorn", reason="the local server needs the extra web")
    from tests.fakes.kubernetes import TOKEN, cluster

    monkeypatch.setenv("HOME", str(tmp_path))
    assert checks.cluster(Settings.load()).detail == "none set; only --env pods needs one"
    with cluster() as server:
        settings = Settings.load(kube_api_url=server.url, kube_token=TOKEN)
        found = checks.cluster(settings)
        assert found.status == "ok" and "v1.32.0-fake" in found.detail and TOKEN not in found.detail
        server.fake.forbidden = {("create", "pods/proxy")}
        lacking = checks.cluster(settings)
        assert lacking.status == "warn" and lacking.detail.endswith("this account may not create pods/proxy")
        through = Settings.load(kube_api_url=server.url, kube_token=TOKEN, pods_proxy_url=server.url)
        assert checks.cluster(through).status == "ok", "the API server's own proxy is not needed then"
        wrong = checks.cluster(Settings.load(kube_api_url=server.url, kube_token="another-token"))
        assert wrong.status == "warn" and "401" in wrong.detail
    monkeypatch.setattr(checks, "CLUSTER_S", 0.2)
    silent = checks.cluster(Settings.load(kube_api_url="http://127.0.0.1:9"))
    assert silent.status == "warn" and "no answer within 0.2 s" in silent.detail
