# SPDX-License-Identifier: Apache-2.0
"""Kernel modules: those asked for with what they depend on, and the indices modprobe reads."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from recipe.elf import Elf
from recipe.errors import HostLacks, RecipeError
from recipe.unpacking import unpack


@dataclass(frozen=True)
class Module:
    name: str
    data: bytes
    depends: tuple[str, ...]
    aliases: tuple[str, ...]


def canonical(name: str) -> str:
    """The kernel treats - and _ in module names as the same character."""
    return name.replace("-", "_")


def _modinfo(data: bytes, key: str) -> list[str]:
    prefix = f"{key}="
    entries = Elf(data).section(".modinfo").split(b"\0")
    texts = (entry.decode(errors="replace") for entry in entries)
    return [text[len(prefix) :] for text in texts if text.startswith(prefix)]


def _slim(path: Path, scratch: Path) -> bytes:
    """The module without its signature and type information.

    Checking a signature costs the guest more instructions than all the rest of loading; the
    kernel takes unsigned modules (and marks itself tainted) where signatures are not enforced.
    """
    whole, target = scratch / f"{canonical(_name(path))}.whole", scratch / f"{canonical(_name(path))}.ko"
    whole.write_bytes(unpack(path.read_bytes(), path.name))
    command = ["objcopy", "--strip-debug", "--remove-section=.BTF", whole, target]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise HostLacks("objcopy not found (package binutils)") from None
    if done.returncode != 0:
        raise RecipeError(f"{path.name}: objcopy: {done.stderr.strip()}")
    return target.read_bytes()


def _name(path: Path | str) -> str:
    """`virtio_net` of virtio_net.ko or virtio_net.ko.xz."""
    return Path(path).name.partition(".ko")[0]


def built_in(tree: Path, names: list[str]) -> list[str]:
    """Lines of modules.builtin about those of the modules that are parts of the kernel itself."""
    wanted = set(map(canonical, names))
    lines = [line for file in sorted(tree.rglob("modules.builtin")) for line in file.read_text().split()]
    return [line for line in lines if canonical(_name(line)) in wanted]


def collect(tree: Path, names: list[str], scratch: Path) -> list[Module]:
    """The modules and all they depend on, each after those it needs, without what is built in."""
    files = {canonical(_name(path)): path for path in tree.rglob("*.ko*")}
    parts = {canonical(_name(line)) for line in built_in(tree, names)}
    scratch.mkdir(parents=True, exist_ok=True)
    collected: dict[str, Module] = {}

    def add(name: str) -> None:
        if name in collected:
            return
        if name not in files:
            raise RecipeError(f"kernel module {name}: not in the kernel package")
        data = _slim(files[name], scratch)
        depends = tuple(canonical(other) for field in _modinfo(data, "depends") for other in field.split(",") if other)
        for other in depends:
            add(other)
        collected[name] = Module(name, data, depends, tuple(_modinfo(data, "alias")))

    for name in map(canonical, names):
        if name not in parts:
            add(name)
    return list(collected.values())


def _closure(module: Module, by_name: dict[str, Module]) -> list[str]:
    """What must be loaded before the module, nearest first, in the order of modules.dep."""
    order: list[str] = []

    def visit(name: str) -> None:
        for other in by_name[name].depends:
            if other in order:
                order.remove(other)
            order.append(other)
            visit(other)

    visit(module.name)
    return order


def index_files(modules: list[Module]) -> dict[str, bytes]:
    """modules.dep and modules.alias (depmod's text formats)."""
    by_name = {module.name: module for module in modules}
    ordered = sorted(modules, key=lambda module: module.name)
    dep = "".join(
        f"{module.name}.ko:" + "".join(f" {name}.ko" for name in _closure(module, by_name)) + "\n" for module in ordered
    )
    alias = "".join(f"alias {name} {module.name}\n" for module in ordered for name in sorted(module.aliases))
    return {"modules.dep": dep.encode(), "modules.alias": alias.encode()}
