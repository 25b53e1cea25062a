/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

/* Left alone, so that taking the rest does not make the kernel look for memory. */
static const size_t RESERVE = 6u << 20;

void memory_clear_free(void)
{
    struct sysinfo info;
    size_t length;
    void *pages;

    if (sysinfo(&info) != 0 || info.freeram * info.mem_unit <= RESERVE)
        return;
    length = info.freeram * info.mem_unit - RESERVE;
    /*
     * The kernel clears each page that it gives to a process, and does not clear it when it goes.
     */
    pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                 -1, 0);
    if (pages != MAP_FAILED)
        munmap(pages, length);
}
