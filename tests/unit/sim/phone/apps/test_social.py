import pytest

from cuarl.sim.phone.apps import facebook, instagram
from cuarl.sim.phone.elements import elements
from tests.unit.sim.phone.apps.finger import back, crawl, device, tap, type_into


def rows(world):
    return [e.label for e in elements(world) if e.role == "row"]


@pytest.mark.parametrize(("app", "seed", "profile"), [("instagram", 0, "small"), ("facebook", 1, "phone")])
def test_every_page_shows_whatever_is_tapped(app, seed, profile):
    pages = crawl(device(f"{app}/feed", seed, profile))
    assert {f"{app}/{page}" for page in ("feed", "people", "me", "liked", "settings")} <= pages


@pytest.mark.parametrize("module", [facebook, instagram])
def test_authors_are_people_and_titles_differ(module):
    assert {p.author for p in module.POSTS} <= set(module.PEOPLE)
    assert len({p.title for p in module.POSTS}) == len(module.POSTS)


def test_a_post_is_liked_and_unliked():
    world = tap(device("instagram/feed"), "Like Waves")
    assert world.state.instagram.liked == ("Waves",)
    assert world.state.facebook.liked == ()
    assert tap(world, "Unlike Waves").state.instagram.liked == ()
    assert tap(world, "Waves").ui.page == "instagram/post:Waves"


def test_liked_posts_are_forgotten_only_after_the_question():
    world = tap(device("facebook/post:Lost cat"), "Like Lost cat")
    world = tap(back(world), "Profile", "Liked posts")
    assert rows(world) == ["Lost cat"]
    asked = tap(world, "Unlike all")
    assert tap(asked, "Cancel").state == world.state
    assert tap(asked, "Unlike").state.facebook.liked == ()


def test_a_person_is_followed_and_unfollowed():
    world = tap(type_into(device("instagram/people"), "Search people", "jon"), "Jon Vale", "Follow")
    assert world.state.instagram.following == ("Mira Sol", "Jon Vale")
    asked = tap(world, "Following")
    assert tap(asked, "Cancel").state == world.state
    assert tap(asked, "Unfollow").state.instagram.following == ("Mira Sol",)


def test_settings_belong_to_one_network():
    world = tap(device("facebook/settings"), "Private account", "Notifications")
    assert world.state.facebook.private
    assert not world.state.instagram.private
    assert not world.app("facebook").notifications
