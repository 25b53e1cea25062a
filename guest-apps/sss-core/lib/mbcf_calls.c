/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What tasks call for MBCF: most of it asks the kernel (on Linux: the node in the process, which
 * answers the same numbers), but taking from a FIFO and looking at an ack never leave user code.
 */
#include <string.h>

#include "sss/mbcf.h"
#include "sss/system.h"

#define CALL(number, ...) CALL_(number, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL_(number, a, b, c, d, e, f, ...)                                                       \
    (int)sss_call(number, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d),              \
                  (uint64_t)(e), (uint64_t)(f))

const char *mb_status_text(int status)
{
    static const char *const texts[] = {
#define MB_STATUS(name, number, text) [number] = (text),
#include "sss/mbcf_status.def"
    };
    static const char *const maybe_texts[] = {
        [MB_NODE_RESTART] = "the node has restarted; maybe executed",
        [MB_NODE_DEAD] = "the node does not answer; maybe executed",
        [MB_CLOSED] = "the connection was discarded; maybe executed",
    };
    unsigned plain = (unsigned)status & ~(unsigned)MB_MAYBE;

    if (status < 0 || plain >= sizeof(texts) / sizeof(*texts) || texts[plain] == NULL)
        return "unknown status";
    if (!(status & MB_MAYBE))
        return texts[plain];
    if (plain < sizeof(maybe_texts) / sizeof(*maybe_texts) && maybe_texts[plain] != NULL)
        return maybe_texts[plain];
    return "failed; a part of it may have been executed";
}

/* ---- what a task declares ---- */

int mb_key(unsigned slot, uint64_t key, unsigned permission)
{
    return CALL(SSS_MB_KEY, 0, slot, key, permission);
}

int mb_key_of(uint16_t task, unsigned slot, uint64_t key, unsigned permission)
{
    return CALL(SSS_MB_KEY, task, slot, key, permission);
}

int mb_taskque(void *memory, size_t bytes)
{
    return CALL(SSS_MB_TASKQUE, 0, memory, bytes);
}

int mb_fifo(void *memory, size_t bytes)
{
    return CALL(SSS_MB_FIFO, 0, memory, bytes);
}

int mb_fifo_of(uint16_t task, uint64_t address, size_t bytes)
{
    return CALL(SSS_MB_FIFO, task, address, bytes);
}

int mb_fifo_remove(void *memory)
{
    return CALL(SSS_MB_FIFO_REMOVE, 0, memory);
}

/* ---- connections ---- */

int mb_connect(uint16_t node, uint16_t task, uint64_t key)
{
    return CALL(SSS_MB_CONNECT, node, task, key);
}

int mb_close(int ltn)
{
    return CALL(SSS_MB_CLOSE, ltn);
}

int mb_connection(int ltn, struct mb_connection *info)
{
    return CALL(SSS_MB_CONNECTION, ltn, info);
}

void mb_self(uint16_t *node, uint16_t *task)
{
    *node = SSS_INFO->node;
    *task = SSS_INFO->task;
}

/* ---- operations ---- */

static inline int operate_short(const struct mb_operation *operation)
{
    uint64_t first;

    memcpy(&first, operation, sizeof(first));
    return CALL(SSS_MB_OPERATE_SHORT, first, operation->remote, operation->data, operation->length,
                operation->ack, operation->argument[0]);
}

int mb_operate(struct mb_operation *operation)
{
    if (mb_is_short(operation->op))
        return operate_short(operation);
    return CALL(SSS_MB_OPERATE, operation);
}

int mb_taskque_write(uint16_t node, uint16_t task, uint64_t own_key, unsigned permission,
                     const void *data, size_t length, struct mb_ack *ack)
{
    struct mb_operation operation = {.op = MB_OP_TASKQUE,
                                     .node = node,
                                     .task = task,
                                     .data = (void *)(uintptr_t)data,
                                     .length = length,
                                     .ack = ack,
                                     .argument = {own_key, permission}};
    int error = mb_operate(&operation);

    return error != 0 ? error : operation.ltn;
}

/* WRITE, READ and FIFO: no more of an operation than goes into registers. */
static inline int move(uint64_t op, int ltn, uint64_t remote, const void *data, size_t length,
                       struct mb_ack *ack)
{
    return CALL(SSS_MB_OPERATE_SHORT, op | (uint64_t)(uint32_t)ltn << 32, remote, data, length,
                ack);
}

int mb_write(int ltn, uint64_t remote, const void *data, size_t length, struct mb_ack *ack)
{
    return move(MB_OP_WRITE, ltn, remote, data, length, ack);
}

int mb_read(int ltn, uint64_t remote, void *data, size_t length, struct mb_ack *ack)
{
    return move(MB_OP_READ, ltn, remote, data, length, ack);
}

int mb_fifo_write(int ltn, uint64_t fifo, const void *data, size_t length, struct mb_ack *ack)
{
    return move(MB_OP_FIFO, ltn, fifo, data, length, ack);
}

