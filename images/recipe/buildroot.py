# SPDX-License-Identifier: Apache-2.0
"""The recipe `buildroot`: both images in one build of a release that the user has unpacked (see buildroot-configs).

Nothing is written to the release. Downloads, objects and the log stay in the cache; only what changed is built again.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from recipe import release as releases
from recipe.errors import HostLacks, RecipeError
from recipe.image import CHECKOUT, Workspace
from recipe.locks import locked
from recipe.progress import say

TREE = CHECKOUT / "buildroot-configs"
DEFCONFIGS = (TREE / "configs/sundial_linux_defconfig", TREE / "configs/sundial_ssscore_defconfig")
KERNEL_CONFIG = TREE / "board/sundial/linux/linux.config"
# One build makes both images, with one toolchain.
ALSO = "BR2_PACKAGE_SSS_CORE=y\n"
SBOM = "sbom.cdx.json"

# Settings of a build that a user may give in the environment; all other BR2_ variables are kept from it.
FROM_ENVIRONMENT = ("BR2_PRIMARY_SITE", "BR2_PRIMARY_SITE_ONLY", "BR2_JLEVEL")
NOT_FOR_MAKE = frozenset({"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "O", "V", "SOURCE_DATE_EPOCH"})
LAST_LINES = 20
SBOM_LIMIT_S = 120

DEVELOPMENT_FILES = [
    (f"/usr/bin/{program}", package)
    for program, package in {
        "bc": "bc", "bzip2": "bzip2", "cpio": "cpio", "file": "file", "g++": "g++", "gcc": "gcc", "make": "make",
        "patch": "patch", "perl": "perl", "rsync": "rsync", "setpriv": "util-linux", "unzip": "unzip", "wget": "wget",
    }.items()
]  # fmt: skip

# What is built of what: (sources, packages). A part that changed is built again; if WHOLE or the release changed, all.
BOARD = TREE / "board/sundial/linux"
PARTS = {
    "linux": ([KERNEL_CONFIG], ["linux"]),
    "busybox": ([BOARD / "busybox.fragment"], ["busybox"]),
    "lwip": ([TREE / "package/lwip"], ["lwip", "sss-core"]),
    "rpcsvc-proto": ([TREE / "package/rpcsvc-proto"], ["host-rpcsvc-proto", "sss-core", "sundial-guest-apps"]),
    "applications": (
        [TREE / "package/sss-core", TREE / "package/sundial-guest-apps"]
        + [CHECKOUT / name for name in ("guest-apps", "LICENSE", "images/recipe/cpio.py")],
        ["sss-core", "sundial-guest-apps"],
    ),
    "root": ([*sorted(BOARD.glob("*.sh")), CHECKOUT / "images/linux/init", CHECKOUT / "images/linux/etc"], []),
}
WHOLE = [TREE / name for name in ("Config.in", "external.desc", "external.mk", "configs", "patches")]
NO_INPUTS = frozenset({"build", "tests", "__pycache__"})


@dataclass(frozen=True)
class Built:
    """What a build left."""

    images: Path
    """Holds linux/{kernel,initrd,config} and ssscore/{kernel,initrd}."""
    facts: dict[str, object]
    """For the manifests of both."""
    info: dict[str, dict[str, object]]
    """All packages, as the release describes them."""
    compiler: str
    beside: dict[str, bytes]
    """The SBOM, where the release makes one."""


def inputs_sha256(paths: list[Path]) -> str:
    """Over all files below, but what builds and tests leave."""
    digest = hashlib.sha256()
    for top in paths:
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            names = path.relative_to(CHECKOUT)
            if path.is_file() and not NO_INPUTS.intersection(names.parts):
                digest.update(f"{names}\0{path.stat().st_mode & 0o111}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def build(workspace: Workspace) -> Built:
    """Builds what is not built yet. Raises HostLacks for what is not a release, RecipeError for a build that failed."""
    if workspace.release is None:
        raise HostLacks("the recipe buildroot needs an unpacked release: make images BUILDROOT=DIR")
    folder = workspace.release
    release = releases.read(folder)
    if release.warning:
        say(release.warning)
    work = workspace.cache / "buildroot"
    with locked(work / ".lock", "another build by Buildroot"):
        return _build(release, work)


def _build(release: releases.Release, work: Path) -> Built:
    folder = release.folder
    before = releases.state(folder)
    make = _Make(release, work)
    identity = releases.tree_sha256(folder)
    parts = {part: inputs_sha256(sources) for part, (sources, _) in PARTS.items()}
    # Buildroot writes the paths of both into what it makes, so that neither may move.
    make.prepare({"whole": f"{identity} {inputs_sha256(WHOLE)} {TREE} {work}", **parts})
    if not make.is_complete:
        make.configure("".join([DEFCONFIGS[0].read_text(), ALSO]))
        make.everything()
    info = json.loads(make.answer("show-info"))
    sbom = make.sbom(json.dumps(info))
    if changed := releases.written(before, releases.state(folder)):
        raise RecipeError(f"the build has written to the release {folder}: {changed[0]}")
    facts: dict[str, object] = {
        **({"sbom": SBOM} if sbom else {}),
        "release": {"version": release.version, "sha256": identity},
        "defconfigs": {path.name: _sha256(path) for path in DEFCONFIGS},
        "kernel_config_sha256": _sha256(KERNEL_CONFIG),
    }
    return Built(work / "output/images", facts, info, make.compiler(), {SBOM: sbom} if sbom else {})


class _Make:
    """The release's make, with its output in `work`."""

    def __init__(self, release: releases.Release, work: Path) -> None:
        self._release = release
        self._output = work / "output"
        self._log = work / "build.log"
        self._parts_file = self._output / "sundial-parts.json"
        self._downloads = Path(os.environ.get("BR2_DL_DIR", work / "downloads"))
        self._parts: dict[str, str] = {}
        self.is_complete = False

    def prepare(self, parts: dict[str, str]) -> None:
        """Removes what was built of anything that is not so any more."""
        self._parts = parts
        try:
            made = json.loads(self._parts_file.read_text())
            old, complete = dict(made["parts"]), bool(made["complete"])
        except (OSError, ValueError, LookupError, TypeError):
            old, complete = {}, False
        if old.get("whole") != parts["whole"] or not (self._output / ".config").exists():
            complete = False
            self._parts_file.unlink(missing_ok=True)  # first: what is half removed is nothing
            shutil.rmtree(self._output, ignore_errors=True)
            self._output.mkdir()
        else:
            changed = dict.fromkeys(name for part in PARTS if old.get(part) != parts[part] for name in PARTS[part][1])
            if changed:
                self._logged([f"{package}-dirclean" for package in changed], "w")
        self.is_complete = complete and old == parts
        if not self.is_complete:
            self._keep(complete=False)

    def configure(self, defconfig: str) -> None:
        """Raises RecipeError for a line that this release does not take."""
        file = self._output / "sundial_defconfig"
        file.write_text(defconfig)
        self._logged([f"BR2_DEFCONFIG={file}", "defconfig"], "w")
        dropped = releases.not_taken(defconfig, (self._output / ".config").read_text())
        if dropped:
            raise RecipeError(f"Buildroot {self._release.version} does not take a line of the defconfigs: {dropped[0]}")

    def everything(self) -> None:
        """Downloads, so that what is missing is missed in the first minutes, and builds."""
        say(f"Buildroot {self._release.version}: its output goes to {self._log}")
        packages = self.answer("show-build-order").split()
        say(f"downloading what is missing in {self._downloads}")
        self._logged(["source"], "a")
        self._logged(["all"], "a", releases.Progress(packages))
        self._keep(complete=True)

    def answer(self, target: str) -> str:
        """Standard output of a target that only prints."""
        command = self._command(["-s", target])
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self._environment())
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["no output"]
            raise RecipeError(f"Buildroot's make {target} failed: {lines[-1]}")
        return done.stdout

    def sbom(self, info: str) -> bytes | None:
        """CycloneDX, where the release makes it; it needs a schema, which it downloads once."""
        program = self._release.folder / "utils/generate-cyclonedx"
        if not program.is_file():
            return None
        # It asks the release's make for the version.
        environment = self._environment() | {"MAKEFLAGS": f"O={self._output}"}
        try:
            done = subprocess.run(
                ["python3", program], input=info, capture_output=True, text=True, check=False, env=environment,
                timeout=SBOM_LIMIT_S,
            )  # fmt: skip
            problem = (done.stderr.strip().splitlines() or ["no output"])[-1] if done.returncode != 0 else ""
        except subprocess.TimeoutExpired:
            problem = f"no answer in {SBOM_LIMIT_S} s"
        if problem:
            say(f"warning: no SBOM, for utils/generate-cyclonedx failed: {problem}")
            return None
        return done.stdout.encode()

    def compiler(self) -> str:
        """What the toolchain's compiler calls itself."""
        found = sorted(self._output.glob("host/bin/x86_64-*-gcc"))
        if not found:
            raise RecipeError(f"there is no compiler in {self._output / 'host/bin'}")
        done = subprocess.run([found[0], "--version"], capture_output=True, text=True, check=False)
        return done.stdout.partition("\n")[0]

    def _logged(self, targets: list[str], mode: str, progress: releases.Progress | None = None) -> None:
        last: deque[str] = deque(maxlen=LAST_LINES)
        with (
            self._log.open(mode, buffering=1) as log,
            # Should this process be killed, make must not go on: the next build would meet it in the same folder.
            subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *self._command(targets)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", env=self._environment(),
            ) as process,
        ):  # fmt: skip
            assert process.stdout is not None, "asked for above"
            for text in process.stdout:
                log.write(text)
                last.append(text.rstrip())
                line = progress.line(text.rstrip("\n")) if progress else None
                if line:
                    say(line)
        if process.returncode != 0:
            what = f"Buildroot's make {targets[-1]} failed (status {process.returncode})"
            raise RecipeError("\n".join([*last, f"{what}; its whole output is in {self._log}"]))

    def _command(self, targets: list[str]) -> list[str]:
        given = [f"{name}={os.environ[name]}" for name in FROM_ENVIRONMENT if name in os.environ]
        place = [f"O={self._output}", f"BR2_EXTERNAL={TREE}"]
        return ["make", "--no-print-directory", "-C", str(self._release.folder), *place, *given, *targets]

    def _environment(self) -> Mapping[str, str]:
        mine = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("BR2_") and name not in NOT_FOR_MAKE
        }
        mine |= {"BR2_DL_DIR": str(self._downloads), "PYTHONDONTWRITEBYTECODE": "1"}
        if self._release.epoch is not None:
            mine["SOURCE_DATE_EPOCH"] = self._release.epoch
        return mine

    def _keep(self, *, complete: bool) -> None:
        text = json.dumps({"parts": self._parts, "complete": complete})
        temporary = self._parts_file.with_suffix(".new")
        temporary.write_text(text)
        temporary.replace(self._parts_file)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
