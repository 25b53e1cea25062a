/* SPDX-License-Identifier: Apache-2.0 */
#include "fwcfg.h"

#include "barrier.h"
#include "cpu.h"
#include "memory.h"

enum {
    SELECTOR = 0x510,
    DMA_HIGH = 0x514,
    DMA_LOW = 0x518,
    KEY_FEATURES = 0x0001,
    KEY_DIRECTORY = 0x0019,
    FEATURE_DMA = 2,
    NAME_BYTES = 56,
};
enum { DMA_ERROR = 1, DMA_READ = 2, DMA_SELECT = 8, KEY_SHIFT = 16 };

struct dma { /* big endian */
    uint32_t control, length;
    uint64_t address;
};
struct directory_entry { /* big endian */
    uint32_t size;
    uint16_t key, reserved;
    char name[NAME_BYTES];
};
_Static_assert(sizeof(struct directory_entry) == 64, "layout");

/* The device reads and writes them at their physical addresses, so none may be on a stack. */
static struct dma request;
static struct directory_entry entry;
static uint32_t word;

static bool transfer(uint32_t control, void *to, size_t length)
{
    volatile struct dma *shared = &request;
    uint64_t at = physical(&request);

    shared->control = __builtin_bswap32(control);
    shared->length = __builtin_bswap32((uint32_t)length);
    shared->address = to == NULL ? 0 : __builtin_bswap64(physical(to));
    compiler_barrier();
    outl(DMA_HIGH, __builtin_bswap32((uint32_t)(at >> 32)));
    outl(DMA_LOW, __builtin_bswap32((uint32_t)at)); /* starts it; done when the access returns */
    compiler_barrier();
    return (shared->control & __builtin_bswap32(DMA_ERROR)) == 0;
}

static bool has_dma(void)
{
    outw(SELECTOR, KEY_FEATURES);
    return (inb(SELECTOR + 1) & FEATURE_DMA) != 0;
}

static bool same_name(const char *one, const char *other)
{
    for (unsigned i = 0; i < NAME_BYTES; i++) {
        if (one[i] != other[i])
            return false;
        if (one[i] == '\0')
            return true;
    }
    return false;
}

bool fwcfg_find(const char *name, struct fwcfg_file *file)
{
    uint32_t count;

    if (!has_dma() ||
        !transfer(KEY_DIRECTORY << KEY_SHIFT | DMA_SELECT | DMA_READ, &word, sizeof(word)))
        return false;
    count = __builtin_bswap32(word);
    for (uint32_t i = 0; i < count && transfer(DMA_READ, &entry, sizeof(entry)); i++) {
        if (same_name(entry.name, name)) {
            file->key = __builtin_bswap16(entry.key);
            file->size = __builtin_bswap32(entry.size);
            return true;
        }
    }
    return false;
}

bool fwcfg_read(const struct fwcfg_file *file, void *to, size_t length)
{
    return length <= file->size &&
           transfer((uint32_t)file->key << KEY_SHIFT | DMA_SELECT | DMA_READ, to, length);
}
