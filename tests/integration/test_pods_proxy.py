"""The proxy of examples/k8s, run as it stands there by a real nginx, between our client and our session server."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
import stamina
import yaml

pytest.importorskip("uvicorn", reason="the session server needs the extra web")

from cuarl.env.http import Service
from cuarl.env.pods.hosted import HostedSession
from cuarl.env.pods.server import SessionServer
from cuarl.env.pods.session import Session
from cuarl.env.sim.devices import make_sim
from cuarl.errors import EnvError
from cuarl.local.threads import served
from cuarl.types import Screenshot, TypeText

pytestmark = pytest.mark.integration
PROXY = Path(__file__).parents[2] / "examples" / "k8s" / "proxy.yaml"
KNOWN = "session-0a1b2c3d.sessions.agents.svc.cluster.local"


@contextmanager
def names() -> Iterator[int]:
    """A DNS server that knows one pod, at this machine; its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(0.1)
        over = threading.Event()

        def answer() -> None:
            while not over.is_set():
                try:
                    query, client = sock.recvfrom(512)
                except TimeoutError:
                    continue
                labels, at = [], 12
                while query[at]:
                    labels.append(query[at + 1 : at + 1 + query[at]].decode())
                    at += 1 + query[at]
                question, known = query[12 : at + 5], ".".join(labels) == KNOWN
                head = query[:2] + struct.pack(">HHHHH", 0x8180 | (0 if known else 3), 1, int(known), 0, 0)
                address = b"\xc0\x0c" + struct.pack(">HHIH4B", 1, 1, 1, 4, 127, 0, 0, 1)
                sock.sendto(head + question + (address if known else b""), client)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield sock.getsockname()[1]
        finally:
            over.set()
            thread.join()


@contextmanager
def nginx(folder: Path, upstream: str) -> Iterator[str]:
    """nginx with the template of the example, filled in as its image does; its URL."""
    if shutil.which("nginx") is None:
        pytest.skip("needs nginx")
    template = next(one for one in yaml.safe_load_all(PROXY.read_text()) if one["kind"] == "ConfigMap")
    text = template["data"]["default.conf.template"]
    with names() as dns, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        for old, new in (
            ("${NGINX_LOCAL_RESOLVERS}", f"127.0.0.1:{dns}"),
            ("${NAMESPACE}", "agents"),
            (":8000$rest", f":{upstream.rpartition(':')[2]}$rest"),
            ("listen 8080", f"listen 127.0.0.1:{port}"),
        ):
            assert old in text
            text = text.replace(old, new)
        (folder / "site.conf").write_text(text)
        paths = "".join(
            f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
            f"http {{ access_log off; {paths} include {folder}/site.conf; }}\n"
        )
        free.close()
        command = ["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                for _ in range(100):
                    with socket.socket() as probe:
                        if probe.connect_ex(("127.0.0.1", port)) == 0:
                            break
                    assert process.poll() is None, process.stderr and process.stderr.read()
                    time.sleep(0.05)
                yield f"http://127.0.0.1:{port}"
            finally:
                process.terminate()


def talking(url: str, session: str = "0a1b2c3d", *, own: bool = True) -> tuple[Service, Session]:
    service = Service("the sessions' proxy", url, timeout_s=10)
    return service, Session(service, f"proxy/{session}", "pod-token-77", own=own)


def test_sessions_are_reached_by_their_ids(tmp_path: Path) -> None:
    hosted = HostedSession(partial(make_sim, "desktop", "small", clutter=0.0))
    text = "ä & b=c%20+ ? # /../ 100%"

    async def run(url: str) -> None:
        service, session = talking(url)
        await session.wait()
        assert isinstance(await session.screenshot(), Screenshot)
        assert await session.act({"action_type": "screenshot"}) == "", "it was not refused"
        action = TypeText(text=text, submit=False)
        refused = await session.act({"action_type": "type", "action": action.model_dump_json()})
        assert refused == "" or "focus" in refused
        assert await session.act({"action_type": "fly"}), "a 422 gets through with its reason"
        assert (await session.progress()).correct == 0
        assert "windows" in str(await session.state())
        await service.close()
        service, stranger = talking(url, "ffffffff")
        with stamina.set_testing(True, attempts=2), pytest.raises(EnvError, match="502"):
            await stranger.screenshot()
        await service.close()

    with (
        served(SessionServer(hosted, "desktop", "pod-token-77", local=False).app()) as upstream,
        nginx(tmp_path, upstream) as url,
    ):
        anyio.run(run, url)


def test_text_arrives_as_it_was_typed(tmp_path: Path) -> None:
    seen: list[str] = []

    class Listening(HostedSession):
        async def act(self, action):
            seen.append(getattr(action, "text", ""))

    text = "ä & b=c%20+ ? # /../ 100% \"q\" 'r' \\ $HOME ☝️"

    async def run(url: str) -> None:
        service, session = talking(url)
        await session.act({"action_type": "type", "text": text})
        await service.close()

    hosted = Listening(partial(make_sim, "desktop", "small", clutter=0.0))
    with (
        served(SessionServer(hosted, "desktop", "pod-token-77", local=False).app()) as upstream,
        nginx(tmp_path, upstream) as url,
    ):
        anyio.run(run, url)
    assert seen == [text]


@contextmanager
def hanging_up(arrived: list[str]) -> Iterator[str]:
    """A server that reads a request and closes the connection without a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                with connection:
                    line = connection.recv(65536).split(b"\r\n")[0].decode()
                if not line:
                    return
                arrived.append(line)

        thread = threading.Thread(target=serve)
        thread.start()
        host, port = server.getsockname()
        try:
            yield f"http://{host}:{port}"
        finally:
            socket.create_connection((host, port)).close()
            thread.join()


def test_what_may_have_arrived_is_not_sent_again_by_the_proxy(tmp_path: Path) -> None:
    arrived: list[str] = []

    async def run(url: str) -> None:
        service, session = talking(url, own=False)
        with pytest.raises(EnvError, match="502"), stamina.set_testing(True, attempts=3):
            await session.act({"action_type": "left_click", "x": "1", "y": "1"})
        await service.close()

    with hanging_up(arrived) as upstream, nginx(tmp_path, upstream) as url:
        anyio.run(run, url)
    assert [line.split("?")[0] for line in arrived] == ["GET /act"]
