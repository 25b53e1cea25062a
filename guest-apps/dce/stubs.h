/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "binding.h"
#include "server_machine.h"

/*
 * Stubs of both sides of sundial.idl, written by hand: one operation a size, arrays of fixed
 * length, so that the body of a call is its payload and nothing else. Payloads follow the pattern
 * of the call's sequence number, which both sides know.
 */
enum {
    DCE_NULL = 0,
    DCE_PUT = 1, /* and one for each size, in the order of the job */
    DCE_GET = 1000,
    DCE_ECHO = 2000,
    DCE_SIZES_MOST = 999,
    DCE_PAYLOAD_MOST = 196608,
};
extern const struct dce_uuid dce_sundial_interface;

/* The sizes that the interface is for; they must stay. */
void dce_stubs_sizes(const long long *sizes, size_t count);
/* The number of a size; negative: there is no operation for it. */
int dce_stubs_index(long long size);

/* ---- the client's stubs: the status of the call ---- */

uint32_t dce_null(struct dce_binding *binding, uint8_t semantics);
uint32_t put_i(struct dce_binding *binding, uint8_t semantics, unsigned i, const uint8_t *a);
/* `a` is in binding->results afterwards. */
uint32_t get_i(struct dce_binding *binding, uint8_t semantics, unsigned i);
uint32_t echo_i(struct dce_binding *binding, uint8_t semantics, unsigned i, const uint8_t *a);

/* ---- the server's ---- */

bool dce_stubs_has_operation(uint16_t opnum);
/* Runs the procedure of a call; its status, and the length of its results. */
uint32_t dce_stubs_execute(struct dce_activity *activity, size_t *length);
/* Whether the arguments are those of the call: asked when they have been answered. */
bool dce_stubs_check(const struct dce_activity *activity);

/* The procedures: each entry and exit is a step. */
void dce_procedure_null(void);
void dce_procedure_put(const uint8_t *a, size_t size);
void dce_procedure_get(uint32_t seq, uint8_t *a, size_t size);
void dce_procedure_echo(const uint8_t *in, uint8_t *out, size_t size);
