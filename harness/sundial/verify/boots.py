# SPDX-License-Identifier: Apache-2.0
"""What machines booted that was not just their image: `boots` of run.json against the topology, the images and each
machine's domain.xml, in which the copies that were booted are called by their digests."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from sundial.model.network import Node
from sundial.observe import RunDirectory
from sundial.plan.domain import DISK_WORDS, RootDisk

UNPROVEN = (
    "run.json: boots: sha256 and length of a copied file whose content is not in the topology: the file may be gone",
)


def boot_of(run: RunDirectory, machine: str) -> Mapping[str, Any] | None:
    """What run.json says that a machine booted, of one that did not boot just its image."""
    boots = run.document.get("boots")
    boot = boots.get(machine) if isinstance(boots, dict) else None
    return boot if isinstance(boot, dict) else None


def differing(run: RunDirectory, node: Node, domain: ET.Element) -> Iterator[tuple[str, str, str]]:
    """Field, expected and seen, of what one machine booted."""
    boot = boot_of(run, node.name)
    if (boot is not None) != node.boots_its_own:
        yield "boots", "in run.json" if node.boots_its_own else "not in run.json", "there" if boot else "missing"
    if boot is None or not node.boots_its_own:
        return
    copied = {"kernel": node.kernel is not None, "initrd": bool(node.initrd or node.files or node.root)}
    for part, own in copied.items():
        seen = PurePosixPath(domain.findtext(f"os/{part}") or "").name if own else _of_image(run, node, part)
        yield f"boots {part}", str(boot.get(part)), seen
    yield from _disk(node, boot.get("root"), domain)
    yield "boots cmdline", str(boot.get("cmdline")), str(domain.findtext("os/cmdline"))
    yield from _files(node, boot.get("files"))


def disk_of(run: RunDirectory, node: Node) -> RootDisk | None:
    """The file system that the machine maps, by what run.json says."""
    root = (boot_of(run, node.name) or {}).get("root")
    if node.root is None or node.root.held != "disk" or not isinstance(root, dict):
        return None
    size = root.get("bytes")
    return RootDisk(Path("/"), size if isinstance(size, int) else 0)


def _disk(node: Node, root: object, domain: ET.Element) -> Iterator[tuple[str, str, str]]:
    """The root of run.json against the topology, and the file that was mapped against the root."""
    said = root if isinstance(root, dict) else {}
    sources = said.get("sources")
    expected = [] if node.root is None else node.root.sources
    yield "boots root", ", ".join(expected), ", ".join(sources) if isinstance(sources, dict) else ""
    if node.root is not None and node.root.held == "disk":
        values = [str(each.get("value")) for each in domain.iter() if "mem-path=" in str(each.get("value"))]
        paths = [part for value in values for part in value.split(",") if part.startswith("mem-path=")]
        mapped = [PurePosixPath(path).name for path in paths if "readonly=on" in values[paths.index(path)]]
        yield "boots root disk", str(said.get("disk")), ", ".join(mapped)


def line_of_image(node: Node, domain: ET.Element) -> str:
    """The kernel command line of a machine without the words that are its own."""
    line = domain.findtext("os/cmdline") or ""
    line = line if node.cmdline is None else line.removesuffix(f" {node.cmdline}")
    on_disk = node.root is not None and node.root.held == "disk"
    return line.removesuffix(f" {DISK_WORDS}") if on_disk else line


def kernels(run: RunDirectory, machine: str) -> list[str]:
    """What the machine's kernel may call itself; empty: anything."""
    boot = boot_of(run, machine)
    if boot is not None:
        release = boot.get("kernel_release")
        return [str(release)] if release else []
    named = str((run.document.get("versions") or {}).get("kernel") or "")
    return named.split(", ") if named else []


def _of_image(run: RunDirectory, node: Node, part: str) -> str:
    image = (run.document.get("images") or {}).get(node.image)
    digests = image.get("sha256") if isinstance(image, dict) else None
    return str(digests.get(part)) if isinstance(digests, dict) else "none"


def _files(node: Node, written: object) -> Iterator[tuple[str, str, str]]:
    seen = written if isinstance(written, dict) else {}
    yield "boots files", ", ".join(path for path, _ in node.files), ", ".join(map(str, seen))
    for path, laid in node.files:
        said = seen.get(path)
        if not isinstance(said, dict):
            continue
        yield f"boots {path} mode", f"{laid.mode:04o}", str(said.get("mode"))
        if laid.content is not None:
            content = laid.content.encode()
            yield f"boots {path} sha256", hashlib.sha256(content).hexdigest(), str(said.get("sha256"))
            yield f"boots {path} bytes", str(len(content)), str(said.get("bytes"))
