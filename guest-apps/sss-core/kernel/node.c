/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This machine as a node of MBCF: the protocol core of mbcf/ with the kernel's memory, adapter,
 * clock and threads around it, and its system calls.
 */
#include "node.h"

#include "mbcf/core.h"
#include "memory.h"
#include "net.h"
#include "panic.h"
#include "runqueue.h"
#include "signal.h"
#include "task_info.h"
#include "task_table.h"
#include "user.h"
#include "wait.h"

enum { PORTMAPPER_TASK = 1 };
static const char PORTMAPPER[] = "portmapper";

static struct mbcf *mbcf;
static struct mbcf_config config;
static struct wait_queue window_waiters;
static struct timer protocol_timer;

/* ---- what the protocol asks of the kernel ---- */
struct sss_frame *surroundings_frame_get(void *context)
{
    (void)context;
    return frame_get();
}

void surroundings_frame_put(void *context, struct sss_frame *frame)
{
    (void)context;
    frame_put(frame);
}

bool surroundings_transmit(void *context, struct sss_frame *frame)
{
    (void)context;
    return net_transmit(NODE_ADAPTER, frame);
}

void *surroundings_page(void *context, void *space, uint64_t address, bool write, int *why)
{
    (void)context;
    return task_page(space, address, write, why);
}

void surroundings_changed(void *context, void *space)
{
    (void)context;
    task_memory_changed(space);
}

void surroundings_signalled(void *context, void *space, uint64_t handler)
{
    (void)context;
    task_signalled(space, handler);
}

void surroundings_window_open(void *context)
{
    (void)context;
    if (window_waiters.first != NULL)
        thread_wake_all(&window_waiters);
}

void surroundings_failed(void *context, void *space)
{
    (void)context;
    task_operation_failed(space);
}

/* ---- time ----
 * A timer that is due too early costs one look at the protocol; setting one for each frame would
 * cost more. So it is only ever moved to an earlier time, and asks for the next one when it
 * expires.
 */
static void arm_timer(void)
{
    uint64_t due = mbcf_next_timeout(mbcf);

    if (due != UINT64_MAX && (!protocol_timer.armed || due < protocol_timer.due_ns))
        timer_set(&protocol_timer, due);
}

static void timer_expired(struct timer *timer)
{
    (void)timer;
    net_collect(NODE_ADAPTER); /* what the adapter still holds is not sent again */
    mbcf_timeout(mbcf, now_ns());
    arm_timer();
}

void node_received(const uint8_t *frame, size_t length)
{
    mbcf_receive(mbcf, now_ns(), frame, length);
    arm_timer();
}

/* Frames that the adapter has sent return to the protocol, which retransmits none that it still
 * holds. */
void node_idle(void)
{
    net_collect(NODE_ADAPTER);
}

/* ---- start and restart ---- */
void node_init(uint16_t node, uint32_t epoch, const uint8_t mac[6])
{
    size_t pages = (mbcf_size() + PAGE - 1) / PAGE;

    config = (struct mbcf_config){.node = node, .epoch = epoch};
    for (unsigned i = 0; i < sizeof(config.mac); i++)
        config.mac[i] = mac[i];
    protocol_timer.expired = timer_expired;
    if (mbcf == NULL)
        mbcf = pages_alloc(pages);
    if (mbcf == NULL)
        panic("no memory for MBCF: %zu pages", pages);
    mbcf_init(mbcf, &config, NULL);
}

void node_restart(void)
{
    timer_cancel(&protocol_timer);
    window_waiters.first = NULL; /* its threads have ended */
    net_reclaim_frames();
    /* Epochs of jobs are further apart than the restarts of a run reach. 0 is not an epoch. */
    if (++config.epoch == 0)
        config.epoch = 1;
    mbcf_init(mbcf, &config, NULL);
}

struct mbcf *node_mbcf(void)
{
    return mbcf;
}

int node_task_open(struct task *task)
{
    return __builtin_strcmp(task_name(task), PORTMAPPER) == 0
               ? mbcf_task_open_as(mbcf, PORTMAPPER_TASK, task)
               : mbcf_task_open(mbcf, task);
}

void node_task_ended(struct task *task)
{
    mbcf_task_close(mbcf, task_id(task), now_ns());
    arm_timer();
}

/* ---- system calls ---- */

/* Declarations of a task for itself, or for one that it has created: arguments[0] is its number. */
static long declare(unsigned call, const uint64_t arguments[6])
{
    struct task *task = arguments[0] > UINT16_MAX ? NULL : task_owned((uint16_t)arguments[0]);
    uint16_t id;

    if (task == NULL)
        return -SSS_EPERM;
    id = task_id(task);
    switch (call) {
    case SSS_MB_KEY:
        if (arguments[1] >= MB_KEYS ||
            (arguments[3] & ~(uint64_t)(MB_READ_ALLOWED | MB_WRITE_ALLOWED)) != 0)
            return -SSS_EINVAL;
        return mbcf_key(mbcf, id, (unsigned)arguments[1], arguments[2], (unsigned)arguments[3]);
    case SSS_MB_TASKQUE:
        return mbcf_taskque(mbcf, id, arguments[1], arguments[2]);
    case SSS_MB_FIFO:
        return mbcf_fifo(mbcf, id, arguments[1], arguments[2]);
    default:
        return mbcf_fifo_remove(mbcf, id, arguments[1]);
    }
}

