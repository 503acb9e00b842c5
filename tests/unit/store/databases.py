"""Both databases for tests: SQLite files, and a schema of its own on the PostgreSQL server that CUARL_TEST_POSTGRES
names."""

import os
import secrets
import shutil
import socket
import threading
from contextlib import contextmanager, suppress

import pytest
from sqlalchemy import create_engine, make_url, text

from cuarl.store import Store
from cuarl.store.engine import make_engine, writing
from cuarl.store.schema import create_schema
from cuarl.store.tables import Base
from cuarl.store.url import parse_url

SERVER = os.environ.get("CUARL_TEST_POSTGRES", "")
needs_postgres = pytest.mark.skipif(not SERVER, reason="CUARL_TEST_POSTGRES is not set")


@contextmanager
def postgres_schema():
    """The URL of an empty schema, dropped in the end."""
    name = f"cuarl_test_{secrets.token_hex(6)}"
    admin = create_engine(parse_url(SERVER), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    try:
        # no test cuts the server's power, so none waits for its disk
        options = f"-csearch_path={name} -csynchronous_commit=off"
        url = make_url(SERVER).update_query_dict({"options": options})
        yield url.render_as_string(hide_password=False)
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
        admin.dispose()


BOTH = [pytest.param("sqlite"), pytest.param("postgresql", marks=[pytest.mark.integration, needs_postgres])]


@pytest.fixture(params=BOTH)
def empty_url(request, tmp_path):
    """The URL of a database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/test.db"
        return
    with postgres_schema() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_tables():
    """A schema with tables, made once, since that takes longer than most tests."""
    with postgres_schema() as url:
        set_up(url)
        yield url


@pytest.fixture(scope="session")
def sqlite_tables(tmp_path_factory):
    """A file with tables, made once, to be copied."""
    path = tmp_path_factory.mktemp("template") / "x.db"
    Store.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def sqlite_url(sqlite_tables, tmp_path):
    shutil.copy(sqlite_tables, tmp_path / "test.db")
    return f"sqlite:///{tmp_path}/test.db"


@pytest.fixture(params=BOTH)
def url(request):
    """The URL of a database with empty tables."""
    if request.param == "sqlite":
        return request.getfixturevalue("sqlite_url")
    url = request.getfixturevalue("postgres_tables")
    tables = reversed(Base.metadata.sorted_tables)
    query(url, "; ".join(f"DELETE FROM {table.name}" for table in tables))
    return url


@pytest.fixture
def store(url, tmp_path):
    with Store.open(url, f"{tmp_path}/blobs", runs_dir=tmp_path) as opened:
        yield opened


@pytest.fixture
def sqlite_store(sqlite_url):
    with Store.open(sqlite_url) as opened:
        yield opened


def set_up(url):
    engine = make_engine(parse_url(url))
    with writing(engine) as connection:
        create_schema(connection)
    engine.dispose()


def query(url, statement, **values):
    """Run one statement by hand; gives its rows."""
    engine = create_engine(parse_url(url))
    try:
        with engine.begin() as connection:
            result = connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()


class Proxy:
    """A TCP port in front of a server that can be pulled, to be a network that fails."""

    def __init__(self, host, port):
        self._target = (host, port)
        self._listener = None
        self._sockets = []
        self._flows = threading.Event()
        self._flows.set()
        self.port = None
        self.up()

    def up(self):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port or 0))
        listener.listen()
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def down(self):
        """Refuse new links, and cut those that are there."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def hold(self):
        """Accept, and stay silent: what comes is kept until ``release``."""
        self._flows.clear()

    def release(self):
        self._flows.set()

    def cut(self):
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._sockets += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source, sink):
        try:
            while data := source.recv(65536):
                self._flows.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture
def flaky_server():
    """A database of its own behind a ``Proxy``: the URL through it, the URL around it, and the proxy."""
    if not SERVER:
        pytest.skip("CUARL_TEST_POSTGRES is not set")
    with postgres_schema() as direct:
        set_up(direct)
        parsed = make_url(direct)
        proxy = Proxy(parsed.host or "127.0.0.1", parsed.port or 5432)
        through = parsed.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        yield through, direct, proxy
        proxy.release()
        proxy.down()
