# SPDX-License-Identifier: Apache-2.0
"""The recipe `distribution`: the distribution's cloud kernel with its modules, and the root of packaged programs."""

from dataclasses import replace
from pathlib import Path

from linux import root
from recipe import kernel, kernel_config, modules, packages, programs
from recipe.cpio import Archive
from recipe.errors import RecipeError
from recipe.image import Contents, Workspace

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
SWAP_MODULES = ["lzo_rle", "zram"]
"""The second asks for the first by the name of what it does."""

DEVELOPMENT_FILES = [*root.DEVELOPMENT_FILES, ("/usr/bin/objcopy", "binutils")]


def _vmlinux(image: Path, workspace: Workspace) -> bytes:
    """The extracted kernel, kept in the cache by the digest of what it was extracted from."""
    kept = workspace.cache / f"vmlinux-{packages.sha256_of(image)}"
    if not kept.is_file():
        temporary = workspace.scratch / "vmlinux"
        temporary.write_bytes(kernel.extract_vmlinux(image.read_bytes()))
        temporary.replace(kept)
    return kept.read_bytes()


def _add_modules(made: root.Root, tree: Path, release: str, scratch: Path) -> None:
    needed = modules.collect(tree, BOOT_MODULES + EXTRA_MODULES, scratch)
    boot = {module.name for module in modules.collect(tree, BOOT_MODULES, scratch)}
    folder = f"lib/modules/{release}"
    for module in needed:
        archive = made.base if module.name in boot else made.extras
        archive.add_file(f"{folder}/{module.name}.ko", module.data)
    for name, data in modules.index_files(needed).items():
        made.base.add_file(f"{folder}/{name}", data)
    if parts := modules.built_in(tree, BOOT_MODULES + EXTRA_MODULES):
        # modprobe is content where it finds a name in the kernel's own list.
        made.base.add_file(f"{folder}/modules.builtin", "".join(f"{line}\n" for line in parts).encode())


def _kernel_package() -> packages.Package:
    """The package with the kernel itself: the one that the unversioned package stands for."""
    for name in packages.look_up([KERNEL_PACKAGE])[KERNEL_PACKAGE].depends:
        if name.startswith("linux-image-"):
            return packages.look_up([name])[name]
    raise RecipeError(f"package {KERNEL_PACKAGE}: names no kernel package")


def _unpacked(workspace: Workspace) -> Path:
    """Where the kernel's package is."""
    return workspace.scratch / "kernel-package"


def _modules(unpacked: Path) -> Path:
    """Where the modules are in it."""
    return programs.beneath(unpacked, "lib/modules")


def with_swap(image: Contents, workspace: Workspace) -> Contents:
    """`image`, which was made in this workspace, with a root whose pages init lets the kernel compress."""
    archive = Archive(over_another=True)
    archive.add_file("etc/swap", (root.HERE / "swap").read_bytes())
    archive.add_folder("lib/swap")
    loaded = modules.collect(_modules(_unpacked(workspace)), SWAP_MODULES, workspace.scratch / "swap")
    for number, module in enumerate(loaded):
        archive.add_file(f"lib/swap/{number}-{module.name}.ko", module.data)
    cmdline = image.cmdline.replace("rootfstype=ramfs", "rootfstype=tmpfs")
    return replace(image, initrd=image.initrd + archive.to_bytes(), cmdline=cmdline)


def make(workspace: Workspace) -> Contents:
    package = _kernel_package()
    unpacked = _unpacked(workspace)
    packages.unpack(packages.download([package], workspace.cache)[package.name], unpacked)
    tree = _modules(unpacked)
    release = next(tree.iterdir()).name
    made = root.make_root(workspace)
    _add_modules(made, tree, release, workspace.scratch / "modules")
    config = (unpacked / f"boot/config-{release}").read_text()
    return Contents(
        kernel=_vmlinux(unpacked / f"boot/vmlinuz-{release}", workspace),
        initrd=made.to_bytes(),
        kernel_release=release,
        cmdline=COMMAND_LINE,
        packages=[package.listed(), *made.packages],
        facts={"hz": kernel_config.hz(config), "unpacks": kernel_config.unpacks(config), **made.facts},
        beside=made.beside,
    )
