"""Certificates as a cluster's own authority signs them, made by openssl."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest


def authority(folder: Path) -> Path:
    """``ca.pem``, and ``server`` and ``client`` with their keys, in ``folder``.

    Skips the test where openssl is missing.
    """
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=cluster"
    )
    for name, extension in (("server", "subjectAltName=IP:127.0.0.1"), ("client", "extendedKeyUsage=clientAuth")):
        (folder / "ext").write_text(extension)
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", "csr", "-subj", f"/CN={name}")
        openssl(
            "x509",
            "-req",
            "-in",
            "csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-out",
            f"{name}.pem",
            "-extfile",
            "ext",
        )
    return folder


def secured(folder: Path, *, ask_clients: bool = False) -> dict[str, Any]:
    """Options of ``served`` to show the server's certificate, and to ask clients for theirs."""
    shown = {"ssl_certfile": folder / "server.pem", "ssl_keyfile": folder / "server.key"}
    return (
        {**shown, "ssl_ca_certs": str(folder / "ca.pem"), "ssl_cert_reqs": ssl.CERT_REQUIRED} if ask_clients else shown
    )
