"""What Playwright says where a page or a frame is replaced while it is asked."""

import pytest

from cuarl.env.browser.passing import is_passing


class Page:
    def is_closed(self):
        return False


@pytest.mark.parametrize(
    ("said", "passing"),
    [
        ("Frame.frame_element: Frame has been detached.", True),
        ("Frame.evaluate: frame was detached", True),
        ("Page.evaluate: Execution context was destroyed, most likely because of a navigation", True),
        ("Page.evaluate: Cannot find context with specified id", True),
        ("Page.evaluate: TypeError: x is not a function", False),
    ],
)
def test_recorded_errors_of_a_page_that_is_replaced(said, passing):
    assert is_passing(RuntimeError(said), Page()) is passing
