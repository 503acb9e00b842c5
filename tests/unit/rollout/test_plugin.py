"""Which files a reward function of one's own is made of."""

import importlib
import sys

import pytest

from cuarl.rollout.plugin import changes, same_code, sources


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes modules that can be imported, and forgets them afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_what_comes_with_cuarl_has_no_source_of_ones_own():
    assert sources("finished") == {}


def test_what_has_no_source_in_python_has_none():
    assert sources("math:sqrt") == {}


def test_a_module_and_what_it_imports_from_its_folder(write, tmp_path):
    write(
        {
            "plug_reward.py": "import json\nimport plug_parts as parts\ndef mine(t):\n    return parts.one()\n",
            "plug_parts.py": "from plug_more import two\ndef one():\n    return two()\n",
            "plug_more.py": "def two():\n    return 2.0\n",
            "plug_other.py": "",
        }
    )
    assert sources("plug_reward:mine") == {
        name: tmp_path / f"{name}.py" for name in ("plug_reward", "plug_parts", "plug_more")
    }


def test_a_package_with_relative_imports(write, tmp_path):
    write(
        {
            "plugpack/__init__.py": "from .rewards import mine\n",
            "plugpack/rewards.py": "from . import parts\nfrom .more import two\n"
            "def mine(t):\n    return parts.one() + two()\n",
            "plugpack/parts.py": "def one():\n    return 1.0\n",
            "plugpack/more.py": "def two():\n    return 2.0\n",
        }
    )
    assert set(sources("plugpack.rewards.mine")) == {"plugpack.rewards", "plugpack.parts", "plugpack.more", "plugpack"}
    assert set(sources("plugpack:mine")) == set(sources("plugpack.rewards:mine"))


def test_comments_and_layout_are_no_change_and_a_number_is():
    assert same_code(b"def f(t): return 1.0", b"# better now\ndef f(t):\n    return 1.0\n")
    assert not same_code(b"def f(t): return 1.0", b"def f(t): return 2.0")
    assert not same_code(b"def f(t): return 1.0", b"def f(t) return 1.0")


def test_changes_are_named_by_module():
    now = {"a": b"x = 2", "c": b""}
    assert changes({"a": b"x = 1", "b": b""}, now) == [
        "module a: its code differs",
        "module b is imported no more",
        "module c is imported, too",
    ]
    assert changes(now, now) == []
