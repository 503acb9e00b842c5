import subprocess

from cuarl.run import facts


def test_code_and_machine_are_described():
    assert facts.code().version
    machine = facts.machine()
    assert machine.cpus >= 1
    assert machine.packages["pydantic"].startswith("2.")


def test_a_package_outside_a_checkout_has_no_commit(monkeypatch, tmp_path):
    monkeypatch.setattr(facts.cuarl, "__file__", str(tmp_path / "site-packages" / "cuarl" / "__init__.py"))
    assert facts.code().commit is None
    assert facts.difference() is None


def test_commit_and_difference_of_a_checkout(monkeypatch, tmp_path):
    def git(*arguments):
        options = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *options, "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    (tmp_path / "cuarl").mkdir()
    file = tmp_path / "cuarl" / "__init__.py"
    file.write_text("a = 1\n")
    git("init"), git("add", "."), git("commit", "-m", "one")
    monkeypatch.setattr(facts.cuarl, "__file__", str(file))
    assert facts.code().dirty is False
    file.write_text("a = 2\n")
    assert facts.code().dirty is True
    assert "+a = 2" in facts.difference()


def test_a_tool_that_fails_says_nothing(tmp_path):
    assert facts._output([str(tmp_path / "no-such-tool")]) is None
    assert facts._output(["false"]) is None
