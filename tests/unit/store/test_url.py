from pathlib import Path

import pytest

from cuarl.errors import ConfigError
from cuarl.store.url import default_blobs_url, masked, parse_url, sqlite_path

SECRET = "hunter2-canary"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg2"])
def test_any_spelling_of_postgresql_uses_psycopg_3(scheme):
    assert parse_url(f"{scheme}://u:p@h:1/d").drivername == "postgresql+psycopg"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://bob:{SECRET}@db.example:5433/cuarl",
        f"postgresql://{SECRET}@db.example:5433/cuarl?password={SECRET}&options=-c{SECRET}",
    ],
    ids=["password", "user and options"],
)
def test_a_shown_url_tells_the_place_and_no_secret(url):
    assert masked(url) == "postgresql://db.example:5433/cuarl"


@pytest.mark.parametrize("url", [f"mysql://u:{SECRET}@h/d", f"{SECRET}", "sqlite://", "sqlite:///:memory:", "a://b:c"])
def test_a_url_that_cannot_be_used_is_refused_without_repeating_it(url):
    with pytest.raises(ConfigError) as caught:
        parse_url(url)
    assert SECRET not in str(caught.value)
    assert caught.value.hint


def test_screenshots_lie_beside_a_sqlite_file_or_in_the_runs_folder():
    assert default_blobs_url(parse_url("sqlite:///data/x.db"), Path("runs")) == "data/blobs"
    assert default_blobs_url(parse_url("postgresql://h/d"), Path("runs")) == "runs/blobs"


def test_only_sqlite_has_a_path():
    assert sqlite_path(parse_url("sqlite:////tmp/x.db")) == Path("/tmp/x.db")
    assert sqlite_path(parse_url("postgresql://h/d")) is None
