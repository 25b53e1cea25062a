# SPDX-License-Identifier: Apache-2.0
"""images/packages/build: resolves, fetches and packs packages."""

import argparse
import json
import sys
from pathlib import Path

from packages import layer, resolve
from recipe import packages
from recipe.errors import exit_status
from recipe.image import IMAGES
from recipe.locks import scratch_in
from recipe.progress import say


def build(asked: list[str], out: Path, cache: Path, lock: Path | None) -> None:
    """Writes packages.tar, lock.json and licences to the folder `out`."""
    with scratch_in(cache) as scratch:
        if lock is None:
            say(f"resolving {' '.join(asked)}")
            chosen = resolve.resolve(asked, scratch)
        else:
            listed = json.loads(lock.read_text())["packages"]
            fields = ("name", "version", "architecture", "sha256")
            chosen = [packages.Package(*(each[field] for field in fields), depends=()) for each in listed]
        say(f"fetching {len(chosen)} packages")
        files = packages.download(chosen, cache)
        out.mkdir(parents=True, exist_ok=True)
        size = layer.write(files, out / "packages.tar", out / "licences")
        not_run = {name: layer.scripts(file, scratch / "control" / name) for name, file in files.items()}
    listed = [{**each.listed(), "architecture": each.architecture} for each in chosen]
    document = {
        "version": 1,
        "asked": asked,
        "packages": listed,
        "not_run": {name: words for name, words in not_run.items() if words},
        "bytes": size,
        "sha256": packages.sha256_of(out / "packages.tar"),
    }
    (out / "lock.json").write_text(json.dumps(document, indent=2) + "\n")


def main() -> int:
    """Exit status 2: a package is unknown or cannot be installed; 3: the host lacks something; 4: anything else."""
    parser = argparse.ArgumentParser(prog="images/packages/build", description="Packs Debian packages for a root.")
    parser.add_argument("packages", nargs="+", metavar="NAME[=VERSION]")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--cache", type=Path, default=IMAGES / "out" / "cache", metavar="DIR")
    parser.add_argument("--lock", type=Path, metavar="FILE", help="a lock.json, instead of asking apt's resolver")
    options = parser.parse_args()
    return exit_status(
        parser.prog,
        lambda: build(options.packages, options.out.resolve(), options.cache.resolve(), options.lock),
    )


sys.exit(main())
