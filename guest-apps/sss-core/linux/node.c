/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes, their tasks, and the loop that stands where interrupts are on SSS-CORE. */
#include "node.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "node_state.h"

#define LINGER_NS 100000000ull
#define NEVER     UINT64_MAX
enum { BUFFER_BYTES = 1536 /* keeps byte 14 of each 8-byte aligned */, BUFFER_AT = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved; /* on CLOCK_MONOTONIC */
static bool polling;         /* one thread sleeps in poll() for all */
static uint64_t polling_until_ns;
static const struct node_task *polling_task; /* its; NULL: none */
/* an eventfd that ends its sleep: who takes the frame that it waits for must wake it */
static int kick = -1;
static bool kicked;
static struct node *nodes[NODES_MOST];
static uint32_t windows_opened; /* counts */
static _Thread_local struct node_task *current;

void node_lock(void)
{
    pthread_mutex_lock(&lock);
}
void node_unlock(void)
{
    pthread_mutex_unlock(&lock);
}
struct node_task *node_current(void)
{
    return current;
}
void node_become(struct node_task *task)
{
    current = task;
}
struct mbcf *node_core(struct node *node)
{
    return node->core;
}

const volatile struct sss_info *sss_info(void)
{
    static const struct sss_info no_task = {.version = 1, .clock = SSS_CLOCK_CALL};

    return current != NULL ? &current->info : &no_task;
}

/*
 * With the lock: threads that wait look again, the one in poll() only where it is of this task
 * (NULL: of whichever), or where the memory may be its own as well, as that of an EMPTY task is.
 */
static void wake(const struct node_task *task)
{
    const uint64_t one = 1;

    pthread_cond_broadcast(&moved);
    if (polling && !kicked && (task == NULL || task == polling_task || task->empty))
        kicked = write(kick, &one, sizeof(one)) == (ssize_t)sizeof(one);
}

/* ---- surroundings of the core; all with the lock ---- */

struct sss_frame *surroundings_frame_get(void *context)
{
    struct node *node = context;

    return sss_frame_take(&node->free);
}

void surroundings_frame_put(void *context, struct sss_frame *frame)
{
    struct node *node = context;

    sss_frame_release(&node->free, frame);
}

bool surroundings_transmit(void *context, struct sss_frame *frame)
{
    struct node *node = context;

    if (node->socket >= 0)
        return node_socket_send(node->socket, frame);
    node_wire_send(frame);
    return true;
}

void surroundings_changed(void *context, void *space)
{
    (void)context;
    wake(space);
}

void surroundings_signalled(void *context, void *space, uint64_t handler)
{
    (void)context;
    (void)handler;
    ((struct node_task *)space)->signalled = true;
    wake(space);
}

void surroundings_window_open(void *context)
{
    (void)context;
    windows_opened++;
    wake(NULL);
}

void surroundings_failed(void *context, void *space)
{
    struct node_task *task = space;

    (void)context;
    __atomic_fetch_add(&task->info.errors, 1, __ATOMIC_RELEASE);
    wake(task);
}

/* ---- beginning and end ---- */

static void init_once(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&moved, &attributes);
    pthread_condattr_destroy(&attributes);
    kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

static void node_free(struct node *node)
{
    if (node->core != NULL)
        node_memory_free(node->core, node->core_bytes);
    if (node->buffers != NULL)
        node_memory_free(node->buffers, (size_t)SSS_FRAMES * BUFFER_BYTES);
    if (node->socket >= 0)
        close(node->socket);
    free(node);
}

static struct node *node_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct node *node = calloc(1, sizeof(*node));

    pthread_once(&once, init_once);
    if (node == NULL || kick < 0) {
        free(node);
        return NULL;
    }
    node->socket = -1;
    node->core_bytes = mbcf_size();
    node->core = node_memory_alloc(node->core_bytes);
    node->buffers = node_memory_alloc((size_t)SSS_FRAMES * BUFFER_BYTES);
    if (node->core == NULL || node->buffers == NULL) {
        node_free(node);
        errno = ENOMEM;
        return NULL;
    }
    for (unsigned i = 0; i < SSS_FRAMES; i++) {
        node->frames[i].bytes = node->buffers + (size_t)i * BUFFER_BYTES + BUFFER_AT;
        node->frames[i].next = node->free;
        node->free = &node->frames[i];
    }
    return node;
}

