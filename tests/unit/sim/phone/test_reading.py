"""Results are shared by worlds that have the same in what was read, and by no others."""

from dataclasses import replace

from cuarl.sim.device.bag import Bag
from cuarl.sim.kit.effects import Dialog
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.reading import remember_reads
from cuarl.sim.phone.world import World


def counted(function, by=None):
    calls = []

    def noting(world, *rest):
        calls.append(rest)
        return function(world, *rest)

    return remember_reads(8, by)(noting), calls


def test_what_was_not_read_does_not_matter():
    volume, calls = counted(lambda world: world.state.sound.media)
    world = World()
    others = [world.put("network.nfc", True), world.with_ui(app="clock", toast="Saved"), world]
    assert [volume(one) for one in others] == [world.state.sound.media] * 3
    assert len(calls) == 1
    assert volume(world.put("sound.media", 3)) == 3 and volume(World(look=Look(seed=5))) == world.state.sound.media
    assert len(calls) == 3


def test_what_is_read_may_depend_on_what_was_read():
    def shown(world):
        return world.state.sound.media if world.state.sound.dnd else world.get("ui.form.text")

    remembered, _ = counted(shown)
    start = World()
    for world in (
        start,
        start.put("ui.form.text", "a"),
        start.put("sound.dnd", True),
        start.put("sound.dnd", True).put("sound.media", 7),
    ):
        for same in (world, world.put("ui.form.text", "b"), world.put("network.nfc", True)):
            assert remembered(same) == shown(same)


def test_of_bags_one_value_is_read_and_its_type_counts():
    form, calls = counted(lambda world: repr(world.ui.form.get("a")))
    world = World()
    ones = [world.with_ui(form=Bag((("a", value), ("b", other)))) for value in (True, 1, 1.0) for other in (1, 2)]
    assert [form(one) for one in ones] == ["True", "True", "1", "1", "1.0", "1.0"]
    assert len(calls) == 3


def test_a_value_that_cannot_be_a_key_is_read_each_time():
    form, calls = counted(lambda world: list(world.ui.form.get("a", [])))
    items = [1]
    world = World().with_ui(form=Bag((("a", items),)))
    assert form(world) == [1]
    items.append(2)
    assert form(world) == [1, 2] and len(calls) == 2


def test_whoever_calls_has_read_what_the_called_one_read():
    inner, _ = counted(lambda world: world.state.sound.media)
    outer, calls = counted(lambda world: (world.ui.app, inner(world)))
    world, louder, softer = World(), World().put("sound.media", 9), World().put("sound.media", 2)
    inner(softer)  # so that it is known there, and not on the others
    for one in (world, louder, softer, louder, softer, world):
        assert outer(one) == ("", one.state.sound.media)
    assert len(calls) == 3


def test_dialogs_are_known_by_identity_and_pages_by_their_stack():
    page, calls = counted(lambda world: (world.ui.page, world.ui.dialog), by=lambda world: world.ui.page)
    one, other = Dialog("A"), Dialog("A")
    world = World().with_ui(app="notes", stacks=Bag((("notes", ("notes/list",)), ("mail", ("mail/list",)))))
    assert page(world.with_ui(dialog=one))[1] is one and page(world.with_ui(dialog=other))[1] is other
    assert (
        page(replace(world, ui=replace(world.ui, dialog=one, stacks=world.ui.stacks.without("mail"))))[0]
        == "notes/list"
    )
    assert len(calls) == 2
