"""Reading kubeconfig files: of several, the first that names a thing wins, as in kubectl.

What is not understood is refused by name, since leaving it out could mean speaking to the wrong server or as somebody
else.
"""

from __future__ import annotations

import base64
import binascii
import logging
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from cuarl.env.pods.login import FileToken, FixedToken, PluginToken, Tokens
from cuarl.errors import PrerequisiteError

logger = logging.getLogger(__name__)

REFUSED = {
    "cluster": ("proxy-url", "tls-server-name"),
    "user": ("auth-provider", "username", "as", "as-uid", "as-groups", "as-user-extra"),
}
"""Fields that change who is spoken to, or as whom, and that this reader does not understand."""


class Named(NamedTuple):
    """A cluster, user or context, and the folder that paths in it are meant from."""

    body: Mapping[str, Any]
    folder: Path


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a context stands for."""

    context: str
    path: Path
    server: str
    namespace: str
    tokens: Tokens | None
    verify: ssl.SSLContext | None


def read(paths: Sequence[Path], context: str | None = None) -> Chosen:
    """The context of that name, or the current one. Raises PrerequisiteError."""
    there = [path for path in paths if path.is_file()]
    if not there:
        raise PrerequisiteError(
            "the kubeconfig is not there", where=", ".join(map(str, paths)), hint="export KUBECONFIG=FILE"
        )
    entries: dict[str, dict[str, Named]] = {"contexts": {}, "clusters": {}, "users": {}}
    current = ""
    for path in there:
        body = _parsed(path)
        current = current or str(body.get("current-context") or "")
        for kind, found in entries.items():
            for entry in body.get(kind) or ():
                found.setdefault(str(entry.get("name")), Named(entry.get(kind[:-1]) or {}, path.parent))
    where = there[0]
    name = context or current
    if not name:
        raise PrerequisiteError(
            "the kubeconfig has no current context", where=str(where), hint="kubectl config use-context NAME"
        )
    chosen = _entry(entries, "contexts", name, where).body
    cluster = _entry(entries, "clusters", str(chosen.get("cluster")), where)
    user = _entry(entries, "users", str(chosen["user"]), where) if chosen.get("user") else Named({}, where.parent)
    for kind, one in (("cluster", cluster), ("user", user)):
        if strange := [field for field in REFUSED[kind] if one.body.get(field)]:
            raise PrerequisiteError(
                f"{strange[0]} of the {kind} is not understood",
                where=str(where),
                hint="export KUBE_API_URL=URL KUBE_TOKEN=TOKEN, or use another context",
            )
    server = cluster.body.get("server")
    if not isinstance(server, str):
        raise PrerequisiteError(f"the cluster of context {name} has no server", where=str(where))
    return Chosen(
        name,
        where,
        server.rstrip("/"),
        str(chosen.get("namespace") or "default"),
        _tokens(user),
        _verify(cluster, user),
    )


def _parsed(path: Path) -> Mapping[str, Any]:
    try:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PrerequisiteError(f"the kubeconfig can't be read: {error}", where=str(path)) from error
    except yaml.YAMLError as error:
        # the parser's own message repeats the line, which may hold a token
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        at = "" if line is None else f":{line + 1}"
        raise PrerequisiteError("the kubeconfig is no YAML", where=f"{path}{at}") from None
    if not isinstance(body, Mapping):
        raise PrerequisiteError("the kubeconfig is no mapping", where=str(path))
    return body


def _entry(entries: Mapping[str, Mapping[str, Named]], kind: str, name: str, where: Path) -> Named:
    if name not in entries[kind]:
        there = ", ".join(entries[kind]) or "none"
        raise PrerequisiteError(
            f'the kubeconfig has no {kind[:-1]} "{name}"; there are: {there}',
            where=str(where),
            hint="export CUARL_KUBE_CONTEXT=NAME",
        )
    return entries[kind][name]


def _tokens(user: Named) -> Tokens | None:
    body = user.body
    if body.get("token"):
        return FixedToken(str(body["token"]))
    if body.get("tokenFile"):
        return FileToken(user.folder / str(body["tokenFile"]))
    plugin = body.get("exec")
    if not plugin:
        return None
    program = str(plugin.get("command"))
    if "/" in program:  # like all paths in the file, meant from its folder
        program = str(user.folder / program)
    return PluginToken(
        [program, *map(str, plugin.get("args") or ())],
        str(plugin.get("apiVersion")),
        {str(pair["name"]): str(pair["value"]) for pair in plugin.get("env") or ()},
        str(plugin.get("installHint") or ""),
    )


def _verify(cluster: Named, user: Named) -> ssl.SSLContext | None:
    """The certificates to trust and to show; None where the machine's usual ones will do."""
    ca, insecure = _data(cluster, "certificate-authority"), cluster.body.get("insecure-skip-tls-verify")
    certificate, key = _data(user, "client-certificate"), _data(user, "client-key")
    if not (ca or insecure or certificate):
        return None
    try:
        context = trusting(ca.decode() if ca else None)
        if insecure:
            logger.warning("the certificate of %s is not checked, as the kubeconfig says", cluster.body.get("server"))
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            _show(context, certificate, key)
    except (ssl.SSLError, ValueError) as error:
        raise PrerequisiteError(f"a certificate of the kubeconfig can't be used: {error}") from error
    return context


def trusting(ca: str | None) -> ssl.SSLContext:
    """Trust in these certificates (PEM), or in the machine's usual ones. Raises ssl.SSLError, ValueError."""
    context = ssl.create_default_context(cadata=ca)
    # clusters sign their own certificates, and many leave out extensions that Python 3.13 has come to insist on
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _show(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # ssl reads keys from files alone; this one is the user's own and gone at once
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name)


def _data(named: Named, field: str) -> bytes:
    """A certificate or key: in the file itself, or in another that it names."""
    inline, path = named.body.get(f"{field}-data"), named.body.get(field)
    try:
        if inline:
            return base64.b64decode(str(inline), validate=True)
        return (named.folder / str(path)).read_bytes() if path else b""
    except (binascii.Error, OSError) as error:
        raise PrerequisiteError(f"{field} of the kubeconfig can't be read: {error}") from error
