/* SPDX-License-Identifier: Apache-2.0 */

/* Logical connections, and how each side learns that they are over. */
#include "connection.h"
#include "acks.h"
#include "bytes.h"
#include "channel.h"
#include "fifo.h"
#include "pool.h"

/* ---- names: generation, and index + 1 in the low bits ---- */

enum { LTN_GENERATIONS = 64, CONNECTION_GENERATIONS = 1 << 21 };

static unsigned index_of(const struct mbcf *mbcf, const struct connection *connection)
{
    return (unsigned)(connection - mbcf->connections);
}

/* A stale number of a connection that was discarded does not name the one that has its slot now. */
uint16_t mbcf_connection_ltn(const struct mbcf *mbcf, const struct connection *connection)
{
    return (uint16_t)((connection->generation % LTN_GENERATIONS) << NAME_SLOT_BITS |
                      (index_of(mbcf, connection) + 1));
}

struct connection *mbcf_connection_answered(struct mbcf *mbcf, const struct packet *packet)
{
    unsigned index = (packet->op_id & NAME_SLOT) - 1u;
    struct connection *connection = &mbcf->connections[index % MB_CONNECTIONS];

    return index < MB_CONNECTIONS && connection->phase != CONNECTION_FREE &&
                   op_id_of(connection->name) == packet->op_id &&
                   connection->node == packet->node &&
                   !seq_after(connection->since, packet->request)
               ? connection
               : NULL;
}

struct connection *mbcf_connection_named(struct mbcf *mbcf, uint32_t name)
{
    unsigned index = (name & NAME_SLOT) - 1;
    struct connection *connection;

    if (!(name & NAME_CONNECTION) || index >= MB_CONNECTIONS)
        return NULL;
    connection = &mbcf->connections[index];
    return connection->phase != CONNECTION_FREE && connection->name == name ? connection : NULL;
}

/* The connection of a task, or NULL and why in *status. */
inline struct connection *mbcf_connection_of(struct mbcf *mbcf, uint16_t task, int ltn, int *status)
{
    unsigned index = ((unsigned)ltn & NAME_SLOT) - 1;
    struct connection *connection;

    *status = MB_NO_LTN;
    if (ltn <= 0 || ltn > UINT16_MAX || index >= MB_CONNECTIONS)
        return NULL;
    connection = &mbcf->connections[index];
    if (connection->generation == 0)
        return NULL;
    if (connection->generation % LTN_GENERATIONS == (unsigned)ltn >> NAME_SLOT_BITS &&
        connection->task == task &&
        (connection->phase == CONNECTION_OPEN || connection->phase == CONNECTION_BROKEN))
        return connection;
    *status = MB_CLOSED;
    return NULL;
}

/* ---- beginning and end ---- */

struct connection *mbcf_connection_new(struct mbcf *mbcf, enum connection_origin origin,
                                       uint16_t task, uint16_t node, uint16_t peer)
{
    struct connection *connection;
    uint32_t generation;
    unsigned index;

    if (mbcf->free_connections.count == 0)
        return NULL;
    index = mbcf_slot_take(&mbcf->free_connections);
    connection = &mbcf->connections[index];
    generation = connection->generation + 1;
    *connection = (struct connection){
        .phase = CONNECTION_OPEN,
        .origin = (uint8_t)origin,
        .task = task,
        .node = node,
        .peer = peer,
        .owner = task_of(mbcf, task),
        .channel = &mbcf->channels[node],
        .since = mbcf->channels[node].next_seq,
        .generation = generation,
        .name = NAME_CONNECTION | (generation % CONNECTION_GENERATIONS) << NAME_SLOT_BITS |
                (index + 1)};
    connection->ltn = mbcf_connection_ltn(mbcf, connection);
    return connection;
}

void mbcf_connection_free(struct mbcf *mbcf, struct connection *connection)
{
    connection->phase = CONNECTION_FREE;
    mbcf_slot_give(&mbcf->free_connections, (uint16_t)index_of(mbcf, connection));
}

static void tell_owner(struct mbcf *mbcf, const struct connection *connection)
{
    struct mbcf_task *task = task_of(mbcf, connection->task);

    if (task != NULL)
        surroundings_failed(mbcf->context, task->space);
}

void mbcf_connection_error(struct mbcf *mbcf, struct connection *connection, int status)
{
    if (connection->phase != CONNECTION_OPEN && connection->phase != CONNECTION_BROKEN)
        return;
    if (connection->error == 0)
        connection->error = (uint32_t)status;
    else if ((connection->error | MB_MAYBE) == (uint32_t)(status | MB_MAYBE))
        connection->error |= (uint32_t)status;
    tell_owner(mbcf, connection);
}

void mbcf_connection_break(struct mbcf *mbcf, struct connection *connection, int status)
{
    if (connection->phase != CONNECTION_OPEN)
        return;
    mbcf_connection_error(mbcf, connection, status);
    if (connection->origin == ORIGIN_SERVER) {
        mbcf_connection_free(mbcf, connection);
        return;
    }
    connection->phase = CONNECTION_BROKEN;
    connection->reason = (uint32_t)status;
}

