"""What lies beside the weights, written where there is no room."""

import errno

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from cuarl.policy import companions
from tests.small_disk import fill, small_disk


@pytest.fixture
def tokenizer():
    words = {f"word{n}": n for n in range(40_000)}
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel(words, unk_token="word0")))


def test_a_full_disk_is_said_as_such(tokenizer, tmp_path):
    with small_disk(tmp_path / "disk", "1m") as disk:
        filling = fill(disk)
        with pytest.raises(OSError, match="No space left") as caught:
            companions.write(str(disk), tokenizer)
        assert caught.value.errno == errno.ENOSPC
        filling.unlink()
        companions.write(str(tmp_path), tokenizer)
    assert (tmp_path / "tokenizer.json").is_file()


def test_other_faults_stay_what_they_are(tmp_path):
    class Odd:
        def save_pretrained(self, folder):
            raise Exception("odd")

    with pytest.raises(Exception, match="odd") as caught:
        companions.write(str(tmp_path), Odd())
    assert type(caught.value) is Exception
