/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How often the bytes of messages are copied in this task, and by system calls for it. What the
 * kernel copies beyond that is fixed for each transport:
 *
 *   UDP, TCP  sending: packet buffer -> frame (1 copy); receiving: frame -> packet buffer (1 copy)
 *   MBCF      see rpc/mbcf.h
 *
 * The adapter reads and writes frames in place.
 */
#include <stddef.h>
#include <stdint.h>

enum rpc_copy {
    RPC_COPY_ENCODE,  /* the caller's data -> the message */
    RPC_COPY_SEND,    /* the message -> the kernel's packet buffers or frames */
    RPC_COPY_RECEIVE, /* the kernel's packet buffers -> a message's buffer */
    RPC_COPY_DECODE,  /* the message -> the caller's data */
    /* between buffers of the runtime: reply cache, records of several fragments */
    RPC_COPY_OTHER,
    RPC_COPIES
};
struct rpc_copies {
    uint64_t times[RPC_COPIES];
    uint64_t bytes[RPC_COPIES];
};
extern struct rpc_copies rpc_copies;

static inline void rpc_copied(enum rpc_copy where, size_t bytes)
{
    rpc_copies.times[where]++;
    rpc_copies.bytes[where] += bytes;
}
