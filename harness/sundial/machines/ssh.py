# SPDX-License-Identifier: Apache-2.0
"""ssh as everything here calls it, libvirt included: one set of options, and never a question to the user."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from sundial.errors import HostLacks
from sundial.model.daemon import DaemonUri

CONNECT_S = 10
ALIVE_S = 5
ALIVE_MOST = 3
"""A connection on which nothing was answered for ALIVE_S * ALIVE_MOST is lost."""


@dataclass(frozen=True)
class Ssh:
    """How one host is reached. `control`: the socket of a connection that is open already and is to be used."""

    uri: DaemonUri
    control: Path | None = None

    def options(self) -> list[str]:
        """All that is not the host itself."""
        options = ["-T", "-e", "none"]
        settings = {
            "BatchMode": "yes",
            "ConnectTimeout": str(CONNECT_S),
            "ServerAliveInterval": str(ALIVE_S),
            "ServerAliveCountMax": str(ALIVE_MOST),
        }
        if "known_hosts" in self.uri.options:
            settings["UserKnownHostsFile"] = _quoted(self.uri.options["known_hosts"])
        if "keyfile" in self.uri.options:
            settings["IdentityFile"] = _quoted(self.uri.options["keyfile"])
        for name, value in settings.items():
            options += ["-o", f"{name}={value}"]
        if self.control is not None:
            options += ["-S", str(self.control)]
        return options

    def command(self, *options: str) -> list[str]:
        """ssh to the host; what is to run there comes behind."""
        words = [program(), *self.options(), *options]
        if self.uri.port is not None:
            words += ["-p", str(self.uri.port)]
        if self.uri.user is not None:
            words += ["-l", self.uri.user]
        return [*words, "--", str(self.uri.host)]

    def write_program(self, path: Path) -> Path:
        """A program that libvirt calls as its ssh; it names user, host and port itself."""
        path.write_text(f'#!/bin/sh\nexec {shlex.join([program(), *self.options()])} "$@"\n')
        path.chmod(0o700)
        return path


def program() -> str:
    """Raises HostLacks."""
    found = shutil.which("ssh")
    if found is None:
        raise HostLacks("ssh is not installed", hint="apt-get install openssh-client")
    return found


def hint(words: str, uri: DaemonUri) -> str | None:
    """What mends what ssh has said."""
    port = f" -p {uri.port}" if uri.port else ""
    where = f"{uri.user}@{uri.host}" if uri.user else uri.host
    if "Host key verification failed" in words:
        return f"compare its key and take it: ssh{port} {where}; or name a file of known keys: ?known_hosts=PATH"
    if "Permission denied" in words:
        return f"ssh{port} {where} must work without a question: a key in ssh's agent, or ?keyfile=PATH"
    return None


def _quoted(path: str) -> str:
    """As ssh_config(5) takes a file's name."""
    return '"{}"'.format(path.replace("%", "%%"))
