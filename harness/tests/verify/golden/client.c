// SPDX-License-Identifier: Apache-2.0
// client HOST PORT udp|tcp PROCEDURE UDP_MESSAGE|RECORD_BUFFER none|MACHINE SIZE...: a batch of one
// call for each size, written as lines of samples.jsonl. PORT 0 asks the port mapper.
#include <arpa/inet.h>
#include <rpc/rpc.h>

#include <rpc/clnt_soc.h>
#include <rpc/pmap_clnt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PROGRAM = 0x20001234, VERSION = 1, MOST = 1 << 20 };

struct data {
    u_int length;
    char *bytes;
};
struct source {
    u_int sequence, size;
};

static bool_t xdr_data(XDR *xdr, struct data *d)
{
    return xdr_bytes(xdr, &d->bytes, &d->length, MOST);
}

static bool_t xdr_source(XDR *xdr, struct source *s)
{
    return xdr_u_int(xdr, &s->sequence) && xdr_u_int(xdr, &s->size);
}

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static enum clnt_stat call(CLIENT *handle, int procedure, u_int size)
{
    struct timeval total = {5, 0};
    struct data in = {size, calloc(1, size + 1)}, out = {0, NULL};
    xdrproc_t none = (xdrproc_t)xdr_void, data = (xdrproc_t)xdr_data;
    struct source source = {0, size};
    xdrproc_t arguments = procedure == 0 ? none : procedure == 3 ? (xdrproc_t)xdr_source : data;
    xdrproc_t results = procedure == 1 || procedure == 3 ? data : none;
    enum clnt_stat status = clnt_call(handle, procedure, arguments,
                                      procedure == 3 ? (caddr_t)&source : (caddr_t)&in, results,
                                      (caddr_t)&out, total);
    free(in.bytes);
    free(out.bytes);
    return status;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"null", "echo", "sink", "source"};
    int udp = argv[3][0] == 'u', procedure = atoi(argv[4]), bytes = atoi(argv[5]), fd = RPC_ANYSOCK;
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))}, here;
    socklen_t length = sizeof here;
    struct timeval wait = {1, 0};
    inet_aton(argv[1], &there.sin_addr);
    if (there.sin_port == 0) {
        long long start = now();
        there.sin_port =
            htons(pmap_getport(&there, PROGRAM, VERSION, udp ? IPPROTO_UDP : IPPROTO_TCP));
        printf("{\"type\":\"binding\",\"step\":0,\"transport\":\"%s\",\"start\":%lld,\"end\":%lld,"
               "\"ok\":true,"
               "\"attempts\":1,\"port\":%d}\n",
               argv[3], start, now(), ntohs(there.sin_port));
    }
    CLIENT *handle = udp ? clntudp_bufcreate(&there, PROGRAM, VERSION, wait, &fd, bytes, bytes)
                         : clnttcp_create(&there, PROGRAM, VERSION, &fd, bytes, bytes);
    if (!handle) {
        clnt_pcreateerror("create");
        return 1;
    }
    if (strcmp(argv[6], "none"))
        handle->cl_auth = authunix_create(argv[6], 1, 2, 0, NULL);
    getsockname(fd, (struct sockaddr *)&here, &length);
    for (int i = 7; i < argc; i++) {
        unsigned xid;
        long long start = now();
        int ok = call(handle, procedure, atoi(argv[i])) == RPC_SUCCESS;
        long long end = now();
        clnt_control(handle, CLGET_XID, (char *)&xid);
        printf("{\"type\":\"batch\",\"step\":%s,\"app\":\"echo-client\",\"series\":0,\"transport\":"
               "\"%s\","
               "\"procedure\":\"%s\",\"size\":%s,\"thread\":0,\"server\":\"%s\",\"server_port\":%d,"
               "\"client_port\":%d,\"warmup\":0,\"columns\":[\"call\",\"start\",\"end\",\"ok\","
               "\"retransmits\","
               "\"xid\",\"error\"]}\n[0,%lld,%lld,%d,0,%u,%s]\n",
               getenv("STEP") ? getenv("STEP") : "0", argv[3], names[procedure], argv[i], argv[1],
               ntohs(there.sin_port), ntohs(here.sin_port), start, end, ok, xid,
               ok ? "null" : "\"failed\"");
    }
    clnt_destroy(handle);
    return 0;
}
