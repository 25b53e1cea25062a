# SPDX-License-Identifier: Apache-2.0
"""`sundial images`: build, fetch and list guest images."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.talk import Verb, as_json, print_json, print_table, progress
from sundial.errors import BadInput
from sundial.model.images import IMAGES

BUILDROOT = "buildroot"
"""The recipe that builds from a Buildroot release."""


class _Images(click.Group):
    """Lists the images below its help. They are read only then, so that a wrong declaration breaks no other command."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        try:
            lines = [f"  {name}: {kind.description or ''}".rstrip(": ") for name, kind in IMAGES.items()]
        except BadInput as error:
            lines = [f"  {error.message}"]
        self.epilog = "\n".join(["\b", "Images:", *lines])
        super().format_epilog(ctx, formatter)


@click.group(cls=_Images)
def images() -> None:
    """Guest images: build, fetch, list."""


@images.command(cls=Verb)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.of(lambda: IMAGES))
@click.option("--if-needed", is_flag=True, help="Build only what is missing or stale.")
@click.option(
    "--recipe",
    metavar="R",
    shell_complete=completion.RECIPES,
    help="Recipe to build with, for images that have it. Later commands use its images.",
)
@click.option(
    "--buildroot",
    "release",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of an unpacked Buildroot release; implies --recipe buildroot.",
)
@as_json
def build(names: tuple[str, ...], if_needed: bool, recipe: str | None, release: Path | None, as_json: bool) -> None:
    """Build the named images, or all images that are not built on demand."""
    if release is not None and recipe not in (None, BUILDROOT):
        raise BadInput(f"recipe {recipe} does not use a release", field="--buildroot", allowed=f"--recipe {BUILDROOT}")
    if release is not None and not release.is_dir():
        raise BadInput(f"{release} is not a folder", field="--buildroot", allowed="the folder of an unpacked release")
    rooms.check_state()
    if release is not None or recipe is not None:
        known, choose = rooms.images_by(recipe or BUILDROOT, release and release.absolute())
    else:
        known, choose = rooms.images(), None
    built: list[dict[str, str]] = []
    with progress(quiet=as_json) as shown:
        for name in names or known.usual():
            built.append(_summary(known.ensure(name, shown.say) if if_needed else known.build(name, shown.say)))
    if choose is not None:
        choose()
    _print(built, as_json)


@images.command(cls=Verb)
@click.argument("archive", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--sha256", metavar="HEX", help="Refuse a FILE with another SHA-256.")
@as_json
def fetch(archive: Path, sha256: str | None, as_json: bool) -> None:
    """Take built images out of FILE, an archive that a release has, instead of building them."""
    rooms.check_state()
    _print([_summary(image) for image in rooms.fetch_images(archive, sha256)], as_json)


@images.command(name="list", cls=Verb)
@as_json
def list_(as_json: bool) -> None:
    """List images with their recipes and states. Machines boot the images of the chosen recipe."""
    images = rooms.images().list()
    if as_json:
        print_json([asdict(image) for image in images])
        return
    rows = [["IMAGE", "RECIPE", "CHOSEN", "STATE", "KERNEL", "DESCRIPTION"]]
    rows += [
        [
            image.name,
            image.recipe,
            "chosen" if image.chosen else "",
            image.state,
            str((image.manifest or {}).get("kernel_release", "")),
            image.description,
        ]
        for image in images
    ]
    print_table(rows)
    if locks := rooms.locks():
        click.echo("")
        rows = [["PACKAGES OF ROOTS", "LOCKED", "SHA256"]]
        print_table(
            rows + [[" ".join(lock["asked"]), str(len(lock["packages"])), lock["sha256"][:12]] for lock in locks]
        )


@images.command(cls=Verb)
@click.argument("named", nargs=-1, metavar="[PACKAGE]...")
@click.option(
    "--lock", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write those of the named packages to FILE."
)
@as_json
def packages(named: tuple[str, ...], file: Path | None, as_json: bool) -> None:
    """List the packages that roots were made from, each with its version and SHA-256; only those of a root with the
    named packages, if some are named."""
    locks = [each for each in rooms.locks() if not named or sorted(each["asked"]) == sorted(set(named))]
    if named and not locks:
        known = ", ".join(" ".join(each["asked"]) for each in rooms.locks()) or "none: no root was made"
        raise BadInput(f"no root has packages {' '.join(named)}", allowed=known)
    if file is not None:
        if len({str(each["packages"]) for each in locks}) != 1:
            what = "a lock is for the packages of one root"
            raise BadInput(what, field="--lock", allowed="the names of its packages, as the topology has them")
        write_lock(file, locks[0])
    if as_json:
        print_json(locks)
        return
    rows = [["ASKED FOR", "PACKAGE", "VERSION", "SHA256"]]
    for lock in locks:
        asked = " ".join(lock["asked"])
        rows += [[asked, each["name"], each["version"], each["sha256"]] for each in lock["packages"]]
    print_table(rows)


def write_lock(path: Path, lock: dict[str, Any]) -> None:
    """Write a lock for `lock:` of a topology. Raises BadInput."""
    text = json.dumps({name: lock[name] for name in ("version", "asked", "packages")}, indent=1) + "\n"
    try:
        path.write_text(text)
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", file=str(path), field="--lock") from error


def _summary(image: Any) -> dict[str, str]:
    digests = {"kernel": image.kernel_sha256, "initrd": image.initrd_sha256}
    return {"name": image.name, "recipe": image.recipe, **digests}


def _print(images: Sequence[dict[str, str]], as_json: bool) -> None:
    if as_json:
        print_json(images)
        return
    for image in images:
        made = f"{image['name']}  {image['recipe']}"
        click.echo(f"{made}  kernel {image['kernel'][:12]}  initrd {image['initrd'][:12]}")
