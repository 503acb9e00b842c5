"""TRL's side: ``GRPOTrainer`` with an ``environment_factory``, as shipped, closing episodes the cheapest way it allows.

TRL samples once more after every result of a tool, unless the result has no room: with ``max_completion_length`` just
below it the last click is carried out, its result is dropped, and the episode ends without another answer.
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any

import torch
import transformers
from datasets import Dataset
from peft import LoraConfig
from transformers import LogitsProcessor, TrainerCallback
from transformers.utils import is_torchvision_available
from trl import GRPOConfig, GRPOTrainer, chat_template_utils

from benchmarks.peers.answers import Answers, Witness
from benchmarks.peers.clock import Clock
from benchmarks.peers.model import IMAGES, LORA_TARGETS, TEMPLATE, make_model, make_tokenizer
from benchmarks.peers.phone import SYSTEM, Environment, progress
from benchmarks.peers.work import Work


def make_processor(tokenizer: Any) -> Any:
    """Pictures are prepared by torchvision where it is installed, else by Pillow."""
    if is_torchvision_available():
        images = transformers.Qwen2VLImageProcessor(**IMAGES)
    else:
        from transformers import processing_utils
        from transformers.video_processing_utils import BaseVideoProcessor

        # the processor looks this class up, which is not there without torchvision, although no video is ever shown
        processing_utils.transformers_module.VideoProcessorMixin = BaseVideoProcessor
        images = transformers.Qwen2VLImageProcessorPil(**IMAGES)
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

    videos = Qwen3VLVideoProcessor(patch_size=16, merge_size=2, temporal_patch_size=2)
    processor = transformers.Qwen3VLProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        video_processor=videos,
        chat_template=chat_template_utils.qwen3_vl_chat_template,
    )
    # TRL knows how calls are read by its own text of the template
    processor = chat_template_utils.add_response_schema(processor)
    processor.chat_template = TEMPLATE
    return processor


def completion_room(work: Work, answers: Answers, tokenizer: Any) -> int:
    """Tokens that an episode fits into, and not its last result. Raises ValueError if there is no such number."""
    picture = "<|vision_start|><|vision_end|>"
    shown = f"<tool_response>\n{picture}{progress(1, work.turns)}\n</tool_response>"
    text = f"\n<|im_start|>user\n{shown}<|im_end|>\n<|im_start|>assistant\n"
    around = len(tokenizer.encode(text, add_special_tokens=False))
    result = around + round(work.width / 32) * round(work.height / 32)
    said = [sum(answers.length(a, t) for t in range(work.turns)) for a in range(work.group)]
    longest, too_long = max(said) + (work.turns - 1) * result, min(said) + work.turns * result
    if longest >= too_long:
        raise ValueError("answers differ by more tokens than a picture has: larger screens, or fewer turns")
    return longest


class Force(LogitsProcessor):
    """Masks what the contest's answers don't allow, on the device."""

    def __init__(self, forbidden: torch.Tensor, kinds: torch.Tensor, start: int) -> None:
        self._forbidden, self._kinds, self._start = forbidden, kinds, start

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores.masked_fill(self._forbidden[self._kinds, ids.shape[1] - self._start], float("-inf"))


class Watch(TrainerCallback):
    """Reads the clock, and tells the answers' kinds."""

    def __init__(self, work: Work, answers: Answers) -> None:
        self._work, self._answers = work, answers
        self.clock, self.witness = Clock(work.device), Witness(answers)
        self._asked: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._made: dict[str, torch.Tensor] = {}

    def put_on(self, trainer: Any) -> None:
        """Wrap the two calls of the trainer that tell where a step is."""
        model = trainer.model.get_base_model()
        forbidden = self._answers.forbidden(model.config.text_config.vocab_size, self._work.device)
        real_generate, real_score = model.generate, trainer._generate_and_score_completions

        def generate(**inputs: Any) -> torch.Tensor:
            rows, turn = len(inputs["input_ids"]), len(self._asked)
            if rows != self._work.batch:
                raise RuntimeError(f"{rows} rows in turn {turn}, not {self._work.batch}: an episode ended early")
            self._asked.append((inputs["input_ids"], inputs["attention_mask"]))
            kinds = torch.tensor([self._answers.kind(i % self._work.group, turn) for i in range(rows)]).to(
                forbidden.device
            )
            force = Force(forbidden, kinds, inputs["input_ids"].shape[1])
            found: torch.Tensor = real_generate(**inputs, logits_processor=[force])
            return found

        def score(inputs: Any) -> Any:
            self._asked.clear()
            made = real_score(inputs)
            self.clock.rolled()
            self._made = made
            return made

        model.generate, trainer._generate_and_score_completions = generate, score

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.clock.begin()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.clock.updated()
        self._note()
        self.clock.begin()

    def _note(self) -> None:
        made = self._made
        prompts = [
            [row[mask.bool()].tolist() for row, mask in zip(ids.cpu(), seen.cpu(), strict=True)]
            for ids, seen in self._asked
        ]
        trained = int((made["completion_mask"] * made["tool_mask"]).sum())
        sequences = int(made["prompt_mask"].sum() + made["completion_mask"].sum())
        self.witness.step(prompts, trained, sequences, trained)


def settings(work: Work, room: int, folder: str) -> GRPOConfig:
    """TRL's settings; what is not named is as TRL ships it."""
    cuda = work.device == "cuda"
    return GRPOConfig(
        output_dir=folder,
        use_cpu=not cuda,
        bf16=cuda,
        seed=work.seed,
        max_steps=work.all_steps,
        learning_rate=1e-5,
        per_device_train_batch_size=work.micro,
        gradient_accumulation_steps=work.batch // work.micro,
        num_generations=work.group,
        max_completion_length=room,
        max_tool_calling_iterations=work.turns,
        shuffle_dataset=False,
        temperature=1.0,
        beta=0.0,
        gradient_checkpointing=work.checkpointing,
        dataloader_pin_memory=cuda,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


def run(work: Work) -> dict[str, Any]:
    """Play and train; what was measured and what was done."""
    if work.device == "cpu":
        torch.set_num_threads(work.threads)
    tokenizer = make_tokenizer(work.shape)
    answers = Answers(work, tokenizer)
    watch = Watch(work, answers)
    rows = [
        {"prompt": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ""}], "seed": seed, "app": app}
        for step in work.tasks()
        for seed, app in step
    ]
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=make_model(work, tokenizer),
            processing_class=make_processor(tokenizer),
            args=settings(work, completion_room(work, answers, tokenizer), folder),
            train_dataset=Dataset.from_list(rows),
            environment_factory=partial(Environment, work.width, work.height, work.turns, work.delay_ms / 1000),
            peft_config=LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules=LORA_TARGETS),
            callbacks=[watch],
        )
        watch.put_on(trainer)
        trainer.train()
    return {**watch.clock.summary(work.warmup), **watch.witness.found}
