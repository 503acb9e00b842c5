"""Loading policies: the base, its tokenizer and image processor, and an adapter or fresh LoRA on it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from cuarl.errors import CheckpointError, ConfigError, PrerequisiteError
from cuarl.policy import files, tiny
from cuarl.policy.adapters.files import put_on, trained_on
from cuarl.policy.adapters.lora import add_lora
from cuarl.policy.adapters.modalities import Modalities
from cuarl.policy.fourbit import chosen_layers
from cuarl.policy.generic.policy import GenericPolicy
from cuarl.policy.generic.processor import FamilyPictures
from cuarl.policy.nf4.linear import quantise
from cuarl.policy.qwen_vl.images import ImageProcessor
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.qwen_vl.render import QwenRenderer
from cuarl.policy.qwen_vl.special import special_ids
from cuarl.policy.spec import ModelSpec
from cuarl.policy.transformers_policy import TransformersPolicy
from cuarl.suggest import did_you_mean

FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe")
"""Model types that are taken apart to run fast (``qwen_vl``); any other is run as it is (``generic``)."""


def load_policy(spec: ModelSpec) -> TransformersPolicy:
    """Load what ``spec`` says, ready to sample from and to train.

    Raises ``ConfigError`` for an unknown model, one that can't be shown a conversation with pictures, or a wrong
    combination; ``PrerequisiteError`` for a model that has to be fetched or built first, or whose processor needs a
    package that is not there; ``CheckpointError`` for an adapter that can't be read, or weights that are missing.
    """
    _check_combination(spec)
    source, offline = resolve(spec)
    device = device_named(spec.device)
    common = _common(spec, offline)
    try:
        config = _config(source, common)
        fast = config.model_type in FAMILIES
        companions = _companions(source, common) if fast else _processor(source, config, common)
        model = _weights(source, spec, device, common)
    except (OSError, ValueError) as error:
        raise _unreadable(spec.model, source, offline, error) from error
    revision = getattr(model.config, "_commit_hash", None)
    wrapped = _adapt(model, spec, revision)
    name = spec.name or policy_name(spec)
    if not fast:
        _check_options(spec, device)
        pictures = FamilyPictures(companions, model.forward)
        special = pictures.special_ids(model.config, model.generation_config)
        return GenericPolicy(wrapped, pictures, special, name=name, revision=revision)
    tokenizer, processor = companions
    policy = QwenVLPolicy(
        wrapped,
        tokenizer,
        ImageProcessor(processor, min_pixels=spec.min_pixels, max_pixels=spec.max_pixels),
        special_ids(model.config, model.generation_config, tokenizer),
        name=name,
        revision=revision,
        train_vision=_trains_vision(spec, wrapped),
    )
    if spec.kv_cache_gib is not None:
        policy.kv_bytes = int(spec.kv_cache_gib * 2**30)
        if policy.engine() is None:
            raise _no_kv_cache(spec, device)
    return policy


def _no_kv_cache(spec: ModelSpec, device: torch.device) -> ConfigError:
    return ConfigError(
        "kv_cache_gib has no effect here: it is for sampling from a Qwen-VL model on a GPU, or a small one in float32",
        where=f"{spec.model} on {device}",
        hint="leave --kv-cache-gib out",
    )


@dataclass(frozen=True, slots=True)
class Examined:
    """What is known of a model before its weights are read."""

    family: str
    parameters: int
    """Numbers in its files of weights; 0 if these can't tell."""
    folder: Path
    packed: int = 0
    """How many of them are kept in four bits."""


