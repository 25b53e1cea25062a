/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state.h"

struct connection *mbcf_connection_new(struct mbcf *mbcf, enum connection_origin origin,
                                       uint16_t task, uint16_t node, uint16_t peer);
void mbcf_connection_free(struct mbcf *mbcf, struct connection *connection);
/* Ends it, keeping the reason for its owner; one made by a peer's TASKQUE write is discarded at
 * once. */
void mbcf_connection_break(struct mbcf *mbcf, struct connection *connection, int status);
void mbcf_connection_error(struct mbcf *mbcf, struct connection *connection, int status);
void mbcf_connections_break(struct mbcf *mbcf, uint16_t node, uint16_t peer, int status);
void mbcf_connection_closed(struct mbcf *mbcf, const struct packet *packet);
/* A frame that only the connection names was acknowledged, by one that was UNSURE, or was lost. */
void mbcf_connection_done(struct mbcf *mbcf, uint32_t name);
void mbcf_connection_undecided(struct mbcf *mbcf, uint32_t name);
void mbcf_connection_lost(struct mbcf *mbcf, uint32_t name, int status);
/* What was undecided on the connections to a node was executed (MB_OK), or may have been. */
void mbcf_connections_decide(struct mbcf *mbcf, uint16_t node, int status);
uint16_t mbcf_connection_ltn(const struct mbcf *mbcf, const struct connection *connection);
struct connection *mbcf_connection_named(struct mbcf *mbcf, uint32_t name);
/* That of the frame without an ack which a RESULT answers, or NULL. */
struct connection *mbcf_connection_answered(struct mbcf *mbcf, const struct packet *packet);
/* Queues what waited for a place: farewells, CLOSEs. */
void mbcf_connection_chores(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns);
void mbcf_farewells_forget(struct mbcf *mbcf, uint16_t node);

/* The open connection of a task, or NULL. */
static inline struct connection *open_connection(struct mbcf *mbcf, uint16_t task, int ltn)
{
    unsigned index = ((unsigned)ltn & NAME_SLOT) - 1;
    struct connection *connection = &mbcf->connections[index % MB_CONNECTIONS];

    return connection->ltn == ltn && connection->task == task &&
                   connection->phase == CONNECTION_OPEN && ltn != 0
               ? connection
               : NULL;
}

/* The same for one that need not be open, and why not in *status. */
struct connection *mbcf_connection_of(struct mbcf *mbcf, uint16_t task, int ltn, int *status);
void mbcf_connection_describe(const struct connection *connection, struct mb_connection *info);
/* The peer has refused an operation of it: after some refusals there is no connection. */
void mbcf_connection_refused(struct mbcf *mbcf, struct connection *connection, int status);
/* As mbcf_close; frames to the own node wait to be taken. */
int mbcf_connection_close(struct mbcf *mbcf, uint16_t task, int ltn, uint64_t now_ns);
/* Its connections end, and each node that has had dealings with it is notified. */
void mbcf_connection_task_ends(struct mbcf *mbcf, struct mbcf_task *task, uint64_t now_ns);
