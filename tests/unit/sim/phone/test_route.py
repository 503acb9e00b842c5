import pytest

from cuarl.sim.device.element import Element
from cuarl.sim.phone import device, graph
from cuarl.sim.phone.graph import page_graph
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.route import leads_to
from cuarl.sim.phone.start import prepare
from cuarl.sim.phone.world import PROFILES
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click


def device_of(seed=0, **preset):
    return prepare(TaskInstance(task_id="t", goal="g", preset=preset), Look.drawn(seed), PROFILES["small"])


def follow(world, target, limit=25):
    """Take every step of the way; the labels and kinds of what was used."""
    used = []
    for _ in range(limit):
        step = leads_to(world, target)
        if step is None:
            return world, used
        used.append(step.label if isinstance(step, Element) else step.kind)
        action = Click(x=step.centre[0], y=step.centre[1]) if isinstance(step, Element) else step
        world = device.step(world, action)
        if isinstance(step, Element) and step.writes == target:
            return world, used
    raise AssertionError(f"no end: {used}")


def test_every_settings_page_is_reached_from_home():
    world = device_of(3, **{"network.bluetooth.enabled": True, "system.developer_options": True})
    pages = [page for page in page_graph(world).edges if page.startswith("settings/")]
    assert len({page.partition(":")[0] for page in pages}) >= 55
    for page in pages[::3]:
        assert follow(world, page)[0].ui.page == page


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("path", ["network.nfc", "sound.touch_sounds", "apps.music.notifications", "system.use_24h"])
def test_way_to_a_switch_ends_with_the_switch_flipped(seed, path):
    world = device_of(seed)
    end, _ = follow(world, path)
    assert end.get(path) is not world.get(path)


def test_way_goes_back_when_that_is_shorter_than_starting_over():
    world = device_of(0, **{"ui.page": "settings/nfc"})
    assert follow(world, "settings/display")[1][0] == "Navigate up"


def test_there_is_no_way_to_what_does_not_exist():
    assert leads_to(device_of(), "nosuch.path") is None


def test_way_takes_no_page_that_only_a_long_press_opens_for_near():
    world = device_of(0, **{"ui.page": "files/folder:Download"})
    assert follow(world, "files/rename:Download/ticket.pdf")[1] == ["ticket.pdf", "Rename file"]


def test_the_map_of_one_device_is_not_taken_for_that_of_another():
    """They know the same networks and are in different ones, so that other pages lead to these."""
    saved = {"network.wifi.saved": ("HomeNet", "Office", "Library")}
    worlds = [device_of(**saved, **{"network.wifi.connected": name}) for name in ("Library", "HomeNet")]

    def edges(world):
        return page_graph(world).edges["settings/wifi"]

    first, second = map(edges, worlds)
    assert first != second
    graph._survey.cache_clear()
    assert [edges(world) for world in reversed(worlds)] == [second, first]


def test_the_map_does_not_depend_on_how_a_device_looks():
    found = []
    for seed in range(4):
        graph._survey.cache_clear()
        found.append(page_graph(device_of(seed)))
    assert all(
        (list(one.edges.items()), list(one.writers.items()))
        == (list(found[0].edges.items()), list(found[0].writers.items()))
        for one in found
    )


def test_the_map_drawn_in_parts_is_the_map_drawn_at_once():
    world = device_of(1)
    graph._survey.cache_clear()
    at_once = page_graph(world)
    graph._survey.cache_clear()
    parts = sum(1 for _ in graph.surveyed(world))
    in_parts = page_graph(world)
    assert in_parts is not at_once
    assert parts > len(at_once.edges) / graph.AT_ONCE
    assert list(in_parts.edges.items()) == list(at_once.edges.items())
    assert list(in_parts.writers.items()) == list(at_once.writers.items())
    assert list(graph.surveyed(world)) == []


def test_two_who_need_the_same_map_draw_it_together():
    world = device_of(2)
    graph._survey.cache_clear()
    alone = sum(1 for _ in graph.surveyed(world))
    graph._survey.cache_clear()
    one, other = graph.surveyed(world), graph.surveyed(world)
    together = sum(1 for pair in zip(one, other, strict=False) for _ in pair)
    assert together <= alone + 1
    assert page_graph(world).distance("settings/main", "settings/wifi") < graph.FAR