def examine(spec: ModelSpec) -> Examined | None:
    """Meet all that ``load_policy`` would, but the weights' values; None for a hub model that isn't here yet.

    The network is not asked. Raises as ``load_policy`` does.
    """
    _check_combination(spec)
    device_named(spec.device)
    if (folder := _folder(spec)) is None:
        return None
    common = _common(spec, offline=True)
    try:
        config = _config(str(folder), common)
        if config.model_type in FAMILIES:
            _companions(str(folder), common)
        else:
            _check_options(spec, device_named(spec.device))
            FamilyPictures(_processor(str(folder), config, common))
    except (OSError, ValueError) as error:
        raise _unreadable(spec.model, str(folder), True, error) from error
    examined = Examined(config.model_type, files.check_weights(folder), folder)
    if in_four_bits(spec):
        model = on_meta(spec.model_copy(update={"model": str(folder)}))
        count = sum(model.get_submodule(name).weight.numel() for name in chosen_layers(model))
        examined = replace(examined, packed=count)
    if spec.adapter:
        check_adapter(spec.model_copy(update={"model": str(folder)}))
    return examined


def _folder(spec: ModelSpec) -> Path | None:
    """Where a model lies on this machine. Raises ConfigError for what is neither a model nor a name on the hub."""
    here = spec.model == "tiny" or Path(spec.model).expanduser().is_dir()
    if not here and not _is_hub_id(spec.model):
        raise _no_model(spec.model)
    return Path(resolve(spec)[0]) if here else files.cached(spec.model, spec.revision)


def load_renderer(spec: ModelSpec) -> QwenRenderer:
    """What prompts of the model that ``spec`` names look like: its tokenizer and image processor, not its weights.

    Raises ``ConfigError`` or ``PrerequisiteError`` as ``load_policy`` does.
    """
    from transformers import GenerationConfig

    source, offline = resolve(spec)
    common = _common(spec, offline)
    try:
        config = _config(source, common)
        _check_family(config, spec.model)
        tokenizer, processor = _companions(source, common)
        generation = GenerationConfig.from_pretrained(source, **_without_trust(common))
    except (OSError, ValueError) as error:
        raise _unreadable(spec.model, source, offline, error) from error
    images = ImageProcessor(processor, min_pixels=spec.min_pixels, max_pixels=spec.max_pixels)
    return QwenRenderer(tokenizer, images, special_ids(config, generation, tokenizer))


def check_adapter(spec: ModelSpec) -> None:
    """See that the adapter of ``spec`` fits its model, whose weights are not read: its configuration is enough.

    Raises as ``load_policy`` does.
    """
    put_on(on_meta(spec), Path(str(spec.adapter)).expanduser())


def on_meta(spec: ModelSpec) -> Any:
    """The model of ``spec`` on torch's meta device: names and shapes, made from its configuration. Raises as above."""
    from transformers import AutoModelForImageTextToText

    source, offline = resolve(spec)
    try:
        config = _config(source, _common(spec, offline))
    except (OSError, ValueError) as error:
        raise _unreadable(spec.model, source, offline, error) from error
    with torch.device("meta"):
        return AutoModelForImageTextToText.from_config(config, trust_remote_code=spec.trust_remote_code)


def policy_name(spec: ModelSpec) -> str:
    """A name for records: the last part of the model's, and of the adapter's."""
    base = Path(spec.model.rstrip("/")).name
    return f"{base}+{Path(spec.adapter.rstrip('/')).name}" if spec.adapter else base


