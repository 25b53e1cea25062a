/* SPDX-License-Identifier: Apache-2.0 */
#include "virtio.h"

#include "memory.h"
#include "paging.h"

enum { CAPABILITY_VENDOR = 9 };
/* Kinds of vendor capabilities (4.1.4), and offsets of their fields. */
enum { COMMON = 1, NOTIFY = 2, DEVICE = 4 };
enum { CAP_BAR = 4, CAP_OFFSET = 8, CAP_LENGTH = 12, CAP_MULTIPLIER = 16 };
/* Device status (2.1). */
enum { ACKNOWLEDGE = 1, DRIVER = 2, DRIVER_OK = 4, FEATURES_OK = 8 };
enum { NO_VECTOR = 0xffff, RESET_POLLS = 1000000 };

struct virtio_common { /* 4.1.4.3 */
    uint32_t device_feature_select;
    uint32_t device_feature;
    uint32_t driver_feature_select;
    uint32_t driver_feature;
    uint16_t msix_config;
    uint16_t num_queues;
    uint8_t device_status;
    uint8_t config_generation;
    uint16_t queue_select;
    uint16_t queue_size;
    uint16_t queue_msix_vector;
    uint16_t queue_enable;
    uint16_t queue_notify_off;
    uint32_t queue_desc[2];
    uint32_t queue_driver[2];
    uint32_t queue_device[2];
};
_Static_assert(sizeof(struct virtio_common) == 56, "layout");

/* A device on a root bus also has the old interface, and its id; only the new one matters. */
static bool is_kind(const struct pci_function *pci, enum virtio_kind kind)
{
    /* 4.1.2 */
    enum {
        VENDOR = 0x1af4,
        MODERN = 0x1040,
        TRANSITIONAL_NET = 0x1000,
        TRANSITIONAL_CONSOLE = 0x1003
    };
    uint16_t transitional = kind == VIRTIO_NET ? TRANSITIONAL_NET : TRANSITIONAL_CONSOLE;

    return pci->vendor_id == VENDOR &&
           (pci->device_id == MODERN + kind || pci->device_id == transitional);
}

struct pci_function *virtio_find(enum virtio_kind kind, unsigned index)
{
    struct pci_function *pci;

    for (unsigned i = 0; (pci = pci_at(i)) != NULL; i++)
        if (is_kind(pci, kind) && index-- == 0)
            return pci;
    return NULL;
}

/* Maps one of the device's structures, if it is there. */
static void *map_structure(const struct pci_function *pci, unsigned capability)
{
    uint64_t bar = pci_bar(pci, pci_read32(pci, capability + CAP_BAR) & 0xff);

    if (bar == 0)
        return NULL;
    return map_device(bar + pci_read32(pci, capability + CAP_OFFSET),
                      pci_read32(pci, capability + CAP_LENGTH));
}

static const char *find_structures(struct virtio_device *device)
{
    const struct pci_function *pci = device->pci;

    for (unsigned at = 0; (at = pci_capability(pci, CAPABILITY_VENDOR, at)) != 0;) {
        switch (pci_read32(pci, at) >> 24) {
        case COMMON:
            device->common = map_structure(pci, at);
            break;
        case NOTIFY:
            device->notify_base = (uint64_t)map_structure(pci, at);
            device->notify_multiplier = pci_read32(pci, at + CAP_MULTIPLIER);
            break;
        case DEVICE:
            device->config = map_structure(pci, at);
            break;
        }
    }
    return device->common == NULL || device->notify_base == 0 || device->config == NULL
               ? "is no modern virtio device"
               : NULL;
}

