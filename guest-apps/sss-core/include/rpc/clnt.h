/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The client's side. */
#include <rpc/auth.h>

enum clnt_stat {
    RPC_SUCCESS = 0,
    RPC_CANTENCODEARGS = 1,
    RPC_CANTDECODERES = 2,
    RPC_CANTSEND = 3,
    RPC_CANTRECV = 4,
    RPC_TIMEDOUT = 5,
    RPC_VERSMISMATCH = 6,
    RPC_AUTHERROR = 7,
    RPC_PROGUNAVAIL = 8,
    RPC_PROGVERSMISMATCH = 9,
    RPC_PROCUNAVAIL = 10,
    RPC_CANTDECODEARGS = 11,
    RPC_SYSTEMERROR = 12,
    RPC_UNKNOWNHOST = 13,
    RPC_PMAPFAILURE = 14,
    RPC_PROGNOTREGISTERED = 15,
    RPC_FAILED = 16,
    RPC_UNKNOWNPROTO = 17,
    RPC_INTR = 18,
    RPC_UNKNOWNADDR = 19,
    RPC_TLIERROR = 20,
    RPC_NOBROADCAST = 21,
    RPC_N2AXLATEFAILURE = 22,
    RPC_UDERROR = 23,
    RPC_INPROGRESS = 24,
    RPC_STALERACHANDLE = 25,
    RPC_CANTCONNECT = 26,
    RPC_XPRTFAILED = 27,
    RPC_CANTCREATESTREAM = 28,
};

struct rpc_err {
    enum clnt_stat re_status;
    union {
        int RE_errno; /* enum sss_error; over MBCF: enum mb_status + MB_STATUS_BASE */
        enum auth_stat RE_why;
        struct {
            rpcvers_t low;
            rpcvers_t high;
        } RE_vers;
        struct {
            int32_t s1;
            int32_t s2;
        } RE_lb;
    } ru;
#define re_errno ru.RE_errno
#define re_why   ru.RE_why
#define re_vers  ru.RE_vers
#define re_lb    ru.RE_lb
};

struct clnt_async_ops; /* async.h */

typedef struct CLIENT CLIENT;
struct clnt_ops {
    enum clnt_stat (*cl_call)(CLIENT *, rpcproc_t, xdrproc_t, void *, xdrproc_t, void *,
                              struct timeval);
    void (*cl_abort)(CLIENT *);
    void (*cl_geterr)(CLIENT *, struct rpc_err *);
    bool_t (*cl_freeres)(CLIENT *, xdrproc_t, void *);
    void (*cl_destroy)(CLIENT *);
    bool_t (*cl_control)(CLIENT *, u_int, void *);
};
struct CLIENT {
    AUTH *cl_auth;
    const struct clnt_ops *cl_ops;
    void *cl_private;
    const struct clnt_async_ops *cl_async; /* NULL: only synchronous calls */
    const char *cl_netid;                  /* "udp", "tcp", "mbcf3", ... */
};

#define CLNT_CALL(rh, proc, xargs, argsp, xres, resp, secs)                                        \
    ((*(rh)->cl_ops->cl_call)(rh, proc, xargs, (void *)(argsp), xres, (void *)(resp), secs))
#define clnt_call(rh, proc, xargs, argsp, xres, resp, secs)                                        \
    CLNT_CALL(rh, proc, xargs, argsp, xres, resp, secs)
#define CLNT_ABORT(rh)               ((*(rh)->cl_ops->cl_abort)(rh))
#define clnt_abort(rh)               CLNT_ABORT(rh)
#define CLNT_GETERR(rh, errp)        ((*(rh)->cl_ops->cl_geterr)(rh, errp))
#define clnt_geterr(rh, errp)        CLNT_GETERR(rh, errp)
#define CLNT_FREERES(rh, xres, resp) ((*(rh)->cl_ops->cl_freeres)(rh, xres, (void *)(resp)))
#define clnt_freeres(rh, xres, resp) CLNT_FREERES(rh, xres, resp)
#define CLNT_CONTROL(cl, rq, in)     ((*(cl)->cl_ops->cl_control)(cl, rq, in))
#define clnt_control(cl, rq, in)     CLNT_CONTROL(cl, rq, in)
#define CLNT_DESTROY(rh)             ((*(rh)->cl_ops->cl_destroy)(rh))
#define clnt_destroy(rh)             CLNT_DESTROY(rh)

/* clnt_control; the numbers are those of the library on Linux. */
#define CLSET_TIMEOUT                                                                              \
    1 /* struct timeval: total; from then on the one given to clnt_call is not looked at */
#define CLGET_TIMEOUT       2
#define CLGET_SERVER_ADDR   3 /* struct sockaddr_in */
#define CLSET_RETRY_TIMEOUT 4
#define CLGET_RETRY_TIMEOUT 5
#define CLGET_FD            6
#define CLSET_FD_CLOSE      8
#define CLSET_FD_NCLOSE     9
#define CLGET_XID           10
#define CLSET_XID           11
#define CLGET_VERS          12
#define CLSET_VERS          13
#define CLGET_PROG          14
#define CLSET_PROG          15
/* Ours. */
#define CLGET_RETRANSMITS                                                                          \
    1001 /* unsigned: requests (UDP) or segments (TCP) sent again on this handle so far */
#define CLGET_LOCAL_PORT 1002 /* unsigned */

#define NULLPROC    ((rpcproc_t)0)
#define RPC_ANYSOCK (-1)
#define UDPMSGSIZE  8800 /* bytes of a message of clntudp_create and svcudp_create */

/* *sockp: RPC_ANYSOCK, and it gets the socket; or one of rpc_socket (socket.h), which the caller
 * closes. */
CLIENT *clntudp_create(struct sockaddr_in *server, rpcprog_t, rpcvers_t, struct timeval retry,
                       int *sockp);
CLIENT *clntudp_bufcreate(struct sockaddr_in *server, rpcprog_t, rpcvers_t, struct timeval retry,
                          int *sockp, u_int sendsize, u_int recvsize);
CLIENT *clnttcp_create(struct sockaddr_in *server, rpcprog_t, rpcvers_t, int *sockp, u_int sendsize,
                       u_int recvsize);
/* `host`: dotted decimal, there are no names here; `protocol`: "udp", "tcp" or "vrpc" (vrpc.h). */
CLIENT *clnt_create(const char *host, rpcprog_t, rpcvers_t, const char *protocol);

struct rpc_createerr {
    enum clnt_stat cf_stat;
    struct rpc_err cf_error;
};
extern struct rpc_createerr rpc_createerr;

void clnt_perror(CLIENT *, const char *message);
/* in memory that the next such call uses again */
char *clnt_sperror(CLIENT *, const char *message);
void clnt_perrno(enum clnt_stat);
char *clnt_sperrno(enum clnt_stat);
void clnt_pcreateerror(const char *message);
char *clnt_spcreateerror(const char *message);
