# SPDX-License-Identifier: Apache-2.0
"""A module of a Debian kernel compiled again, with options of its configuration on or off.

The source is that of the kernel's own version; headers, tools and the compiler are those of the kernel's packages, so
that the kernel takes the module in place of its own.
"""

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from recipe import packages
from recipe.errors import HostLacks, RecipeError
from recipe.image import cores
from recipe.kernel_source import SOURCE_PACKAGE, make
from recipe.packages import Package
from recipe.progress import say

Options = Mapping[str, bool]
"""Names without CONFIG_."""

_IMAGE, _HEADERS = "linux-image-", "linux-headers-"
_COMPILER = re.compile(r'^CONFIG_CC_VERSION_TEXT="(\S+)', re.MULTILINE)
_UNUSED = {"CONFIG_DEBUG_INFO": "", "CONFIG_DEBUG_INFO_BTF": ""}
"""What is stripped afterwards."""


class NoOption(RecipeError):
    """An option that cannot be changed: the user's mistake."""

    exit_status = 2


def read_options(words: Iterable[str]) -> dict[str, dict[str, bool]]:
    """MODULE:OPTION=y or =n, by module."""
    found: dict[str, dict[str, bool]] = {}
    for word in words:
        module, _, setting = word.partition(":")
        name, _, value = setting.partition("=")
        found.setdefault(module, {})[name] = value == "y"
    return found


def check_options(module: str, options: Options, config: str, files: Iterable[str]) -> None:
    """Raises NoOption for one that the module's own files do not read, or that is so already."""
    texts = list(files)
    for name, on in options.items():
        read = re.compile(rf"\bCONFIG_{name}(_MODULE)?\b")
        if not any(read.search(text) for text in texts):
            raise NoOption(f"kernel module {module}: its source does not read option {name}")
        if on == bool(re.search(rf"^CONFIG_{name}=[ym]$", config, re.MULTILINE)):
            raise NoOption(f"kernel module {module}: option {name} is {'on' if on else 'off'} in this kernel")


def header(options: Options) -> str:
    """What the compiler reads after the kernel's own configuration."""
    lines = []
    for name, on in sorted(options.items()):
        lines += [f"#undef CONFIG_{name}", f"#undef CONFIG_{name}_MODULE", *([f"#define CONFIG_{name} 1"] if on else [])]
    return "".join(f"{line}\n" for line in lines)


def sources(kernel: Package) -> list[Package]:
    """The packages beside that of the kernel, of its version: headers, what they depend on, and the source."""
    own = f"{_HEADERS}{kernel.name.removeprefix(_IMAGE)}"
    headers = packages.look_up([f"{own}={kernel.version}"])[own]
    tools = [name for name in headers.depends if name.startswith(("linux-kbuild-", _HEADERS))]
    series = next((name.removeprefix("linux-kbuild-") for name in tools if name.startswith("linux-kbuild-")), None)
    if series is None:
        raise RecipeError(f"package {own}: names no package with the kernel's tools")
    beside = packages.look_up([f"{name}={kernel.version}" for name in (*tools, f"{SOURCE_PACKAGE}-{series}")])
    return [headers, *beside.values()]


def rebuild(kernel: Package, built: Path, options: Options, cache: Path, scratch: Path) -> None:
    """Compile `built`, a module of the unpacked kernel, and put what comes out in its place."""
    folder = re.sub(r".*/lib/modules/[^/]+/kernel/", "", built.parent.as_posix())
    module = built.name.partition(".ko")[0]
    files = packages.download(found := sources(kernel), cache)
    say(f"compiling module {module} of {found[-1].name} {kernel.version}")
    root = scratch / "headers"
    for package in found[:-1]:
        packages.unpack(files[package.name], root)
    headers = root / "usr/src" / found[0].name
    config = (headers / ".config").read_text()
    _check_compiler(config)
    source = _unpack(files[found[-1].name], folder, scratch / f"source-{module}")
    texts = [path.read_text(errors="replace") for path in sorted(source.glob("*.[ch]")) + sorted(source.glob("Makefile"))]
    check_options(module, options, config, texts)
    # The packages expect to be installed: in /usr/src.
    entry = headers / "Makefile"
    entry.write_text(entry.read_text().replace("/usr/src/", f"{root}/usr/src/"))
    own = scratch / f"{module}.h"
    own.write_text(header(options))
    flags = f"KCFLAGS=-include {own} -ffile-prefix-map={scratch}=."
    values = {f"CONFIG_{name}": "y" if on else "" for name, on in options.items()} | _UNUSED
    words = [flags, f"M={source}", *(f"{name}={value}" for name, value in values.items())]
    for _ in make(headers, f"-j{cores()}", *words, f"{module}.ko"):
        pass
    built.write_bytes((source / f"{module}.ko").read_bytes())


def _check_compiler(config: str) -> None:
    found = _COMPILER.search(config)
    compiler = found[1].removeprefix("x86_64-linux-gnu-") if found else "gcc"
    for tool, package in ((compiler, compiler), ("make", "make")):
        try:
            subprocess.run([tool, "--version"], capture_output=True, check=False)
        except FileNotFoundError:
            raise HostLacks(f"{tool} not found (package {package}): it compiles modules of this kernel") from None


def _unpack(archive: Path, folder: str, target: Path) -> Path:
    """The module's folder of the kernel's source, with the headers beside it."""
    packages.unpack(archive, target / "package")
    found = sorted((target / "package/usr/src").glob("linux-source-*.tar.*"))
    if len(found) != 1:
        raise RecipeError(f"{archive.name}: expected one archive in /usr/src, found {len(found)}")
    parent = folder.rpartition("/")[0] or folder
    wanted = ["--wildcards", f"*/{folder}/*", f"*/{parent}/*.h"]
    command = ["tar", "-xf", str(found[0]), "-C", str(target), "--strip-components=1", "--no-same-owner", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not (target / folder / "Makefile").is_file():
        last = [*done.stderr.strip().splitlines(), f"it has no {folder}/Makefile"]
        raise RecipeError(f"{found[0].name}: cannot unpack: {last[0]}")
    return target / folder
