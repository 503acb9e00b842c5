import pytest

from cuarl.errors import AgentError
from cuarl.policy.prompt import Prompt
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import Message, Picture, PromptTooLong, SampledText, Text
from tests.unit.policy.pictures import SYSTEM, messages, screen


def _ids(policy: QwenVLPolicy, conversation: tuple[Message, ...]) -> tuple[int, ...]:
    rendered = policy.render(conversation)
    assert isinstance(rendered, Prompt)
    return rendered.ids


def _reference(policy: QwenVLPolicy, conversation: tuple[Message, ...]) -> tuple[int, ...]:
    """What the processors of transformers do: expand the image token in the templated text, then encode it whole."""
    plain = [
        {
            "role": m.role,
            "content": [
                {"type": "image"} if isinstance(p, Picture) else {"type": "text", "text": p.text} for p in m.parts
            ],
        }
        for m in conversation
    ]
    text = policy.tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=True)
    image = policy.tokenizer.convert_ids_to_tokens(policy.special.image)
    for part in (p for m in conversation for p in m.parts):
        if isinstance(part, Picture):
            grid = policy.images.grid(part.screenshot.width, part.screenshot.height)
            text = text.replace(image, "\x00" * grid.tokens, 1)
    return tuple(policy.tokenizer.encode(text.replace("\x00", image), add_special_tokens=False))


@pytest.mark.parametrize(
    "conversation",
    [
        pytest.param((Message("user", (Text("hi"),)),), id="text"),
        pytest.param(messages("turn on wifi", screen(1)), id="a picture"),
        pytest.param(messages("naïve 日本語  🙂\n\ttwo", screen(1), screen(2, 100, 40)), id="two pictures"),
        pytest.param(
            (*messages("go", screen(1)), Message("assistant", (Text("sure"),)), Message("user", (Text("and?"),))),
            id="turns",
        ),
    ],
)
def test_rendering_equals_the_processors_when_nothing_was_sampled(
    policy: QwenVLPolicy, conversation: tuple[Message, ...]
) -> None:
    assert _ids(policy, conversation) == _reference(policy, conversation)


def test_c21_a_past_answer_keeps_its_ids_even_where_encoding_its_text_gives_others(qwen3: QwenVLPolicy) -> None:
    sampled = tuple(i for digit in "12" for i in qwen3.tokenizer.encode(digit, add_special_tokens=False))
    assert tuple(qwen3.tokenizer.encode("12", add_special_tokens=False)) != sampled
    end = qwen3.special.end_of_turn

    def conversation(ids: tuple[int, ...] | None) -> tuple[Message, ...]:
        answer = Message("assistant", (SampledText("12", ids),))
        return (*messages("go", screen(1)), answer, Message("user", (Picture(screen(2)),)))

    cut_off = _ids(qwen3, conversation(sampled))
    ended = _ids(qwen3, conversation((*sampled, end)))
    assert cut_off == ended, "an end of turn that was not sampled is part of the next prompt, once"
    start = _ids(qwen3, messages("go", screen(1)))
    assert cut_off[: len(start)] == start
    assert cut_off[len(start) : len(start) + len(sampled) + 1] == (*sampled, end)
    # text only, as an endpoint gives it: encoded, and otherwise the same
    assert _ids(qwen3, conversation(None)) == _reference(qwen3, conversation(None))


def test_c21_image_tokens_grow_with_the_turns_and_never_twice(qwen3: QwenVLPolicy) -> None:
    # three turns with one picture of 64 tokens each, answers carried by their ids
    turns: list[Message] = [Message("system", (Text(SYSTEM),))]
    counts = []
    for i in range(3):
        turns.append(Message("user", (Picture(screen(i, 256, 256)),)))
        counts.append(_ids(qwen3, tuple(turns)).count(qwen3.special.image))
        turns.append(Message("assistant", (SampledText("ok", (5, 6, qwen3.special.end_of_turn)),)))
    assert counts == [64, 128, 192]


def test_a_prompt_that_is_too_long_is_refused_with_both_numbers(qwen3: QwenVLPolicy) -> None:
    needed = len(_ids(qwen3, messages("go", screen(1))))
    assert qwen3.render(messages("go", screen(1)), max_tokens=needed - 1) == PromptTooLong(needed, needed - 1)
    assert isinstance(qwen3.render(messages("go", screen(1)), max_tokens=needed), Prompt)


@pytest.mark.parametrize("token", ["<|image_pad|>", "<|im_end|>", "<|vision_start|>"])
def test_a_text_that_would_become_a_special_token_is_refused(qwen3: QwenVLPolicy, token: str) -> None:
    with pytest.raises(AgentError, match="special token"):
        qwen3.render(messages(f"say {token}", screen(1)))


def test_an_answer_is_encoded_with_its_end(qwen3: QwenVLPolicy) -> None:
    ids = qwen3.encode_answer("hello")
    assert ids[-1] == qwen3.special.end_of_turn
    assert qwen3.decode(ids) == "hello"


@pytest.mark.parametrize("mark", ["<|im_end|>", "<|endoftext|>", "<|image_pad|>", "<|vision_end|>"])
def test_a_mark_in_an_answer_is_text_whether_the_answer_is_new_or_past(qwen3: QwenVLPolicy, mark: str) -> None:
    """An endpoint's answer that types a mark must not end the turn in the prompt that has it, nor in training."""
    text = f'{{"text": "a{mark}b"}}'
    ids = qwen3.encode_answer(text)
    assert not {qwen3.special.image, *qwen3.special.eos} & set(ids[:-1])
    assert qwen3.decode(ids) == text
    past = Message("assistant", (SampledText(text, None),))
    rendered = _ids(qwen3, (*messages("go", screen(1)), past, Message("user", (Picture(screen(2)),))))
    spliced = Message("assistant", (SampledText(text, ids),))
    assert rendered == _ids(qwen3, (*messages("go", screen(1)), spliced, Message("user", (Picture(screen(2)),))))
