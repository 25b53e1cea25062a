/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Virtio 1.1 over PCI, modern devices only, with split rings. Section numbers are those of the
 * specification. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "barrier.h"
#include "pci.h"

enum virtio_kind { VIRTIO_NET = 1, VIRTIO_CONSOLE = 3 }; /* 5 */
#define VIRTIO_F_VERSION_1 (1ull << 32)

enum { VIRTQ_WRITE = 2 }; /* descriptor flag: the device writes */

struct virtq_descriptor { /* 2.6.5 */
    uint64_t address;
    uint32_t length;
    uint16_t flags;
    uint16_t next;
};
struct virtq_available { /* 2.6.6 */
    uint16_t flags;      /* 1: no interrupts */
    uint16_t index;
    uint16_t ring[];
};
struct virtq_used { /* 2.6.8 */
    uint16_t flags; /* 1: no notifications */
    uint16_t index;
    struct {
        uint32_t id;
        uint32_t length;
    } ring[];
};

struct virtq {
    struct virtq_descriptor *descriptors;
    volatile struct virtq_available *available;
    volatile struct virtq_used *used;
    volatile uint16_t *notify;
    uint16_t mask;    /* size - 1 */
    uint16_t offered; /* our copy of available->index */
    uint16_t taken;   /* of the used ring */
    uint16_t number;
};

struct virtio_device {
    struct pci_function *pci;
    volatile struct virtio_common *common;
    volatile uint8_t *config; /* the device's own fields */
    uint64_t notify_base;
    uint32_t notify_multiplier;
};

/* The index-th device of this kind, or NULL. */
struct pci_function *virtio_find(enum virtio_kind kind, unsigned index);
/* Resets the device and negotiates `features` and VERSION_1 -> NULL, or what is wrong; `agreed`
 * gets those that both support. */
const char *virtio_start(struct virtio_device *device, struct pci_function *pci, uint64_t features,
                         uint64_t *agreed);
/*
 * Sets up queue `number` of at most `size` (a power of two) entries; `vector` 0: no interrupts.
 * Queues beyond the device's interrupts share the last of these, and so must have one vector. ->
 * NULL, or what is wrong.
 */
const char *virtio_queue(struct virtio_device *device, struct virtq *queue, unsigned number,
                         unsigned size, int vector);
void virtio_go(struct virtio_device *device); /* DRIVER_OK: the device may work */

/* Offers descriptor `id`; virtq_publish makes the device see it. */
static inline void virtq_offer(struct virtq *queue, uint16_t id)
{
    queue->available->ring[queue->offered++ & queue->mask] = id;
}

static inline void virtq_publish(struct virtq *queue)
{
    compiler_barrier();
    queue->available->index = queue->offered;
    full_barrier(); /* the device sees the index before we read its flags (2.6.13.4.1) */
    if ((queue->used->flags & 1) == 0)
        *queue->notify = queue->number;
}

static inline bool virtq_has_used(const struct virtq *queue)
{
    return queue->taken != queue->used->index;
}

/* The oldest used descriptor; only where virtq_has_used. */
static inline uint16_t virtq_take(struct virtq *queue, uint32_t *length)
{
    uint16_t at = queue->taken++ & queue->mask;

    compiler_barrier();
    *length = queue->used->ring[at].length;
    return (uint16_t)queue->used->ring[at].id & queue->mask;
}
