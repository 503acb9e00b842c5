import base64
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl import safe_text
from cuarl.safe_text import (
    MAX_LINE_BYTES,
    SafeFormatter,
    escaped,
    has_credentials,
    loggable,
    masked,
    printable,
    safe_json,
)

CANARY = "sk-canary-7f3a91b2c4"


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(safe_text, "_secrets", set())


def test_c57_known_secrets_keep_at_most_their_last_two_characters():
    safe_text.remember([CANARY, "shorty"])
    assert masked(f"Bearer {CANARY}, {CANARY}") == "Bearer ***c4, ***c4"
    assert masked("pin shorty") == "pin ***"


def test_secrets_are_found_as_urls_spell_them():
    safe_text.remember(["p/ss w:rd@1"])
    assert "p%2Fss%20w%3Ard%401" not in masked("postgresql://h/?password=p%2Fss%20w%3Ard%401")


def test_a_secret_inside_a_longer_one_leaves_no_rest():
    safe_text.remember(["canary", "canary-and-more"])
    assert masked("x canary-and-more y") == "x ***re y"


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("OPENAI_API_KEY", CANARY, True),
        ("HF_TOKEN", CANARY, True),
        ("aws_secret_access_key", CANARY, True),
        ("POSTGRES_PASSWORD", CANARY, True),
        ("SOME_URL", f"https://me:{CANARY}@host/x", True),
        ("USE_CLS_TOKEN", "cls_token_value", False),
        ("NUM_MEMORY_TOKENS", "1234567", False),
        ("MONKEY", "123456789", False),
        ("POSTGRES_PASSWORD", "postgres", False),
        ("API_KEY", "true", False),
    ],
)
def test_c57_environment_is_read_by_the_names_of_credentials(name, value, hidden):
    safe_text.remember_environment({name: value})
    secret = CANARY if CANARY in value else value
    assert (secret not in masked(f"say {secret} twice {secret}")) == hidden


@pytest.mark.parametrize("scheme", ["postgresql", "https", "redis+tls"])
def test_c57_passwords_in_urls_are_masked_without_being_known(scheme):
    assert masked(f"at {scheme}://me:{CANARY}@host:5/x, ok") == f"at {scheme}://me:***c4@host:5/x, ok"
    assert masked(f"{scheme}://host/x?user=me&password={CANARY}#y") == f"{scheme}://host/x?user=me&password=***c4#y"
    assert masked("https://host:8000/a@b") == "https://host:8000/a@b"


@pytest.mark.parametrize(
    "url",
    [
        "http://me:{}@host/v1", "http://{}@host/v1", "https://host/v1?api_key={}", "https://host/v1?x=1&API-Key={}",
        "https://host/?key={}", "wss://host/?access_token={}", "https://host/#token={}",
        "https://host?X-Amz-Signature={}",
        "http://me:p@ss{}@host", "https://h/?client_secret={}", "https://h/?sig={}", "see http://me:{}@host, ok",
    ],
)  # fmt: skip
def test_a_url_with_a_credential_is_known_as_one_and_its_secret_masked(url):
    text = url.format(CANARY)
    assert has_credentials(text) and has_credentials({"a": [1, {"b": (text,)}]}) and has_credentials({text: 1})
    if "{}@" not in url or ":{}" in url or "p@ss" in url:  # a name without a password may be anybody's
        assert CANARY not in masked(text)


@pytest.mark.parametrize(
    "text",
    ["http://host:8000/v1", "https://h/a@b?page=2&monkey=3", "me@example.org", "?token=x", "a://b/c@d", 5, None,
        [{"a": "b"}],
     "https://h/?use_cls_tokens=1"],
)  # fmt: skip
def test_other_texts_have_no_credentials(text):
    assert not has_credentials(text)


def test_c57_pictures_appear_as_size_and_digest():
    data = base64.b64encode(bytes(range(256)) * 9).decode()
    for text in (f'{{"url": "data:image/png;base64,{data}"}}', f"raw {data} end"):
        short = loggable(text)
        assert "bytes, sha256" in short
        assert len(short) < 100
    assert "2304 bytes" in loggable(f"data:image/png;base64,{data}")


def test_c57_lines_are_bounded_in_bytes_and_say_what_is_missing():
    text = loggable("short\n" + "é€ " * 4000)
    first, second = text.split("\n")
    assert first == "short"
    assert len(second.encode()) <= MAX_LINE_BYTES
    assert second.endswith("bytes more)")
    assert loggable("x" * MAX_LINE_BYTES).startswith("<base64")
    assert loggable("- " * (MAX_LINE_BYTES // 2)) == "- " * (MAX_LINE_BYTES // 2)


def test_c59_control_characters_cannot_steer_a_terminal():
    assert printable("a\x1b[31mred\x07\nnext\ttab\u202eevil") == "a\\x1b[31mred\\x07 next tab\\u202eevil"
    assert printable("Wi‑Fi – é 中 🙂") == "Wi‑Fi – é 中 🙂"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\ud800b", "a\\ud800b"),
        ("\udfff", "\\udfff"),
        ("\x9b2J", "\\x9b2J"),
        ("a\ufeff\u061cb", "a\\ufeff\\u061cb"),
        ("a\r\n\tb", "a\\r\n\tb"),
        ("\x00", "\\x00"),
    ],
)
def test_text_of_several_lines_can_be_written_to_any_file(text, shown):
    assert escaped(text) == loggable(text) == shown
    shown.encode()


def test_json_gives_any_text_back_and_is_strict_unicode():
    value = {"a\ud800": ["\udfff\x00\x1b\x9b\u202e\ufeff é", float("nan"), float("-inf"), 10**30, (True, None)]}
    for indent in (None, 2):
        text = safe_json(value, indent=indent)
        text.encode()
        assert "é" in text and "\x9b" not in text
        assert json.loads(text, parse_constant=pytest.fail) == {
            "a\ud800": ["\udfff\x00\x1b\x9b\u202e\ufeff é", None, None, 10**30, [True, None]]
        }


@given(st.recursive(st.text() | st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False), st.lists))
def test_json_of_plain_data_is_that_data(value):
    assert json.loads(safe_json(value)) == value


def test_a_secret_that_is_no_unicode_is_masked_too():
    safe_text.remember_environment({"MY_TOKEN": "secret\udcff\ud800"})
    assert masked("is secret\udcff\ud800?") == "is ***?"


def test_tracebacks_pass_the_formatter_masked():
    safe_text.remember([CANARY])
    try:
        raise ValueError(f"refused key {CANARY}")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "with %s", (CANARY,), True)
        import sys

        record.exc_info = sys.exc_info()
    text = SafeFormatter().format(record)
    assert "Traceback" in text and "with ***c4" in text
    assert CANARY not in text
