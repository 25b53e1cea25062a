/* SPDX-License-Identifier: Apache-2.0 */
#include "rpcmbcf_rig.h"

#include <pthread.h>
#include <rpc/mbcf_binder.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"
#include "pattern.h"

enum { CLIENT_NODE = 1, SERVER_NODE = 2, NODES = 2 };

struct rig rig;

static struct node *nodes[NODES];
static struct svcmb_options server_options;
static volatile uint32_t binder_ready, server_ready;

/* A failure of the rig itself leaves nothing to test. */
static void must(bool condition, const char *what)
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

static void dispatch(struct svc_req *request, SVCXPRT *transport)
{
    echo_data data = {0};

    rig.executed++;
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

static _Noreturn void *run_binder(void *unused)
{
    struct mb_fifo *queue;

    (void)unused;
    must(node_task(nodes[SERVER_NODE - 1], MB_BINDER_TASK) == MB_BINDER_TASK, "the binder's task");
    queue = mb_binder_declare();
    must(queue != NULL, "the binder's TASKQUE");
    binder_ready = 1;
    for (;;) {
        uint32_t events = queue->events;

        mb_binder_serve();
        sss_wait_word(&queue->events, events, SSS_FOREVER);
    }
}

static void *run_server(void *unused)
{
    const char *error = NULL;
    SVCXPRT *transport;

    (void)unused;
    must(node_task(nodes[SERVER_NODE - 1], 0) > 0, "the server's task");
    transport = svcmb_create(&server_options, &error);
    must(transport != NULL, error);
    must(svcmb_register(transport, ECHO_PROGRAM, ECHO_VERSION, dispatch), "registering");
    server_ready = 1;
    svc_run();
    return NULL;
}

static void start(void *(*run)(void *), const volatile uint32_t *ready)
{
    pthread_t thread;

    must(pthread_create(&thread, NULL, run, NULL) == 0, "a thread");
    while (*ready == 0)
        sss_yield();
}

void rig_start(const struct svcmb_options *options)
{
    server_options = *options;
    must(node_open_group(nodes, NODES) == 0, "the nodes");
    must(node_task(nodes[CLIENT_NODE - 1], 0) > 0, "the client's task");
    start(run_binder, &binder_ready);
    start(run_server, &server_ready);
}

/* ---- the client's ---- */

CLIENT *rig_try_client(const struct clntmb_options *options)
{
    return clntmb_create(SERVER_NODE, ECHO_PROGRAM, ECHO_VERSION, options);
}

CLIENT *rig_client(const struct clntmb_options *options)
{
    CLIENT *client = rig_try_client(options);

    must(client != NULL, clntmb_create_error());
    return client;
}

void rig_end_client(CLIENT *client)
{
    auth_destroy(client->cl_auth);
    clnt_destroy(client);
}

enum clnt_stat rig_echo(CLIENT *client, uint32_t sequence, u_int size)
{
    static const struct timeval patience = {.tv_sec = 20};
    static char sent[RIG_PAYLOAD_MOST], received[RIG_PAYLOAD_MOST];
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
