/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ports of the own runtime (struct rpc_port in echo/caller.h), and what only they have. */
#include "caller.h"
#include "settings.h"

struct own_port {
    struct rpc_port port; /* first */
    /* Finds the server, which may still be coming up; connects where that is how it is found.
     * -> 0 or the exit status of the task. */
    int (*find_server)(struct caller *caller, struct settings *settings);
    /* Fields of a batch that only this port has: JSON members behind others. */
    void (*put_fields)(const struct caller *caller, char *text, size_t size);
};
extern const struct own_port port_sockets, port_mbcf, port_vrpc;

/* For the ports. */
struct timeval port_timeval(uint64_t ns);
void port_sleep_ms(uint64_t ms);
void port_set_auth(struct caller *caller);
void port_disconnect(struct caller *caller);
void port_begin(struct caller *caller, uint32_t xid);
unsigned port_retransmits(const struct caller *caller);
enum clnt_stat port_call(struct caller *caller, struct exchange *exchange,
                         struct call_record *record);
/* Fills in why a call has failed, with `detail` or NULL. */
void port_note(struct call_record *record, enum call_failure failure, enum clnt_stat status,
               const char *detail);

/* As rpc_port's and own_port's, where a node is asked for until it has the server; `text`: why it
 * has not. */
int port_find_on_node(struct caller *caller, const struct settings *settings,
                      const char *(*text)(void), bool (*is_hopeless)(void));
/* As rpc_port's `call`, with its retransmissions. */
enum clnt_stat port_counted_call(struct caller *caller, struct exchange *exchange,
                                 struct call_record *record);

/* Until the server is found: the pauses between attempts. */
enum { FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 500 };
static inline uint64_t port_next_pause_ms(uint64_t pause_ms)
{
    return pause_ms * 2 > LONGEST_PAUSE_MS ? LONGEST_PAUSE_MS : pause_ms * 2;
}

/* ---- several calls under way ---- */

/* Room for `depth` calls; ends the task where memory is short. */
void depth_init(const struct settings *settings, size_t received_bytes);
/* Like caller_calls, with always `depth` of them under way. */
void depth_calls(struct caller *caller, size_t size, struct call_record *records, size_t count);
