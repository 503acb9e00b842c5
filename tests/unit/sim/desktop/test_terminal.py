from cuarl.sim.desktop.view import layout
from cuarl.sim.desktop.widgets import TextLine
from tests.unit.sim.desktop.mouse import desktop, paths, press, write


def shown(world):
    lines = [item.widget for item in layout(world).scene.items if isinstance(item.widget, TextLine)]
    return [line.text for line in lines]


def test_a_line_runs_when_enter_is_pressed():
    world = write(desktop("terminal"), "mkdir plans")
    assert "plans" not in paths(world)
    world = press(world, "Return")
    assert "plans" in paths(world)
    assert shown(world) == ["sam@desk:~$ mkdir plans", "sam@desk:~$ "]
    assert world.state.terminal.history == ("mkdir plans",)


def test_several_lines_run_one_after_the_other():
    world = write(desktop("terminal"), "cd Documents\nls")
    assert world.focused.page == "Documents" and world.focused.box("input").text == "ls"
    assert shown(write(world, "", submit=True))[-2:] == [
        "Archive  budget.txt  letter.txt  minutes.txt",
        "sam@desk:~/Documents$ ",
    ]


def test_the_past_is_recalled_with_the_arrows():
    world = write(write(desktop("terminal"), "pwd", submit=True), "ls", submit=True)
    assert press(world, "Up").focused.box("input").text == "ls"
    assert press(world, "Up", "Up", "Up").focused.box("input").text == "pwd"
    assert press(world, "Up", "Up", "Down", "Down").focused.box("input").text == ""


def test_editing_keys_work_in_the_line():
    world = write(desktop("terminal"), "ech hi")
    world = press(world, "Home", "Right", "Right", "Right", "o")
    assert world.focused.box("input").text == "echo hi"
    assert press(world, "ctrl+u").focused.box("input").text == ""
    assert shown(press(world, "ctrl+c")) == ["sam@desk:~$ echo hi^C", "sam@desk:~$ "]
    assert shown(press(press(world, "ctrl+c"), "ctrl+l")) == ["sam@desk:~$ "]


def test_tab_completes_a_name_that_is_the_only_one():
    assert (
        press(write(desktop("terminal"), "cat Documents/bu"), "Tab").focused.box("input").text
        == "cat Documents/budget.txt"
    )
    assert press(write(desktop("terminal"), "cd D"), "Tab").focused.box("input").text == "cd D"


def test_long_output_shows_its_end():
    world = write(desktop("terminal"), "help; help", submit=True)
    assert shown(world)[-1] == "sam@desk:~$ " and shown(world)[0] != "sam@desk:~$ help; help"


def test_exit_closes_the_window():
    assert write(desktop("terminal"), "exit", submit=True).focused is None
    assert press(desktop("terminal"), "ctrl+d").focused is None
