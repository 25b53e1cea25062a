/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ShrimpRPC between tasks of SSS-CORE: makes, binds and watches the buffers that stubs use. A
 * service is found by its node, program and version.
 */
#pragma once

#include "shrimp.h"
#include "sss/vmmc_pair.h"

enum { SHRIMP_PEERS = 30 /* clients of a service at a time */ };
#define SHRIMP_TIMEOUT_NS UINT64_C(25000000000)

struct shrimp_options {
    uint64_t key;        /* both sides' must be the same */
    uint64_t timeout_ns; /* to bind, and of each call; 0: SHRIMP_TIMEOUT_NS */
    bool notify;         /* a client's: wait for notifications, both sides, and do not poll */
    void *context;       /* a service's: that of its procedures */
};

/* ---- a client ---- */

struct shrimp_binding {
    struct shrimp_client client; /* for the stubs */
    struct vmmc_pair pair;
    struct shrimp_options options;
    uint64_t waiting_for; /* the sequence number of the call that has a deadline */
    uint64_t deadline_ns;
    uint64_t idled; /* how often, in that call, all turns of polling were not enough */
    uint32_t turns;
    uint32_t seen;  /* notifications */
    uint16_t ended; /* SHRIMP_GONE or SHRIMP_TIMED_OUT: so do all calls from then on */
};

/* -> 0 or an error of vmmc_pair.h; `identity` is X_shrimp_identity. `options` may be NULL. */
int shrimp_bind(struct shrimp_binding *binding, uint16_t node,
                const struct shrimp_identity *identity, const struct shrimp_options *options);
void shrimp_unbind(struct shrimp_binding *binding);
/* Turns of polling of the last call that found nothing. */
uint64_t shrimp_polls(const struct shrimp_binding *binding);
const char *shrimp_error_text(int error);
const char *shrimp_status_text(uint16_t status);

/* ---- a service ---- */

struct shrimp_peer {
    struct shrimp_server server; /* what procedures get; its context is the service's */
    struct vmmc_pair pair;
};

struct shrimp_service {
    struct shrimp_peer *peers[SHRIMP_PEERS];
    unsigned count;
    unsigned polling;         /* of these, those that do not notify */
    struct shrimp_peer *free; /* what the next client gets; NULL: there are as many as can be */
    const struct shrimp_interface *interface;
    struct shrimp_options options;
    volatile uint32_t notified;
    uint32_t seen;
    volatile uint32_t wanted; /* grows while there is no place for a client that has come */
    uint32_t wanted_seen;
    unsigned busy;         /* turns since it was looked whether clients have come or gone */
    bool lacking;          /* a client has come for whom memory or the adapter had no place */
    uint64_t calls, polls; /* polls: turns that found nothing */
    uint64_t bound, refused, unbound; /* clients */
};

/* Offers it. `interface` is X_shrimp, `options` may be NULL -> 0 or an error. */
int shrimp_offer(struct shrimp_service *service, const struct shrimp_interface *interface,
                 const struct shrimp_options *options);
/*
 * Serves the next call of each client that has one. Where there is none it polls or, if no client
 * wants that, sleeps; false: nothing has come for `timeout_ns`. What a procedure was given, its
 * server and its arguments, is there until the next turn, though a client may overwrite the latter.
 */
bool shrimp_turn(struct shrimp_service *service, uint64_t timeout_ns);
void shrimp_withdraw(struct shrimp_service *service);
