# SPDX-License-Identifier: Apache-2.0
"""The Linux image: the distribution's cloud kernel, busybox, what is compiled from guest-apps, and their libraries."""

from pathlib import Path

from recipe import kernel, lz4, modules, packages, programs
from recipe.cpio import Archive
from recipe.errors import RecipeError
from recipe.image import CHECKOUT, Contents, Workspace, run_make

HERE = Path(__file__).resolve().parent
APPS_SOURCE = CHECKOUT / "guest-apps"
KERNEL_PACKAGE = "linux-image-cloud-amd64"

# Parts of the kernel's start that no guest of ours needs, by the name of their initcall. What they
# cost: README.md, "Where the boot goes".
SKIPPED_INITCALLS = [
    "load_system_certificate_list",  # checks the certificates of modules
    "ftrace_check_for_weak_functions",  # the tracer: its 38,000 records, then its files
    "ftrace_check_sync",
    "trace_eval_init",
    "tracer_init_tracefs",
    "event_trace_init",
    "init_blk_tracer",
    "init_kprobe_trace",
    "blake2s_mod_init",  # self-tests that no option turns off
    "crypto_kdf108_init",
]

# Why each word is there: README.md, "The command line".
COMMAND_LINE = " ".join(
    [
        "console=ttyS0 quiet panic=-1 rootfstype=ramfs tsc=reliable net.ifnames=0 ipv6.disable=1",
        "mitigations=off init_on_alloc=0 no_timer_check nolapic_timer lsm= audit=0",
        "cryptomgr.notests=1 psi=0 cgroup_disable=memory hardened_usercopy=off",
        "initcall_blacklist=" + ",".join(SKIPPED_INITCALLS),
    ]
)

BOOT_MODULES = ["virtio_pci", "virtio_net", "virtio_console", "qemu_fw_cfg"]
EXTRA_MODULES = ["bridge", "ifb", "sch_netem", "sch_tbf", "sch_prio", "sch_htb"]

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
    ("/usr/bin/objcopy", "binutils"),
    ("/usr/bin/lz4", "lz4"),
]


def _vmlinux(image: Path, cache: Path) -> bytes:
    """The extracted kernel, kept in the cache by the digest of what it was extracted from."""
    kept = cache / f"vmlinux-{packages.sha256_of(image)}"
    if not kept.is_file():
        temporary = kept.with_suffix(".partial")
        temporary.write_bytes(kernel.extract_vmlinux(image.read_bytes()))
        temporary.replace(kept)
    return kept.read_bytes()


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


def _add_modules(base: Archive, extras: Archive, tree: Path, release: str, scratch: Path) -> None:
    needed = modules.collect(tree, BOOT_MODULES + EXTRA_MODULES, scratch)
    boot = {module.name for module in modules.collect(tree, BOOT_MODULES, scratch)}
    folder = f"lib/modules/{release}"
    for module in needed:
        archive = base if module.name in boot else extras
        archive.add_file(f"{folder}/{module.name}.ko", module.data)
    for name, data in modules.index_files(needed).items():
        base.add_file(f"{folder}/{name}", data)


def _kernel_package_name() -> str:
    """The package with the kernel itself: the one that the unversioned package stands for."""
    for name in packages.look_up([KERNEL_PACKAGE])[KERNEL_PACKAGE].depends:
        if name.startswith("linux-image-"):
            return name
    raise RecipeError(f"package {KERNEL_PACKAGE}: names no kernel package")


def make(workspace: Workspace) -> Contents:
    scratch = workspace.scratch
    kernel_name = _kernel_package_name()
    kernel_package = packages.look_up([kernel_name])[kernel_name]
    needed = packages.library_closure([package for package, _ in (BASE_PROGRAMS | EXTRA_PROGRAMS).values()])
    files = packages.download([kernel_package, *needed], workspace.cache)
    packages.unpack(files[kernel_name], scratch / "kernel-package")
    for package in needed:
        packages.unpack(files[package.name], scratch / "packages" / package.name)
    release = next((scratch / "kernel-package/lib/modules").iterdir()).name
    run_make(APPS_SOURCE, OUT=scratch / "applications")

    base, extras = Archive(), Archive()
    _add_base(base)
    tree = programs.PackageTree(scratch / "packages")
    used = _add_programs(base, extras, tree, scratch / "applications")
    _add_modules(base, extras, scratch / "kernel-package/lib/modules", release, scratch / "modules")
    base.add_file(EXTRAS_PATH, lz4.compress(extras.to_bytes()))
    return Contents(
        kernel=_vmlinux(scratch / f"kernel-package/boot/vmlinuz-{release}", workspace.cache),
        initrd=base.to_bytes(),
        kernel_release=release,
        cmdline=COMMAND_LINE,
        packages=[
            {"name": package.name, "version": package.version, "sha256": package.sha256}
            for package in [kernel_package, *needed]
            if package.name in used or package is kernel_package
        ],
    )
