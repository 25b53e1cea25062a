/* SPDX-License-Identifier: Apache-2.0 */
#include "echo_procedures.h"

#include "pattern.h"
#include "sss/system.h"

enum { FIXED = 64 /* bytes of echo_64 */ };
#define OVERTAKING_NS UINT64_C(10000000)

const char *const echo_procedure_names[ECHO_PROCEDURES + 1] = {
    [ECHO_NULL] = "null",         [ECHO_IN] = "in",
    [ECHO_OUT] = "out",           [ECHO_INOUT] = "inout",
    [ECHO_IN_64] = "in_64",       [ECHO_OUT_64] = "out_64",
    [ECHO_INOUT_64] = "inout_64", NULL,
};

static void count(struct shrimp_server *server, unsigned procedure)
{
    struct echo_work *work = server->context;

    work->counts.by_procedure[procedure]++;
}

static void check_later(struct shrimp_server *server, const uint8_t *data, size_t length)
{
    struct echo_work *work = server->context;

    *work->next++ = (struct echo_payload){server, data, length};
}

void echo_begin(struct echo_work *work)
{
    memset(work, 0, sizeof(*work));
    work->next = work->unchecked;
}

static void make(struct echo_work *work, uint32_t sequence, uint32_t size)
{
    pattern_fill(PATTERN_OPAQUE, sequence, 0, work->made, size);
    work->made_sequence = sequence;
    work->made_size = size;
    work->is_made = true;
}

/* The reply has been sent, so the next call may come while the payload of this one is checked: then
 * its data do so before its flag does. */
static bool is_overtaken(const struct shrimp_server *server)
{
    uint64_t begun_ns = sss_now_ns();

    do
        if (*server->in != server->seen)
            return true;
    while (sss_now_ns() - begun_ns < OVERTAKING_NS);
    return false;
}

static void check(struct echo_work *work, const struct echo_payload *payload)
{
    struct echo_counts *counts = &work->counts;
    unsigned procedure = (uint16_t)payload->server->seen;

    counts->by_procedure[procedure]++;
    counts->bytes_in += payload->length;
    if (procedure == ECHO_INOUT || procedure == ECHO_INOUT_64)
        counts->bytes_out += payload->length;
    if (pattern_matches_any(PATTERN_OPAQUE, payload->data, payload->length))
        return;
    if (is_overtaken(payload->server))
        counts->overtaken++;
    else
        counts->bad_payload++;
}

void echo_after(struct echo_work *work)
{
    while (work->next != work->unchecked)
        check(work, --work->next);
    if (work->made_size > 0 && !work->is_made)
        make(work, work->made_sequence + 1, work->made_size);
}

uint16_t echo_null_serve(struct shrimp_server *server)
{
    count(server, ECHO_NULL);
    return SHRIMP_OK;
}

uint16_t echo_in_serve(struct shrimp_server *server, const uint8_t *data, uint32_t length)
{
    check_later(server, data, length);
    return SHRIMP_OK;
}

uint16_t echo_out_serve(struct shrimp_server *server, uint32_t sequence, uint32_t size)
{
    struct echo_work *work = server->context;

    if (size > ECHO_LIMIT)
        return SHRIMP_GARBAGE;
    count(server, ECHO_OUT);
    if (!work->is_made || sequence != work->made_sequence || size != work->made_size)
        make(work, sequence, size);
    work->is_made = false;
    work->counts.bytes_out += size;
    return echo_out_reply(server, work->made, size);
}

uint16_t echo_inout_serve(struct shrimp_server *server, const uint8_t *data, uint32_t length)
{
    check_later(server, data, length);
    return echo_inout_reply(server, data, length);
}

uint16_t echo_in_64_serve(struct shrimp_server *server, const uint8_t *data)
{
    check_later(server, data, FIXED);
    return SHRIMP_OK;
}

/* Always the payload of call 0: nothing tells which it is. */
uint16_t echo_out_64_serve(struct shrimp_server *server)
{
    static uint8_t payload[FIXED];
    struct echo_work *work = server->context;

    if (payload[1] == 0)
        pattern_fill(PATTERN_OPAQUE, 0, 0, payload, sizeof(payload));
    count(server, ECHO_OUT_64);
    work->counts.bytes_out += sizeof(payload);
    return echo_out_64_reply(server, payload);
}

uint16_t echo_inout_64_serve(struct shrimp_server *server, const uint8_t *data)
{
    check_later(server, data, FIXED);
    return echo_inout_64_reply(server, data);
}
