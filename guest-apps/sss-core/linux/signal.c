/* SPDX-License-Identifier: Apache-2.0 */

/* The user's half of memory-based signals (lib/mbcf_signal.c), with a queue for each task of the
 * process. */
#include <stdlib.h>

#include "sss/mbcf.h"
#include "sss/system.h"

enum { QUEUES = 64 };

static struct {
    uint16_t node, task;
    struct mb_fifo *queue;
} queues[QUEUES];

static struct mb_fifo **queue_of_task(void)
{
    uint16_t node, task;
    unsigned i = 0;

    mb_self(&node, &task);
    while (i < QUEUES && queues[i].task != 0 && (queues[i].node != node || queues[i].task != task))
        i++;
    if (i == QUEUES)
        return NULL;
    queues[i].node = node;
    queues[i].task = task;
    return &queues[i].queue;
}

static void deliver(void)
{
    struct mb_fifo *queue = *queue_of_task();
    struct mb_record *record;

    while ((record = mb_fifo_peek(queue)) != NULL) {
        uint32_t tail = queue->tail;
        const struct mb_signal_head *head = mb_record_data(record);

        ((mb_handler)(uintptr_t)head->handler)(record);
        if (queue->tail == tail)
            return;
    }
}

int mb_signal(struct mb_signal_setup *setup)
{
    struct mb_fifo **queue = queue_of_task();
    struct mb_fifo *before;
    int error;

    if (queue == NULL)
        return -SSS_ENOMEM;
    before = *queue;
    *queue = setup->queue;
    setup->trampoline = (void *)(uintptr_t)deliver;
    error = (int)sss_call(SSS_MB_SIGNAL, (uintptr_t)setup, 0, 0, 0, 0, 0);
    if (error != 0)
        *queue = before;
    return error;
}
