"""GBox's own client and our adapter, each through the same scenario against the same local server."""

from __future__ import annotations

import anyio
import pytest

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.env.gbox.client import INVALID, LABEL, POINTING_MODEL, GBox
from cuarl.local.box import SimulatedBox
from cuarl.local.wire import picture_in
from tests.fakes.gbox_server import KEY, serving

gbox_sdk = pytest.importorskip("gbox_sdk", reason="GBox's own client is a development dependency: pip install gbox-sdk")

STEPS = (
    ("tap", {"x": 30.0, "y": 60.0}),
    ("press_button", {"buttons": ["home"]}),
    ("swipe", {"start": {"x": 90, "y": 250}, "end": {"x": 90, "y": 60}, "duration": "300ms"}),
    ("long_press", {"x": 40.0, "y": 70.0, "duration": "700ms"}),
    ("scroll", {"x": 90.0, "y": 150.0, "scroll_x": 0.0, "scroll_y": 60.0}),
    ("press_button", {"buttons": ["back"]}),
)
WIRE = {"scroll_x": "scrollX", "scroll_y": "scrollY"}


@pytest.fixture(scope="module")
def server():
    with serving() as running:
        yield running


@pytest.fixture
def client(server):
    with gbox_sdk.GboxClient(api_key=KEY, base_url=server[1]) as made:
        yield made


def by_sdk(client):
    """The address of every screen that GBox's own client is shown, and the id of its box, which it has ended."""
    box = client.v1.boxes.create_android(wait=True, config={"expires_in": "10m", "labels": {LABEL: "by-sdk"}})
    actions, seen = client.v1.boxes.actions, []
    for name, body in STEPS:
        getattr(actions, name)(box_id=box.id, **body)
        seen.append(picture_in(actions.screenshot(box_id=box.id, output_format="base64").uri).digest)
    client.v1.boxes.terminate(box_id=box.id)
    return seen, box.id


def by_adapter(url):
    """The same by the adapter."""

    async def run():
        boxes, seen = GBox(url, KEY), []
        box = await boxes.create("android", "by-adapter", "10m")
        await boxes.wait(box)
        for name, body in STEPS:
            wire = {WIRE.get(key, key): value for key, value in body.items()}
            assert await boxes.act(box, name.replace("_", "-"), wire) == ""
            seen.append((await boxes.screenshot(box)).digest)
        await boxes.terminate(box)
        await boxes.close()
        return seen, box

    return anyio.run(run)


def test_own_client_and_adapter_see_the_same_screens(server, client):
    fake, url = server
    seen, box = by_sdk(client)
    assert len(set(seen)) > 2, "the scenario changes the screen"
    ours, our_box = by_adapter(url)
    assert seen == ours
    boxes: dict[str, SimulatedBox] = fake.boxes
    assert len(boxes[box].acted) == len(boxes[our_box].acted) == len(STEPS)
    assert boxes[box].config["expiresIn"] == "10m"
    assert fake.counts()["live"] == 0


def test_own_client_finds_display_commands_and_labels_as_the_adapter_does(server, client):
    box = client.v1.boxes.create_linux(wait=True, config={"labels": {LABEL: "found"}})
    size = client.v1.boxes.display(box_id=box.id).resolution
    said = client.v1.boxes.execute_commands(box_id=box.id, command="echo all well")

    async def ours():
        boxes = GBox(server[1], KEY)
        found = await boxes.display(box.id), await boxes.command(box.id, "echo all well"), await boxes.labelled("found")
        await boxes.close()
        return found

    display, command, labelled = anyio.run(ours)
    assert display == (size.width, size.height)
    assert command == (said.exit_code, said.stdout, said.stderr)
    assert labelled == [box.id]
    client.v1.boxes.terminate(box_id=box.id)


def test_own_client_and_adapter_are_pointed_to_the_same_place(server, client):
    """The typed client has no method for the pointing model, so it is asked through its raw one."""
    box = client.v1.boxes.create_android(wait=True)
    shown = client.v1.boxes.actions.screenshot(box_id=box.id, output_format="base64").uri

    def theirs(target):
        body = {"model": POINTING_MODEL, "screenshot": shown, "action": {"type": "click", "target": target}}
        return client.post("/model", cast_to=object, body=body)["response"]["coordinates"]

    async def ours(target):
        boxes = GBox(server[1], KEY)
        found = await boxes.point(picture_in(shown), target)
        await boxes.close()
        return found

    there = theirs('icon labelled "Camera"')
    assert anyio.run(ours, 'icon labelled "Camera"') == (there["x"], there["y"])
    assert theirs("a unicorn") == {"x": -1, "y": -1}
    assert anyio.run(ours, "a unicorn") is None
    client.v1.boxes.terminate(box_id=box.id)


def test_errors_are_the_ones_that_own_client_knows(server, client):
    with pytest.raises(gbox_sdk.NotFoundError):
        client.v1.boxes.retrieve(box_id="no-such-box")
    box = client.v1.boxes.create_android(wait=True)
    with pytest.raises(gbox_sdk.APIStatusError) as refused:
        client.v1.boxes.actions.tap(box_id=box.id, x=9999.0, y=1.0)
    assert refused.value.status_code in INVALID
    client.v1.boxes.terminate(box_id=box.id)
    with (
        gbox_sdk.GboxClient(api_key="wrong", base_url=server[1]) as stranger,
        pytest.raises(gbox_sdk.AuthenticationError),
    ):
        stranger.v1.boxes.retrieve(box_id=box.id)


def test_own_client_reads_what_the_local_server_tells_of_its_screens(server, client):
    android = client.v1.boxes.create_android(wait=True, config={"expires_in": "10m"})
    told = client.v1.boxes.actions.screen_layout(box_id=android.id)
    assert told.content.startswith("<?xml") and "</hierarchy>" in told.content
    linux = client.v1.boxes.create_linux(wait=True, config={"expires_in": "10m"})
    found = client.v1.boxes.actions.elements_detect(box_id=linux.id)
    assert found.elements and all(one.label is not None and one.width > 0 for one in found.elements)
    assert picture_in(found.screenshot.source.uri)
    for box in (android, linux):
        client.v1.boxes.terminate(box_id=box.id)
