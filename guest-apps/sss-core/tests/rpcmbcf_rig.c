/* SPDX-License-Identifier: Apache-2.0 */
#include "rpcmbcf_rig.h"

#include <rpc/mbcf_binder.h>

#include "node.h"

enum { CLIENT_NODE = 1, SERVER_NODE = 2, NODES = 2 };

uint64_t rig_precious;

static struct node *nodes[NODES];
static struct svcmb_options server_options;
static volatile uint32_t server_ready;

static int become_binder(void)
{
    return node_task(nodes[SERVER_NODE - 1], MB_BINDER_TASK);
}

static void *run_server(void *unused)
{
    const char *error = NULL;
    SVCXPRT *transport;

    (void)unused;
    rig_must(node_task(nodes[SERVER_NODE - 1], 0) > 0, "the server's task");
    transport = svcmb_create(&server_options, &error);
    rig_must(transport != NULL, error);
    rig_must(svcmb_register(transport, ECHO_PROGRAM, ECHO_VERSION, rig_dispatch), "registering");
    server_ready = 1;
    svc_run();
    return NULL;
}

void rig_start(const struct svcmb_options *options)
{
    server_options = *options;
    rig_must(node_open_group(nodes, NODES) == 0, "the nodes");
    rig_must(node_task(nodes[CLIENT_NODE - 1], 0) > 0, "the client's task");
    rig_binder(become_binder);
    rig_thread(run_server, &server_ready);
}

CLIENT *rig_try_client(const struct clntmb_options *options)
{
    return clntmb_create(SERVER_NODE, ECHO_PROGRAM, ECHO_VERSION, options);
}

CLIENT *rig_client(const struct clntmb_options *options)
{
    CLIENT *client = rig_try_client(options);

    rig_must(client != NULL, clntmb_create_error());
    return client;
}
