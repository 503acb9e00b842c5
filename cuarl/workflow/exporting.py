"""What ``cuarl db export`` writes, by the format that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cuarl.errors import ConfigError
from cuarl.store.aside import place_for
from cuarl.workflow.hub import check_hub

if TYPE_CHECKING:
    from cuarl.store import Store
    from cuarl.store.export import Exported
    from cuarl.workflow.chat_files import Written

Format = Literal["backup", "dataset", "trl", "llama-factory"]
CHATS: tuple[Format, ...] = ("trl", "llama-factory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is exported, and as what."""

    format: Format = "backup"
    run: str | None = None
    images: bool = True
    redact: str | None = None
    failed: bool = False
    renderer: str | None = None
    hub: str | None = None
    public: bool = False

    def check(self) -> None:
        """Raise ConfigError for what can't be had together, before anything is opened.

        MissingSecret for a hub without a token.
        """
        idle = {
            "--redact": self.redact and not self.images and "--no-images",
            "--no-images": not self.images and self.format in CHATS and f"--format {self.format}",
            "--failed": self.failed and self.format not in CHATS and f"--format {self.format}",
            "--renderer-name": self.renderer and self.format not in CHATS and f"--format {self.format}",
            "--push-to-hub": self.hub and self.format == "backup" and "--format backup",
            "--public": self.public and not self.hub and "no --push-to-hub",
        }
        for option, beside in idle.items():
            if beside:
                hint = "--format dataset" if option == "--push-to-hub" else "leave it out"
                raise ConfigError(f"{option} has no effect with {beside}", where=option, hint=hint)
        if self.renderer:
            from cuarl.agent import formats

            formats.get(self.renderer)
        if self.redact:
            from cuarl.store.redaction import Redaction

            Redaction(self.redact)
        if self.hub:
            check_hub(self.hub)


def export(store: Store, folder: Path, choice: Choice) -> Exported | Written:
    """Write what is asked for into an empty folder, whole or not at all.

    Raises ConfigError, StoreError, MissingExtra.
    """
    place_for(folder)
    if choice.format == "trl" or choice.format == "llama-factory":
        from cuarl.workflow.chat_files import export_chats
        from cuarl.workflow.chats import Chats

        chats = Chats(store, choice.run, failed=choice.failed, renderer=choice.renderer)
        return export_chats(chats, folder, choice.format, redact=choice.redact)
    from cuarl.store.dataset.export import export_dataset
    from cuarl.store.export import export_store

    write: Callable[..., Exported] = export_dataset if choice.format == "dataset" else export_store
    return write(store, folder, run=choice.run, images=choice.images, redact=choice.redact)