/*
 * A task that is gone, or a TASKQUE write that was refused: it has no key and can do nothing. A
 * refusal for want of a key is that of a later operation.
 */
void mbcf_connection_refused(struct mbcf *mbcf, struct connection *connection, int status)
{
    if (status == MB_NOTASK ||
        (connection->origin == ORIGIN_WRITER && status != MB_KEY && status != MB_PERM))
        mbcf_connection_break(mbcf, connection, status);
}

/* All that lead to `peer` (0: to any task) of a node. */
void mbcf_connections_break(struct mbcf *mbcf, uint16_t node, uint16_t peer, int status)
{
    for (unsigned i = 0; i < MB_CONNECTIONS; i++) {
        struct connection *connection = &mbcf->connections[i];

        if (connection->phase == CONNECTION_FREE || connection->node != node ||
            (peer != 0 && connection->peer != peer))
            continue;
        if (connection->phase == CONNECTION_CLOSING) {
            mbcf->chores--;
            mbcf_connection_free(mbcf, connection);
        } else {
            mbcf_connection_break(mbcf, connection, status);
        }
    }
}

void mbcf_connection_done(struct mbcf *mbcf, uint32_t name)
{
    struct connection *connection = mbcf_connection_named(mbcf, name);

    if (connection != NULL && connection->unfinished != 0)
        connection->unfinished--;
}

void mbcf_connection_undecided(struct mbcf *mbcf, uint32_t name)
{
    struct connection *connection = mbcf_connection_named(mbcf, name);

    if (connection != NULL)
        connection->undecided++;
}

void mbcf_connection_lost(struct mbcf *mbcf, uint32_t name, int status)
{
    struct connection *connection = mbcf_connection_named(mbcf, name);

    if (connection != NULL)
        mbcf_connection_error(mbcf, connection, status);
}

void mbcf_connections_decide(struct mbcf *mbcf, uint16_t node, int status)
{
    for (unsigned i = 0; i < MB_CONNECTIONS; i++) {
        struct connection *connection = &mbcf->connections[i];

        if (connection->phase == CONNECTION_FREE || connection->node != node ||
            connection->undecided == 0)
            continue;
        connection->unfinished -= connection->undecided;
        connection->undecided = 0;
        if (status != MB_OK)
            mbcf_connection_error(mbcf, connection, status);
    }
}

/* The peer has discarded its end, or (destination 0) the task of the peer has ended. */
void mbcf_connection_closed(struct mbcf *mbcf, const struct packet *packet)
{
    struct connection *connection;

    if (packet->destination == 0) {
        mbcf_segments_void(mbcf, packet->node, packet->source);
        mbcf_connections_break(mbcf, packet->node, packet->source, MB_CLOSED);
        return;
    }
    for (unsigned i = 0; i < MB_CONNECTIONS; i++) {
        connection = &mbcf->connections[i];
        if (connection->phase == CONNECTION_OPEN && connection->node == packet->node &&
            connection->peer == packet->source && connection->task == packet->destination &&
            (connection->peer_name == mbw_close_connection(packet->payload) ||
             connection->name == mbw_close_peer(packet->payload)))
            mbcf_connection_break(mbcf, connection, MB_CLOSED);
    }
}

/* ---- what waits for a place ---- */

/* For a CLOSE, or NULL. The chore is over before it is queued: queueing may look for chores itself.
 */
static struct sss_frame *close_frame(struct mbcf *mbcf, const struct channel *channel)
{
    return channel_has_request_place(channel) ? mbcf_frame_get(mbcf) : NULL;
}

static void close_connection(struct mbcf *mbcf, struct channel *channel,
                             struct connection *connection, uint64_t now_ns)
{
    struct header header = {.op = MBW_CLOSE,
                            .length = MBW_CLOSE_PAYLOAD,
                            .last = header_tasks(connection->task, connection->peer)};

    struct sss_frame *frame = close_frame(mbcf, channel);

    if (frame == NULL)
        return;
    mbw_set_close_connection(frame_payload(frame, 0), connection->name);
    mbw_set_close_peer(frame_payload(frame, 0), connection->peer_name);
    mbcf->chores--;
    mbcf_connection_free(mbcf, connection);
    mbcf_channel_queue(mbcf, channel, frame, &header, now_ns);
}

static void task_free(struct mbcf_task *task)
{
    uint8_t generation = task->generation;

    memset(task, 0, sizeof(*task));
    task->generation = generation;
}

static void drop_farewell(struct mbcf *mbcf, struct mbcf_task *task, uint64_t bit)
{
    mbcf->chores--;
    task->farewells &= ~bit;
    if (task->farewells == 0)
        task_free(task);
}

static void say_farewell(struct mbcf *mbcf, struct channel *channel, struct mbcf_task *task,
                         uint64_t now_ns)
{
    struct header header = {.op = MBW_CLOSE, .last = header_tasks(task->id, 0)};
    struct sss_frame *frame = close_frame(mbcf, channel);

    if (frame == NULL)
        return;
    drop_farewell(mbcf, task, 1ull << (channel->node - 1));
    mbcf_channel_queue(mbcf, channel, frame, &header, now_ns);
}

