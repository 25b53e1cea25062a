/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "marker.h"
#include "xmitq.h"

/*
 * What the programs ask of the system that they run on: runtime.c on Linux, ../sss-core/dce/ on
 * SSS-CORE. The only calls that send, wait and receive are in runtime_send, runtime_wait and
 * runtime_receive. A failure to open a socket ends the program with an error line.
 */
enum {
    DCE_DATAGRAM = 65536,
    DCE_LINKS = 2, /* that are waited for at a time */
};

struct dce_link {
    int handle; /* negative: none */
    uint16_t port;
    uint8_t *datagram; /* DCE_DATAGRAM bytes */
    uint32_t arrivals; /* where the kernel counts events of a socket: those, */
    uint32_t taken;    /* and those that have been looked at */
};

/* A socket on all addresses; port 0: the kernel chooses. */
void dce_link_open(struct dce_link *link, unsigned port, int socket_buffer, bool broadcast);
void dce_link_close(struct dce_link *link);

/* A datagram that the kernel does not take is lost, as on a wire. `context`: a struct dce_link. */
void runtime_send(void *context, const struct dce_peer *to, const uint8_t *bytes, size_t length);
/* Until something can be received or the deadline has come; at which links it can, a bit for each.
 * With `may_end` it also ends on a request to end the program. */
unsigned runtime_wait(struct dce_link *const *links, unsigned count, uint64_t deadline_ns,
                      bool may_end);
/* The length of the datagram at link->datagram; negative: there was none. */
long runtime_receive(struct dce_link *link, struct dce_peer *from);

/* Chooses the clock of measurements; first of all. */
void runtime_start(void);
/* From here a request to end waits for runtime_wait. */
void runtime_hold_end(void);
bool runtime_is_to_end(void);
/* This service serves. */
void runtime_ready(void);
void runtime_sleep(uint64_t ns);
/* What a table may take: some systems give memory as it is touched, others at once. And as much of
 * it, all zeros, to the end of the program; NULL: there is not so much. */
size_t runtime_memory(void);
void *runtime_table(size_t bytes);

/* Whose identities these are. */
struct dce_self {
    const char *machine, *step;
    uint64_t seed;
    uint64_t process; /* another one for each that is started */
};
struct dce_self runtime_self(void);
