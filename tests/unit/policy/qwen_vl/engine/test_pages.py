import pytest

from cuarl.policy.qwen_vl.engine.pages import PAGE, OutOfPages, Pages, page_keys

IMAGE = 9


def _keys(*pages: int) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
    return page_keys([i for n in pages for i in [n] * PAGE], IMAGE, [])


def test_a_page_is_known_by_its_tokens_and_all_before_it() -> None:
    pages = Pages(10)
    made = pages.take(3)
    pages.leave(pages.remember([], _keys(1, 2, 3), made))
    assert [n.page for n in pages.find(_keys(1, 2, 4))] == made[:2]
    assert pages.find(_keys(2, 3)) == []


def test_pictures_tell_pages_with_the_same_tokens_apart() -> None:
    ids = [1] * 10 + [IMAGE] * 30 + [2] * 8
    one, other = (page_keys(ids, IMAGE, [("a", 20), (last, 10)]) for last in ("b", "c"))
    assert one[0] == other[0] and one[0][1] == ("a",)
    assert one[1][1] == ("a", "b") and other[1][1] == ("a", "c")
    assert one[2][1] == ("b",), "its eight last tokens"


def test_what_nobody_uses_gives_way_oldest_first_and_prefixes_last() -> None:
    pages = Pages(5)
    first = pages.remember([], _keys(1, 2), pages.take(2))
    pages.leave(first)
    second = pages.remember([], _keys(3, 4), pages.take(2))
    pages.leave(second)
    pages.take(1)
    assert len(pages.find(_keys(1, 2))) == 1, "the end of the older chain is gone, its beginning is not"
    assert len(pages.find(_keys(3, 4))) == 2


def test_what_is_used_is_never_taken() -> None:
    pages = Pages(4)
    pages.remember([], _keys(1, 2), pages.take(2))
    with pytest.raises(OutOfPages):
        pages.take(2)
    assert pages.free == 1, "none was taken"


def test_the_same_page_made_twice_is_kept_once() -> None:
    pages = Pages(5)
    one = pages.remember([], _keys(1), pages.take(1))
    other = pages.remember([], _keys(1), pages.take(1))
    assert one == other and one[0].users == 2
    assert pages.free == 3


def test_forgetting_frees_everything() -> None:
    pages = Pages(5)
    pages.leave(pages.remember([], _keys(1, 2), pages.take(2)))
    pages.forget()
    assert pages.free == 4 and pages.find(_keys(1)) == []


def test_old_prefixes_can_be_retired() -> None:
    pages = Pages(6)
    pages.leave(pages.remember([], _keys(1), pages.take(1)))
    for _ in range(3):
        pages.leave(pages.find(_keys(2)))
    pages.leave(pages.remember([], _keys(2), pages.take(1)))
    pages.retire(2)
    assert pages.find(_keys(1)) == [] and len(pages.find(_keys(2))) == 1
