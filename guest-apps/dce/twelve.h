/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "binding.h"
#include "server_machine.h"
#include "twelve_ndr.h"

/* Stubs of both sides of twelve.idl, written by hand. An operation has the number of its function.
 */
extern const struct dce_uuid dce_twelve_interface;

/* ---- the client's: values in, values out ---- */

struct dce_twelve_call {
    enum function function;
    struct dce_value value; /* the arguments; after the call the results */
    bool whole;             /* the results could be read */
    uint8_t body[DCE_TWELVE_MOST];
};

/* The status of the call. */
uint32_t function_i(struct dce_binding *binding, uint8_t semantics, struct dce_twelve_call *call);

/* ---- the server's ---- */

bool dce_twelve_has_operation(uint16_t opnum);
/* Runs the function of a call, and writes its results in this order; its status, and the length of
 * its results. */
uint32_t dce_twelve_execute(struct dce_activity *activity, bool big_endian, size_t *length);
/* Whether the arguments are those of the function: asked when they have been answered. */
bool dce_twelve_check(const struct dce_activity *activity);

/* The procedure: its entry and exit are a step. What it returns takes the place of its arguments.
 */
void dce_procedure_function(enum function function, struct dce_value *value);
