# SPDX-License-Identifier: Apache-2.0
"""Failures outside of this code, each with its exit status (README.md)."""


class RecipeError(Exception):
    """The build cannot go on; the message is one line."""

    exit_status = 4


class HostLacks(RecipeError):
    """The host lacks a package, a tool or the package lists."""

    exit_status = 3
