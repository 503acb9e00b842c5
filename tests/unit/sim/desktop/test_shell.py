"""The shell, held to what a POSIX shell with GNU tools prints."""

import pytest

from cuarl.sim.desktop.records import File
from cuarl.sim.desktop.shell import run_line

FILES = (
    File("Documents", folder=True),
    File("Documents/a.txt", text="one\ntwo\nthree\n"),
    File("Documents/b b.txt", text="Two words\n"),
    File("Documents/Deep", folder=True),
    File("empty", folder=True),
    File("log.txt", text="ok\nwarning: a\nok\nWarning: b\n"),
    File("pic.jpg", size_kb=3),
)


def run(*lines, files=FILES, cwd=""):
    output = ""
    for line in lines:
        result = run_line(files, cwd, lines, line)
        files, cwd, output = result.files, result.cwd, output + result.output
    return files, cwd, output


def printed(*lines):
    return run(*lines)[2]


def names(files):
    return {f.path for f in files}


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("pwd", "/home/sam\n"),
        ("ls", "Documents  empty  log.txt  pic.jpg\n"),
        ("ls Documents", "Deep  a.txt  'b b.txt'\n"),
        ("ls -1 empty", ""),
        ("ls log.txt", "log.txt\n"),
        ("ls -l log.txt", "-rw-r--r-- sam       28 log.txt\n"),
        ("cat Documents/a.txt", "one\ntwo\nthree\n"),
        ("echo hello   world", "hello world\n"),
        ("echo 'a  b' \"c d\" e\\ f", "a  b c d e f\n"),
        ("echo -n x", "x"),
        ("echo ~ $HOME", "/home/sam /home/sam\n"),
        ("echo Documents/*.txt", "Documents/a.txt Documents/b b.txt\n"),
        ("echo *.md '*'", "*.md *\n"),
        ("grep warning log.txt", "warning: a\n"),
        ("grep -in warning log.txt", "2:warning: a\n4:Warning: b\n"),
        ("grep -c ok log.txt", "2\n"),
        ("grep -v ok log.txt", "warning: a\nWarning: b\n"),
        ("grep o Documents/a.txt log.txt", "Documents/a.txt:one\nDocuments/a.txt:two\nlog.txt:ok\nlog.txt:ok\n"),
        ("wc log.txt", "4 6 28 log.txt\n"),
        ("wc -l log.txt Documents/a.txt", "4 log.txt\n3 Documents/a.txt\n7 total\n"),
        ("head -n 1 log.txt", "ok\n"),
        ("tail -2 Documents/a.txt", "two\nthree\n"),
        ("tail -n 0 log.txt", ""),
        ("cat log.txt | grep -i warning | wc -l", "2\n"),
        ("ls | head -n 2", "Documents\nempty\n"),
        ("echo a; echo b", "a\nb\n"),
        ("cat nothing && echo yes", "cat: nothing: No such file or directory\n"),
        ("grep zzz log.txt && echo yes", ""),
        ("true", "true: command not found\n"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_line_prints(line, output):
    assert printed(line) == output


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cd nowhere", "cd: nowhere: No such file or directory"),
        ("cd log.txt", "cd: log.txt: Not a directory"),
        ("cd /etc", "cd: /etc: Permission denied"),
        ("cd ../..", "cd: ../..: Permission denied"),
        ("cat Documents", "cat: Documents: Is a directory"),
        ("mkdir Documents", "mkdir: cannot create directory 'Documents': File exists"),
        ("mkdir x/y", "mkdir: cannot create directory 'x/y': No such file or directory"),
        ("mkdir", "mkdir: missing operand"),
        ("rmdir Documents", "rmdir: failed to remove 'Documents': Directory not empty"),
        ("rmdir log.txt", "rmdir: failed to remove 'log.txt': Not a directory"),
        ("rm Documents", "rm: cannot remove 'Documents': Is a directory"),
        ("rm nothing", "rm: cannot remove 'nothing': No such file or directory"),
        ("cp Documents x", "cp: -r not specified; omitting directory 'Documents'"),
        ("cp log.txt", "cp: missing destination file operand after 'log.txt'"),
        ("mv nothing x", "mv: cannot stat 'nothing': No such file or directory"),
        ("mv log.txt log.txt", "mv: 'log.txt' and 'log.txt' are the same file"),
        ("mv Documents Documents/Deep",
            "mv: cannot move 'Documents' to 'Documents/Deep': cannot move a directory into itself"),
        ("mv log.txt pic.jpg nowhere", "mv: target 'nowhere' is not a directory"),
        ("touch x/y", "touch: cannot touch 'x/y': No such file or directory"),
        ("echo a > Documents", "sh: Documents: Is a directory"),
        ("echo a > x/y", "sh: x/y: No such file or directory"),
        ("echo 'open", "sh: unexpected EOF while looking for matching `''"),
        ("echo a >", "sh: syntax error near unexpected token `newline'"),
        ("| wc", "sh: syntax error near unexpected token `|'"),
        ("ls -z", "ls: invalid option -- 'z'"),
        ("ls nothing", "ls: cannot access 'nothing': No such file or directory"),
        ("head -n x log.txt", "head: invalid number of lines: 'x'"),
        ("frobnicate now", "frobnicate: command not found"),
    ],
)  # fmt: skip
def test_an_error_is_told_as_a_shell_does_and_changes_nothing(line, message):
    files, cwd, output = run(line)
    assert output == message + "\n"
    assert (files, cwd) == (FILES, "")


