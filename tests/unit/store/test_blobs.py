import io
import random
import threading

import anyio
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from PIL import Image

from cuarl.errors import ConfigError, StoreError
from cuarl.store import Blobs
from cuarl.types import Screenshot
from tests.unit.store.samples import picture


@pytest.fixture(params=["local", "memory"])
def blobs(request, tmp_path):
    if request.param == "memory":
        MemoryFileSystem.store.clear()
        return Blobs("memory://shots")
    return Blobs(str(tmp_path / "shots"))


def test_a_screenshot_comes_back_equal(blobs):
    shot = picture(7)
    blobs.put([shot])
    assert blobs.get(shot.digest).digest == shot.digest
    assert blobs.exists(shot.digest)
    assert list(blobs.digests()) == [shot.digest]


def test_screenshots_may_come_by_name(blobs):
    shots = {"before": picture(1), "after": picture(2)}
    blobs.put(shots)
    assert sorted(blobs.digests()) == sorted(s.digest for s in shots.values())


def test_a_file_is_named_by_the_digest(tmp_path):
    shot = picture()
    Blobs(str(tmp_path)).put([shot])
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.png")] == [
        f"{shot.digest[:2]}/{shot.digest[2:]}.png"
    ]


def test_a_screen_that_comes_again_is_not_written_again(tmp_path):
    shot = picture()
    blobs = Blobs(str(tmp_path))
    blobs.put([shot])
    path = next(tmp_path.rglob("*.png"))
    path.write_bytes(b"mark")
    blobs.put([shot])
    Blobs(str(tmp_path)).put([shot])  # another process
    assert path.read_bytes() == b"mark"


def test_what_another_process_has_encoded_and_stored_is_taken_as_it_is_and_else_written(tmp_path):
    there, missing = (Screenshot.encoded(picture(i).png(), picture(i).ref) for i in (1, 2))
    Blobs(str(tmp_path)).put([there])
    path = next(tmp_path.rglob("*.png"))
    path.write_bytes(b"mark")
    blobs = Blobs(str(tmp_path))
    anyio.run(blobs.put_async, [there, missing, picture(3)])
    assert path.read_bytes() == b"mark"
    assert {*blobs.digests()} == {picture(i).digest for i in (1, 2, 3)}
    assert blobs.png(missing.digest) == missing.png()


def test_many_threads_leave_one_whole_file_each(tmp_path):
    shots = [picture(i) for i in range(8)]
    writers = [threading.Thread(target=Blobs(str(tmp_path)).put, args=(shots,)) for _ in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(files) == 8
    for shot in shots:
        Blobs(str(tmp_path)).check(shot.digest)


def test_put_async_stores_off_the_loop(tmp_path):
    blobs = Blobs(str(tmp_path))
    anyio.run(blobs.put_async, [picture(1), picture(2)])
    assert len(list(blobs.digests())) == 2


def test_check_finds_a_missing_a_broken_and_a_wrong_file(tmp_path):
    blobs, shot, other = Blobs(str(tmp_path)), picture(1), picture(2)
    with pytest.raises(StoreError, match="missing"):
        blobs.check(shot.digest)
    blobs.put([shot])
    blobs.check(shot.digest)
    path = next(tmp_path.rglob("*.png"))
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(StoreError, match="broken"):
        blobs.check(shot.digest)
    path.write_bytes(other.png())
    with pytest.raises(StoreError, match="something else"):
        blobs.check(shot.digest)


@pytest.mark.parametrize("digest", ["../../etc/passwd", "/etc/passwd", "AB" * 32, "ab", "a\x00" + "0" * 62])
def test_only_digests_name_files(blobs, digest):
    with pytest.raises(StoreError, match="not a screenshot's digest"):
        blobs.get(digest)


def test_a_folder_that_cannot_be_written_is_a_store_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="can't be stored"):
        Blobs(str(tmp_path / "file")).put([picture()])


def test_an_unknown_protocol_is_a_config_error():
    with pytest.raises(ConfigError):
        Blobs("nosuch://x")


def test_copy_all_copies_what_is_there_byte_for_byte(tmp_path):
    here, there = Blobs(str(tmp_path / "a")), Blobs(str(tmp_path / "b"))
    here.put([picture(1), picture(2)])
    wanted = [picture(1).digest, picture(3).digest]
    assert here.copy_all(there, wanted) == 1
    assert there.png(picture(1).digest) == here.png(picture(1).digest)


@pytest.mark.parametrize("size", [(1, 1), (3, 7), (64, 40), (360, 640)])
def test_encoded_pictures_decode_to_the_very_pixels(size):
    width, height = size
    noise = random.Random(width).randbytes(3 * width * height)
    shot = Screenshot(Image.frombytes("RGB", size, noise))
    with Image.open(io.BytesIO(shot.png())) as image:
        image.load()
        assert (image.format, image.mode, image.tobytes()) == ("PNG", "RGB", noise)
    assert Screenshot.decode(shot.png()).digest == shot.digest