int mb_signal_send(int ltn, uint64_t handler, const uint64_t argument[4], const void *data,
                   size_t length, struct mb_ack *ack)
{
    struct mb_operation operation = {.op = MB_OP_SIGNAL,
                                     .ltn = ltn,
                                     .remote = handler,
                                     .data = (void *)(uintptr_t)data,
                                     .length = length,
                                     .ack = ack};

    if (argument != NULL) {
        operation.arguments = 4;
        memcpy(operation.argument, argument, sizeof(operation.argument));
    }

    return mb_operate(&operation);
}

static int change_word(uint16_t op, int ltn, uint64_t remote, uint64_t first, uint64_t second,
                       unsigned flags, struct mb_ack *ack)
{
    struct mb_operation operation = {.op = op,
                                     .flags = (uint16_t)flags,
                                     .ltn = ltn,
                                     .remote = remote,
                                     .ack = ack,
                                     .argument = {first, second}};

    return mb_operate(&operation);
}

int mb_swap(int ltn, uint64_t remote, uint64_t value, unsigned flags, struct mb_ack *ack)
{
    return change_word(MB_OP_SWAP, ltn, remote, value, 0, flags, ack);
}

int mb_compare_and_swap(int ltn, uint64_t remote, uint64_t expected, uint64_t value, unsigned flags,
                        struct mb_ack *ack)
{
    return change_word(MB_OP_CAS, ltn, remote, expected, value, flags, ack);
}

int mb_fetch_add(int ltn, uint64_t remote, uint64_t addend, unsigned flags, struct mb_ack *ack)
{
    return change_word(MB_OP_FETCH_ADD, ltn, remote, addend, 0, flags, ack);
}

/* ---- waiting ---- */

/* When `timeout_ns` from now is over. */
static uint64_t deadline_of(uint64_t timeout_ns)
{
    uint64_t now_ns;

    if (timeout_ns == SSS_FOREVER)
        return SSS_FOREVER;
    now_ns = sss_now_ns();
    return timeout_ns < SSS_FOREVER - now_ns ? now_ns + timeout_ns : SSS_FOREVER;
}

static int wait_until(const volatile uint32_t *word, uint32_t seen, uint64_t deadline_ns)
{
    uint64_t now_ns;

    if (deadline_ns == SSS_FOREVER)
        return sss_wait_word(word, seen, SSS_FOREVER);
    now_ns = sss_now_ns();
    return sss_wait_word(word, seen, deadline_ns > now_ns ? deadline_ns - now_ns : 0);
}

int mb_ack_wait(struct mb_ack *ack, uint64_t timeout_ns)
{
    uint64_t deadline_ns;
    int error;

    if (__atomic_load_n(&ack->state, __ATOMIC_ACQUIRE) == MB_ACK_DONE)
        return (int)ack->status;
    deadline_ns = deadline_of(timeout_ns);
    while (__atomic_load_n(&ack->state, __ATOMIC_ACQUIRE) != MB_ACK_DONE) {
        if (ack->state == MB_ACK_IDLE)
            return -SSS_EINVAL; /* of an operation that was not taken */
        error = wait_until(&ack->state, MB_ACK_PENDING, deadline_ns);
        if (error < 0 && ack->state == MB_ACK_PENDING)
            return error;
    }
    return (int)ack->status;
}

/* ---- FIFOs ---- */

static uint32_t record_bytes(const struct mb_record *record)
{
    return ((uint32_t)sizeof(*record) + record->length + 15u) & ~15u;
}

static struct mb_record *record_at(struct mb_fifo *fifo, uint32_t position)
{
    return (struct mb_record *)(void *)((char *)(fifo + 1) + (position & (fifo->size - 1)));
}

static void advance(struct mb_fifo *fifo, const struct mb_record *record)
{
    __atomic_store_n(&fifo->tail, fifo->tail + record_bytes(record), __ATOMIC_RELEASE);
}

struct mb_record *mb_fifo_peek(struct mb_fifo *fifo)
{
    while (__atomic_load_n(&fifo->head, __ATOMIC_ACQUIRE) != fifo->tail) {
        struct mb_record *record = record_at(fifo, fifo->tail);
        uint8_t state = __atomic_load_n(&record->state, __ATOMIC_ACQUIRE);

        if (state == MB_RESERVED)
            return NULL;
        if (record->kind == MB_DATA && state == MB_COMPLETE)
            return record;
        advance(fifo, record);
    }
    return NULL;
}

void mb_fifo_pop(struct mb_fifo *fifo)
{
    struct mb_record *record = mb_fifo_peek(fifo);

    if (record != NULL)
        advance(fifo, record);
}

int mb_fifo_wait(struct mb_fifo *fifo, uint64_t timeout_ns)
{
    uint64_t deadline_ns = deadline_of(timeout_ns);

    for (;;) {
        uint32_t seen = __atomic_load_n(&fifo->events, __ATOMIC_ACQUIRE);
        int error;

        if (mb_fifo_peek(fifo) != NULL)
            return 0;
        error = wait_until(&fifo->events, seen, deadline_ns);
        if (error < 0)
            return mb_fifo_peek(fifo) != NULL ? 0 : error;
    }
}
