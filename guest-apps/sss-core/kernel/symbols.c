/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols.h"

#include <stddef.h>

/* Sorted by address; the Makefile generates it with symbols.awk from the kernel linked without it.
 */
struct symbol {
    uint32_t address; /* from the beginning of the kernel */
    uint32_t name;    /* offset in symbol_names */
};
extern const uint32_t symbol_count;
extern const struct symbol symbol_table[];
extern const char symbol_names[];
extern char kernel_begin[];

const char *symbol_at(uint64_t address, uint64_t *offset)
{
    uint32_t target = (uint32_t)(address - (uint64_t)kernel_begin);
    uint32_t low = 0, high = symbol_count;

    while (low < high) { /* the first one after the address */
        uint32_t middle = (low + high) / 2;

        if (symbol_table[middle].address <= target)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    *offset = target - symbol_table[low - 1].address;
    return symbol_names + symbol_table[low - 1].name;
}
