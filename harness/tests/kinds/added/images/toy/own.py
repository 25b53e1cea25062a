# SPDX-License-Identifier: Apache-2.0
"""The image of toys: Linux's, whose applications include the toys, under another name."""

from dataclasses import replace

from recipe.image import Contents, Workspace, load

LINUX = load("linux", "distribution")
DEVELOPMENT_FILES = LINUX.DEVELOPMENT_FILES


def make(workspace: Workspace) -> Contents:
    return replace(LINUX.make(workspace), facts={"made_like": "linux"})
