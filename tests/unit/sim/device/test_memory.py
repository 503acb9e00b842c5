from cuarl.sim.device.memory import remember


class Thing:
    def __init__(self, left, right):
        self.left, self.right = left, right


def test_result_is_kept_for_the_same_object_and_computed_for_an_equal_one():
    calls = []

    @remember(4)
    def length(items):
        calls.append(items)
        return len(items)

    one, other = [1, 2], [1, 2]
    assert (length(one), length(one), length(other)) == (2, 2, 2)
    assert len(calls) == 2


def test_oldest_result_is_forgotten_when_there_are_too_many():
    calls = []

    @remember(2)
    def length(items):
        calls.append(items)
        return len(items)

    lists = [[1], [1, 2], [1, 2, 3]]
    for items in (*lists, lists[2], lists[0]):
        length(items)
    assert calls == [*lists, lists[0]]


def test_arguments_with_the_same_parts_share_a_result():
    calls = []

    @remember(2, parts=lambda thing: (thing.left,))
    def show(thing):
        calls.append(thing)
        return str(thing.left)

    left = [1]
    assert show(Thing(left, 1)) is show(Thing(left, 2))
    show(Thing([1], 1))
    assert len(calls) == 2
