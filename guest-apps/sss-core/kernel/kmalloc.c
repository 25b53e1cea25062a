/* SPDX-License-Identifier: Apache-2.0 */
/* Each page holds objects of one size class, and is freed with its last object. */
#include "kmalloc.h"

#include <stdint.h>

#include "memory.h"

enum { CLASSES = 7, HEADER = 32 };
/* The last ones fit four times and twice into a page after its header. */
static const uint16_t class_bytes[CLASSES] = {32, 64, 128, 256, 512, 1008, 2032};

struct object {
    struct object *next;
};
struct slab {
    /* in the list of slabs of this class with free objects; place NULL: not in it */
    struct slab *next, **place;
    struct object *free;
    uint16_t class, used;
};
_Static_assert(sizeof(struct slab) <= HEADER, "objects stay 16-byte aligned");

static struct slab *partial[CLASSES];

static void link_slab(struct slab *slab)
{
    struct slab **place = &partial[slab->class];

    slab->next = *place;
    if (slab->next != NULL)
        slab->next->place = &slab->next;
    slab->place = place;
    *place = slab;
}

static void unlink_slab(struct slab *slab)
{
    *slab->place = slab->next;
    if (slab->next != NULL)
        slab->next->place = slab->place;
    slab->place = NULL;
}

static struct slab *new_slab(unsigned class)
{
    struct slab *slab = page_alloc_user();
    size_t bytes = class_bytes[class];

    if (slab == NULL)
        return NULL;
    slab->class = (uint16_t) class;
    for (size_t at = HEADER; at + bytes <= PAGE; at += bytes) {
        struct object *object = (struct object *)((char *)slab + at);

        object->next = slab->free;
        slab->free = object;
    }
    link_slab(slab);
    return slab;
}

void *kmalloc(size_t bytes)
{
    unsigned class = 0;
    struct slab *slab;
    struct object *object;

    while (class < CLASSES && class_bytes[class] < bytes)
        class ++;
    if (class == CLASSES)
        return bytes <= PAGE ? page_alloc_user() : NULL;
    slab = partial[class];
    if (slab == NULL && (slab = new_slab(class)) == NULL)
        return NULL;
    object = slab->free;
    slab->free = object->next;
    slab->used++;
    if (slab->free == NULL)
        unlink_slab(slab);
    return object;
}

void kfree(void *freed)
{
    struct object *object = freed;
    struct slab *slab = (struct slab *)((uint64_t)freed & ~(PAGE - 1));

    if (freed == NULL)
        return;
    if ((void *)slab == freed) {
        page_free(freed);
        return;
    }
    object->next = slab->free;
    slab->free = object;
    if (slab->place == NULL)
        link_slab(slab);
    if (--slab->used == 0) {
        unlink_slab(slab);
        page_free(slab);
    }
}
