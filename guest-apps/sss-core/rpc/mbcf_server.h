/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A server task: mbcf_server.c takes what comes by the TASKQUE, mbcf_places.c has places for
 * clients that stay. */
#include <rpc/mbcf.h>

#include "mbcf_service.h"
#include "mbcf_share.h"

enum { MBM_READINGS = 4, MBM_PROGRAMS = 8 };

/* A client of type 3, 3a or 3b, and what it is served by; kept for the next one. */
struct mbm_place {
    struct mbm_server *server;
    const struct mbm_place_way *way; /* mbcf_places.c: how its type is served */
    bool exists;
    bool used;
    struct mbm_origin origin;
    struct mb_fifo *fifo;    /* 3, 3a: requests of this client */
    int dummy;               /* 3a, 3b: the task */
    struct mbm_share *share; /* 3b */
};

/* A request that is being READ from its client (type 2). */
struct mbm_reading {
    bool used;
    uint32_t number; /* in the order in which they came */
    struct mb_ack ack;
    struct mbm_origin origin;
    uint32_t length;
    char *message;
};

struct mbm_server {
    struct mbm_service service; /* first: the transport of both is the same */
    struct svcmb_options options;
    struct mb_fifo *taskque;
    struct mbm_place places[MBCF_CLIENTS_MOST];
    struct mbm_reading readings[MBM_READINGS];
    uint32_t readings_begun;
    struct {
        rpcprog_t program;
        rpcvers_t version;
    } programs[MBM_PROGRAMS];
    unsigned program_count;
    /* sums over dummies that have ended by themselves */
    volatile uint64_t ended_words[SVCMB_DUMMY_WORDS];
};

/* Whether a request to be bound names a program that is served. */
bool mbm_serves_program(const struct mbm_server *server, const struct mbm_bind *bind);
/* Answers a request to be bound: a place, or why there is none. */
void mbm_places_bind(struct mbm_server *server, const struct mbm_origin *origin,
                     const struct mbm_bind *bind, bool serves_type);
/* Frees the places of clients that have gone. */
void mbm_places_look_after(struct mbm_server *server);
