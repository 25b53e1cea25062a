// SPDX-License-Identifier: Apache-2.0
// server PORT UDP_MESSAGE RECORD_BUFFER [register]: echo, sink and source over UDP and TCP, on
// libtirpc.
#include <netinet/in.h>
#include <rpc/rpc.h>
#include <rpc/svc_soc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

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

static void answer(SVCXPRT *transport, xdrproc_t xdr, void *result)
{
    if (!svc_sendreply(transport, xdr, result))
        svcerr_systemerr(transport);
}

static void dispatch(struct svc_req *request, SVCXPRT *transport)
{
    struct data data = {0, NULL};
    struct source source;
    switch (request->rq_proc) {
    case 0:
        answer(transport, (xdrproc_t)xdr_void, NULL);
        return;
    case 1:
    case 2:
        if (!svc_getargs(transport, (xdrproc_t)xdr_data, (caddr_t)&data)) {
            svcerr_decode(transport);
            return;
        }
        answer(transport, request->rq_proc == 1 ? (xdrproc_t)xdr_data : (xdrproc_t)xdr_void, &data);
        break;
    case 3:
        svc_getargs(transport, (xdrproc_t)xdr_source, (caddr_t)&source);
        data.length = source.size;
        data.bytes = calloc(1, data.length + 1);
        answer(transport, (xdrproc_t)xdr_data, &data);
        break;
    default:
        svcerr_noproc(transport);
    }
    free(data.bytes);
}

static int bound(int type, int port)
{
    int one = 1, fd = socket(AF_INET, type, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&here, sizeof here)) {
        perror("bind");
        exit(1);
    }
    return fd;
}

int main(int argc, char **argv)
{
    int port = atoi(argv[1]), message = atoi(argv[2]), buffer = atoi(argv[3]);
    SVCXPRT *udp = svcudp_bufcreate(bound(SOCK_DGRAM, port), message, message);
    int fd = bound(SOCK_STREAM, port);
    listen(fd, 10);
    SVCXPRT *tcp = svctcp_create(fd, buffer, buffer);
    if (!svc_register(udp, PROGRAM, VERSION, dispatch, argc > 4 ? IPPROTO_UDP : 0) ||
        !svc_register(tcp, PROGRAM, VERSION, dispatch, argc > 4 ? IPPROTO_TCP : 0))
        return 1;
    svc_run();
    return 1;
}
