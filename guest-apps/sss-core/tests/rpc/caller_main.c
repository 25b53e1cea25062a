/* SPDX-License-Identifier: Apache-2.0 */
/* Calls server_main.c in all ways that are right and wrong; compiled with either library. argv: the
 * server, "ours" or "theirs". */
#include <arpa/inet.h>
#include <rpc/rpc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nasty.h"
#ifdef RPC_OURS
#include <rpc/async.h>
#endif

enum {
    SYSTEM_ERROR = 20,
    TOO_WEAK = 21,
    WHO = 22,
    HOW_MANY = 23,
    SILENT = 24,
    UDP_SIZE = 60000,
    DEPTH = 32
};

static struct sockaddr_in server;
static pid_t child;

#define CHECK(condition) check(condition, #condition, __LINE__)

static void check(int good, const char *what, int line)
{
    if (good)
        return;
    printf("caller_main.c:%d: %s\n", line, what);
    kill(child, SIGTERM);
    exit(1);
}

static void start_server(const char *path, int ports[2])
{
    int ends[2];
    FILE *answer;

    CHECK(pipe(ends) == 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    answer = fdopen(ends[0], "r");
    CHECK(fscanf(answer, "%d %d", &ports[0], &ports[1]) == 2);
    fclose(answer);
}

static enum clnt_stat call(CLIENT *client, rpcproc_t procedure, xdrproc_t encode, void *argument,
                           xdrproc_t decode, void *result)
{
    struct timeval total = {.tv_sec = 5};

    return clnt_call(client, procedure, encode, argument, decode, result, total);
}

static enum clnt_stat call_void(CLIENT *client, rpcproc_t procedure)
{
    return call(client, procedure, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL);
}

static int ask_int(CLIENT *client, rpcproc_t procedure)
{
    int value = -2;

    CHECK(call(client, procedure, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_int, &value) ==
          RPC_SUCCESS);
    return value;
}

/* ---- what is right ---- */

static void call_add(CLIENT *client)
{
    nasty_add_7_argument pair = {40, 2};
    int sum = 0;

    CHECK(call(client, NASTY_ADD, (xdrproc_t)xdr_nasty_add_7_argument, &pair, (xdrproc_t)xdr_int,
               &sum) == RPC_SUCCESS);
    CHECK(sum == 42);
}

static void call_echo(CLIENT *client)
{
    nasty_node second = {-2, NULL};
    nasty_node first = {0x123456789abcdefLL, &second};
    nasty_value value = {GREEN, {.name = (char *)"value"}};
    char *names[] = {(char *)"", (char *)"a", (char *)"four"};
    nasty sent;
    nasty back;
    int fits;

    memset(&sent, 0, sizeof(sent));
    memset(&back, 0, sizeof(back));
    sent.i = -1;
    sent.d = 2.5;
    sent.name = (char *)"thirty characters are allowed.";
    sent.data.data_val = (char *)"12345";
    sent.data.data_len = 5;
    sent.names.names_val = names;
    sent.names.names_len = 3;
    sent.list = &first;
    sent.optional = &value;
    CHECK(call(client, NASTY_ECHO, (xdrproc_t)xdr_nasty, &sent, (xdrproc_t)xdr_nasty, &back) ==
          RPC_SUCCESS);
    fits = back.i == -1 && back.d == 2.5 && strcmp(back.name, sent.name) == 0 &&
           back.data.data_len == 5 && memcmp(back.data.data_val, "12345", 5) == 0 &&
           back.names.names_len == 3 && strcmp(back.names.names_val[2], "four") == 0 &&
           back.list->next->key == -2 && back.list->next->next == NULL &&
           strcmp(back.optional->nasty_value_u.name, "value") == 0;
    CHECK(fits);
    clnt_freeres(client, (xdrproc_t)xdr_nasty, &back);
}

static void call_with_credential(CLIENT *client)
{
    gid_t groups[] = {10, 20, 300};
    AUTH *plain = client->cl_auth;

    CHECK(ask_int(client, WHO) == -1);
    client->cl_auth = authunix_create((char *)"machine", 5000, 1, 3, groups);
    CHECK(ask_int(client, WHO) == 5300);
    auth_destroy(client->cl_auth);
    client->cl_auth = plain;
}

/* ---- what the server refuses, each in its own way ---- */

/* libtirpc's UDP server decodes on behind the end of a short datagram, from what earlier ones have
 * left there. */
static void call_wrongly(CLIENT *client, int sees_end)
{
    struct rpc_err error;
    rpcvers_t version = NASTY_VERSION + 1;
    rpcprog_t program = NASTY_PROGRAM + 1;
    int garbage = 1;

    CHECK(call_void(client, 99) == RPC_PROCUNAVAIL);
    CHECK(call_void(client, SYSTEM_ERROR) == RPC_SYSTEMERROR);
    CHECK(call_void(client, TOO_WEAK) == RPC_AUTHERROR);
    clnt_geterr(client, &error);
    CHECK(error.re_why == AUTH_TOOWEAK);
    if (sees_end)
        CHECK(call(client, NASTY_ECHO, (xdrproc_t)xdr_int, &garbage, (xdrproc_t)xdr_void, NULL) ==
              RPC_CANTDECODEARGS);
    clnt_control(client, CLSET_VERS, (char *)&version);
    CHECK(call_void(client, 0) == RPC_PROGVERSMISMATCH);
    clnt_geterr(client, &error);
    CHECK(error.re_vers.low == NASTY_VERSION && error.re_vers.high == NASTY_VERSION + 2);
    version = NASTY_VERSION;
    clnt_control(client, CLSET_VERS, (char *)&version);
    clnt_control(client, CLSET_PROG, (char *)&program);
    CHECK(call_void(client, 0) == RPC_PROGUNAVAIL);
    program = NASTY_PROGRAM;
    clnt_control(client, CLSET_PROG, (char *)&program);
    CHECK(call(client, 0, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_int, &garbage) ==
          RPC_CANTDECODERES);
    CHECK(call_void(client, 0) == RPC_SUCCESS);
}

/* A call that is given up does not harm the next one. (On a stream of libtirpc it does: the next
 * one times out, too.) */
static void call_late(CLIENT *client)
{
    struct timeval soon = {.tv_usec = 50000};

    CHECK(clnt_call(client, SILENT, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, soon) ==
          RPC_TIMEDOUT);
    call_add(client);
}

static void call_everything(CLIENT *client, int sees_end)
{
    CHECK(client != NULL);
    CHECK(call_void(client, NULLPROC) == RPC_SUCCESS);
    call_add(client);
    call_echo(client);
    call_with_credential(client);
    call_wrongly(client, sees_end);
}

/* ---- raw bytes: what no library sends ---- */

static int raw_socket(int type, int port)
{
    int handle = socket(AF_INET, type, 0);
    struct timeval limit = {.tv_sec = 5};

    server.sin_port = htons((uint16_t)port);
    setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    CHECK(connect(handle, (struct sockaddr *)&server, sizeof(server)) == 0);
    return handle;
}

static size_t raw_call(uint32_t *words, uint32_t rpc_version, uint32_t procedure)
{
    uint32_t call_words[12] = {
        0x1234, 0, rpc_version, NASTY_PROGRAM, NASTY_VERSION, procedure, 0, 0, 0, 0, 1, 2};

    for (size_t i = 0; i < 12; i++)
        words[i] = htonl(call_words[i]);
    return sizeof(call_words);
}

/* At most once: the second of two equal requests gets the same reply, and is not executed. */
static void repeat_request(CLIENT *client, int port)
{
    int handle = raw_socket(SOCK_DGRAM, port);
    int before = ask_int(client, HOW_MANY);
    uint32_t words[12];
    size_t length = raw_call(words, 2, NASTY_ADD);

    for (int i = 0; i < 2; i++) {
        uint32_t reply[16] = {0};

        CHECK(send(handle, words, length, 0) == (ssize_t)length);
        CHECK(recv(handle, reply, sizeof(reply), 0) == 28 && ntohl(reply[6]) == 3);
    }
    CHECK(ask_int(client, HOW_MANY) == before + 1);
    close(handle);
}

static void ask_in_another_version(int port)
{
    int handle = raw_socket(SOCK_DGRAM, port);
    uint32_t words[12];
    uint32_t reply[16];
    size_t length = raw_call(words, 3, NASTY_ADD);

    CHECK(send(handle, words, length, 0) == (ssize_t)length);
    CHECK(recv(handle, reply, sizeof(reply), 0) == 24 && ntohl(reply[2]) == MSG_DENIED &&
          ntohl(reply[3]) == RPC_MISMATCH && ntohl(reply[4]) == 2 && ntohl(reply[5]) == 2);
    close(handle);
}

/* A record of many fragments, and two records in one segment. */
static void send_odd_records(int port)
{
    int handle = raw_socket(SOCK_STREAM, port);
    uint32_t words[12];
    size_t length = raw_call(words, 2, NASTY_ADD);
    char stream[512];
    size_t end = 0;
    uint32_t reply[8] = {0};

    for (size_t i = 0; i < length; i += 4) {
        uint32_t mark = htonl(4 | (i + 4 == length ? 0x80000000u : 0));

        memcpy(stream + end, &mark, 4);
        memcpy(stream + end + 4, (char *)words + i, 4);
        end += 8;
    }
    memcpy(stream + end, stream, end);
    CHECK(send(handle, stream, 2 * end, 0) == (ssize_t)(2 * end));
    for (int i = 0; i < 2; i++)
        CHECK(recv(handle, reply, sizeof(reply), MSG_WAITALL) == 32 &&
              ntohl(reply[0]) == (0x80000000u | 28) && ntohl(reply[7]) == 3);
    close(handle);
}

#ifdef RPC_OURS
static void call_many_at_once(CLIENT *client)
{
    struct rpc_call *calls[DEPTH];
    nasty_add_7_argument pairs[DEPTH];
    int sums[DEPTH] = {0};

    for (int i = 0; i < DEPTH; i++) {
        pairs[i] = (nasty_add_7_argument){i, 1000};
        calls[i] = rpc_async(client, NASTY_ADD, (xdrproc_t)xdr_nasty_add_7_argument, &pairs[i],
                             (xdrproc_t)xdr_int, &sums[i]);
        CHECK(calls[i] != NULL);
    }
    for (int i = DEPTH - 1; i >= 0; i--)
        CHECK(rpc_wait(calls[i], 5000000000u) == RPC_SUCCESS && sums[i] == i + 1000);
}
#endif

int main(int argc, char **argv)
{
    struct timeval retry = {.tv_sec = 1};
    int ports[2];
    int udp_socket = RPC_ANYSOCK;
    int tcp_socket = RPC_ANYSOCK;
    CLIENT *udp;
    CLIENT *tcp;
    int ours = argc == 3 && strcmp(argv[2], "ours") == 0;

    start_server(argv[1], ports);
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    server.sin_port = htons((uint16_t)ports[0]);
    udp = clntudp_bufcreate(&server, NASTY_PROGRAM, NASTY_VERSION, retry, &udp_socket, UDP_SIZE,
                            UDP_SIZE);
    server.sin_port = htons((uint16_t)ports[1]);
    tcp = clnttcp_create(&server, NASTY_PROGRAM, NASTY_VERSION, &tcp_socket, 0, 0);
    call_everything(udp, ours);
    call_everything(tcp, 1);
    call_late(udp);
#ifdef RPC_OURS
    call_late(tcp);
#endif
    repeat_request(tcp, ports[0]);
    if (ours)
        ask_in_another_version(ports[0]); /* libtirpc says nothing */
    send_odd_records(ports[1]);
#ifdef RPC_OURS
    call_many_at_once(udp);
    call_many_at_once(tcp);
#endif
    clnt_destroy(udp);
    clnt_destroy(tcp);
    kill(child, SIGTERM);
    printf("rpc: calls to %s: good\n", argv[2]);
    return 0;
}
