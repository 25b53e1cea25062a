/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols.h"

#include <stddef.h>

/* The table that the Makefile makes of the kernel linked without it (symbols.awk), by address. */
struct symbol {
    uint32_t address; /* from the begin of the kernel */
    uint32_t name;    /* offset in symbol_names */
};
extern const uint32_t symbol_count;
extern const struct symbol symbol_table[];
extern const char symbol_names[];
extern char kernel_begin[];

const char *symbol_at(uint64_t address, uint64_t *offset)
{
    uint32_t wanted = (uint32_t)(address - (uint64_t)kernel_begin);
    uint32_t low = 0, high = symbol_count;

    while (low < high) { /* the first behind it */
        uint32_t middle = (low + high) / 2;

        if (symbol_table[middle].address <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    *offset = wanted - symbol_table[low - 1].address;
    return symbol_names + symbol_table[low - 1].name;
}
