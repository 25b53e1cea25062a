# SPDX-License-Identifier: Apache-2.0
"""An image with Python laid over it: the distribution's interpreter, RPC libraries, and the programs of guest-apps.

The image's `[python]` says which versions must be inside; what its `wheels.lock` lists takes the place of the
distribution's package. Everything is compiled and without sources: nothing has a date, and nothing is looked for twice.
Compiler and code generators are those of the packages, not the host's. Where there is a table `[cpp]`, the program in
C++ (`cpp`) is inside, too.
"""

import functools
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from recipe import cpio, cpp, lz4, packages, programs, wheels
from recipe.cpio import Archive
from recipe.elf import is_elf
from recipe.errors import HostLacks, RecipeError
from recipe.image import CHECKOUT, IMAGES, Contents, Workspace, cores, run_make

GUEST_APPS = CHECKOUT / "guest-apps"
DEVELOPMENT_FILES = [("/usr/bin/strip", "binutils"), ("/usr/bin/gcc", "gcc"), ("/usr/bin/lz4", "lz4")]

INTERPRETER = ["python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"]
PACKAGED = {
    "grpc": ["python3-grpcio", "python3-six"],
    "protobuf": ["python3-protobuf"],
    "rpyc": ["python3-rpyc", "python3-plumbum"],
    "numpy": ["python3-numpy"],
}
"""By the names of `[python]`. python3-plumbum is of no use without python3-rpyc."""
WHEELS = {"grpcio": "grpc", "protobuf": "protobuf", "rpyc": "rpyc", "numpy": "numpy"}
TOOLS = ["protobuf-compiler", "protobuf-compiler-grpc"]
HEADERS = ["libpython3.11-dev"]
RELEASE = "bookworm"
"""Debian's release that has these packages, in the versions that `[python]` and `[cpp]` name."""

VERSIONS = {
    "python": "platform.python_version()",
    "grpc": "__import__('grpc').__version__",
    "protobuf": "__import__('google.protobuf').protobuf.__version__",
    "rpyc": "'.'.join(map(str, __import__('rpyc').__version__)) if isinstance(__import__('rpyc').__version__, tuple)"
    " else __import__('rpyc').__version__",
    "numpy": "__import__('numpy').__version__",
}

LIBRARY = "usr/lib/python3.11"
MODULES = "usr/lib/python3/dist-packages"
MINE = "usr/lib/sundial/python"
LIBRARIES = "lib/x86_64-linux-gnu"
LINKS = "usr/lib/sundial"
LAUNCHER, ZYGOTE = "python-program", "python-zygote"
ARCHIVES = "lib/python-{:02}.cpio.lz4"
ARCHIVE_BYTES = 8 << 20
"""Of the files in one of them, but for a single one that is larger: what unpacking takes beside the files."""

# Of the standard library and of numpy: what a program that serves and calls does not import.
LEFT_OUT = {
    *("test", "tests", "idlelib", "lib2to3", "ensurepip", "tkinter", "turtledemo", "distutils", "pydoc_data"),
    *("unittest", "venv", "curses", "sqlite3", "f2py", "__pycache__"),
}
LEFT_OUT_MODULES = (
    *("_curses", "_dbm", "_gdbm", "_sqlite3", "_test", "_xxtestfuzz", "_ctypes_test", "nis", "ossaudiodev"),
    *("readline", "xxlimited", "_simd", "_umath_tests", "_struct_ufunc_tests"),
    *("_rational_tests", "_operand_flag_tests", "sitecustomize", "turtle", "_sysconfigdata", "pydoc"),
)


def over(image: Contents, workspace: Workspace, name: str) -> Contents:
    """`image` with Python in it, as images/NAME/image.toml and wheels.lock say. Raises RecipeError."""
    return _Build(workspace, name).over(image)


