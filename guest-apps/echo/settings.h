/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exchange.h"
#include "workload.h"

enum transport { TRANSPORT_UDP, TRANSPORT_TCP };

enum { GROUPS_LIMIT = 16 /* RFC 5531 appendix A */ };

/* What one client step is asked to do; README.md describes each option. */
struct settings {
    const char *server_text;
    struct sockaddr_in server; /* its port is 0 until it is bound */
    enum transport transport;
    const char *transport_text;
    uint32_t program, version;
    enum procedure procedure;
    const char *procedure_text;
    bool one_way;
    struct workload workload;
    unsigned client_port; /* of the first thread, the others follow; 0: the kernel chooses */

    unsigned send_buffer; /* of the record stream (TCP); 0: the library's default */
    unsigned recv_buffer;
    unsigned udp_message_size;
    int socket_buffer; /* SO_SNDBUF and SO_RCVBUF; 0: the kernel's default */
    bool tcp_nodelay;
    long long retry_timeout_ms; /* UDP: until the first retransmission of a call */
    long long total_timeout_ms; /* until a call has failed */
    long long binding_timeout_ms;

    bool auth_sys;
    char auth_machine[256];
    uid_t auth_uid;
    gid_t auth_gid;
    gid_t auth_gids[GROUPS_LIMIT];
    size_t auth_gid_count;
};

/* Reads the step's options; a wrong one ends the program with an error line. */
void settings_read(struct settings *settings, int argc, char **argv);
