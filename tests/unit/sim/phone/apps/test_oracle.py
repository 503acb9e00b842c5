"""The oracle finds its way through the apps: alone where a check says enough, with a plan where a form is filled in."""

import pytest

from tests.unit.sim.phone.test_planner import solved

CHECKS = [
    {"path": "browser.search_engine", "value": "Seekr"},
    {"path": "browser.bookmarks", "op": "not_contains", "value": "weather.test"},
    {"path": "media.mode", "value": "Night"},
    {"path": "media.photos.2.favourite", "value": True},
    {"path": "display.wallpaper", "value": "Flower"},
    {"path": "mails.2.archived", "value": True},
    {"path": "mails", "op": "lacks", "value": {"subject": "Book is due"}},
    {"path": "music.songs.1.liked", "value": True},
    {"path": "weather.city", "value": "Tokyo"},
    {"path": "store.pending", "op": "empty"},
    {"path": "maps.saved", "op": "contains", "value": "Art Museum"},
    {"path": "instagram.liked", "op": "contains", "value": "Waves"},
    {"path": "facebook.following", "op": "contains", "value": "Grace Park"},
]
ADDRESS = "Search or type URL"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check["path"])
def test_the_oracle_meets_a_check_without_side_effects(check):
    result, _ = solved([check], seed=2)
    assert result.success, result
    assert not result.side_effects


@pytest.mark.parametrize(
    ("check", "plan"),
    [
        (
            {"path": "files", "op": "has", "value": {"path": "Download/abc", "folder": True}},
            [{"open": "files/new:Download"}, {"type": "abc", "into": "Folder name"}, {"tap": "Create"}],
        ),
        (
            {"path": "media.photos", "op": "has", "value": {"name": "IMG_0005"}},
            [{"open": "camera/main"}, {"tap": "Take photo"}],
        ),
        (
            {"path": "mails", "op": "has", "value": {"to": "ben@mail.test", "subject": "Hi"}},
            [{"open": "mail/new"}, {"type": "Ben Ortiz", "into": "To"}, {"type": "Hi", "into": "Subject"},
                {"tap": "Send"}],
        ),
        (
            {"path": "files", "op": "has", "value": {"path": "Download/logo.svg"}},
            [{"open": "chrome/main"}, {"type": "gbox.ai", "into": ADDRESS, "submit": True}, {"tap": "logo.svg"}],
        ),
        (
            {"path": "browser.url", "op": "icontains", "value": "android test"},
            [{"open": "chrome/main"}, {"type": "Android test", "into": ADDRESS, "submit": True}],
        ),
    ],
    ids=("folder", "photo", "mail", "download", "search"),
)  # fmt: skip
def test_the_oracle_follows_a_plan(check, plan):
    result, _ = solved([check], plan=plan, seed=1)
    assert all(c.passed for c in result.checks), result
    assert {path.partition(".")[0] for path in result.side_effects} <= {"browser"}
