# SPDX-License-Identifier: Apache-2.0
"""URIs of libvirt daemons, and how ssh reaches them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, cast, get_args
from urllib.parse import quote, unquote, urlencode, urlsplit

from sundial.errors import BadInput

Mode = Literal["session", "system"]
Transport = Literal["", "unix", "ssh", "libssh", "libssh2", "tls", "tcp", "ext"]
ALLOWED = "qemu:///session, qemu:///system, qemu+unix:///session?socket=PATH, qemu+ssh://USER@HOST/session and the like"
HOST_ALLOWED = "qemu+ssh://USER@HOST/session or .../system; options: keyfile, known_hosts, mode, socket"
SSH_OWN = ("keyfile", "known_hosts")
"""Options for ssh; the others are for libvirt."""
SSH_OPTIONS = (*SSH_OWN, "mode", "socket")
"""Options that a host of a topology may have."""

_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.:-]*[A-Za-z0-9_])?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\$-]*")
_PATH = re.compile(r"[^\"\\$]+")
"""ssh expands the paths that it reads; only percent signs can be escaped."""


@dataclass(frozen=True)
class DaemonUri:
    """A parsed URI; `text` is the whole as written."""

    text: str
    transport: Transport
    mode: Mode
    user: str | None = None
    host: str | None = None
    port: int | None = None
    options: dict[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The URI without its options, for messages."""
        return self.text.partition("?")[0]

    def through(self, command: str) -> str:
        """The URI of the same daemon for libvirt, with `command` in place of ssh; that program adds ssh's options."""
        where = f"[{self.host}]" if self.host and ":" in self.host else self.host or ""
        where = f"{quote(self.user, safe='')}@{where}" if self.user else where
        where = f"{where}:{self.port}" if self.port else where
        options = {name: value for name, value in self.options.items() if name not in SSH_OWN}
        return f"qemu+ssh://{where}/{self.mode}?{urlencode({**options, 'command': command}, quote_via=quote)}"


def parse_daemon(text: str, allowed: str = ALLOWED) -> DaemonUri:
    """The daemon of a URI for `--connect`. Raises BadInput."""
    if not text.isprintable() or " " in text:
        raise BadInput(f"{text!r} is not a valid URI; escape special characters as %XX", allowed=allowed)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise BadInput(f"{text!r} is not a valid URI: {error}", allowed=allowed) from error
    scheme, _, transport = parts.scheme.partition("+")
    mode = parts.path.removeprefix("/")
    if scheme != "qemu" or transport not in get_args(Transport) or mode not in get_args(Mode) or parts.fragment:
        raise BadInput(f"{text!r} is not a daemon that runs QEMU machines", allowed=allowed)
    user = unquote(parts.username) if parts.username else None
    host = unquote(parts.hostname) if parts.hostname else None
    if parts.password is not None:
        raise BadInput("a password in a URI is not supported", allowed="a key, with ?keyfile=PATH or in ssh's agent")
    # Both become arguments of ssh, which treats words with a leading hyphen as options.
    if host is not None and not _HOST.fullmatch(host):
        raise BadInput(f"{host!r} is not a valid host name or address", allowed=allowed)
    if user is not None and not _USER.fullmatch(user):
        raise BadInput(f"{user!r} is not a valid user name", allowed=allowed)
    if transport == "ssh" and host is None:
        raise BadInput(f"{text!r} has no host", allowed="qemu+ssh://USER@HOST/session")
    options = _options(text, parts.query)
    return DaemonUri(text, cast(Transport, transport), cast(Mode, mode), user, host, port, options)


def parse_host(text: str) -> DaemonUri:
    """The daemon of another computer that a topology names. Raises BadInput."""
    uri = parse_daemon(text, HOST_ALLOWED)
    if uri.transport != "ssh":
        raise BadInput(f"{text!r} does not use ssh", allowed=HOST_ALLOWED)
    for name, value in uri.options.items():
        if name not in SSH_OPTIONS:
            raise BadInput(f"option {name!r} of {text!r} is unknown", allowed=", ".join(SSH_OPTIONS))
        if name in SSH_OWN and not (value.startswith("/") and _PATH.fullmatch(value)):
            what = f"{value!r} is not an absolute path that ssh accepts"
            raise BadInput(what, field=name, allowed=f"{name}=/PATH without quotes, backslashes and dollars")
    return uri


def _options(text: str, query: str) -> dict[str, str]:
    """Options by name, `%XX` decoded; a plus stays a plus, as in libvirt."""
    options: dict[str, str] = {}
    for word in filter(None, query.split("&")):
        name, equals, value = word.partition("=")
        if not equals or not value or name in options:
            raise BadInput(f"{word!r} in {text!r} is not an option", allowed="NAME=VALUE, each name once")
        options[name] = unquote(value)
        if not options[name].isprintable():
            raise BadInput(f"{word!r} in {text!r} has unprintable characters", allowed="NAME=VALUE")
    return options
