# SPDX-License-Identifier: Apache-2.0
"""The files of packages as one tar archive: no documentation, no times, users and folders that packages declare.

Scripts of packages are not run. What they would have done is done where a package declares it (sysusers.d, tmpfiles.d),
else reported.
"""

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from recipe.errors import RecipeError

DOCUMENTATION = re.compile(
    r"usr/share/(doc|doc-base|man|locale|info|lintian|bug|menu|bash-completion|zsh|fish|gdb|help)/"
)
COPYRIGHT = re.compile(r"usr/share/doc/([^/]+)/copyright")
SYSUSERS = re.compile(r"usr/lib/sysusers\.d/[^/]+\.conf")
TMPFILES = re.compile(r"usr/lib/tmpfiles\.d/[^/]+\.conf")
REPORTED = re.compile(
    r"\b(adduser|addgroup|useradd|groupadd|mkdir|install|chown|chmod|update-alternatives|setcap|py3compile|ldconfig)\b"
)
"""Commands in a script that make what a program could need."""
FIRST_ID = 900
"""Of users and groups whose number is not declared."""


@dataclass
class Declared:
    """Lines of /etc/passwd and /etc/group, and entries of folders and links."""

    users: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    """Number, group's number and line, by name."""
    groups: dict[str, tuple[int, str]] = field(default_factory=dict)
    entries: list[tarfile.TarInfo] = field(default_factory=list)


def write(files: dict[str, Path], out: Path, licences: Path) -> int:
    """The files of packages, given by name, into the archive `out`, and what each says of its copyright into `licences`.
    Returns the bytes of all files."""
    declarations: dict[str, str] = {}
    written, taken = 0, {}
    with tarfile.open(out, "w", format=tarfile.PAX_FORMAT) as tar:
        for package, file in files.items():
            for member, content in _members(file):
                path = member.name.removeprefix("./").rstrip("/")
                if found := COPYRIGHT.fullmatch(path):
                    _keep(member, content, licences / found[1])
                if path in ("", ".") or DOCUMENTATION.match(path + "/"):
                    continue
                if not member.isdir() and taken.setdefault(path, package) != package:
                    raise RecipeError(f"packages {taken[path]} and {package} both have /{path}")
                if SYSUSERS.fullmatch(path) or TMPFILES.fullmatch(path):
                    content = content or b""
                    declarations[path] = content.decode(errors="replace")
                written += member.size
                _add(tar, path, member, content)
        for entry, content in _declared_entries(declarations):
            if entry.name not in taken:
                _add(tar, entry.name, entry, content)
    return written


def scripts(file: Path, scratch: Path) -> list[str]:
    """Commands of interest in the script that would run after the package is unpacked, each once."""
    scratch.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["dpkg-deb", "-e", file, scratch], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RecipeError(f"{file.name}: cannot unpack: {done.stderr.strip()}")
    script = scratch / "postinst"
    text = script.read_text(errors="replace") if script.is_file() else ""
    return sorted({match[1] for line in text.splitlines() if line[:1] != "#" for match in REPORTED.finditer(line)})


def declared(texts: dict[str, str]) -> Declared:
    """What the files in sysusers.d and tmpfiles.d, by path, ask for."""
    found = Declared()
    for path in sorted(filter(SYSUSERS.fullmatch, texts)):
        for words in _lines(texts[path]):
            _user(words, found)
    for path in sorted(filter(TMPFILES.fullmatch, texts)):
        for words in _lines(texts[path]):
            _folder(words, found)
    return found


def _declared_entries(texts: dict[str, str]) -> Iterator[tuple[tarfile.TarInfo, bytes | None]]:
    found = declared(texts)
    for name, lines in (
        ("etc/passwd", [line for *_, line in found.users.values()]),
        ("etc/group", [line for _, line in found.groups.values()]),
    ):
        if lines:
            content = "".join(f"{line}\n" for line in lines).encode()
            info = tarfile.TarInfo(name)
            info.size = len(content)
            yield info, content
    yield from ((entry, None) for entry in found.entries)


def _user(words: list[str], found: Declared) -> None:
    kind, name, number = (*words, "-", "-")[:3]
    given = number.split(":")[0]
    taken = {each[0] for each in (*found.users.values(), *found.groups.values())}
    free = next(each for each in range(FIRST_ID, 1 << 16) if each not in taken)
    own = int(given) if given.isdecimal() else free
    if kind in ("u", "g") and name not in found.groups:
        found.groups[name] = (own, f"{name}:x:{own}:")
    if kind == "u" and name not in found.users:
        group = found.groups[name][0]
        home, shell = ([*words[4:], "-", "-"])[:2]
        home, shell = home if home != "-" else "/", shell if shell != "-" else "/usr/sbin/nologin"
        found.users[name] = (group, group, f"{name}:x:{group}:{group}::{home}:{shell}")


def _folder(words: list[str], found: Declared) -> None:
    kind, path, mode, user, group = (*words, "-", "-", "-", "-")[:5]
    if kind.rstrip("!-=~^$+") not in ("d", "D", "v", "q", "Q") or "%" in path:
        return
    info = tarfile.TarInfo(path.strip("/").replace("var/run/", "run/", 1))
    info.type = tarfile.DIRTYPE
    info.mode = int(mode.lstrip("~:"), 8) if mode.lstrip("~:").isdecimal() else 0o755
    info.uid = found.users[user][0] if user in found.users else 0
    info.gid = found.groups[group][0] if group in found.groups else 0
    found.entries.append(info)


def _lines(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]


def _members(file: Path) -> Iterator[tuple[tarfile.TarInfo, bytes | None]]:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", file], stdout=subprocess.PIPE) as unpacking:
        try:
            with tarfile.open(fileobj=unpacking.stdout, mode="r|") as tar:
                for member in tar:
                    content = tar.extractfile(member) if member.isfile() else None
                    yield member, content.read() if content else None
        except tarfile.TarError as error:
            raise RecipeError(f"{file.name}: cannot unpack: {error}") from error
    if unpacking.returncode != 0:
        raise RecipeError(f"{file.name}: dpkg-deb could not unpack it")


def _keep(member: tarfile.TarInfo, content: bytes | None, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = content if content is not None else f"{member.linkname}\n".encode()
    (folder / "copyright").write_bytes(text)


def _add(tar: tarfile.TarFile, path: str, member: tarfile.TarInfo, content: bytes | None) -> None:
    info = tarfile.TarInfo(path)
    info.type, info.mode, info.uid, info.gid = member.type, member.mode, member.uid, member.gid
    info.linkname = member.linkname.removeprefix("./") if member.islnk() else member.linkname
    info.size = len(content) if content is not None else 0
    tar.addfile(info, io.BytesIO(content) if content is not None else None)
