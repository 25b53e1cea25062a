# SPDX-License-Identifier: Apache-2.0
"""The CPU of a machine that stands, and the symbols for a debugger."""

import subprocess
from pathlib import Path

import pytest

from sundial.errors import RunFailed
from sundial.replay.debugger import symbol_file
from sundial.replay.machines import Cpu, read_cpu

REGISTERS = """\
RAX=0000000000000000 RBX=ffffffff82a1aa40
RIP=ffffffff81a17a0b RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1
ES =0000 0000000000000000 ffffffff 00000000
"""


def test_a_cpu_is_read_from_qemus_words() -> None:
    cpu = read_cpu(REGISTERS)
    assert cpu == Cpu(0xFFFFFFFF81A17A0B, halted=True, ring=0)
    assert str(cpu) == "halted, kernel, pc 0xffffffff81a17a0b"
    other = read_cpu("EIP=00401000 EFL=00000246 [---Z-P-] CPL=3 II=0 A20=1 SMM=0 HLT=0\r\n")
    assert str(other) == "running, program, pc 0x401000"


@pytest.mark.parametrize("words", ["", "unknown command: 'info registers'", REGISTERS.replace("HLT", "HALT")])
def test_other_words_fail_the_run(words: str) -> None:
    with pytest.raises(RunFailed, match="does not print the registers"):
        read_cpu(words)


def test_a_symbol_file_has_each_function_with_its_address(tmp_path: Path) -> None:
    functions = [(0x401020, 0x10, "reply"), (0x401000, 0x20, "call"), (0xFFFFFFFF80000000, 4, "kernel_entry")]
    file = tmp_path / "symbols"
    file.write_bytes(symbol_file(functions))
    listed = subprocess.run(["nm", "--print-size", file], capture_output=True, text=True, check=True).stdout
    assert {tuple(line.split()) for line in listed.splitlines()} == {
        (f"{address:016x}", f"{size:016x}", "T", name) for address, size, name in functions
    }