def test_folders_are_entered_and_left():
    assert run("cd Documents/Deep")[1] == "Documents/Deep"
    assert run("cd Documents/Deep", "cd ..", "cd ~/empty")[1] == "empty"
    assert run("cd Documents", "cd")[1] == ""
    assert printed("cd Documents", "pwd") == "/home/sam/Documents\n"


def test_files_are_made_moved_copied_and_removed():
    assert {"x", "x/y", "x/z"} <= names(run("mkdir -p x/y x/z")[0])
    assert "new.txt" in names(run("touch new.txt")[0])
    assert "empty" not in names(run("rmdir empty")[0])
    moved = names(run("mv Documents empty")[0])
    assert "empty/Documents/Deep" in moved and "Documents" not in moved
    assert {"copy/Deep", "copy/a.txt", "Documents/a.txt"} <= names(run("cp -r Documents copy")[0])
    assert names(run("rm -r Documents")[0]) == {"empty", "log.txt", "pic.jpg"}
    assert names(run("rm *.txt")[0]) == names(FILES) - {"log.txt"}
    assert run("mv log.txt pic.jpg empty", "cd empty", "ls")[2] == "log.txt  pic.jpg\n"


def test_output_is_written_and_appended():
    files, _, output = run("echo a > x.txt", "echo b >> x.txt", "cat x.txt > 'y z.txt'")
    assert output == ""
    assert {f.path: f.text for f in files if f.path in ("x.txt", "y z.txt")} == {"x.txt": "a\nb\n", "y z.txt": "a\nb\n"}


def test_leaving_a_folder_that_is_removed_goes_home():
    assert run("cd Documents", "rm -r ~/Documents")[1] == ""


def test_names_are_laid_in_columns_as_wide_as_the_screen():
    files = tuple(File(f"file{i}.txt") for i in range(7))
    narrow = run_line(files, "", (), "ls", 31).output.splitlines()
    assert all(len(line) <= 31 for line in narrow) and len(narrow) == 3
    assert narrow[0].split() == ["file0.txt", "file3.txt", "file6.txt"]


def test_the_screen_is_cleared_the_shell_left_and_the_past_told():
    assert run_line(FILES, "", (), "clear").clear
    assert run_line(FILES, "", (), "exit").leave
    assert run_line(FILES, "", ("ls", "history"), "history").output == "   1  ls\n   2  history\n"
    assert "grep" in run_line(FILES, "", (), "help").output
