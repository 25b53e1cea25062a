# SPDX-License-Identifier: Apache-2.0
"""`sundial images`: build and list guest images."""

from __future__ import annotations

from dataclasses import asdict

import click

from sundial.cli import completion, rooms
from sundial.cli.talk import Verb, as_json, print_json, print_table, progress
from sundial.errors import BadInput
from sundial.model.images import IMAGES


class _Images(click.Group):
    """Lists the images below its help. They are read only then: a wrong declaration must not break other commands."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        try:
            lines = [f"  {name}: {kind.description}" for name, kind in IMAGES.items()]
        except BadInput as error:
            lines = [f"  {error.message}"]
        self.epilog = "\n".join(["\b", "Images:", *lines])
        super().format_epilog(ctx, formatter)


@click.group(cls=_Images)
def images() -> None:
    """Guest images: build, list."""


@images.command(cls=Verb)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.of(lambda: IMAGES))
@click.option("--if-needed", is_flag=True, help="Build only what is missing or stale.")
@as_json
def build(names: tuple[str, ...], if_needed: bool, as_json: bool) -> None:
    """Build images, all of them unless NAMEs are given."""
    known = rooms.images()
    built = []
    with progress(quiet=as_json) as shown:
        for name in names or known.names():
            image = known.ensure(name, shown.say) if if_needed else known.build(name, shown.say)
            built.append({"name": image.name, "kernel": image.kernel_sha256, "initrd": image.initrd_sha256})
    if as_json:
        print_json(built)
    else:
        for image in built:
            click.echo(f"{image['name']}  kernel {image['kernel'][:12]}  initrd {image['initrd'][:12]}")


@images.command(name="list", cls=Verb)
@as_json
def list_(as_json: bool) -> None:
    """List images and whether they are built."""
    images = rooms.images().list()
    if as_json:
        print_json([asdict(image) for image in images])
        return
    rows = [["IMAGE", "STATE", "KERNEL", "DESCRIPTION"]]
    rows += [
        [image.name, image.state, str((image.manifest or {}).get("kernel_release", "")), image.description]
        for image in images
    ]
    print_table(rows)