static int node_start(struct node *node, const struct node_config *settings, uint32_t epoch)
{
    struct mbcf_config config = {
        .node = settings->node, .epoch = epoch, .rto_least_ns = settings->rto_least_ns};

    memcpy(config.mac, node->mac, 6);
    mbcf_init(node->core, &config, node);
    for (unsigned i = 0; i < settings->peer_count; i++)
        if (settings->peers[i].node != settings->node &&
            mbcf_add_node(node->core, settings->peers[i].node, settings->peers[i].mac) != 0) {
            errno = EINVAL;
            return -1;
        }
    for (unsigned i = 0; i < NODES_MOST; i++)
        if (nodes[i] == NULL) {
            nodes[i] = node;
            return 0;
        }
    errno = ENFILE;
    return -1;
}

struct node *node_open_raw(const char *interface, const struct node_config *config)
{
    struct node *node;
    uint32_t starts, epoch;
    int error;

    if (config->node == 0 || config->node > SSS_NODES || config->epoch == 0) {
        errno = EINVAL;
        return NULL;
    }
    if (!node_count_start(NODE_STARTS, &starts))
        return NULL;
    epoch = (uint32_t)(((uint64_t)config->epoch - 1 + starts) % UINT32_MAX) + 1; /* 0 is none */
    node = node_new();
    if (node == NULL)
        return NULL;
    node->socket = node_socket_open(interface, node->mac);
    node_lock();
    error = node->socket >= 0 ? node_start(node, config, epoch) : -1;
    node_unlock();
    if (error == 0)
        return node;
    error = errno;
    node_free(node);
    errno = error;
    return NULL;
}

int node_open_group(struct node **made, unsigned count)
{
    struct node_peer peers[NODES_MOST];

    if (count > NODES_MOST)
        return -SSS_EINVAL;
    for (unsigned i = 0; i < count; i++)
        peers[i] = (struct node_peer){(uint16_t)(i + 1), {2, 0x53, 0x44, 0, 0, (uint8_t)(i + 1)}};
    for (unsigned i = 0; i < count; i++) {
        struct node_config config = {.node = (uint16_t)(i + 1),
                                     .epoch = (uint32_t)clock_now_ns() | 1,
                                     .peers = peers,
                                     .peer_count = count};

        made[i] = node_new();
        if (made[i] == NULL)
            return -SSS_ENOMEM;
        memcpy(made[i]->mac, peers[i].mac, 6);
        node_lock();
        if (node_start(made[i], &config, config.epoch) != 0) {
            node_unlock();
            return -SSS_ENOMEM;
        }
        node_unlock();
    }
    return 0;
}

void node_group_faults(const struct node_faults *faults)
{
    node_lock();
    node_wire_faults(faults);
    node_unlock();
}

static bool is_quiet(struct node *node)
{
    struct mbcf_channel_info info;

    for (unsigned i = 0; mbcf_channel_at(node->core, i, &info); i++)
        if (info.in_flight != 0)
            return false;
    return true;
}

void node_close(struct node *node)
{
    uint64_t deadline_ns = clock_now_ns() + LINGER_NS;

    node_lock();
    while (node->tasks != NULL) {
        struct node_task *task = node->tasks;

        mbcf_task_close(node->core, task->id, clock_now_ns());
        node->tasks = task->next;
        if (current == task)
            current = NULL;
        free(task);
    }
    for (node_drive(); !is_quiet(node) && clock_now_ns() < deadline_ns; node_drive())
        node_sleep(deadline_ns);
    for (unsigned i = 0; i < NODES_MOST; i++)
        if (nodes[i] == node)
            nodes[i] = NULL;
    node_unlock();
    node_free(node);
}

/* ---- tasks ---- */

struct node_task *node_task_find(struct node *node, uint16_t id)
{
    struct node_task *task = node->tasks;