void mbcf_connection_chores(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    for (unsigned i = 0; i < MB_CONNECTIONS; i++)
        if (mbcf->connections[i].phase == CONNECTION_CLOSING &&
            mbcf->connections[i].node == channel->node)
            close_connection(mbcf, channel, &mbcf->connections[i], now_ns);
    for (unsigned i = 0; i < TASK_SLOTS; i++)
        if (mbcf->tasks[i].gone && (mbcf->tasks[i].farewells >> (channel->node - 1) & 1))
            say_farewell(mbcf, channel, &mbcf->tasks[i], now_ns);
}

/* The node knows nothing of our tasks any more. */
void mbcf_farewells_forget(struct mbcf *mbcf, uint16_t node)
{
    uint64_t bit = 1ull << (node - 1);

    for (unsigned i = 0; i < TASK_SLOTS; i++) {
        struct mbcf_task *task = &mbcf->tasks[i];

        task->peers &= ~bit;
        if (task->gone && (task->farewells & bit))
            drop_farewell(mbcf, task, bit);
    }
}

void mbcf_connection_task_ends(struct mbcf *mbcf, struct mbcf_task *task, uint64_t now_ns)
{
    const uint16_t id = task->id;

    for (unsigned i = 0; i < MB_CONNECTIONS; i++) {
        struct connection *connection = &mbcf->connections[i];

        if (connection->phase != CONNECTION_FREE && connection->phase != CONNECTION_CLOSING &&
            connection->task == id)
            mbcf_connection_free(mbcf, connection);
    }
    task->gone = true;
    for (unsigned node = 1; node <= SSS_NODES; node++)
        if ((task->peers >> (node - 1) & 1) && mbcf->channels[node].peer_epoch != 0 &&
            mbcf->channels[node].state != MBCF_DEAD) {
            task->farewells |= 1ull << (node - 1);
            mbcf->chores++;
        }
    if (task->farewells == 0)
        task_free(task);
    else
        for (unsigned node = 1; node <= SSS_NODES && task->gone; node++)
            if (task->farewells >> (node - 1) & 1)
                say_farewell(mbcf, &mbcf->channels[node], task, now_ns);
}

/* ---- connections of tasks ---- */

int mbcf_connect(struct mbcf *mbcf, uint16_t task_id, uint16_t node, uint16_t peer, uint64_t key)
{
    struct mbcf_task *task = task_of(mbcf, task_id);
    struct connection *connection;

    if (task == NULL || peer == 0)
        return -SSS_EINVAL;
    if (node == 0 || node > SSS_NODES || !mbcf->channels[node].known)
        return -(MB_NO_NODE + MB_STATUS_BASE);
    connection = mbcf_connection_new(mbcf, ORIGIN_CONNECT, task_id, node, peer);
    if (connection == NULL)
        return -SSS_ENOMEM;
    connection->key = key;
    task->peers |= 1ull << (node - 1);
    return mbcf_connection_ltn(mbcf, connection);
}

int mbcf_connection_close(struct mbcf *mbcf, uint16_t task_id, int ltn, uint64_t now_ns)
{
    struct mbcf_task *task = task_of(mbcf, task_id);
    struct connection *connection;
    int status;

    if (task == NULL)
        return -SSS_EINVAL;
    connection = mbcf_connection_of(mbcf, task_id, ltn, &status);
    if (connection == NULL)
        return -(status + MB_STATUS_BASE);
    /* Who serves (uses its TASKQUE) discards only what TASKQUE writes have made; what was set up
     * beforehand stays. */
    if (connection->origin == ORIGIN_CONNECT && task->taskque.address != 0)
        return -SSS_EPERM;
    /* Only the two ends of a TASKQUE write know each other. */
    if (connection->phase == CONNECTION_BROKEN || connection->origin == ORIGIN_CONNECT) {
        mbcf_connection_free(mbcf, connection);
        return 0;
    }
    connection->phase = CONNECTION_CLOSING;
    mbcf->chores++;
    close_connection(mbcf, &mbcf->channels[connection->node], connection, now_ns);
    return 0;
}

int mbcf_connection(struct mbcf *mbcf, uint16_t task, int ltn, struct mb_connection *info)
{
    int status;
    struct connection *connection = mbcf_connection_of(mbcf, task, ltn, &status);

    if (connection == NULL)
        return -(status + MB_STATUS_BASE);
    mbcf_acks_take_noted(mbcf, connection->channel);
    mbcf_connection_describe(connection, info);
    connection->error = 0;
    return 0;
}

void mbcf_connection_describe(const struct connection *connection, struct mb_connection *info)
{
    *info = (struct mb_connection){
        .node = connection->node,
        .task = connection->peer,
        .state = connection->phase == CONNECTION_OPEN ? MB_CONNECTION_OPEN : MB_CONNECTION_BROKEN,
        .taskque = connection->origin == ORIGIN_SERVER,
        .error = connection->error,
        .unfinished = connection->unfinished,
    };
}
