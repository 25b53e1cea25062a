# SPDX-License-Identifier: Apache-2.0
"""The root that two recipes share: busybox, what is compiled from guest-apps, packaged programs and their libraries."""

from dataclasses import dataclass, field
from pathlib import Path

from recipe import lz4, packages, programs, symbols
from recipe.cpio import Archive
from recipe.errors import RecipeError
from recipe.image import CHECKOUT, Workspace, run_make

HERE = Path(__file__).resolve().parent
APPS_SOURCE = CHECKOUT / "guest-apps"

# Program in the guest: (package, path in the package).
BASE_PROGRAMS = {
    "busybox": ("busybox-static", "bin/busybox"),
    "rpcbind": ("rpcbind", "sbin/rpcbind"),
}
# These and what only they need lie compressed in the image (guest-apps/runner/extras.h).
EXTRA_PROGRAMS = {
    "iperf3": ("iperf3", "usr/bin/iperf3"),
    "tcpdump": ("tcpdump", "usr/bin/tcpdump"),
    "ethtool": ("ethtool", "sbin/ethtool"),
    "ip": ("iproute2", "bin/ip"),
    "tc": ("iproute2", "sbin/tc"),
}
EXTRAS_PATH = "lib/extras.cpio.lz4"
TC_DISTRIBUTIONS = ["normal", "pareto", "paretonormal", "experimental"]

# What init, the runner and the kernel call. Interactive machines install the rest themselves.
BUSYBOX_NAMES = ["sh", "mount", "modprobe", "insmod", "ifconfig"]

# What guest-apps' make leaves: programs, and for each application a link to the program that holds it.
APPLICATIONS_FOLDER = "usr/lib/sundial"
RUNNER = "runner"

# Without these the applications do not compile: (file, package).
DEVELOPMENT_FILES = [
    ("/usr/include/tirpc/rpc/rpc.h", "libtirpc-dev"),
    ("/usr/include/jansson.h", "libjansson-dev"),
    ("/usr/bin/rpcgen", "rpcsvc-proto"),
    ("/usr/bin/gcc", "gcc"),
    ("/usr/bin/make", "make"),
    ("/usr/bin/lz4", "lz4"),
]


@dataclass
class Root:
    """A root that a recipe may add to: `base` as it is booted, `extras` as the runner unpacks them."""

    base: Archive = field(default_factory=Archive)
    extras: Archive = field(default_factory=Archive)
    packages: list[dict[str, str]] = field(default_factory=list)
    """As the manifest lists them."""
    facts: dict[str, object] = field(default_factory=dict)
    """Of the manifest."""
    beside: dict[str, bytes] = field(default_factory=dict)
    """Further files of the image."""

    def to_bytes(self) -> bytes:
        """The initrd, with the extras in it."""
        self.base.add_file(EXTRAS_PATH, lz4.compress(self.extras.to_bytes()))
        return self.base.to_bytes()


def make_root(workspace: Workspace) -> Root:
    """Everything but what belongs to the kernel."""
    needed = packages.library_closure([package for package, _ in (BASE_PROGRAMS | EXTRA_PROGRAMS).values()])
    files = packages.download(needed, workspace.cache)
    packages.unpack_all({file: workspace.scratch / "packages" / name for name, file in files.items()})
    run_make(APPS_SOURCE, OUT=workspace.scratch / "applications")
    root = Root()
    _add_base(root.base)
    tree = programs.PackageTree(workspace.scratch / "packages")
    used = _add_programs(root.base, root.extras, tree, workspace.scratch / "applications")
    root.packages = [package.listed() for package in needed if package.name in used]
    _add_symbols(root, workspace.scratch / "applications")
    return root


def _add_base(archive: Archive) -> None:
    for folder in ("dev", "proc", "sys", "tmp", "run", "root", "var", "lib64"):
        archive.add_folder(folder)
    archive.add_character_device("dev/console", 5, 1, 0o600)
    archive.add_character_device("dev/null", 1, 3, 0o666)
    archive.add_link("sbin", "bin")
    archive.add_link("usr/bin", "../bin")
    archive.add_link("usr/sbin", "../bin")
    archive.add_link("var/run", "../run")
    archive.add_link("etc/mtab", "../proc/mounts")
    archive.add_file("init", (HERE / "init").read_bytes(), 0o755)
    for path in sorted((HERE / "etc").iterdir()):
        archive.add_file(f"etc/{path.name}", path.read_bytes())


def _add_packaged(archive: Archive, tree: programs.PackageTree, chosen: dict[str, tuple[str, str]]) -> list[bytes]:
    contents = []
    for name, (package, path) in chosen.items():
        contents.append(tree.file(package, path).read_bytes())
        archive.add_file(f"bin/{name}", contents[-1], 0o755)
    return contents


def _add_libraries(archive: Archive, libraries: dict[str, programs.Found]) -> None:
    for soname, found in libraries.items():
        folder = "lib64" if soname.startswith("ld-linux") else "lib/x86_64-linux-gnu"
        archive.add_file(f"{folder}/{soname}", found.path.read_bytes(), 0o755)


def add_applications(base: Archive, extras: Archive, folder: Path) -> None:
    """Every application that was compiled. The program that holds the runner is needed to boot; others are extras."""
    links = {path.name: path.readlink().name for path in sorted(folder.iterdir()) if path.is_symlink()}
    if RUNNER not in links:
        raise RecipeError(f"guest-apps: make left no link {RUNNER}")
    for program in sorted(set(links.values())):
        archive = base if program == links[RUNNER] else extras
        archive.add_file(f"{APPLICATIONS_FOLDER}/{program}", (folder / program).read_bytes(), 0o755)
    for name, program in links.items():
        if name == RUNNER:
            base.add_link(f"bin/{RUNNER}", f"../{APPLICATIONS_FOLDER}/{program}")
        else:
            archive = base if program == links[RUNNER] else extras
            archive.add_link(f"{APPLICATIONS_FOLDER}/{name}", program)


def _add_symbols(root: Root, folder: Path) -> None:
    links = {path.name: path.readlink().name for path in sorted(folder.iterdir()) if path.is_symlink()}
    programs = {
        name: ((folder / name).read_bytes(), (folder / f"{name}.symbols").read_bytes())
        for name in sorted(set(links.values()))
    }
    root.beside[symbols.FILE] = symbols.document(programs, links)
    root.facts["programs"] = symbols.digests(programs)


def _add_programs(base: Archive, extras: Archive, tree: programs.PackageTree, applications: Path) -> set[str]:
    """Adds programs, applications and their libraries; returns the packages that gave a file."""
    contents = _add_packaged(base, tree, BASE_PROGRAMS)
    for name in BUSYBOX_NAMES:
        base.add_link(f"bin/{name}", "busybox")
    add_applications(base, extras, applications)
    libraries = programs.libraries_for(contents, tree)
    _add_libraries(base, libraries)

    all_libraries = programs.libraries_for(contents + _add_packaged(extras, tree, EXTRA_PROGRAMS), tree)
    _add_libraries(extras, {name: all_libraries[name] for name in all_libraries if name not in libraries})
    for name in TC_DISTRIBUTIONS:
        path = f"usr/lib/x86_64-linux-gnu/tc/{name}.dist"
        extras.add_file(path, tree.file("iproute2", path).read_bytes())
    named = {package for package, _ in (BASE_PROGRAMS | EXTRA_PROGRAMS).values()}
    return named | {found.package for found in all_libraries.values()}