    while (task != NULL && task->id != id)
        task = task->next;
    return task;
}

/* With the lock. */
static long task_open(struct node *node, uint16_t id, struct node_task **made)
{
    struct node_task *task = calloc(1, sizeof(*task));
    int given;

    if (task == NULL)
        return -SSS_ENOMEM;
    given = id == 0 ? mbcf_task_open(node->core, task) : mbcf_task_open_as(node->core, id, task);
    if (given < 0) {
        free(task);
        return given;
    }
    task->node = node;
    task->id = (uint16_t)given;
    task->next = node->tasks;
    node->tasks = task;
    *made = task;
    return given;
}

static void task_describe(struct node_task *task, uint16_t node)
{
    task->info.version = 1;
    task->info.clock = SSS_CLOCK_CALL;
    task->info.node = node;
    task->info.task = task->id;
}

static uint16_t node_id(const struct node *node)
{
    return mbcf_node(node->core);
}

int node_task(struct node *node, uint16_t id)
{
    struct node_task *task;
    long given;

    node_lock();
    given = task_open(node, id, &task);
    if (given > 0) {
        task_describe(task, node_id(node));
        current = task;
    }
    node_unlock();
    return (int)given;
}

static void task_close(struct node_task *task)
{
    struct node_task **link = &task->node->tasks;

    mbcf_task_close(task->node->core, task->id, clock_now_ns());
    while (*link != task)
        link = &(*link)->next;
    *link = task->next;
    free(task);
}

/* ---- what happens by itself ---- */

static struct node *node_of_mac(const uint8_t *mac)
{
    for (unsigned i = 0; i < NODES_MOST; i++)
        if (nodes[i] != NULL && nodes[i]->socket < 0 && memcmp(nodes[i]->mac, mac, 6) == 0)
            return nodes[i];
    return NULL;
}

static bool drive_wire(uint8_t *frame)
{
    struct node *to;
    size_t length;

    if (!node_wire_receive(frame, &length))
        return false;
    to = node_of_mac(frame);
    if (to != NULL)
        mbcf_receive(to->core, clock_now_ns(), frame, length);
    return true;
}

static bool drive_node(struct node *node, uint8_t *frame)
{
    size_t length = node->socket >= 0 ? node_socket_receive(node->socket, frame, SSS_FRAME_BYTES)
                                      : 0;
    uint64_t now_ns = clock_now_ns();

    if (length != 0)
        mbcf_receive(node->core, now_ns, frame, length);
    if (mbcf_next_timeout(node->core) <= now_ns)
        mbcf_timeout(node->core, now_ns);
    return length != 0;
}

void node_drive(void)
{
    _Alignas(8) uint8_t room[BUFFER_AT + SSS_FRAME_BYTES];
    uint8_t *frame = room + BUFFER_AT;
    bool something;

    do {
        something = drive_wire(frame);
        for (unsigned i = 0; i < NODES_MOST; i++)
            if (nodes[i] != NULL)
                something |= drive_node(nodes[i], frame);
    } while (something);
}

static uint64_t earliest_timeout(void)
{
    uint64_t earliest_ns = NEVER;

    for (unsigned i = 0; i < NODES_MOST; i++)
        if (nodes[i] != NULL && mbcf_next_timeout(nodes[i]->core) < earliest_ns)
            earliest_ns = mbcf_next_timeout(nodes[i]->core);
    return earliest_ns;
}

