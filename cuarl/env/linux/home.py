"""The folder of an episode: home, settings, D-Bus socket and log, and the environment that its programs see.

Nothing of the caller's environment is passed on but the search path, so that no credential is visible in a terminal.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from cuarl.env.linux.programs import APPS
from cuarl.env.linux.settings import write_setting
from cuarl.env.processes import MARK
from cuarl.errors import TaskError

FOLDERS = ("Documents", "Downloads", "Music", "Pictures")
WALLPAPERS = (0x3B5A75, 0x4F6F52, 0x6B4F72, 0x7A5C45, 0x45556B, 0x2F6663)
"""Colours of the root window, as 0xRRGGBB."""


class Home:
    """The files of one episode below ``folder``, which is made by ``create``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path, self.run = folder / "home", folder / "run"
        self.config, self.trash = self.path / ".config", self.path / ".local/share/Trash/files"

    def create(self, seed: int, preset: Mapping[str, Any]) -> None:
        """Write everything that programs read when they start. Raises TaskError for a preset that can't be."""
        for made in (self.folder, self.path, self.run, *(self.path / name for name in FOLDERS)):
            made.mkdir(parents=True, mode=0o700)
        self._write_defaults(seed)
        for path, value in preset.items():
            if path.startswith("settings."):
                write_setting(self.config, path.removeprefix("settings."), value)
            elif path == "files":
                self._write_files(value)
            elif path not in ("ui.app", "ui.apps"):
                raise TaskError(
                    f'a Linux desktop can\'t be started with "{path}"', where="preset", hint="docs/guides/linux.md"
                )

    def give_to(self, user: int, group: int) -> None:
        """Make everything the property of the user that the programs run as."""
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, user, group, follow_symlinks=False)

    def environment(self, mark: str, display: str = "") -> dict[str, str]:
        """Environment variables of the episode's programs."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm",
            "SHELL": "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh",
            "USER": "sam",
            "LOGNAME": "sam",
            "HOME": str(self.path),
            "PWD": str(self.path),
            "TMPDIR": str(self.run),
            "XDG_CONFIG_HOME": str(self.config),
            "XDG_CACHE_HOME": str(self.run / "cache"),
            "XDG_DATA_HOME": str(self.path / ".local/share"),
            "XDG_RUNTIME_DIR": str(self.run),
            "XDG_STATE_HOME": str(self.path / ".local/state"),
            "XDG_CURRENT_DESKTOP": "openbox",
            # settings in an ini file that needs no daemon, and that validators can read
            "GSETTINGS_BACKEND": "keyfile",
            "GIO_USE_VFS": "local",
            "GTK_IM_MODULE": "gtk-im-context-simple",
            "NO_AT_BRIDGE": "1",
            "GTK_USE_PORTAL": "0",
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.run}/bus",
            "DISPLAY": display,
            MARK: mark,
        }

    def _write_defaults(self, seed: int) -> None:
        dark = random.Random(f"desktop look {seed}").random() < 0.25
        # a caret that blinks would keep the screen from ever being still
        gtk = "gtk-cursor-blink=0\ngtk-enable-animations=0\ngtk-font-name=DejaVu Sans 9\ngtk-recent-files-enabled=0\n"
        self._put(".config/gtk-3.0/settings.ini", f"[Settings]\n{gtk}gtk-application-prefer-dark-theme={int(dark)}\n")
        self._put(".gtkrc-2.0", 'gtk-cursor-blink=0\ngtk-font-name="DejaVu Sans 9"\n')
        self._put(".bashrc", "PS1='\\w$ '\nunset HISTFILE\n")
        self._put(".config/openbox/menu.xml", _menu())
        self._put(".config/user-dirs.dirs", "".join(f'XDG_{name.upper()}_DIR="$HOME/{name}"\n' for name in FOLDERS))
        # a session bus that starts nothing by itself: what runs is what the task started
        self._put("../run/bus.conf", _bus(self.run / "bus"))
        (self.path / ".local/share").mkdir(parents=True, exist_ok=True)

    def _write_files(self, items: Iterable[Mapping[str, Any]]) -> None:
        for item in items:
            strange = sorted(set(item) - {"path", "text", "folder"})
            if strange:
                raise TaskError(
                    f"a file has no {strange[0]}", where="preset: files", hint="path, and text or folder: true"
                )
            path = PurePosixPath(str(item.get("path", "")))
            if not path.parts or path.is_absolute() or ".." in path.parts:
                raise TaskError(
                    f"a file can't be made at {str(path)!r}", where="preset: files", hint="docs/guides/linux.md"
                )
            if item.get("folder"):
                (self.path / path).mkdir(parents=True, exist_ok=True)
            else:
                self._put(str(path), str(item.get("text", "")))

    def _put(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def wallpaper(seed: int) -> int:
    """Colour of the root window for a seed."""
    return random.Random(f"desktop wallpaper {seed}").choice(WALLPAPERS)


def _menu() -> str:
    from shlex import join
    from xml.sax.saxutils import escape

    items = "".join(
        (
            f'<item label="{escape(app.title)}"><action '
            f'name="Execute"><execute>{escape(join(app.command))}</execute></action></item>'
        )
        for app in APPS.values()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><openbox_menu xmlns="http://openbox.org/3.4/menu">'
        f'<menu id="root-menu" label="Applications">{items}</menu></openbox_menu>\n'
    )


def _bus(socket: Path) -> str:
    return (
        f"<busconfig><type>session</type><keep_umask/><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>"
        '<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow '
        'own="*"/></policy></busconfig>\n'
    )
