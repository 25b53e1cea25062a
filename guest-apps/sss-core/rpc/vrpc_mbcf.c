/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of vRPC over MBCF: each side has what it writes in memory of its own, too, from where
 * remote WRITEs take it into the other's. A client asks for its line by BIND in the server's
 * TASKQUE; its head names the client's ring in place of a FIFO, and the answer is WRITTEN into the
 * ring's control page.
 */
#include <rpc/mbcf_binder.h>
#include <sss/system.h>
#include <stdlib.h>

#include "vrpc_carriers.h"

struct written_line {
    struct vrpc_line line; /* first */
    uint64_t remote;       /* the other side's `in` */
    int ltn;               /* of what is WRITTEN */
    int taskque_ltn;       /* a client's, of what it has asked by; else 0 */
    uint32_t errors_seen;
    bool broken;
};

enum { REFUSED_BASE = 2 * MB_STATUS_BASE };

static struct written_line *of(struct vrpc_line *line)
{
    return (struct written_line *)line;
}

/* ---- the carrier ---- */

static void push(struct vrpc_line *line, uint32_t at, uint32_t bytes)
{
    struct written_line *own = of(line);

    if (mb_write(own->ltn, own->remote + at, line->out + at, bytes, NULL) != 0)
        own->broken = true;
}

static unsigned words(struct vrpc_line *line, struct sss_wait waits[VRPC_WORDS])
{
    const volatile uint32_t *tail = (const volatile uint32_t *)(const void *)(line->in + RING_TAIL);
    const volatile uint32_t *head = (const volatile uint32_t *)(const void *)(line->in + RING_HEAD);

    waits[0] = (struct sss_wait){.address = tail, .seen = line->reader.head};
    waits[1] = (struct sss_wait){.address = head, .seen = *head};
    waits[2] = (struct sss_wait){.address = mbm_errors(), .seen = of(line)->errors_seen};
    return 3;
}

static bool has_failed(int ltn)
{
    struct mb_connection connection;

    return mb_connection(ltn, &connection) != 0 || connection.state == MB_CONNECTION_BROKEN ||
           connection.error != 0;
}

static bool is_gone(struct vrpc_line *line)
{
    struct written_line *own = of(line);
    uint32_t errors = *mbm_errors();

    if (own->broken || errors == own->errors_seen)
        return own->broken;
    own->errors_seen = errors;
    own->broken = has_failed(own->ltn) || (own->taskque_ltn > 0 && has_failed(own->taskque_ltn));
    return own->broken;
}

static void free_line(struct written_line *own)
{
    if (own->line.in != NULL)
        sss_unmap(own->line.in, VRPC_BUFFER);
    if (own->line.out != NULL)
        sss_unmap(own->line.out, VRPC_BUFFER);
    free(own);
}

static void close_line(struct vrpc_line *line)
{
    struct written_line *own = of(line);

    mb_close(own->ltn);
    if (own->taskque_ltn > 0)
        mb_close(own->taskque_ltn);
    free_line(own);
}

static struct written_line *new_line(uint32_t deliberate_above)
{
    static const struct vrpc_carrier carrier = {
        .push = push, .words = words, .is_gone = is_gone, .close = close_line};
    struct written_line *own = calloc(1, sizeof(*own));
    uint8_t *in, *out;

    if (own == NULL)
        return NULL;
    in = sss_map(NULL, VRPC_BUFFER, SSS_READ | SSS_WRITE);
    out = sss_map(NULL, VRPC_BUFFER, SSS_READ | SSS_WRITE);
    vrpc_line_open(&own->line, &carrier, in, out, deliberate_above);
    own->errors_seen = *mbm_errors();
    if (in != NULL && out != NULL)
        return own;
    free_line(own);
    return NULL;
}

/* ---- the client ---- */

/* -> 0 or a negative error. */
static int await_bound(const struct written_line *own, uint64_t deadline_ns)
{
    const volatile uint32_t *word = (const volatile uint32_t *)(const void *)own->line.in;

    for (;;) {
        struct sss_wait waits[2] = {{word, 0, 0}, {mbm_errors(), *mbm_errors(), 0}};
        uint64_t now;

        if (*word == MBM_BOUND)
            return 0;
        if (has_failed(own->taskque_ltn))
            return -SSS_ECONNRESET;
        now = sss_now_ns();
        if (now >= deadline_ns)
            return -SSS_ETIMEDOUT;
        sss_wait(waits, 2, deadline_ns - now);
    }
}