/* For a thread that sleeps while another one polls; woken by `moved`. */
static void sleep_beside(uint64_t for_ns)
{
    struct timespec until;

    if (for_ns == NEVER) {
        pthread_cond_wait(&moved, &lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(for_ns / 1000000000u);
    until.tv_nsec += (long)(for_ns % 1000000000u);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&moved, &lock, &until);
}

static void sleep_polling(uint64_t for_ns, uint64_t until_ns)
{
    struct pollfd sockets[NODES_MOST + 1];
    struct timespec timeout = {(time_t)(for_ns / 1000000000u), (long)(for_ns % 1000000000u)};
    nfds_t count = 0;
    uint64_t kicks;

    for (unsigned i = 0; i < NODES_MOST; i++)
        if (nodes[i] != NULL && nodes[i]->socket >= 0)
            sockets[count++] = (struct pollfd){.fd = nodes[i]->socket, .events = POLLIN};
    if (count == 0) {
        sleep_beside(for_ns);
        return;
    }
    sockets[count++] = (struct pollfd){.fd = kick, .events = POLLIN};
    polling = true;
    polling_until_ns = until_ns;
    polling_task = current;
    node_unlock();
    ppoll(sockets, count, until_ns == NEVER ? NULL : &timeout, NULL);
    node_lock();
    polling = false;
    if (kicked)
        kicked = read(kick, &kicks, sizeof(kicks)) < 0;
    pthread_cond_broadcast(&moved);
}

void node_sleep(uint64_t deadline_ns)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t until_ns = earliest_timeout();

    if (deadline_ns < until_ns)
        until_ns = deadline_ns;
    if (until_ns <= now_ns)
        return;
    if (polling)
        sleep_beside(until_ns == NEVER ? NEVER : until_ns - now_ns);
    else
        sleep_polling(until_ns == NEVER ? NEVER : until_ns - now_ns, until_ns);
}

void node_deliver_signals(void)
{
    struct node_task *task = current;

    if (task == NULL || !task->signalled || task->delivering || task->deliver == NULL ||
        !pthread_equal(task->signal_thread, pthread_self()))
        return;
    task->delivering = true;
    while (task->signalled) {
        task->signalled = false;
        node_unlock();
        task->deliver();
        node_lock();
    }
    task->delivering = false;
}

void node_poll(void)
{
    node_lock();
    node_drive();
    node_deliver_signals();
    wake(NULL);
    node_unlock();
}

/* ---- system calls ---- */

static long call_wait(const struct sss_wait *words, uint64_t count, uint64_t timeout_ns)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t deadline_ns = timeout_ns < NEVER - now_ns ? now_ns + timeout_ns : NEVER;

    if (count > SSS_WAITS)
        return -SSS_EINVAL;
    for (;;) {
        node_drive();
        node_deliver_signals();
        for (unsigned i = 0; i < count; i++)
            if (__atomic_load_n(words[i].address, __ATOMIC_ACQUIRE) != words[i].seen)
                return (long)i;
        if (clock_now_ns() >= deadline_ns)
            return -SSS_ETIMEDOUT;
        node_sleep(deadline_ns);
    }
}

static long call_operate(struct node_task *task, struct mb_operation *operation)
{
    uint64_t progress = 0;

    for (;;) {
        uint32_t seen = windows_opened;
        long result = mbcf_operate(task->node->core, task->id, operation, &progress,
                                   clock_now_ns());

        if (result != -SSS_EAGAIN || ((operation->flags & MB_NO_WAIT) && progress == 0)) {
            node_drive();
            return result;
        }
        for (node_drive(); windows_opened == seen; node_drive())
            node_sleep(NEVER);
    }
}

/* 0 is oneself; others only if they are EMPTY and one's own. */
static struct node_task *task_owned(struct node_task *self, uint64_t id)
{
    struct node_task *task = id == 0 ? self : node_task_find(self->node, (uint16_t)id);

    return task != NULL && (task == self || task->creator == self->id) ? task : NULL;
}

static long call_signal(struct node_task *task, struct mb_signal_setup *setup)
{
    long error = mbcf_signal(task->node->core, task->id,
                             (const uint64_t *)(const void *)setup->handlers,
                             (unsigned)setup->count, (uintptr_t)setup->queue, setup->queue_bytes);

    if (error != 0)
        return error;
    task->signal_thread = pthread_self();
    task->deliver = (void (*)(void))(uintptr_t)setup->trampoline;
    return 0;
}

static long call_task_create(struct node_task *self, uint64_t flags)
{
    struct node_task *task;
    long id;

    if (flags != SSS_EMPTY)
        return -SSS_ENOSYS; /* programs are started by the user of Linux */
    id = task_open(self->node, 0, &task);
    if (id > 0) {
        task->empty = true;
        task->creator = self->id;
        task_describe(task, node_id(self->node));
    }
    return id;
}

