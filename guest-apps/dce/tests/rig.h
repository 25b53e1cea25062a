/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Clients and a server over a wire that loses, doubles, delays and damages packets on request,
 * in virtual time: nothing of it is real but the machines.
 */
#include "../client_machine.h"
#include "../conv.h"
#include "../server_machine.h"

enum {
    RIG_CLIENTS = 3,
    RIG_MOST = 200704, /* bytes of arguments and results */
    RIG_ACTIVITIES = 4,
    RIG_PUT = 1,
    RIG_GET = 2,
    RIG_ECHO = 3,
    RIG_FAULT = 4, /* ends with the fault DCE_INVALID_BOUND */
    RIG_EXECUTIONS = 4096,
};

enum rig_fate { RIG_PASS, RIG_DROP, RIG_DOUBLE, RIG_LATE, RIG_DAMAGE, RIG_FATES };

struct rig;
typedef enum rig_fate rig_fate_of(struct rig *rig, unsigned number, const struct dce_pdu *pdu);

/* A packet is on the wire from when it is sent to when it is delivered. */
struct rig_packet {
    uint64_t at;
    uint64_t order;
    unsigned to; /* a client, or RIG_CLIENTS: the server */
    struct dce_peer from;
    size_t length;
    uint8_t *bytes;
};

struct rig_settings {
    enum dce_policy policy;
    unsigned fragment;
    unsigned window_kib;
    unsigned clients;
    bool client_big, server_big;
    uint8_t semantics;
    uint64_t work_ns; /* of each procedure */
    uint64_t latency_ns;
    uint64_t byte_ns;
    rig_fate_of *fate;
};

struct rig_call {
    uint16_t opnum;
    size_t size;
    unsigned calls; /* that are left */
    unsigned done, failed;
    uint32_t status;
};

struct rig {
    struct rig_settings settings;
    uint64_t now;
    uint64_t random;
    struct dce_client client[RIG_CLIENTS];
    struct rig_call call[RIG_CLIENTS];
    uint8_t *memory[RIG_CLIENTS], *results[RIG_CLIENTS], *arguments;
    struct dce_server server;
    uint8_t *server_memory;
    uint32_t boot_time;
    struct rig_packet *wire;
    unsigned on_wire, wire_room;
    uint64_t order;
    unsigned sent; /* packets, also lost ones */
    unsigned sent_of[DCE_PTYPES];
    uint64_t free_at[RIG_CLIENTS + 1]; /* of each sender */
    struct dce_activity *runs[RIG_ACTIVITIES];
    uint64_t run_ends[RIG_ACTIVITIES];
    unsigned running;
    struct {
        struct dce_uuid activity;
        uint32_t seq;
        unsigned times;
    } executed[RIG_EXECUTIONS];
    unsigned executions;
    bool wrong_bytes;
};

void rig_open(struct rig *rig, const struct rig_settings *settings);
void rig_close(struct rig *rig);
/* `calls` calls of client `i`, one after the other. */
void rig_call(struct rig *rig, unsigned i, uint16_t opnum, size_t size, unsigned calls);
/* Until all calls have ended and nothing is on the wire or kept, or `most_ns` have passed: false.
 */
bool rig_run(struct rig *rig, uint64_t most_ns);
/* When the first timer of all activities is due, each looked at: what dce_server_deadline must say.
 */
uint64_t rig_deadline(const struct dce_server *server);
/* The server forgets everything and boots again. */
void rig_restart_server(struct rig *rig);
uint64_t rig_random(struct rig *rig);
/* The most often that any call was executed. */
unsigned rig_most_executed(const struct rig *rig);
uint8_t rig_byte(uint32_t seq, size_t at);
extern const struct dce_uuid rig_interface;
