from tests.unit.sim.phone.apps.finger import back, crawl, device, tap


def test_every_page_shows_whatever_is_tapped():
    pages = crawl(device("keyboard/settings"))
    assert {"keyboard/settings", "keyboard/corrections", "keyboard/feel", "settings/app:keyboard"} <= pages


def test_it_is_reached_from_the_settings_and_changes_typing():
    world = tap(device("settings/keyboard"), "GBox Keyboard", "Feel and sound", "Sound on keypress")
    assert world.state.system.key_sounds
    world = tap(back(world), "Corrections", "Auto-correction")
    assert not world.state.system.autocorrect
