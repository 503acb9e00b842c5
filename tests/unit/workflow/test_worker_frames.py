"""What a collector and its workers send each other."""

from pathlib import Path

import pytest

from cuarl.config.load import resolve
from cuarl.settings import Settings
from cuarl.workflow.players import scripted
from cuarl.workflow.workers import messages as m
from cuarl.workflow.workers.work import Work
from cuarl.workflow.workers.worker import _Opened
from tests.unit.store.samples import picture


def news(*screens):
    return m.News("acting", "", [], list(screens))


def test_a_picture_travels_once_an_episode():
    ours, theirs = m.Codec(), m.Codec()
    first, again, other = (ours.pack(n, news(picture(1))) for n in (1, 1, 2))
    assert len(again) < len(first) - len(picture(1).png()) // 2 and len(other) == len(first)
    assert [theirs.unpack(frame)[1].screens[0].png() for frame in (first, again)] == [picture(1).png()] * 2
    theirs.forget(1)
    with pytest.raises(KeyError):
        theirs.unpack(again)
    number, found = theirs.unpack(other)
    assert number == 2 and found.screens[0].digest == picture(1).digest


def work(folder):
    config = resolve(flags={"env": "linux", "workers": 2}).config
    return Work.of(config, Settings(), [], scripted("oracle").make_agent, folder)


def test_a_configuration_travels_with_its_backends_options():
    _, opened = m.Codec().unpack(m.Codec().pack(m.ALL, m.Open(1, work(None))))
    assert opened.what.config == work(None).config


def test_a_worker_stores_a_picture_before_it_is_sent_where_it_can(tmp_path):
    kept = _Opened(work(str(tmp_path / "shots"))).keep(picture(1))
    (path,) = tmp_path.rglob("*.png")
    assert kept.png() == path.read_bytes() == picture(1).png() and kept.digest == picture(1).digest
    assert _Opened(work(None)).keep(picture(2)).png() == picture(2).png()


def test_a_folder_that_can_not_be_written_to_is_left_to_the_collector(tmp_path):
    Path(tmp_path / "file").write_text("in the way")
    assert _Opened(work(str(tmp_path / "file"))).keep(picture(1)).png() == picture(1).png()