/* The server's answer, and a connection to what it names -> 0 or a negative error. */
static int connect_bound(struct written_line *own, uint16_t node)
{
    const struct mbm_bound *bound = (const void *)own->line.in;

    if (bound->refusal != MBM_ACCEPTED)
        return -(REFUSED_BASE + (int)bound->refusal);
    if (bound->ring != VRPC_RING)
        return -(REFUSED_BASE + MBM_TOO_LARGE);
    own->remote = bound->area;
    own->line.node = node;
    own->line.task = bound->task;
    own->ltn = mb_connect(node, bound->task, bound->key);
    return own->ltn < 0 ? own->ltn : 0;
}

static int ask(struct written_line *own, uint16_t node, rpcprog_t program, rpcvers_t version,
               const struct clntvrpc_options *options)
{
    struct {
        struct mbm_head head;
        struct mbm_bind bind;
    } request = {
        .head = {(uintptr_t)own->line.in, VRPC_BUFFER, MBM_BIND},
        .bind = {program, version, MBM_RINGS, VRPC_MESSAGE_MOST, 1, 0},
    };
    struct mb_binder_answer found;
    int status = mb_binder_ask(node, MB_BINDER_FIND, program, version, MBM_RINGS,
                               options->connect_ns, &found);

    if (status < 0)
        return status;
    if (status != MB_BINDER_FOUND)
        return -SSS_ENOENT;
    own->taskque_ltn = mb_taskque_write(node, found.task, mbm_key(MBM_KEY_WRITE), MB_WRITE_ALLOWED,
                                        &request, sizeof(request), NULL);
    if (own->taskque_ltn < 0)
        return own->taskque_ltn;
    status = await_bound(own, sss_now_ns() + options->connect_ns);
    if (status == 0)
        status = connect_bound(own, node);
    if (status < 0)
        mb_close(own->taskque_ltn);
    return status;
}

struct vrpc_line *vrpc_mbcf_connect(uint16_t node, rpcprog_t program, rpcvers_t version,
                                    const struct clntvrpc_options *options, int *error)
{
    struct written_line *own = new_line(options->deliberate_above);

    *error = own == NULL ? -SSS_ENOMEM : ask(own, node, program, version, options);
    if (*error == 0)
        return &own->line;
    if (own != NULL)
        free_line(own);
    return NULL;
}

const char *vrpc_mbcf_error_text(int error)
{
    static const char *const refusals[] = {
        "", "the server does not serve this program and version", "the server does not serve rings",
        "the server has rings of another size", "the server has no place for another client"};

    if (error <= -REFUSED_BASE)
        return -error - REFUSED_BASE <= MBM_NO_PLACE ? refusals[-error - REFUSED_BASE] : "refused";
    if (error <= -MB_STATUS_BASE)
        return mb_status_text(-error - MB_STATUS_BASE);
    return error == -SSS_ETIMEDOUT ? "no answer"
           : error == -SSS_ENOENT  ? "the binder knows no such server"
                                   : "the operation is refused on this node";
}

/* ---- the server ---- */

static bool accept_line(struct written_line *own, const struct mbm_origin *origin,
                        struct mbm_bound *bound)
{
    uint16_t node;

    own->ltn = origin->ltn;
    own->remote = origin->replies;
    own->line.node = origin->caller.node;
    own->line.task = origin->caller.task;
    mb_self(&node, &bound->task);
    bound->key = mbm_key(MBM_KEY_SERVER);
    bound->area = (uintptr_t)own->line.in;
    bound->ring = VRPC_RING;
    return bound->key != 0;
}

struct vrpc_line *vrpc_mbcf_accept(const struct mbm_origin *origin, const struct mbm_bind *bind,
                                   enum mbm_refusal why)
{
    struct mbm_bound bound = {.magic = MBM_BOUND};
    struct written_line *own = NULL;

    if (why == MBM_ACCEPTED &&
        (origin->reply_most != VRPC_BUFFER || bind->request_most != VRPC_MESSAGE_MOST))
        why = MBM_TOO_LARGE;
    if (why == MBM_ACCEPTED) {
        own = new_line(0);
        why = own != NULL && accept_line(own, origin, &bound) ? MBM_ACCEPTED : MBM_NO_PLACE;
    }
    bound.refusal = why;
    mb_write(origin->ltn, origin->replies, &bound, sizeof(bound), NULL);
    if (why == MBM_ACCEPTED)
        return &own->line;
    if (own != NULL)
        free_line(own);
    mb_close(origin->ltn);
    return NULL;
}