static const char *agree(struct virtio_device *device, uint64_t features, uint64_t *agreed)
{
    volatile struct virtio_common *common = device->common;
    uint64_t offered;

    common->device_feature_select = 0;
    offered = common->device_feature;
    common->device_feature_select = 1;
    offered |= (uint64_t)common->device_feature << 32;
    *agreed = offered & (features | VIRTIO_F_VERSION_1);
    if ((*agreed & VIRTIO_F_VERSION_1) == 0)
        return "does not support virtio 1";
    common->driver_feature_select = 0;
    common->driver_feature = (uint32_t)*agreed;
    common->driver_feature_select = 1;
    common->driver_feature = (uint32_t)(*agreed >> 32);
    common->device_status |= FEATURES_OK;
    return (common->device_status & FEATURES_OK) == 0 ? "refuses these features" : NULL;
}

const char *virtio_start(struct virtio_device *device, struct pci_function *pci, uint64_t features,
                         uint64_t *agreed)
{
    const char *wrong;

    device->pci = pci;
    pci_enable(pci);
    wrong = find_structures(device);
    if (wrong != NULL)
        return wrong;
    if (!pci_msix_enable(pci))
        return "has no MSI-X";
    device->common->device_status = 0;
    for (unsigned polls = 0; device->common->device_status != 0; polls++)
        if (polls == RESET_POLLS)
            return "does not reset";
    device->common->device_status = ACKNOWLEDGE;
    device->common->device_status = ACKNOWLEDGE | DRIVER;
    device->common->msix_config = NO_VECTOR;
    return agree(device, features, agreed);
}

static void set_address(volatile uint32_t field[2], const volatile void *address)
{
    uint64_t at = physical((const void *)(uintptr_t)address);

    field[0] = (uint32_t)at;
    field[1] = (uint32_t)(at >> 32);
}

/* One run of pages: descriptors, then the available ring, then, 4-byte aligned, the used ring. */
static bool allocate_rings(struct virtq *queue, unsigned size)
{
    size_t available_at = size * sizeof(struct virtq_descriptor);
    size_t used_at = available_at +
                     ((sizeof(struct virtq_available) + size * sizeof(uint16_t) + 2 + 3) &
                      ~(size_t)3);
    size_t bytes = used_at + sizeof(struct virtq_used) + size * 2 * sizeof(uint32_t) + 2;
    uint8_t *memory = pages_alloc((bytes + PAGE - 1) / PAGE);

    if (memory == NULL)
        return false;
    queue->descriptors = (void *)memory;
    queue->available = (void *)(memory + available_at);
    queue->used = (void *)(memory + used_at);
    queue->mask = (uint16_t)(size - 1);
    queue->offered = 0;
    queue->taken = 0;
    return true;
}

const char *virtio_queue(struct virtio_device *device, struct virtq *queue, unsigned number,
                         unsigned size, int vector)
{
    volatile struct virtio_common *common = device->common;
    unsigned entry = number < device->pci->msix_entries ? number : device->pci->msix_entries - 1;

    if (number >= common->num_queues)
        return "has too few queues";
    common->queue_select = (uint16_t)number;
    if (common->queue_size == 0)
        return "lacks a queue";
    if (size > common->queue_size)
        size = common->queue_size;
    if (!allocate_rings(queue, size))
        return "gets no memory for its queues";
    queue->number = (uint16_t)number;
    queue->notify = (void *)(device->notify_base +
                             (uint64_t)common->queue_notify_off * device->notify_multiplier);
    queue->available->flags = vector == 0;
    common->queue_size = (uint16_t)size;
    set_address(common->queue_desc, queue->descriptors);
    set_address(common->queue_driver, queue->available);
    set_address(common->queue_device, queue->used);
    if (vector != 0)
        pci_msix_set(device->pci, entry, vector);
    common->queue_msix_vector = vector == 0 ? NO_VECTOR : (uint16_t)entry;
    if (vector != 0 && common->queue_msix_vector == NO_VECTOR)
        return "has too few interrupts";
    common->queue_enable = 1;
    return NULL;
}

void virtio_go(struct virtio_device *device)
{
    device->common->device_status |= DRIVER_OK;
}