static long set_signal(uint64_t setup_address)
{
    struct mb_signal_setup setup;
    uint64_t handlers[MB_HANDLERS];
    int status;

    if (!user_read(&setup, setup_address, sizeof(setup)))
        return -SSS_EFAULT;
    if (setup.count > MB_HANDLERS || (uint64_t)setup.stack_top % 16 != 0)
        return -SSS_EINVAL;
    if (!user_read(handlers, (uint64_t)setup.handlers, setup.count * sizeof(handlers[0])))
        return -SSS_EFAULT;
    status = mbcf_signal(mbcf, task_id(task_current()), handlers, (unsigned)setup.count,
                         (uint64_t)setup.queue, setup.queue_bytes);
    if (status < 0)
        return status;
    return signal_setup((uint64_t)setup.trampoline, (uint64_t)setup.stack_top);
}

static long connect(const uint64_t arguments[6])
{
    if (arguments[0] > UINT16_MAX || arguments[1] > UINT16_MAX)
        return -SSS_EINVAL;
    return mbcf_connect(mbcf, task_id(task_current()), (uint16_t)arguments[0],
                        (uint16_t)arguments[1], arguments[2]);
}

static long close_connection(uint64_t ltn)
{
    long status;

    if (ltn > INT32_MAX)
        return -SSS_EINVAL;
    status = mbcf_close(mbcf, task_id(task_current()), (int)ltn, now_ns());
    arm_timer();
    return status;
}

static long operate_again(const uint64_t arguments[6])
{
    return node_operate(arguments[0]);
}

static inline long operate_on(struct mb_operation *operation, call_function again)
{
    long status = mbcf_operate(mbcf, task_id(task_current()), operation, call_progress(), now_ns());

    arm_timer();
    if (status != -SSS_EAGAIN || (operation->flags & MB_NO_WAIT) != 0)
        return status;
    thread_sleep(&window_waiters, again);
    return TASK_AGAIN;
}

/*
 * The operation is read in place: no thread runs meanwhile. Only TASKQUE writes into it, and one
 * that crosses a page is copied.
 */
long node_operate(uint64_t address)
{
    struct mb_operation copy;
    struct mb_operation *operation;
    long status;
    int why;

    if (address % PAGE <= PAGE - sizeof(copy)) {
        operation = task_page(task_current(), address, false, &why);
        if (operation == NULL)
            return -SSS_EFAULT;
        if (operation->op != MB_OP_TASKQUE)
            return operate_on(operation, operate_again);
    }
    if (!user_read(&copy, address, sizeof(copy)))
        return -SSS_EFAULT;
    status = operate_on(&copy, operate_again);
    if (copy.op == MB_OP_TASKQUE &&
        !user_write(address + offsetof(struct mb_operation, ltn), &copy.ltn, sizeof(copy.ltn)))
        return -SSS_EFAULT;
    return status;
}

_Static_assert(offsetof(struct mb_operation, remote) == 8 &&
                   offsetof(struct mb_operation, data) == 16 &&
                   offsetof(struct mb_operation, length) == 24 &&
                   offsetof(struct mb_operation, ack) == 32 &&
                   offsetof(struct mb_operation, argument) == 40,
               "six arguments in a row");

/* The arguments are the operation, as far as one of its kind is read; none is written to. */
long node_operate_short(const uint64_t arguments[6])
{
    if (!mb_is_short((uint16_t)arguments[0]))
        return -SSS_EINVAL;
    return operate_on((struct mb_operation *)(uintptr_t)arguments, node_operate_short);
}

static long copy_connection(uint64_t ltn, uint64_t info_address)
{
    struct mb_connection info;
    int status;

    if (ltn > INT32_MAX)
        return -SSS_EINVAL;
    status = mbcf_connection(mbcf, task_id(task_current()), (int)ltn, &info);
    if (status < 0)
        return status;
    return user_write(info_address, &info, sizeof(info)) ? 0 : -SSS_EFAULT;
}

long node_call(unsigned call, const uint64_t arguments[6])
{
    switch (call) {
    case SSS_MB_KEY:
    case SSS_MB_TASKQUE:
    case SSS_MB_FIFO:
    case SSS_MB_FIFO_REMOVE:
        return declare(call, arguments);
    case SSS_MB_SIGNAL:
        return set_signal(arguments[0]);
    case SSS_MB_CONNECT:
        return connect(arguments);
    case SSS_MB_CLOSE:
        return close_connection(arguments[0]);
    case SSS_MB_CONNECTION:
        return copy_connection(arguments[0], arguments[1]);
    default:
        return -SSS_ENOSYS;
    }
}