@dataclass(frozen=True)
class _Build:
    workspace: Workspace
    name: str

    def over(self, image: Contents) -> Contents:
        folder = IMAGES / self.name
        declared = tomllib.loads((folder / "image.toml").read_text())
        asked, cpp_asked = declared["python"], declared.get("cpp")
        unknown = asked.keys() - VERSIONS.keys()
        if unknown:
            raise RecipeError(f"images/{self.name}/image.toml: python.{min(unknown)}: allowed: {', '.join(VERSIONS)}")
        lock = folder / wheels.LOCK
        pinned = wheels.pinned(lock) if lock.is_file() else []
        by_pip = {WHEELS.get(each["name"], each["name"]) for each in pinned}
        chosen = [package for part in asked.keys() - by_pip - {"python"} for package in PACKAGED[part]]
        needed = self._unpack([*INTERPRETER, *sorted(chosen)])
        with ThreadPoolExecutor(1) as beside:
            # Most of it is one long unit of the compiler's, which needs no more than one core.
            program = None if cpp_asked is None else beside.submit(self._make_cpp)
            self._lay_out(needed)
            for file in wheels.download(lock, self.workspace.cache) if pinned else []:
                # Debian's package of RPyC brings its plumbum.
                self._copy(wheels.unpack(file, self.workspace.scratch / "wheels"), MODULES, into=True)
            self._add_programs()
            used = self._add_libraries({entry.path for entry in cpio.read(image.initrd)[0]})
            self._compile()
            found = {"python": self._versions(asked)}
            listed = [package.listed() for package in needed if package.name in used]
            if program is not None:
                made, packaged = program.result()
                shutil.copy(made, self._tree / LINKS / cpp.PROGRAM)
                listed += [package.listed() for package in packaged]
                found["cpp"] = cpp.versions(self.workspace)
        for table, versions in found.items():
            if versions != declared[table]:
                raise RecipeError(
                    f"images/{self.name}/image.toml: {table} says {declared[table]}, and inside is {versions}"
                )
        return replace(
            image,
            initrd=image.initrd + self._archive(cpp.NAMES if "cpp" in found else ()).to_bytes(),
            cmdline=f"{image.cmdline} norandmaps",
            packages=[*image.packages, *listed, *pinned],
            facts={**image.facts, **found},
        )

    @functools.cached_property
    def _release(self) -> str | None:
        """The Debian release of the packages, unless the host's own has this interpreter. Raises HostLacks."""
        try:
            packages.look_up(INTERPRETER)
        except HostLacks as lack:
            try:
                packages.look_up(INTERPRETER, RELEASE)
            except HostLacks as other:
                raise HostLacks(f"{lack}; images with Python are made from Debian 12's packages: {other}") from None
            return RELEASE
        return None

    @property
    def _tree(self) -> Path:
        """The root of the guest, as far as it is about Python."""
        return self.workspace.scratch / "python"

    @property
    def _packages(self) -> Path:
        return self.workspace.scratch / "python-packages"

    def _unpack(self, names: list[str]) -> list[packages.Package]:
        """What goes into the guest and what is needed here; returns the former, libraries included."""
        closure = packages.library_closure([*names, *TOOLS], self._release)
        if self._release is not None:
            # The image has the host's, and parts of two do not fit; programs of the earlier release run with it.
            of_the_image = packages.look_up(["libc6"])
            closure = [of_the_image.get(package.name, package) for package in closure]
        headers = packages.look_up(HEADERS, self._release).values()
        files = packages.download([*closure, *headers], self.workspace.cache)
        packages.unpack_all({file: self._packages / package for package, file in files.items()})
        return [package for package in closure if package.name not in TOOLS]

    def _lay_out(self, needed: list[packages.Package]) -> None:
        for package in needed:
            for path in (LIBRARY, MODULES):
                self._copy(self._packages / package.name / path, path)
            # What numpy has for one version of Python is apart, and is linked to.
            self._copy(self._packages / package.name / LIBRARY / "dist-packages", MODULES, into=True)
        interpreter = self._packages / "python3.11-minimal/usr/bin/python3.11"
        (self._tree / "bin").mkdir(parents=True)
        shutil.copy(interpreter, self._tree / "bin/python3.11")

    def _copy(self, source: Path, path: str, *, into: bool = False) -> None:
        """Modules below `source`, without those that are left out; `into`: with the folder dist-packages itself."""
        for file in _modules(source, "" if into else "dist-packages"):
            target = self._tree / path / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            if file.suffix == ".so":
                _run(["strip", "--strip-unneeded", str(target)], "strip")

    def _add_programs(self) -> None:
        mine = self._tree / MINE
        for folder in _program_folders():
            package = mine / f"sundial_{folder.name}"
            package.mkdir(parents=True)
            for path in sorted(folder.glob("*.py")):
                shutil.copyfile(path, package / path.name)
            self._generate(sorted(folder.glob("*.proto")), package)
        shutil.copytree(GUEST_APPS / "python/sundial_guest", mine / "sundial_guest", ignore=_only_python)
        headers = self._packages / HEADERS[0] / "usr/include"
        # pyconfig.h only says where the one of this architecture is.
        run_make(GUEST_APPS / "python", OUT=mine, HEADERS=headers)

    def _generate(self, descriptions: list[Path], package: Path) -> None:
        """What protoc makes of them, as modules of the package."""
        if not descriptions:
            return
        for path in descriptions:
            shutil.copyfile(path, package / path.name)
        plugin = self._plugin("grpc_python_plugin")
        out = str(package.parent)
        names = [f"{package.name}/{path.name}" for path in descriptions]
        options = [f"--plugin=protoc-gen-grpc_python={plugin}", f"--python_out={out}", f"--grpc_python_out={out}"]
        _run([*self._protoc, f"-I{out}", *options, *names], "protoc")

    @property
    def _protoc(self) -> list[str]:
        return [*self._loader, str(self._packages / "protobuf-compiler/usr/bin/protoc")]

    def _plugin(self, name: str) -> Path:
        """A code generator of gRPC's, as a command."""
        command = self.workspace.scratch / name
        inside = self._packages / "protobuf-compiler-grpc/usr/bin" / name
        command.write_text(f'#!/bin/sh\nexec {" ".join(self._loader)} {inside} "$@"\n')
        command.chmod(0o755)
        return command

    def _make_cpp(self) -> tuple[Path, list[packages.Package]]:
        """The program in C++, and the packages that it is made of."""
        return cpp.make(self.workspace, self._protoc, self._plugin("grpc_cpp_plugin"), self._release)

    @property
    def _loader(self) -> list[str]:
        """Starts a program of the packages with their libraries, whatever the host has."""
        found = [folder for package in self._packages.iterdir() for folder in _library_folders(package)]
        linker = programs.PackageTree(self._packages).library("ld-linux-x86-64.so.2").path
        return [str(linker), "--library-path", ":".join(sorted(map(str, found)))]

    def _add_libraries(self, present: set[str]) -> set[str]:
        """All that the interpreter and its modules load and the image has not; returns the packages they are of."""
        loaded = [path.read_bytes() for path in sorted(self._tree.rglob("*")) if path.is_file()]
        tree = programs.PackageTree(self._packages)
        needed = programs.libraries_for([data for data in loaded if is_elf(data)], tree)
        (self._tree / LIBRARIES).mkdir(parents=True)
        for soname, found in needed.items():
            if f"{LIBRARIES}/{soname}" not in present and f"lib64/{soname}" not in present:
                shutil.copyfile(found.path, self._tree / LIBRARIES / soname)
        return {found.package for found in needed.values()} | {
            path.name for path in self._packages.iterdir() if path.name.startswith(("python3", "libpython3"))
        } - set(HEADERS)

    def _python(self, *words: str) -> str:
        environment = {
            "PYTHONHOME": str(self._tree / "usr"),
            "PYTHONPATH": f"{self._tree / MINE}:{self._tree / MODULES}",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "LC_ALL": "C.UTF-8",
        }
        return _run([*self._loader, str(self._tree / "bin/python3.11"), "-S", *words], "python3.11", environment)

    def _compile(self) -> None:
        words = ["-q", "-b", "--invalidation-mode", "unchecked-hash", "-s", str(self._tree), "-p", "/"]
        self._python("-m", "compileall", *words, str(self._tree / "usr/lib"))
        for source in self._tree.rglob("*.py"):
            source.unlink()

    def _versions(self, asked: dict[str, str]) -> dict[str, str]:
        """Versions by importing each package; the programs are imported too, so that the build fails if one cannot be."""
        table = ", ".join(f"{name!r}: {VERSIONS[name]}" for name in asked)
        modules = [f"sundial_{name.replace('-', '.')}" for name in _programs()]
        code = f"import json, platform\nfor name in {modules}: __import__(name)\nprint(json.dumps({{{table}}}))"
        return dict(json.loads(self._python("-c", code)))

    def _archive(self, compiled: Sequence[str]) -> Archive:
        """What is over the image's initrd: the programs' names, and everything else compressed (runner/extras.h).

        `compiled`: those in C++."""
        outside = Archive(over_another=True)
        outside.add_file(f"{LINKS}/{LAUNCHER}", (GUEST_APPS / "python" / LAUNCHER).read_bytes(), 0o755)
        for name in [ZYGOTE, *_programs()]:
            outside.add_link(f"{LINKS}/{name}", LAUNCHER)
        for name in compiled:
            outside.add_link(f"{LINKS}/{name}", cpp.PROGRAM)
        with ThreadPoolExecutor(cores()) as pool:
            packed = pool.map(lambda part: lz4.compress(part.to_bytes()), self._parts())
            for number, data in enumerate(packed):
                outside.add_file(ARCHIVES.format(number), data)
        return outside

    def _parts(self) -> Iterator[Archive]:
        """All files of the tree."""
        executables = ("bin/python3.11", f"{LINKS}/{cpp.PROGRAM}")
        part, size = Archive(), 0
        for path in sorted(self._tree.rglob("*")):
            if not path.is_file():
                continue
            name, data = str(path.relative_to(self._tree)), path.read_bytes()
            if size > 0 and size + len(data) > ARCHIVE_BYTES:
                yield part
                part, size = Archive(), 0
            part.add_file(name, data, 0o755 if name in executables else 0o644)
            size += len(data)
        yield part


def _modules(folder: Path, outside: str) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        wanted = path.suffix in (".py", ".so") and not path.name.startswith(LEFT_OUT_MODULES)
        if wanted and path.is_file() and not LEFT_OUT.intersection(parts) and outside not in parts[:1]:
            yield path


def _program_folders() -> list[Path]:
    return sorted({path.parent for side in ("client", "server") for path in GUEST_APPS.glob(f"*/{side}.py")})


def _programs() -> list[str]:
    return sorted(
        f"{folder.name}-{side}"
        for folder in _program_folders()
        for side in ("client", "server")
        if (folder / f"{side}.py").is_file()
    )


def _only_python(_: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".py")]


def _library_folders(package: Path) -> Iterator[Path]:
    for folder in programs.LIBRARY_FOLDERS:
        if (package / folder).is_dir():
            yield package / folder


def _run(command: list[str], what: str, environment: dict[str, str] | None = None) -> str:
    # Settings of the user's own Python are not meant for the image's.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    whole = inherited | (environment or {})
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=whole)
    if done.returncode != 0:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise RecipeError(f"{what} failed: {said[-1] if said else f'status {done.returncode}'}")
    return done.stdout
