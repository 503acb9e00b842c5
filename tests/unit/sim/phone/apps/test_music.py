import pytest

from cuarl.sim.phone.elements import elements
from tests.unit.sim.phone.apps.finger import back, crawl, device, find, tap, type_into


def rows(world):
    return [e.label for e in elements(world) if e.role == "row"]


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("music/songs", seed, profile))
    assert {"music/songs", "music/liked", "music/player", "music/settings"} <= pages


def test_a_tap_plays_a_song_and_the_small_player_pauses_it():
    world = tap(device("music/songs"), "Slow Train")
    assert (world.state.music.current, world.state.music.playing) == (2, True)
    world = tap(world, "Pause")
    assert (world.state.music.current, world.state.music.playing) == (2, False)


def test_the_player_goes_to_the_next_song_and_back():
    world = tap(device("music/songs"), "Paused")
    assert not find(world, "Previous song").enabled
    world = tap(world, "Next song", "Next song", "Next song")
    assert (world.state.music.current, world.state.music.playing) == (3, True)
    assert not find(world, "Next song").enabled
    assert tap(world, "Previous song").state.music.current == 2


def test_repeating_goes_round():
    world = tap(device("music/player", **{"music.current": 3}), "Repeat on", "Next song")
    assert world.state.music.current == 0
    assert tap(world, "Previous song").state.music.current == 3


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_every_song_is_played_once_before_the_first_comes_again(seed):
    world = tap(device("music/player", seed), "Shuffle on", "Repeat on")
    played = []
    for _ in world.state.music.songs:
        played.append(world.state.music.current)
        world = tap(world, "Next song")
    assert sorted(played) == [0, 1, 2, 3]
    assert world.state.music.current == 0


def test_a_liked_song_is_listed_and_unliked():
    world = tap(device("music/player"), "Like song")
    assert world.state.music.songs[0].liked
    world = tap(back(world), "Like Slow Train", "Liked")
    assert rows(world) == ["Blue Harbour", "Slow Train"]
    assert rows(tap(world, "Unlike Slow Train")) == ["Blue Harbour"]
    assert (
        not tap(
            device("music/player", **{"music.songs": [{"title": "A", "artist": "B", "liked": True}]}), "Unlike song"
        )
        .state.music.songs[0]
        .liked
    )


def test_an_empty_library_has_no_player():
    assert rows(device("music/songs", **{"music.songs": []})) == []
    assert not any(e.label == "Play" for e in elements(device("music/player", **{"music.songs": []})))


def test_the_search_looks_into_titles_and_artists():
    assert rows(type_into(device("music/songs"), "Search songs", "ida")) == ["Paper Moon"]
