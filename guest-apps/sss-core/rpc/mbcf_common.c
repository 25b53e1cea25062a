/* SPDX-License-Identifier: Apache-2.0 */
#include <rpc/mbcf.h>

#include "mbcf/wire.h"
#include "mbcf_messages.h"
#include "mix.h"
#include "sss/system.h"

const char *const mbcf_type_names[MBCF_TYPES + 1] = {
#define TRANSPORT(type, name) name,
#include <rpc/transports.def>
};
const char *const rpc_semantics_names[] = {"exactly_once", "at_most_once", "at_least_once", NULL};

enum { PAGE_BYTES = 4096, OWNERS = 64 };

_Static_assert((int)MBM_TASKQUE_MOST == (int)MBW_TASKQUE_MOST, "as MBCF carries");
_Static_assert((int)MBM_SIGNAL_MOST == (int)MBW_SIGNAL_MOST, "as MBCF carries");

uint64_t mbm_key_new(uint64_t salt)
{
    static uint64_t count;
    uint16_t node, task;
    uint64_t key;

    mb_self(&node, &task);
    key = mix_seed(sss_now_ns() ^ salt, "accesskey",
                   ((uint64_t)node << 48 | (uint64_t)task << 32) + ++count);
    return key != 0 ? key : 1; /* 0 would clear the slot */
}

uint64_t mbm_key(enum mbm_key slot)
{
    /* On Linux several tasks may share this program's memory. */
    static struct owner {
        uint16_t node, task;
        uint64_t keys[MB_KEYS];
    } owners[OWNERS];
    unsigned permission = slot == MBM_KEY_READ ? MB_READ_ALLOWED | MB_WRITE_ALLOWED
                                               : MB_WRITE_ALLOWED;
    uint16_t node, task;
    unsigned i = 0;

    mb_self(&node, &task);
    while (i < OWNERS - 1 && owners[i].task != 0 &&
           (owners[i].node != node || owners[i].task != task))
        i++;
    if (owners[i].node != node || owners[i].task != task)
        owners[i] = (struct owner){node, task, {0}};
    if (owners[i].keys[slot] == 0) {
        uint64_t key = mbm_key_new(slot);

        owners[i].keys[slot] = mb_key(slot, key, permission) == 0 ? key : 0;
    }
    return owners[i].keys[slot];
}

const volatile uint32_t *mbm_errors(void)
{
    return &SSS_INFO->errors;
}

uint32_t mbm_ring_bytes(uint32_t most, uint32_t count)
{
    uint64_t wanted = (uint64_t)mbm_record_bytes(most) * (count + 2);
    uint32_t ring = PAGE_BYTES;

    while (ring < wanted)
        ring *= 2;
    return ring;
}

size_t mbm_whole_pages(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

struct mb_fifo *mbm_fifo_open(uint32_t ring)
{
    size_t bytes = MB_FIFO_HEADER + (size_t)ring;
    struct mb_fifo *fifo = sss_map(NULL, mbm_whole_pages(bytes), SSS_READ | SSS_WRITE);

    if (fifo == NULL)
        return NULL;
    if (mb_fifo(fifo, bytes) != 0) {
        sss_unmap(fifo, mbm_whole_pages(bytes));
        return NULL;
    }
    return fifo;
}

void mbm_fifo_close(struct mb_fifo *fifo)
{
    size_t bytes = MB_FIFO_HEADER + (size_t)fifo->size;

    mb_fifo_remove(fifo);
    sss_unmap(fifo, mbm_whole_pages(bytes));
}
