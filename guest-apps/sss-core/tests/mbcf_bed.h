/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client on node 1 with a connection to a server on node 2 that has declared all there is. */
#include "expect.h"
#include "mbcf_rig.h"

enum { KEY = 0x1234, READ_KEY = 0x2345, WRITE_KEY = 0x3456 };
#define SECOND   1000000000ull
#define ACK      RIG_BASE
#define DATA     (RIG_BASE + 4096)
#define FIFO     (RIG_BASE + 16 * 4096ull)
#define TASKQUE  (RIG_BASE + 40 * 4096ull)
#define QUEUE    (RIG_BASE + 44 * 4096ull)
#define READONLY (RIG_BASE + 60 * 4096ull)
#define UNMAPPED (RIG_BASE + 61 * 4096ull)
#define HANDLER  0x401000ull

static struct rig *rig;
static uint16_t client, server;
static int ltn;

static inline void *at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}
static inline struct mbcf *core(unsigned node)
{
    return rig->nodes[node].mbcf;
}

static inline void begin(void)
{
    uint64_t handler = HANDLER;

    rig = rig_new(3, 1, NULL);
    client = rig_task(rig, 1, 0, 48);
    server = rig_task(rig, 2, 0, 60);
    rig_map(rig, 2, 0, 60, SSS_READ);
    mbcf_key(core(2), server, 0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    mbcf_key(core(2), server, 1, READ_KEY, MB_READ_ALLOWED);
    mbcf_key(core(2), server, 2, WRITE_KEY, MB_WRITE_ALLOWED);
    EXPECT(mbcf_fifo(core(2), server, FIFO, MB_FIFO_HEADER + 8192) == 0);
    EXPECT(mbcf_taskque(core(2), server, TASKQUE, MB_FIFO_HEADER + 4096) == 0);
    EXPECT(mbcf_signal(core(2), server, &handler, 1, QUEUE, MB_FIFO_HEADER + 4096) == 0);
    ltn = mbcf_connect(core(1), client, 2, server, KEY);
    EXPECT(ltn > 0);
}

static inline void end(void)
{
    EXPECT(rig_free(rig));
}

/* The status of an operation of the client, by its ack. */
static inline int status_of(struct mb_operation operation)
{
    int result;

    if (operation.ltn == 0)
        operation.ltn = ltn;
    if (operation.data == NULL)
        operation.data = at(DATA);
    operation.ack = at(ACK);
    result = rig_operate(rig, 1, client, &operation);
    return result != 0 ? result : rig_ack(rig, 1, 0, ACK, 60 * SECOND);
}

static inline int write_at(uint64_t remote, uint64_t length)
{
    return status_of((struct mb_operation){.op = MB_OP_WRITE, .remote = remote, .length = length});
}

static inline int with_key(uint16_t op, uint64_t key, uint64_t remote)
{
    int connection = mbcf_connect(core(1), client, 2, server, key);
    int status = status_of((struct mb_operation){
        .op = op, .ltn = connection, .remote = remote, .length = op < MB_OP_SWAP ? 8 : 0});

    mbcf_close(core(1), client, connection, rig->now_ns);
    return status;
}

static inline struct mb_connection info_of(unsigned node, uint16_t task, int number)
{
    struct mb_connection info = {0};

    EXPECT(mbcf_connection(core(node), task, number, &info) == 0);
    return info;
}
