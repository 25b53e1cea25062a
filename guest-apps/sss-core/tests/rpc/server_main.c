/* SPDX-License-Identifier: Apache-2.0 */
/* A server of nasty.x for caller_main.c, compiled with either library. Says its two ports on
 * stdout. */
#include <rpc/rpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nasty.h"
#ifndef RPC_OURS
#include <rpc/svc_dg.h>
#endif

enum {
    SYSTEM_ERROR = 20,
    TOO_WEAK = 21,
    WHO = 22,
    HOW_MANY = 23,
    SILENT = 24,
    UDP_SIZE = 60000,
    CACHE = 8
};

static int executed;

static void answer_int(SVCXPRT *transport, int value)
{
    svc_sendreply(transport, (xdrproc_t)xdr_int, (void *)&value);
}

static void serve_echo(SVCXPRT *transport)
{
    nasty value;

    memset(&value, 0, sizeof(value));
    if (!svc_getargs(transport, (xdrproc_t)xdr_nasty, (void *)&value))
        svcerr_decode(transport);
    else
        svc_sendreply(transport, (xdrproc_t)xdr_nasty, (void *)&value);
    svc_freeargs(transport, (xdrproc_t)xdr_nasty, (void *)&value);
}

static void serve_add(SVCXPRT *transport)
{
    nasty_add_7_argument pair = {0, 0};

    if (!svc_getargs(transport, (xdrproc_t)xdr_nasty_add_7_argument, (void *)&pair)) {
        svcerr_decode(transport);
        return;
    }
    executed++;
    answer_int(transport, (int)((unsigned)pair.arg1 + (unsigned)pair.arg2));
}

static void serve_who(struct svc_req *request, SVCXPRT *transport)
{
    const struct authunix_parms *parms = (const void *)request->rq_clntcred;

    if (request->rq_cred.oa_flavor == AUTH_UNIX)
        answer_int(transport, (int)(parms->aup_uid + parms->aup_gids[parms->aup_len - 1]));
    else
        answer_int(transport, -1);
}

static void serve(struct svc_req *request, SVCXPRT *transport)
{
    switch (request->rq_proc) {
    case NULLPROC:
        svc_sendreply(transport, (xdrproc_t)xdr_void, NULL);
        break;
    case NASTY_ECHO:
        serve_echo(transport);
        break;
    case NASTY_ADD:
        serve_add(transport);
        break;
    case SYSTEM_ERROR:
        svcerr_systemerr(transport);
        break;
    case TOO_WEAK:
        svcerr_weakauth(transport);
        break;
    case WHO:
        serve_who(request, transport);
        break;
    case HOW_MANY:
        answer_int(transport, executed);
        break;
    case SILENT:
        executed++;
        break;
    default:
        svcerr_noproc(transport);
        break;
    }
}

int main(void)
{
    SVCXPRT *udp = svcudp_bufcreate(RPC_ANYSOCK, UDP_SIZE, UDP_SIZE);
    SVCXPRT *tcp = svctcp_create(RPC_ANYSOCK, 4000, 4000);

    if (udp == NULL || tcp == NULL || !svc_register(udp, NASTY_PROGRAM, NASTY_VERSION, serve, 0) ||
        !svc_register(tcp, NASTY_PROGRAM, NASTY_VERSION, serve, 0) ||
        !svc_register(tcp, NASTY_PROGRAM, NASTY_VERSION + 2, serve, 0))
        return 1;
#ifdef RPC_OURS
    if (!svcudp_enablecache(udp, CACHE))
        return 1;
#else
    if (!svc_dg_enablecache(udp, CACHE))
        return 1;
#endif
    printf("%d %d\n", udp->xp_port, tcp->xp_port);
    fflush(stdout);
    svc_run();
    return 0;
}
