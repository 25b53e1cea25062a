/* SPDX-License-Identifier: Apache-2.0 */

/* Tasks and what they declare: keys, TASKQUE, FIFOs, signal handlers. */
#include "fifo.h"

static int task_begin(struct mbcf_task *task, uint16_t id, void *space)
{
    memset(task, 0, sizeof(*task));
    task->id = id;
    task->generation = (uint8_t)(id >> 8);
    task->space = space;
    return id;
}

int mbcf_task_open(struct mbcf *mbcf, void *space)
{
    for (unsigned i = WELL_KNOWN; i < TASK_SLOTS; i++) {
        struct mbcf_task *task = &mbcf->tasks[i];

        if (task->id == 0) {
            uint8_t generation = (uint8_t)(task->generation + 1);

            return task_begin(task, (uint16_t)((generation == 0 ? 1 : generation) << 8 | i), space);
        }
    }
    return -SSS_EAGAIN;
}

int mbcf_task_open_as(struct mbcf *mbcf, uint16_t id, void *space)
{
    unsigned index = id & 0xff;

    if (id == 0 || index >= TASK_SLOTS)
        return -SSS_EINVAL;
    if (mbcf->tasks[index].id != 0)
        return -SSS_EEXIST;
    return task_begin(&mbcf->tasks[index], id, space);
}

int mbcf_key(struct mbcf *mbcf, uint16_t id, unsigned slot, uint64_t key, unsigned permission)
{
    struct mbcf_task *task = task_of(mbcf, id);

    if (task == NULL || slot >= MB_KEYS ||
        (permission & ~(unsigned)(MB_READ_ALLOWED | MB_WRITE_ALLOWED)) != 0)
        return -SSS_EINVAL;
    expect_nothing(mbcf);
    task->keys[slot] = (struct key){.key = key, .permission = key != 0 ? permission : 0};
    return 0;
}

int mbcf_taskque(struct mbcf *mbcf, uint16_t id, uint64_t fifo, uint64_t bytes)
{
    struct mbcf_task *task = task_of(mbcf, id);

    if (task == NULL)
        return -SSS_EINVAL;
    expect_nothing(mbcf);
    if (fifo == 0) {
        task->taskque.address = 0;
        return 0;
    }
    return mbcf_ring_init(mbcf, task, &task->taskque, fifo, bytes);
}

static int find_fifo(const struct mbcf_task *task, uint64_t address)
{
    for (int i = 0; i < MB_FIFOS; i++)
        if (task->fifos[i].address == address)
            return i;
    return -1;
}

int mbcf_fifo(struct mbcf *mbcf, uint16_t id, uint64_t address, uint64_t bytes)
{
    struct mbcf_task *task = task_of(mbcf, id);
    int fifo;

    if (task == NULL)
        return -SSS_EINVAL;
    if (address != 0 && find_fifo(task, address) >= 0)
        return -SSS_EEXIST;
    expect_nothing(mbcf);
    fifo = find_fifo(task, 0);
    if (fifo < 0)
        return -SSS_ENOMEM;
    return mbcf_ring_init(mbcf, task, &task->fifos[fifo], address, bytes);
}

int mbcf_fifo_remove(struct mbcf *mbcf, uint16_t id, uint64_t address)
{
    struct mbcf_task *task = task_of(mbcf, id);
    int fifo = task != NULL && address != 0 ? find_fifo(task, address) : -1;

    if (fifo < 0)
        return task == NULL ? -SSS_EINVAL : -SSS_ENOENT;
    expect_nothing(mbcf);
    mbcf_segments_forget(mbcf, task, fifo);
    task->fifos[fifo].address = 0;
    return 0;
}

int mbcf_signal(struct mbcf *mbcf, uint16_t id, const uint64_t *handlers, unsigned count,
                uint64_t queue, uint64_t bytes)
{
    struct mbcf_task *task = task_of(mbcf, id);
    int status;

    if (task == NULL || count > MB_HANDLERS)
        return -SSS_EINVAL;
    expect_nothing(mbcf);
    task->handler_count = 0;
    if (count == 0)
        return 0;
    status = mbcf_ring_init(mbcf, task, &task->signal_queue, queue, bytes);
    if (status != 0)
        return status;
    memcpy(task->handlers, handlers, count * sizeof(*handlers));
    task->handler_count = (uint8_t)count;
    return 0;
}
