/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "machine.h"
#include "options.h"
#include "recvq.h"

/* The options that client and server have in common; README.md describes them. */
struct dce_parameters {
    bool big_endian;
    const char *byte_order_text;
    const char *policy_text;
    struct dce_xmitq_settings xmitq;
    struct dce_offer offer;
    unsigned window_bytes;
    uint64_t give_up_ns;
    int socket_buffer;
    long long *sizes; /* of the interface */
    size_t size_count;
    size_t largest;
};

void dce_parameters_read(struct dce_parameters *parameters, struct options *options);
/* The interface is that of the twelve functions, and has no sizes. */
void dce_parameters_of_functions(struct dce_parameters *parameters);
/* An address like 10.0.0.2; false: it is none. */
bool dce_address(const char *text, uint32_t *address);
/* Milliseconds from 1 to an hour, as nanoseconds. */
uint64_t dce_option_ms(struct options *options, const char *name, unsigned absent_ms);
