# SPDX-License-Identifier: Apache-2.0
"""The recipe `tuned`: a kernel with nothing in it that no guest needs, and the root of packaged programs."""

from linux import root
from recipe import kernel_config, kernel_source, packages
from recipe.image import CHECKOUT, Contents, Workspace

# The configuration that Buildroot's recipe has too.
CONFIG = CHECKOUT / "buildroot-configs/board/sundial/linux/linux.config"

# Why each word is there: README.md, "The command line".
COMMAND_LINE = " ".join(
    [
        "console=ttyS0 quiet rootfstype=ramfs tsc=reliable no_timer_check nolapic_timer",
        "initcall_blacklist=blake2s_mod_init ifb.numifbs=0",
    ]
)

DEVELOPMENT_FILES = [*root.DEVELOPMENT_FILES, *kernel_source.DEVELOPMENT_FILES]


def make(workspace: Workspace) -> Contents:
    source = kernel_source.source_package()
    kernel = kernel_source.build(source, CONFIG, workspace)
    made = root.make_root(workspace)
    folder = f"lib/modules/{kernel.release}"
    # Nothing is a module; modprobe is content where it finds a name in the kernel's own list.
    made.base.add_file(f"{folder}/modules.builtin", kernel.built_in)
    made.base.add_file(f"{folder}/modules.dep", b"")
    return Contents(
        kernel=kernel.vmlinux,
        initrd=made.to_bytes(),
        kernel_release=kernel.release,
        cmdline=COMMAND_LINE,
        packages=made.packages,
        facts={
            "kernel_source": {"package": source.name, "version": source.version, "sha256": source.sha256},
            "kernel_config_sha256": packages.sha256_of(CONFIG),
            "hz": kernel.hz,
            "unpacks": kernel_config.unpacks(CONFIG.read_text()),
            **made.facts,
        },
        beside=made.beside,
    )
