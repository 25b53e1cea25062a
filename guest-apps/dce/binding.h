/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "client_machine.h"
#include "runtime.h"

enum { DCE_INTERFACE_VERSION = 1 /* of sundial.idl and of twelve.idl */ };

/* The client's side: calls of one activity, made by the thread that has it. */
struct dce_binding {
    struct dce_client machine;
    struct dce_link link;
    uint8_t *memory, *results;
    uint64_t cancel_after_ns; /* 0: never; else each call that lasts so long is cancelled */
};

void dce_binding_open(struct dce_binding *binding, const struct dce_client_settings *settings,
                      size_t results_most, unsigned port, int socket_buffer, bool broadcast);
void dce_binding_close(struct dce_binding *binding);

/* A call with its arguments marshalled: those of sundial.idl in place, since they are fixed arrays
 * of bytes, which NDR represents as they are. */
struct dce_arguments {
    struct dce_operation operation;
    const uint8_t *bytes;
    size_t length;
};
void dce_marshal(struct dce_arguments *arguments, const struct dce_operation *operation,
                 const uint8_t *bytes, size_t length);
/* Makes the call; its status. The results are in binding->results. */
uint32_t dce_transmit(struct dce_binding *binding, const struct dce_arguments *arguments);
/* Waits until the server has learnt that the latest call is over. */
void dce_settle(struct dce_binding *binding);
