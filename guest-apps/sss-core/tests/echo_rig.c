/* SPDX-License-Identifier: Apache-2.0 */
#include "echo_rig.h"

#include <pthread.h>
#include <rpc/mbcf_binder.h>
#include <sss/system.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

struct rig rig;

void rig_must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "the rig fails: %s\n", what);
    exit(2);
}

/* ---- the server's side ---- */

static void take_time(void)
{
    static const volatile uint32_t nothing;

    if (rig.slow_ns != 0)
        sss_wait_word(&nothing, 0, rig.slow_ns);
}

void rig_dispatch(struct svc_req *request, SVCXPRT *transport)
{
    echo_data data = {0};

    rig.executed++;
    if (rig.before != NULL)
        rig.before();
    take_time();
    if (request->rq_proc == ECHO_NULL) {
        svc_sendreply(transport, (xdrproc_t)xdr_void, NULL);
        return;
    }
    if (request->rq_proc > ECHO_SINK_ONE_WAY || request->rq_proc == ECHO_STRING) {
        svcerr_noproc(transport);
        return;
    }
    if (!svc_getargs(transport, (xdrproc_t)xdr_echo_data, &data)) {
        svcerr_decode(transport);
        return;
    }
    if (request->rq_proc == ECHO_OPAQUE)
        svc_sendreply(transport, (xdrproc_t)xdr_echo_data, &data);
    else
        rig.one_way++;
    svc_freeargs(transport, (xdrproc_t)xdr_echo_data, &data);
}

void rig_thread(void *(*run)(void *), const volatile uint32_t *ready)
{
    pthread_t thread;

    rig_must(pthread_create(&thread, NULL, run, NULL) == 0, "a thread");
    while (*ready == 0)
        sss_yield();
}

static int (*become_binder)(void);
static volatile uint32_t binder_ready;

static _Noreturn void *run_binder(void *unused)
{
    struct mb_fifo *queue;

    (void)unused;
    rig_must(become_binder() == MB_BINDER_TASK, "the binder's task");
    queue = mb_binder_declare();
    rig_must(queue != NULL, "the binder's TASKQUE");
    binder_ready = 1;
    for (;;) {
        uint32_t events = queue->events;

        mb_binder_serve();
        sss_wait_word(&queue->events, events, SSS_FOREVER);
    }
}

void rig_binder(int (*become)(void))
{
    become_binder = become;
    rig_thread(run_binder, &binder_ready);
}

/* ---- the client's ---- */

void rig_end_client(CLIENT *client)
{
    auth_destroy(client->cl_auth);
    clnt_destroy(client);
}

enum clnt_stat rig_echo(CLIENT *client, uint32_t sequence, u_int size)
{
    static const struct timeval patience = {.tv_sec = 20};
    static __thread char sent[RIG_PAYLOAD_MOST], received[RIG_PAYLOAD_MOST];
    echo_data data = {size, sent}, back = {0, received};
    enum clnt_stat status;

    pattern_fill(PATTERN_OPAQUE, sequence, 0, sent, size);
    memset(received, 0xa5, size);
    status = clnt_call(client, ECHO_OPAQUE, (xdrproc_t)xdr_echo_data, &data,
                       (xdrproc_t)xdr_echo_data, &back, patience);
    if (status == RPC_SUCCESS && !(back.echo_data_len == size &&
                                   pattern_matches(PATTERN_OPAQUE, sequence, 0, received, size)))
        return RPC_CANTDECODERES;
    return status;
}
