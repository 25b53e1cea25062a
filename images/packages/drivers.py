# SPDX-License-Identifier: Apache-2.0
"""images/packages/modules: kernel modules out of the package that an image's kernel came from, in the order to load them,
and what modprobe reads."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from packages.rebuild import Options, read_options, rebuild
from recipe import modules, packages, programs
from recipe.errors import RecipeError, exit_status
from recipe.image import IMAGES
from recipe.locks import scratch_in
from recipe.progress import say


class NoModule(RecipeError):
    """A module that the kernel's package does not have: the user's mistake."""

    exit_status = 2


def check_known(tree: Path, names: list[str]) -> None:
    """Raises NoModule for a name of no module, in the package or built in."""
    known = {modules.canonical(path.name.partition(".ko")[0]) for path in tree.rglob("*.ko*")}
    for name in names:
        if modules.canonical(name) not in known and not modules.built_in(tree, [name]):
            raise NoModule(f"kernel module {name}: not in the kernel package")


def _loadable(tree: Path, name: str) -> Path:
    """The file of a module. Raises NoModule for one that is built in."""
    for path in sorted(tree.rglob("*.ko*")):
        if modules.canonical(path.name.partition(".ko")[0]) == modules.canonical(name):
            return path
    raise NoModule(f"kernel module {name}: built into the kernel, so it cannot be compiled again")


def collect(
    package: packages.Package, names: list[str], rebuilt: Mapping[str, Options], out: Path, cache: Path
) -> None:
    """Writes NN-NAME.ko for each module, and modules.dep, to the folder `out`; those of `rebuilt` are compiled again."""
    say(f"fetching {package.name}")
    with scratch_in(cache) as scratch:
        packages.unpack(packages.download([package], cache)[package.name], scratch / "kernel")
        tree = programs.beneath(scratch / "kernel", "lib/modules")
        check_known(tree, names)
        for name, options in rebuilt.items():
            rebuild(package, _loadable(tree, name), options, cache, scratch)
        found = modules.collect(tree, names, scratch / "modules")
        out.mkdir(parents=True, exist_ok=True)
        for number, module in enumerate(found):
            (out / f"{number:02}-{module.name}.ko").write_bytes(module.data)
        (out / "modules.dep").write_bytes(modules.index_files(found)["modules.dep"])


def main() -> int:
    """Exit status 2: a module is unknown; 3: the host lacks something; 4: anything else."""
    parser = argparse.ArgumentParser(prog="images/packages/modules", description="Takes modules out of a kernel's package.")
    parser.add_argument("modules", nargs="+", metavar="MODULE")
    parser.add_argument("--package", required=True, metavar="NAME=VERSION")
    parser.add_argument("--sha256", required=True, metavar="HEX")
    parser.add_argument("--option", action="append", default=[], metavar="MODULE:OPTION=y|n", help="compile it again")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--cache", type=Path, default=IMAGES / "out" / "cache", metavar="DIR")
    options = parser.parse_args()
    name, _, version = options.package.partition("=")
    package = packages.Package(name, version, "amd64", options.sha256, depends=())
    rebuilt = read_options(options.option)
    return exit_status(
        parser.prog, lambda: collect(package, options.modules, rebuilt, options.out.resolve(), options.cache.resolve())
    )


if __name__ == "__main__":
    sys.exit(main())
