# SPDX-License-Identifier: Apache-2.0
"""Roots with programs of others: `images/out/roots/KEY/`, KEY over everything that they are made from.

Packages are chosen once: `lock.json` beside them says which, with their sha256, and later roots with the same words
have the same packages. Of a container image the digest counts, of a folder its contents. What is made is kept, and made
again where the image, a source or the way of making has changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import BadInput, HostLacks
from sundial.machines.images import Image, run_build
from sundial.machines.layers import read_layers
from sundial.machines.loading import elsewhere, missing, packages_of, programs_of
from sundial.machines.merged import merge, read_initrd
from sundial.machines.packed import write_cpio, write_erofs
from sundial.machines.rootdisk import MODULES, boot_tree, shape_of
from sundial.machines.rootmodules import MODULES_DEP, add_modules
from sundial.machines.seals import SETTLED_NS, Book, read_summed, sha256_of, write_summed
from sundial.machines.tree import BadTree, Entry, Tree, add_layer, place, read_folder, remove, size_of, walk
from sundial.model.catalog import OUT
from sundial.model.hostfiles import Unusable, check_folder, check_lock, check_oci
from sundial.model.oci import OciImage
from sundial.model.root import Root
from sundial.plan.domain import RootDisk

FORMAT = 2
"""Change when the same sources give another root."""
BYTES_MOST = 16 << 30
ENTRIES_MOST = 1_000_000
"""Of a root beside the image's."""
KEPT = 12
"""Roots, the last that were used."""
MANIFEST, LOCK, SHAPE = "manifest.json", "lock.json", "shape.json"
ROOTS = OUT / "roots"
"""Below the folder for state."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class BuiltRoot:
    """A root that was made for an image."""

    initrd: Path
    initrd_sha256: str
    manifest: dict[str, Any]

    @property
    def disk(self) -> RootDisk | None:
        """The file system that machines map; None: the initrd has all."""
        name = self.manifest["disk"]
        return None if name is None else RootDisk(self.initrd.parent / name, self.manifest["bytes"])

    @property
    def shape(self) -> str:
        """Folders and links of the file system."""
        return (self.initrd.parent / SHAPE).read_text()

    @property
    def added(self) -> int:
        """Bytes that it has more than the image."""
        return int(self.manifest["added"])


class BadRoot(Exception):
    """A source of a root cannot be used: `field` of it, what is wrong, and what is allowed."""

    def __init__(self, field: str, what: str, allowed: str | None = None) -> None:
        super().__init__(what)
        self.field = field
        self.allowed = allowed


class Roots:
    """The roots of one checkout."""

    def __init__(self, checkout: Path, state: Path) -> None:
        self._checkout = checkout
        self._folder = state / ROOTS
        self._cache = state / OUT / "cache"

    def ensure(self, root: Root, image: Image, say: Say) -> BuiltRoot:
        """The root over an image, made first where it is missing. Raises BadRoot, HostLacks."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._lock("making"):
            for left in self._folder.glob(".*-*"):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            sources = _Sources(self, root, say)
            place = self._folder / sources.key(image)
            found = _load(place)
            if found is None:
                self._make(sources, image, place, say)
                found = _load(place)
                assert found is not None, "just made"
                self._prune()
            os.utime(place)
        return found

    def current(self, root: Root, image: Image) -> BuiltRoot | None:
        """The root over an image; None where it has to be made. Raises BadRoot."""
        if not self._folder.is_dir():
            return None
        try:
            locked = check_lock(root.lock, root.packages) if root.lock else None
        except Unusable as fault:
            raise BadRoot("lock", str(fault), fault.allowed) from fault
        if root.packages and not (self._of_packages(root.packages, locked) / LOCK).is_file():
            return None
        return _load(self._folder / _Sources(self, root, lambda _: None).key(image))

    def _of_packages(self, asked: list[str], locked: list[dict[str, str]] | None) -> Path:
        words = sorted(set(asked))
        named = json.dumps(words if locked is None else [words, locked])
        return self._folder / f"packages-{hashlib.sha256(named.encode()).hexdigest()[:24]}"

    def packages(self, asked: list[str], say: Say, locked: list[dict[str, str]] | None = None) -> Path:
        """The folder with these packages, of a lock or chosen by apt, fetched first where it is missing. Raises
        BadRoot, HostLacks."""
        place = self._of_packages(asked, locked)
        if (place / LOCK).is_file():
            return place
        beside = Path(tempfile.mkdtemp(prefix=".packages-", dir=self._folder))
        try:
            program = self._checkout / "images" / "packages" / "build"
            command = [str(program), "--out", str(beside), "--cache", str(self._cache)]
            if locked is not None:
                (beside / "given.json").write_text(json.dumps({"packages": locked}))
                command += ["--lock", str(beside / "given.json")]
            command += sorted(set(asked))
            status, last = run_build(command, program.parent, say)
            reason = last.removeprefix("images/packages/build: ")
            if status == BadInput.exit_code:
                raise BadRoot("packages", reason, "packages of the distribution's lists: apt-cache search WORD")
            if status != 0:
                raise HostLacks(f"packages could not be fetched: {reason or f'status {status}'}")
            _say_not_run(json.loads((beside / LOCK).read_text()), say)
            beside.rename(place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        return place

    def modules(self, image: Image, names: Sequence[str], field: str, say: Say, rebuild: Sequence[str] = ()) -> Path:
        """The folder with modules of the image's kernel, called in the order to load them, and their modules.dep.
        `field`: what needs them; `rebuild`: options of those that are compiled again. Raises BadRoot, HostLacks."""
        packages = image.manifest.get("packages") or []
        found = [each for each in packages if str(each.get("name")).startswith("linux-image-") and "version" in each]
        if len(found) != 1:
            what = f"the kernel of image {image.name}, recipe {image.recipe}, has no such modules"
            raise BadRoot(
                field, what, "as: memory, or the recipe distribution" if field == "as" else "the recipe distribution"
            )
        kernel = found[0]
        made_of = [kernel["sha256"], names, *([rebuild] if rebuild else [])]
        key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
        place = self._folder / f"modules-{key[:24]}"
        if not place.is_dir():
            beside = Path(tempfile.mkdtemp(prefix=".modules-", dir=self._folder))
            try:
                program = self._checkout / "images" / "packages" / "modules"
                package = ["--package", f"{kernel['name']}={kernel['version']}", "--sha256", kernel["sha256"]]
                command = [str(program), "--out", str(beside), "--cache", str(self._cache), *package]
                command += [word for option in rebuild for word in ("--option", option)]
                command += names
                status, last = run_build(command, program.parent, say)
                reason = last.removeprefix("images/packages/modules: ")
                if status == BadInput.exit_code:
                    raise BadRoot(field, reason, f"modules in package {kernel['name']}")
                if status != 0:
                    raise HostLacks(f"modules of the kernel could not be fetched: {reason or f'status {status}'}")
                beside.rename(place)
            finally:
                shutil.rmtree(beside, ignore_errors=True)
        return place

    def locks(self) -> list[dict[str, Any]]:
        """What packages were chosen, by the words that asked for them."""
        found = sorted(self._folder.glob(f"packages-*/{LOCK}"))
        return [json.loads(path.read_text()) for path in found]

    def digest_of_folder(self, path: Path) -> str:
        """sha256 over names, modes and contents; contents are read again only where a file may have changed."""
        notes = self._folder / "folders.json"
        try:
            known = read_summed(notes)
        except ValueError:
            known = {}
        began_ns = time.time_ns()
        listing, newest_ns = _listing(path)
        before = known.get(str(path))
        if before is not None and before["listing"] == listing and before["read_ns"] - newest_ns >= SETTLED_NS:
            return str(before["value"])
        value = _contents(path)
        there = {name: entry for name, entry in known.items() if Path(name).is_dir()}
        write_summed(notes, {**there, str(path): {"listing": listing, "read_ns": began_ns, "value": value}})
        return value

    def _make(self, sources: _Sources, image: Image, place: Path, say: Say) -> None:
        say("making a root: " + sources.words())
        beside = Path(tempfile.mkdtemp(prefix=".root-", dir=self._folder))
        try:
            scratch = beside / "scratch"
            scratch.mkdir()
            added = sources.tree(scratch)
            if size_of(added) > BYTES_MOST or len(added) > ENTRIES_MOST:
                has = f"has {len(added)} entries with {size_of(added)} bytes"
                raise BadTree(f"{has}, and a root may have {ENTRIES_MOST} with {BYTES_MOST}")
            base = read_initrd(image.initrd)
            tree = merge(base, added)
            if sources.modules:
                made = self.modules(image, sources.modules, "modules", say, sources.rebuild)
                _add_modules(tree, made, sources.rebuilt)
            self._check_programs(sources, tree, say)
            disk = None
            if sources.held == "disk":
                disk = write_erofs(tree, beside / "disk")
                (beside / SHAPE).write_text(shape_of(tree))
                drivers = self.modules(image, MODULES, "as", say).glob("*.ko")
                digest = write_cpio(boot_tree(base["bin/busybox"], drivers, disk), beside / "initrd")
            else:
                digest = write_cpio(tree, beside / "initrd")
            size = (beside / ("initrd" if disk is None else "disk")).stat().st_size
            manifest = {
                "version": FORMAT,
                "initrd": digest,
                "disk": disk,
                "bytes": size,
                "added": max(0, size - image.initrd.stat().st_size),
                "entries": len(tree),
                "files_bytes": size_of(added),
                **sources.facts(),
            }
            (beside / "initrd").rename(beside / digest)
            if disk is not None:
                (beside / "disk").rename(beside / disk)
            (beside / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
            shutil.rmtree(scratch)
            shutil.rmtree(place, ignore_errors=True)
            beside.chmod(0o755)
            beside.rename(place)
        except BadTree as error:
            raise BadRoot(sources.blamed, str(error)) from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _check_programs(self, sources: _Sources, tree: Tree, say: Say) -> None:
        """Programs that cannot start: those of a folder and the first of a container image are refused, others named.
        Raises BadRoot."""
        for found in missing(tree, programs_of(tree)):
            field = sources.field_of(found.path, tree[found.path])
            package = None if found.library is None else _package_of(found.library)
            what = str(found) if package is None else f"{found}, which is in package {package}"
            if field is not None:
                raise BadRoot(field, what, None if package is None else f"packages: [{package}] in addition")
            say(f"cannot start: {what}")
        for found in missing(tree, elsewhere(tree, sources.of_folder)):
            if found.damaged:
                raise BadRoot("folder", str(found))
            say(f"cannot start: {found}")

    def _prune(self) -> None:
        """Remove all but the last used roots; packages stay, since their lock is what makes a root repeatable."""
        made = [path for path in self._folder.iterdir() if (path / MANIFEST).is_file()]
        made.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in made[KEPT:]:
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        with (self._folder / f".{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class _Sources:
    """What one root is made from, with the digest of each source."""

    def __init__(self, roots: Roots, root: Root, say: Say) -> None:
        self._root = root
        self.held = root.held
        self.modules = sorted(set(root.modules))
        self.rebuilt = root.rebuild
        self.rebuild = sorted(
            f"{module}:{option}={'y' if on else 'n'}"
            for module, options in root.rebuild.items()
            for option, on in options.items()
        )
        try:
            locked = check_lock(root.lock, root.packages) if root.lock else None
        except Unusable as fault:
            raise BadRoot("lock", str(fault), fault.allowed) from fault
        self._packages = roots.packages(root.packages, say, locked) if root.packages else None
        self._lock = json.loads((self._packages / LOCK).read_text()) if self._packages else None
        self.of_folder: set[int] = set()
        """Ids of its entries."""
        self.blamed = "packages"
        """The field whose source is read, for errors."""
        try:
            self.oci: OciImage | None = check_oci(root.oci, root.tag) if root.oci else None
            if root.folder:
                check_folder(root.folder)
        except Unusable as fault:
            raise BadRoot("oci" if root.oci else "folder", str(fault), fault.allowed) from fault
        try:
            self._folder = roots.digest_of_folder(Path(root.folder)) if root.folder else None
        except (BadTree, OSError) as error:
            raise BadRoot("folder", str(error)) from error

    def key(self, image: Image) -> str:
        text = json.dumps([FORMAT, self._root.held, image.initrd_sha256, image.kernel_sha256, self.digests()])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def digests(self) -> dict[str, str]:
        """Of each source."""
        found = {
            "packages": self._lock["sha256"] if self._lock else None,
            "oci": self.oci.digest if self.oci else None,
            "folder": self._folder,
            "modules": hashlib.sha256(" ".join([*self.modules, *self.rebuild]).encode()).hexdigest()
            if self.modules
            else None,
        }
        return {name: digest for name, digest in found.items() if digest is not None}

    def facts(self) -> dict[str, Any]:
        """For the manifest."""
        return {"sources": self.digests(), "packages": self._lock["packages"] if self._lock else []}

    def words(self) -> str:
        root = self._root
        named = [*root.packages, *(Path(path).name for path in (root.oci, root.folder) if path), *self.modules]
        return ", ".join(named)

    def field_of(self, path: str, entry: Entry) -> str | None:
        """The source that a program must come from whole; None: it may lack something."""
        if id(entry) in self.of_folder:
            return "folder"
        argv = self.oci.process.argv if self.oci is not None else ()
        first = "/" not in argv[0] and Path(path).name == argv[0] if argv else False
        return "oci" if argv and (first or argv[0] == f"/{path}") else None

    def tree(self, scratch: Path) -> Tree:
        """All sources over one another. Raises BadTree."""
        tree: Tree = {}
        if self._packages is not None:
            archive = self._packages / "packages.tar"
            if sha256_of(archive) != (self._lock or {})["sha256"]:
                raise BadTree(f"{archive} was changed: remove {self._packages}")
            add_layer(tree, archive, "packages.tar")
        if self.oci is not None and self._root.oci is not None:
            self.blamed = "oci"
            _over(tree, read_layers(Path(self._root.oci), self.oci, scratch))
        if self._root.folder is not None:
            self.blamed = "folder"
            upper = read_folder(Path(self._root.folder))
            self.of_folder = {id(entry) for entry in upper.values()}
            _over(tree, upper)
        return tree


def _add_modules(tree: Tree, folder: Path, replacing: Collection[str]) -> None:
    files = {path.name.partition("-")[2]: path.read_bytes() for path in sorted(folder.glob("*.ko"))}
    add_modules(tree, files, (folder / MODULES_DEP).read_text(), replacing)


def _over(tree: Tree, upper: Tree) -> None:
    """Lay a tree over another."""
    for path, entry in sorted(upper.items()):
        where = place(tree, path, follow=entry.is_folder)
        there = tree.get(where)
        if there is not None and there.is_folder != entry.is_folder:
            remove(tree, where)
        tree[where] = entry


def _load(place: Path) -> BuiltRoot | None:
    """The root in a folder; None: there is none, or not all of it."""
    try:
        manifest = json.loads((place / MANIFEST).read_text())
        initrd = place / manifest["initrd"]
        if manifest["version"] != FORMAT:
            return None
        for name in filter(None, (manifest["initrd"], manifest["disk"])):
            if Book(place / "seals.json").value(place / name, sha256_of) != name:
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return BuiltRoot(initrd, manifest["initrd"], manifest)


def _package_of(library: str) -> str | None:
    """The distribution's package of a library, if apt knows one by the names that it could have."""
    names = packages_of(library)
    try:
        said = subprocess.run(
            ["apt-cache", "show", "--no-all-versions", *names], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    known = {line.removeprefix("Package: ") for line in said.stdout.splitlines() if line.startswith("Package: ")}
    return next((name for name in names if name in known), None)


def _say_not_run(lock: dict[str, Any], say: Say) -> None:
    for name, words in lock["not_run"].items():
        say(f"not run: the script of package {name}, which uses {', '.join(words)}")


def _listing(path: Path) -> tuple[str, int]:
    """What changes when a file in a folder changes, and the time of the last change."""
    digest, newest_ns = hashlib.sha256(), 0
    for where, status in walk(path):
        fields = (status.st_mode, status.st_size, status.st_ino, status.st_dev, status.st_mtime_ns, status.st_ctime_ns)
        digest.update(f"{where.relative_to(path)}\0{fields}\0".encode(errors="surrogateescape"))
        newest_ns = max(newest_ns, status.st_ctime_ns)
    return digest.hexdigest(), newest_ns


def _contents(path: Path) -> str:
    digest = hashlib.sha256()
    for name, entry in read_folder(path).items():
        digest.update(f"{name}\0{entry.mode:o}\0{entry.size}\0".encode(errors="surrogateescape"))
        for piece in [entry.content] if isinstance(entry.content, bytes) else entry.content.pieces():
            digest.update(piece)
    return digest.hexdigest()
