/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stubs of both sides as rpcgen writes them, with our runtime: a server in a process of its
 * own, called over UDP and TCP by the client's stubs; -C -M (results in memory of the caller) and
 * -C -N (several arguments).
 */
#include <rpc/rpc.h>
#include <rpc/socket.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plain.h"
#include "styled.h"

enum { TEXT = 64 };

void plain_program_1(struct svc_req *request, SVCXPRT *transport);
void styled_program_1(struct svc_req *request, SVCXPRT *transport);

/* ---- the procedures ---- */

bool_t plain_null_1_svc(void *argument, void *result, struct svc_req *request)
{
    (void)argument;
    (void)result;
    (void)request;
    return TRUE;
}

bool_t plain_add_1_svc(plain_pair *pair, int *result, struct svc_req *request)
{
    (void)request;
    *result = pair->first + pair->second;
    return TRUE;
}

bool_t plain_twice_1_svc(plain_text *text, plain_text *result, struct svc_req *request)
{
    size_t length = strlen(*text);

    (void)request;
    *result = malloc(2 * length + 1); /* until plain_program_1_freeresult */
    if (*result == NULL)
        return FALSE;
    sprintf(*result, "%s%s", *text, *text);
    return TRUE;
}

int plain_program_1_freeresult(SVCXPRT *transport, xdrproc_t filter, caddr_t result)
{
    (void)transport;
    xdr_free(filter, result);
    return 1;
}

void *styled_null_1_svc(struct svc_req *request)
{
    static char nothing;

    (void)request;
    return &nothing;
}

int *styled_add_1_svc(int first, int second, struct svc_req *request)
{
    static int sum;

    (void)request;
    sum = first + second;
    return &sum;
}

styled_text *styled_join_1_svc(styled_text first, styled_text second, struct svc_req *request)
{
    static char joined[TEXT];
    static styled_text result = joined;

    (void)request;
    snprintf(joined, sizeof(joined), "%s%s", first, second);
    return &result;
}

/* ---- the server ---- */

static void serve(int ready)
{
    SVCXPRT *transports[2] = {svcudp_create(RPC_ANYSOCK), svctcp_create(RPC_ANYSOCK, 0, 0)};
    unsigned short ports[2];

    for (unsigned i = 0; i < 2; i++) {
        if (transports[i] == NULL ||
            !svc_register(transports[i], PLAIN_PROGRAM, PLAIN_VERSION, plain_program_1, 0) ||
            !svc_register(transports[i], STYLED_PROGRAM, STYLED_VERSION, styled_program_1, 0))
            _exit(1);
        ports[i] = transports[i]->xp_port;
    }
    if (write(ready, ports, sizeof(ports)) != (ssize_t)sizeof(ports))
        _exit(1);
    svc_run();
    _exit(1);
}

/* ---- the client ---- */

static CLIENT *open_client(bool tcp, unsigned short port, rpcprog_t program)
{
    struct sockaddr_in server = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct timeval retry = {.tv_sec = 1};
    int handle = RPC_ANYSOCK;

    return tcp ? clnttcp_create(&server, program, 1, &handle, 0, 0)
               : clntudp_create(&server, program, 1, retry, &handle);
}

/* -> what went wrong, NULL: nothing. */
static const char *call_plain(CLIENT *client)
{
    plain_pair pair = {40, 2};
    plain_text text = "ab", twice = NULL;
    int sum = 0;

    if (plain_null_1(NULL, NULL, client) != RPC_SUCCESS)
        return "plain_null";
    if (plain_add_1(&pair, &sum, client) != RPC_SUCCESS || sum != 42)
        return "plain_add";
    if (plain_twice_1(&text, &twice, client) != RPC_SUCCESS || strcmp(twice, "abab") != 0)
        return "plain_twice";
    clnt_freeres(client, (xdrproc_t)xdr_plain_text, (caddr_t)&twice);
    return NULL;
}

static const char *call_styled(CLIENT *client)
{
    char first[] = "ab", second[] = "cd";
    int *sum = styled_add_1(40, 2, client);
    styled_text *joined;

    if (styled_null_1(client) == NULL)
        return "styled_null";
    if (sum == NULL || *sum != 42)
        return "styled_add";
    joined = styled_join_1(first, second, client);
    if (joined == NULL || strcmp(*joined, "abcd") != 0)
        return "styled_join";
    clnt_freeres(client, (xdrproc_t)xdr_styled_text, (caddr_t)joined);
    return NULL;
}

static const char *call_both(bool tcp, unsigned short port)
{
    CLIENT *plain = open_client(tcp, port, PLAIN_PROGRAM),
           *styled = open_client(tcp, port, STYLED_PROGRAM);
    const char *wrong = "connecting";

    if (plain != NULL && styled != NULL) {
        wrong = call_plain(plain);
        if (wrong == NULL)
            wrong = call_styled(styled);
    }
    if (plain != NULL)
        clnt_destroy(plain);
    if (styled != NULL)
        clnt_destroy(styled);
    return wrong;
}

int main(void)
{
    const char *wrong = "starting the server";
    unsigned short ports[2];
    int ends[2];
    pid_t child;

    if (pipe(ends) != 0 || (child = fork()) < 0)
        return 1;
    if (child == 0)
        serve(ends[1]);
    close(ends[1]);
    if (read(ends[0], ports, sizeof(ports)) == (ssize_t)sizeof(ports)) {
        wrong = call_both(false, ports[0]);
        if (wrong == NULL)
            wrong = call_both(true, ports[1]);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (wrong != NULL)
        printf("stubs_main.c: %s\n", wrong);
    return wrong == NULL ? 0 : 1;
}