def resolve(spec: ModelSpec) -> tuple[str, bool]:
    """Where to load from, and whether the network is out of bounds (a folder, or the hub client told to stay offline).

    Nothing that can't be a hub id is ever looked for on the network.
    """
    if spec.model == "tiny":
        folder = tiny.path()
        if not (folder / "config.json").is_file():
            raise PrerequisiteError(
                "the shipped base is not built", where=str(folder), hint=f"cuarl model build --out {folder}"
            )
        return str(folder), True
    folder = Path(spec.model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            adapter = (folder / "adapter_config.json").is_file()
            hint = f"--load-checkpoint-path {spec.model}" if adapter else None
            raise ConfigError("this folder has no model in it (no config.json)", where=str(folder), hint=hint)
        return str(folder), True
    if not _is_hub_id(spec.model):
        raise _no_model(spec.model)
    return spec.model, files.offline(spec.model, spec.revision)


def _is_hub_id(name: str) -> bool:
    """``owner/name``; but models/qwen, where there is a folder models, is a path."""
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not Path(name).parent.is_dir()


def _no_model(name: str) -> ConfigError:
    path = Path(name).expanduser()
    folders = [str(p) for p in path.parent.glob("*") if (p / "config.json").is_file()]
    return ConfigError(f'no model "{name}"{did_you_mean(str(path), ["tiny", *folders])}', hint="cuarl model list")


def _common(spec: ModelSpec, offline: bool) -> dict[str, Any]:
    """What every loader of transformers' Auto classes is told; left open, they would ask on the terminal about code."""
    return {"revision": spec.revision, "local_files_only": offline, "trust_remote_code": spec.trust_remote_code}


def _without_trust(common: dict[str, Any]) -> dict[str, Any]:
    """The same for classes of transformers' own, which would take it for a setting."""
    return {name: value for name, value in common.items() if name != "trust_remote_code"}


def _config(source: str, common: dict[str, Any]) -> Any:
    """The model's configuration. Raises ConfigError for a model that takes no pictures or gives no text."""
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

    config = AutoConfig.from_pretrained(source, **common)
    own = common["trust_remote_code"] and "AutoModelForImageTextToText" in (getattr(config, "auto_map", None) or {})
    if config.model_type not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES and not own:
        raise ConfigError(
            f"a {config.model_type} model does not turn pictures and text into text",
            where=source,
            hint="use a vision-language model that AutoModelForImageTextToText of transformers loads",
        )
    if Path(source).is_dir():
        files.check_tokenizer(Path(source))
    return config


def _companions(source: str, common: dict[str, Any]) -> tuple[Any, Any]:
    """Tokenizer and image processor of a fast family.

    Put together here because transformers' ``AutoProcessor`` and, in older releases, ``AutoImageProcessor`` want
    torchvision. All these families share one image processor.
    """
    from transformers import AutoTokenizer, Qwen2VLImageProcessorPil

    tokenizer = AutoTokenizer.from_pretrained(source, **common)
    return tokenizer, Qwen2VLImageProcessorPil.from_pretrained(source, **_without_trust(common))


def _processor(source: str, config: Any, common: dict[str, Any]) -> Any:
    """The processor of any other family. Raises PrerequisiteError if it needs a package that is not installed."""
    from transformers import AutoProcessor

    try:
        processor = AutoProcessor.from_pretrained(source, **common)
    except ImportError as error:
        missing = re.search(r"requires the (\w+) library", str(error))
        package = missing[1].lower() if missing else "torchvision"
        raise PrerequisiteError(
            f"the processor of {config.model_type} models needs {package}", where=source, hint=f"pip install {package}"
        ) from error
    if not hasattr(processor, "image_processor") or not hasattr(processor, "tokenizer"):
        raise ConfigError(f"{config.model_type} has no processor for pictures and text", where=source)
    return processor


def _check_options(spec: ModelSpec, device: torch.device) -> None:
    """Refuse what has no effect on a model that is run as it is."""
    if spec.kv_cache_gib is not None:
        raise _no_kv_cache(spec, device)
    if spec.min_pixels or spec.max_pixels:
        raise ConfigError(
            f"min_pixels and max_pixels have no effect on this family; they are for {', '.join(FAMILIES)}",
            where=spec.model,
            hint="leave them out; the model's preprocessor_config.json sets the size",
        )


def _check_family(config: Any, name: str) -> None:
    if config.model_type not in FAMILIES:
        raise ConfigError(
            f'the prompts of "{name}", a {config.model_type} model, can\'t be made without its weights',
            hint=f"use one of {', '.join(FAMILIES)}, or run it in this process: --model-name {name}",
        )


def _weights(source: str, spec: ModelSpec, device: torch.device, common: dict[str, Any]) -> Any:
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, enable_progress_bars
    from transformers import AutoModelForImageTextToText
    from transformers.utils import logging

    downloads = sys.stderr.isatty() and not are_progress_bars_disabled()
    logging.disable_progress_bar()  # of weights that are read: it would be drawn across the command's own lines
    if downloads:
        enable_progress_bars()
    dtype = spec.dtype if spec.dtype != "auto" else "float32" if device.type == "cpu" else "bfloat16"
    model, found = AutoModelForImageTextToText.from_pretrained(
        source, dtype=dtype, attn_implementation=spec.attention, output_loading_info=True, **common
    )
    check_arrived(found, source)
    if device.type == "cuda":
        # it plans anew for every length of keys: 60 to 200 ms a token where lengths differ
        torch.backends.cuda.enable_cudnn_sdp(False)
    if in_four_bits(spec):
        # one layer after the other, so that the device never has the model whole
        quantise(model, chosen_layers(model), device)
    return model.to(device).eval()


def in_four_bits(spec: ModelSpec) -> bool:
    """Whether the base is to be quantised. Raises CheckpointError where an adapter's note can't be read."""
    asked = spec.quantization
    if asked == "auto" and spec.adapter:
        asked = "nf4" if trained_on(Path(spec.adapter).expanduser()) == "nf4" else "none"
    return asked == "nf4"


def check_arrived(found: Mapping[str, Any], where: str) -> None:
    """See by the ``loading_info`` of transformers that no weight is made up. Raises CheckpointError."""
    if absent := sorted(found["missing_keys"]):
        raise CheckpointError(
            f"{len(absent)} weights of the model are missing, {absent[0]} for one: they would be random", where=where
        )


def device_named(name: str) -> torch.device:
    """The device that ``name`` stands for: ``auto`` is the first accelerator, or the CPU.

    Raises ``ConfigError`` for one that this machine does not have.
    """
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if name == "auto":
        return found if found is not None else torch.device("cpu")
    asked = torch.device(name)
    count = torch.accelerator.device_count() if found is not None and found.type == asked.type else 0
    if asked.type != "cpu" and (asked.index or 0) >= count:
        raise ConfigError(
            f"this machine has no device {name}: torch finds {count} of {asked.type}", hint="cuarl doctor"
        )
    return asked


def _check_combination(spec: ModelSpec) -> None:
    if spec.adapter and spec.lora:
        raise ConfigError(
            "an adapter is loaded or made, not both", hint="leave out --load-checkpoint-path, or start from a base"
        )
    if spec.train == "adapter" and not (spec.adapter or spec.lora):
        raise ConfigError("there is no adapter to train", hint="--use-lora")
    if spec.train == "full" and in_four_bits(spec):
        raise ConfigError("weights in four bits can't be trained themselves, but an adapter on them", hint="--use-lora")
    if spec.train == "full" and (spec.adapter or spec.lora):
        raise ConfigError("full fine-tuning trains the base itself, without an adapter")


def _adapt(model: Any, spec: ModelSpec, revision: str | None) -> Any:
    """Put the adapter on, and set which parameters require gradients."""
    if spec.adapter:
        model = put_on(model, Path(spec.adapter).expanduser(), trained=spec.train == "adapter")
    elif spec.lora:
        model = add_lora(model, spec.lora, revision=revision)
    if spec.train != "adapter":
        model.requires_grad_(spec.train == "full")
    if spec.train == "full" and not spec.train_vision:
        modalities = Modalities(model)
        for name, parameter in model.named_parameters():
            if modalities.vision(name):
                parameter.requires_grad_(False)
    return model


def _trains_vision(spec: ModelSpec, wrapped: Any) -> bool:
    tower = (wrapped.get_base_model() if hasattr(wrapped, "peft_config") else wrapped).model.visual
    return spec.train != "nothing" and any(p.requires_grad for p in tower.parameters())


def _unreadable(name: str, source: str, offline: bool, error: Exception) -> PrerequisiteError:
    if "trust_remote_code" in str(error):
        return PrerequisiteError(
            "the model comes with code of its own, which is run only if you say so",
            where=source,
            hint="read its .py files, then add --trust-remote-code",
        )
    reason = str(error).strip().splitlines()[0]
    if Path(source).is_dir():
        return PrerequisiteError(f"the model can't be read: {reason}", where=source)
    where = "the local cache (the hub client is set to stay offline)" if offline else "the model hub"
    return PrerequisiteError(f'no model "{name}" in {where}: {reason}', hint=f"hf download {name}")