static long call_task_kill(struct node_task *self, uint64_t id)
{
    struct node_task *task = node_task_find(self->node, (uint16_t)id);

    if (task == NULL)
        return -SSS_ENOENT;
    if (task == self || task->creator != self->id)
        return -SSS_EPERM;
    task_close(task);
    node_drive();
    return 0;
}

static long call_task_status(struct node_task *self, uint64_t id, struct sss_task_status *status)
{
    *status = (struct sss_task_status){
        .state = node_task_find(self->node, (uint16_t)id) != NULL ? SSS_RUNNING : SSS_GONE};
    return 0;
}

static long call_operate_short(struct node_task *self, const uint64_t a[6])
{
    struct mb_operation operation = {0};

    memcpy(&operation, a, 6 * sizeof(*a));
    return mb_is_short(operation.op) ? call_operate(self, &operation) : -SSS_EINVAL;
}

static long call_mbcf(struct node_task *self, long number, const uint64_t a[6])
{
    struct mbcf *core = self->node->core;
    struct node_task *task;

    switch (number) {
    case SSS_MB_CONNECT:
        return mbcf_connect(core, self->id, (uint16_t)a[0], (uint16_t)a[1], a[2]);
    case SSS_MB_CLOSE:
        return mbcf_close(core, self->id, (int)a[0], clock_now_ns());
    case SSS_MB_CONNECTION:
        return mbcf_connection(core, self->id, (int)a[0], (struct mb_connection *)(uintptr_t)a[1]);
    case SSS_MB_OPERATE:
        return call_operate(self, (struct mb_operation *)(uintptr_t)a[0]);
    case SSS_MB_OPERATE_SHORT:
        return call_operate_short(self, a);
    case SSS_MB_SIGNAL:
        return call_signal(self, (struct mb_signal_setup *)(uintptr_t)a[0]);
    case SSS_MB_FIFO_REMOVE:
        task = task_owned(self, a[0]);
        return task == NULL ? -SSS_ENOENT : mbcf_fifo_remove(core, task->id, a[1]);
    default:
        break;
    }
    task = task_owned(self, a[0]);
    if (task == NULL)
        return -SSS_ENOENT;
    if (number == SSS_MB_KEY)
        return mbcf_key(core, task->id, (unsigned)a[1], a[2], (unsigned)a[3]);
    if (number == SSS_MB_TASKQUE)
        return mbcf_taskque(core, task->id, a[1], a[2]);
    return number == SSS_MB_FIFO ? mbcf_fifo(core, task->id, a[1], a[2]) : -SSS_ENOSYS;
}

static long call(long number, const uint64_t a[6])
{
    struct node_task *task;

    if (number >= SSS_MEMORY_MAP && number <= SSS_CSM_SHARE)
        return node_memory_call(number, a);
    if (number == SSS_RECORD)
        return node_record((const char *)(uintptr_t)a[0], a[1]);
    if (number == SSS_WAIT)
        return call_wait((const struct sss_wait *)(uintptr_t)a[0], a[1], a[2]);
    if (current == NULL)
        return -SSS_ENOENT;
    if (number >= SSS_MB_KEY && number <= SSS_MB_OPERATE_SHORT)
        return call_mbcf(current, number, a);
    if (number == SSS_CSM_MAP) {
        task = task_owned(current, a[0]);
        return task != NULL ? node_memory_map_share(task, a[1], a[2], a[3]) : -SSS_ENOENT;
    }
    if (number == SSS_TASK_CREATE)
        return call_task_create(current, a[2]);
    if (number == SSS_TASK_KILL)
        return call_task_kill(current, a[0]);
    if (number == SSS_TASK_STATUS)
        return call_task_status(current, a[0], (struct sss_task_status *)(uintptr_t)a[1]);
    return -SSS_ENOSYS;
}

long sss_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    const uint64_t arguments[6] = {a, b, c, d, e, f};
    long result;

    node_lock();
    result = call(number, arguments);
    if (polling && earliest_timeout() < polling_until_ns)
        wake(NULL); /* the caller may never wait itself */
    node_unlock();
    return result;
}
