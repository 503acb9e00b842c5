"""Opening a store never changes a schema, but for making one in an empty SQLite file."""

import hashlib
import threading
from pathlib import Path

import pytest

from cuarl.errors import DatabaseBehind, PrerequisiteError
from cuarl.store import Store, migrations
from cuarl.store.check import schema_differences
from cuarl.store.engine import make_engine
from cuarl.store.migrate import migrate
from cuarl.store.schema import HEAD, REVISIONS, VERSION_TABLE
from cuarl.store.url import parse_url
from tests.unit.store.databases import needs_postgres, postgres_schema, query, set_up
from tests.unit.store.samples import plain, save


def test_the_known_revisions_are_those_of_the_script_folder():
    folder = Path(migrations.__file__).parent / "versions"
    assert list(REVISIONS) == sorted(path.name[1:5] for path in folder.glob("v*.py"))


def test_a_migrated_schema_equals_the_mappings_and_the_one_made_at_first_use(tmp_path):
    migrated, fresh = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    migrate(migrated)
    set_up(fresh)
    for url in (migrated, fresh):
        engine = make_engine(parse_url(url))
        with engine.connect() as connection:
            assert schema_differences(connection) == []
        engine.dispose()


def test_an_empty_sqlite_file_is_set_up_by_itself(tmp_path):
    url = f"sqlite:///{tmp_path}/new/x.db"
    with Store.open(url) as store:
        save(store, plain())
    assert query(url, f"SELECT version_num FROM {VERSION_TABLE}") == [(HEAD,)]


def test_many_may_set_the_same_file_up_at_once(tmp_path):
    url, failed = f"sqlite:///{tmp_path}/x.db", []

    def one(number):
        try:
            with Store.open(url) as store:
                save(store, plain(f"e{number}"))
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert query(url, "SELECT count(*) FROM episodes") == [(6,)]
    assert query(url, f"SELECT count(*) FROM {VERSION_TABLE}") == [(1,)]


@pytest.mark.integration
@needs_postgres
def test_an_empty_postgresql_database_is_refused_with_the_command(tmp_path):
    with postgres_schema() as url, pytest.raises(DatabaseBehind, match="is empty") as caught:
        Store.open(url, runs_dir=tmp_path)
    assert caught.value.hint == "cuarl db migrate"


def test_an_older_schema_is_refused_with_the_command(empty_url, tmp_path):
    set_up(empty_url)
    query(empty_url, f"UPDATE {VERSION_TABLE} SET version_num = '{REVISIONS[-2]}'")
    with pytest.raises(DatabaseBehind, match=f"1 revision behind \\(at {REVISIONS[-2]}, need {HEAD}\\)") as caught:
        Store.open(empty_url, runs_dir=tmp_path)
    assert (caught.value.exit_code, caught.value.hint) == (4, "cuarl db migrate")


def test_tables_without_a_version_are_refused_with_the_command(empty_url, tmp_path):
    set_up(empty_url)
    query(empty_url, f"DROP TABLE {VERSION_TABLE}")
    with pytest.raises(DatabaseBehind, match="no schema version"):
        Store.open(empty_url, runs_dir=tmp_path)


def test_c56_a_newer_schema_is_refused_and_nothing_is_written(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    set_up(url)
    query(url, f"UPDATE {VERSION_TABLE} SET version_num = '0099'")
    before = _contents(tmp_path)
    with pytest.raises(PrerequisiteError, match=f"schema 0099, which is newer than this program's {HEAD}") as caught:
        Store.open(url)
    assert not isinstance(caught.value, DatabaseBehind)
    assert _contents(tmp_path) == before


def test_a_database_with_other_programs_tables_only_counts_as_empty(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    query(url, "CREATE TABLE alembic_version (version_num TEXT)")
    with Store.open(url) as store:
        assert store.runs() == []


def test_a_server_that_is_not_there_is_a_missing_prerequisite(tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(PrerequisiteError, match="can't be reached") as caught:
        Store.open("postgresql://u:hunter2-canary@127.0.0.1:9/cuarl", runs_dir=tmp_path)
    assert "hunter2" not in str(caught.value)


def _contents(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in Path(folder).iterdir()}
