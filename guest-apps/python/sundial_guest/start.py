# SPDX-License-Identifier: Apache-2.0
"""How a program starts: NAME-SIDE is `main` of the module sundial_NAME.SIDE, in a process of its own.

The process is a new interpreter, or the zygote's child (`zygote`). From `run` on the two do not differ.
"""

import importlib
import os
import random
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from sundial_guest import clock, options, samples

COMM_LENGTH = 15
"""What the kernel keeps of a process's name."""


def module_of(program: str) -> ModuleType:
    """The module with the program's `main`."""
    name, _, side = program.rpartition("-")
    return importlib.import_module(f"sundial_{name}.{side}")


def run(arguments: list[str]) -> NoReturn:
    """Become the program argv[0] with the options in argv[1]; the environment is already its own."""
    program = Path(arguments[0]).name
    sys.argv = ["-c", *arguments]
    Path("/proc/self/comm").write_text(program[:COMM_LENGTH])
    os.environ.pop("SHLVL", None)  # python-program's shell counts itself, and the zygote's child has none
    clock.select_from_environment()
    _seed(program)
    status = _status(program, arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the interpreter's end: threads of libraries still run, and what they would do is not part of the job.
    os._exit(status)


def _status(program: str, arguments: list[str]) -> int:
    try:
        return int(module_of(program).main(options.parse(arguments)))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException as error:
        # Not in the programs: what they do when all is well must not be longer for it.
        unreached = getattr(module_of(program), "unreached", None)
        if unreached is not None and unreached(options.parse(arguments), error):
            return 0
        traceback.print_exc()
        samples.put({"type": "error", "message": f"{type(error).__name__}: {error}"})
        return 1


def _seed(program: str) -> None:
    """All clones of a snapshot have its generators."""
    seed: Any = "/".join(
        [*(os.environ.get(name, "") for name in ("SUNDIAL_SEED", "SUNDIAL_MACHINE", "SUNDIAL_STEP")), program]
    )
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(random.Random(seed).getrandbits(32))


def main() -> NoReturn:
    """The program that argv[1] names, with the options in argv[2]."""
    run(sys.argv[1:])
