/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What one step of echo-client is asked to do. */
#include <rpc/mbcf.h>
#include <rpc/rpc.h>
#include <rpc/vrpc.h>

#include "caller.h"
#include "client_limits.h"
#include "transport_names.h"

/* The types of MBCF follow in the order of enum mbcf_type. */
enum transport {
    TRANSPORT_UDP,
    TRANSPORT_TCP,
    TRANSPORT_MBCF,
    TRANSPORT_VRPC = TRANSPORT_MBCF + MBCF_TYPES,
    TRANSPORT_VRPC_MBCF,
};

enum {
    SERVER_TEXT_BYTES = 64,
    HEADER_AND_LENGTH = 44, /* of a call with AUTH_NONE; a reply's is shorter */
    CREDENTIAL_MOST = 2 * (8 + MAX_AUTH_BYTES),
    UDP_MESSAGE_LIMIT = 65507,
};

struct settings {
    unsigned transport;
    char server_text[SERVER_TEXT_BYTES]; /* as in the samples */
    struct sockaddr_in server;           /* UDP, TCP; its port is 0 until it is bound */
    uint16_t node;                       /* MBCF, vRPC */
    uint32_t program, version;
    bool functions;
    enum procedure procedure;
    bool one_way;
    long long series;
    long long sizes[SIZES_MOST]; /* payload bytes or, of functions, their numbers */
    size_t size_count;
    size_t largest; /* bytes of arguments or results, as they are on the wire */
    size_t calls, warmup;
    bool connection_per_size;
    unsigned client_port;
    unsigned send_buffer, recv_buffer, udp_message_size;
    uint64_t retry_ns, total_ns, binding_ns;
    enum rpc_semantics semantics;
    unsigned depth;
    bool ack;
    enum vrpc_wait wait;
    uint32_t deliberate_above;
    bool auth_sys;
    char auth_machine[MAX_MACHINE_NAME + 1];
    long long auth_uid, auth_gid, auth_gids[NGRPS];
    size_t auth_gid_count;
};

void settings_read(struct settings *settings, int argc, char **argv);
/* Whether `transport` is one of MBCF's types, or vRPC. */
bool settings_over_mbcf(const struct settings *settings);
bool settings_over_vrpc(const struct settings *settings);
