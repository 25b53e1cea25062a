# SPDX-License-Identifier: Apache-2.0
"""The languages of the programs in guests: one core library under each, which names it in its user agent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Language:
    """A pair of programs."""

    name: str
    """The word in scenarios, in batches, and of the table in image.toml."""
    agent: str
    """What user agents call it."""
    label: str
    """For people."""
    server: str
    client: str


PYTHON = Language("python", "python", "gRPC", "grpc-server", "grpc-client")
CPP = Language("cpp", "c++", "gRPC C++", "grpc-cpp-server", "grpc-cpp-client")
LANGUAGES = {each.name: each for each in (PYTHON, CPP)}
BY_SERVER = {each.server: each for each in LANGUAGES.values()}
BY_CLIENT = {each.client: each for each in LANGUAGES.values()}
