# SPDX-License-Identifier: Apache-2.0
"""gRPC in scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from sundial.model.fields import Flag, Whole, written
from sundial.model.images import ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.lists import CALLS_MOST, Words
from sundial.model.network import Network
from sundial.model.workload import Ends, Millis, Transport, Warmup, WorkloadBase, WorkloadKind
from sundial.workloads import sockets
from sundial.workloads.function_words import ALL, FunctionWords
from sundial.workloads.grpc.expect import LIBRARIES, PORT
from sundial.workloads.grpc.expect_languages import LANGUAGES, Language
from sundial.workloads.server_death import ServerDeath

HTTP2 = Transport("grpc", ("at_most_once",))
PACKAGE = "grpc"
"""Names of gRPC among the versions of images with Python, and with programs in C++."""
DEFAULT_PORT = PORT


class Grpc(WorkloadBase):
    """Twelve functions over gRPC, from nothing to arrays and an object, as santos18 called them."""

    app: Literal["grpc"]
    """gRPC calls."""
    functions: Annotated[tuple[str, ...], FunctionWords()] = written(ALL)
    """Functions, in sequence over one connection."""
    languages: Annotated[tuple[str, ...], Words(*LANGUAGES)] = written("python")
    """Languages of both programs, in sequence; each has a separate server, on consecutive ports."""
    port: Annotated[int, Whole(1024, 65534)] = PORT
    """Port of the server; a second language uses the next port. Workloads with other settings of the server need other
    ports."""
    calls: Annotated[int, Whole(1, CALLS_MOST)] = 10
    """Measured calls of each function."""
    warmup: Warmup = 1
    """Calls of each function before the measured ones; the first opens the connection."""
    max_workers: Annotated[int, Whole(1, 64)] = 1
    """Threads of the server that execute calls."""
    bdp_probe: Annotated[bool, Flag()] = False
    """Let gRPC estimate the bandwidth by PINGs, at times of its choice."""
    control_frames: Literal["none", "counted"] = "none"
    """PING, GOAWAY, and SETTINGS after the first. none: each is a mismatch. counted: they are accepted, each PING with
    its acknowledgement; if SETTINGS change a window, the sum of window updates is not checked."""
    die: ServerDeath | None = None
    """Kill the server."""
    total_timeout: Millis = written("25 s")
    """Time after which a call without reply fails; in Python programs up to 200 ms later."""

    @property
    def transports(self) -> tuple[str, ...]:
        return (HTTP2.name,)

    @property
    def ports(self) -> dict[str, int]:
        """Ports of its servers, by language."""
        return {language: self.port + place for place, language in enumerate(self.languages)}

    @property
    def tcp_ports(self) -> dict[int, object]:
        settings = (self.app, self.max_workers, self.bdp_probe, self.control_frames, self.die)
        return {port: (language, *settings) for language, port in self.ports.items()}


def programs(language: str) -> Language:
    """Programs of a language, by its word."""
    return LANGUAGES[language]


def versions_of(image: ImageKind) -> dict[str, str]:
    """Versions of gRPC in an image, by language."""
    return {name: table[PACKAGE] for name, table in image.libraries.items() if PACKAGE in table}


class GrpcKind:
    """gRPC, as the model asks for it."""

    order = 6
    model = Grpc
    transports = (HTTP2,)

    def runs_on(self, image: ImageKind) -> bool:
        return image.platform == sockets.LINUX and bool(versions_of(image))

    def check(self, workload: Grpc, ends: Ends, path: Path) -> Iterator[Invalid]:
        if workload.bdp_probe and workload.control_frames == "none":
            what = "bdp_probe sends PINGs, which control_frames: none rejects"
            yield Invalid((*path, "bdp_probe"), what, "control_frames: counted")
        for name, image in ends.images.items():
            versions = versions_of(image)
            for language in workload.languages:
                version = versions.get(language)
                if version is None:
                    what = f"{name!r} boots {image.name}, which has no gRPC in {language}"
                    yield Invalid((*path, "languages"), what, ", ".join(versions))
                elif version not in LIBRARIES:
                    what = f"{name!r} boots {image.name} with gRPC {version}, which is not supported"
                    yield Invalid((*path, "app"), what, f"an image with gRPC {' or '.join(LIBRARIES)}")
        yield from sockets.check_stream_mtu("gRPC", ends, path)

    def resolve(self, workload: Grpc, ends: Ends, path: Path) -> tuple[Grpc, list[Invalid]]:
        return workload, []

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        return iter(())


KIND: WorkloadKind[Grpc] = GrpcKind()
