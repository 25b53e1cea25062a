# SPDX-License-Identifier: Apache-2.0
"""gRPC in scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from sundial.model.fields import Flag, Whole, written
from sundial.model.finding import Finding, Path
from sundial.model.images import ImageKind
from sundial.model.lists import CALLS_MOST, Words
from sundial.model.network import Network
from sundial.model.workload import Ends, Millis, Transport, Warmup, WorkloadBase, WorkloadKind
from sundial.workloads import sockets
from sundial.workloads.server_death import ServerDeath
from sundial.workloads.function_words import ALL, FunctionWords
from sundial.workloads.grpc.expect import LIBRARIES, PORT
from sundial.workloads.grpc.expect_languages import LANGUAGES, Language

HTTP2 = Transport("grpc", ("at_most_once",))
PACKAGE = "grpc"
"""Images with Python, and with programs in C++, say which version of it they have."""
DEFAULT_PORT = PORT


class Grpc(WorkloadBase):
    """Twelve functions over gRPC, from nothing to arrays and an object, as santos18 called them."""

    app: Literal["grpc"]
    """gRPC calls."""
    functions: Annotated[tuple[str, ...], FunctionWords()] = written(ALL)
    """One after another over one connection."""
    languages: Annotated[tuple[str, ...], Words(*LANGUAGES)] = written("python")
    """Of both programs. Several: one after the other, each with a server of its own, on ports behind one another."""
    port: Annotated[int, Whole(1024, 65534)] = PORT
    """The server's, and the next one's where there are two languages. Workloads whose server has other settings need
    ports of their own."""
    calls: Annotated[int, Whole(1, CALLS_MOST)] = 10
    """Measured calls of each function."""
    warmup: Warmup = 1
    """Calls of each function before those measured; the very first opens the connection."""
    max_workers: Annotated[int, Whole(1, 64)] = 1
    """Threads of the server that execute calls."""
    bdp_probe: Annotated[bool, Flag()] = False
    """gRPC estimates the bandwidth by PINGs that it sends when it sees fit."""
    control_frames: Literal["none", "counted"] = "none"
    """PING and GOAWAY, and SETTINGS behind the first. None: each is a mismatch. Counted: they may be there, each PING
    with its acknowledgement; where SETTINGS change a window, window updates need no longer sum to what came."""
    die: ServerDeath | None = None
    """The server is killed."""
    total_timeout: Millis = written("25 s")
    """A call without a reply fails after this; from programs in Python up to 200 ms later."""

    @property
    def transports(self) -> tuple[str, ...]:
        return (HTTP2.name,)

    @property
    def ports(self) -> dict[str, int]:
        """Of its servers, by language."""
        return {language: self.port + place for place, language in enumerate(self.languages)}

    @property
    def tcp_ports(self) -> dict[int, object]:
        settings = (self.app, self.max_workers, self.bdp_probe, self.control_frames, self.die)
        return {port: (language, *settings) for language, port in self.ports.items()}


def programs(language: str) -> Language:
    """Those in a language, by its word."""
    return LANGUAGES[language]


def versions_of(image: ImageKind) -> dict[str, str]:
    """Of gRPC in an image, by language."""
    return {name: table[PACKAGE] for name, table in image.libraries.items() if PACKAGE in table}


class GrpcKind:
    """gRPC, as the model asks for it."""

    order = 6
    model = Grpc
    transports = (HTTP2,)

    def runs_on(self, image: ImageKind) -> bool:
        return image.platform == sockets.LINUX and bool(versions_of(image))

    def check(self, workload: Grpc, ends: Ends, path: Path) -> Iterator[Finding]:
        if workload.bdp_probe and workload.control_frames == "none":
            what = "bdp_probe with control_frames none: its PINGs would all be mismatches"
            yield Finding((*path, "bdp_probe"), what, "control_frames: counted")
        for name, image in ends.images.items():
            versions = versions_of(image)
            for language in workload.languages:
                version = versions.get(language)
                if version is None:
                    what = f"no gRPC in {language} on {name!r}, which boots {image.name}"
                    yield Finding((*path, "languages"), what, ", ".join(versions))
                elif version not in LIBRARIES:
                    what = f"gRPC {version} on {name!r}, which boots {image.name}: its frames were not measured"
                    yield Finding((*path, "app"), what, f"an image with gRPC {' or '.join(LIBRARIES)}")
        yield from sockets.check_stream_mtu("gRPC", ends, path)

    def resolve(self, workload: Grpc, ends: Ends, path: Path) -> tuple[Grpc, list[Finding]]:
        return workload, []

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Finding]:
        return iter(())


KIND: WorkloadKind[Grpc] = GrpcKind()
