# SPDX-License-Identifier: Apache-2.0
# The lines of `nm -n` of the kernel -> its table of functions, as assembly.
BEGIN {
    print ".section .symbols, \"a\", @progbits\n.globl symbol_count, symbol_table, symbol_names\n.align 8\nsymbol_table:"
}
$2 ~ /^[tT]$/ && $3 !~ /^(kernel_rodata|vector)$/ {
    printf ".long 0x%s - 0x%s, %d\n", $1, base == "" ? base = $1 : base, bytes
    names = names "\n.asciz \"" $3 "\""
    bytes += length($3) + 1
    count++
}
END {
    printf "symbol_names:%s\n.align 4\nsymbol_count: .long %d\n.section .note.GNU-stack, \"\", @progbits\n", names, count
}
