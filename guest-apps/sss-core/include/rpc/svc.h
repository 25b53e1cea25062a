/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The server's side. One thread serves all transports of a task: svc_run. */
#include <rpc/rpc_msg.h>

enum xprt_stat { XPRT_DIED, XPRT_MOREREQS, XPRT_IDLE };

struct svc_req;
typedef struct SVCXPRT SVCXPRT;
struct xp_ops {
    bool_t (*xp_recv)(SVCXPRT *, struct rpc_msg *);
    enum xprt_stat (*xp_stat)(SVCXPRT *);
    bool_t (*xp_getargs)(SVCXPRT *, xdrproc_t, void *);
    bool_t (*xp_reply)(SVCXPRT *, struct rpc_msg *);
    bool_t (*xp_freeargs)(SVCXPRT *, xdrproc_t, void *);
    void (*xp_destroy)(SVCXPRT *);
};
struct SVCXPRT {
    int xp_fd; /* socket; -1 where there is none */
    u_short xp_port;
    const struct xp_ops *xp_ops;
    int xp_addrlen;
    struct sockaddr_in xp_raddr; /* the caller; over MBCF: node in sin_addr, task in sin_port */
    struct opaque_auth xp_verf;  /* to be sent with the reply */
    void *xp_p1;
    void *xp_p2;
    const char *xp_netid;  /* "udp", "tcp", "mbcf3", ... */
    uint16_t xp_peer_task; /* of this node, where the caller is here; else 0 */
    /* Where clients can only come to a program that is named: FALSE where this one cannot be. */
    bool_t (*xp_offer)(SVCXPRT *, rpcprog_t, rpcvers_t);
};

struct svc_req {
    rpcprog_t rq_prog;
    rpcvers_t rq_vers;
    rpcproc_t rq_proc;
    struct opaque_auth rq_cred;
    void *rq_clntcred; /* AUTH_SYS: struct authunix_parms */
    SVCXPRT *rq_xprt;
    uint32_t rq_xid;
};

#define svc_getcaller(x)    (&(x)->xp_raddr)
#define SVC_RECV(xprt, msg) (*(xprt)->xp_ops->xp_recv)((xprt), (msg))
#define svc_recv(xprt, msg) SVC_RECV(xprt, msg)
#define SVC_STAT(xprt)      (*(xprt)->xp_ops->xp_stat)(xprt)
#define svc_stat(xprt)      SVC_STAT(xprt)
#define SVC_GETARGS(xprt, xargs, argsp)                                                            \
    (*(xprt)->xp_ops->xp_getargs)((xprt), (xargs), (void *)(argsp))
#define svc_getargs(xprt, xargs, argsp) SVC_GETARGS(xprt, xargs, argsp)
#define SVC_REPLY(xprt, msg)            (*(xprt)->xp_ops->xp_reply)((xprt), (msg))
#define svc_reply(xprt, msg)            SVC_REPLY(xprt, msg)
#define SVC_FREEARGS(xprt, xargs, argsp)                                                           \
    (*(xprt)->xp_ops->xp_freeargs)((xprt), (xargs), (void *)(argsp))
#define svc_freeargs(xprt, xargs, argsp) SVC_FREEARGS(xprt, xargs, argsp)
#define SVC_DESTROY(xprt)                (*(xprt)->xp_ops->xp_destroy)(xprt)
#define svc_destroy(xprt)                SVC_DESTROY(xprt)

typedef void (*svc_dispatch)(struct svc_req *, SVCXPRT *);

/* `protocol`: IPPROTO_UDP or IPPROTO_TCP tells the portmapper; 0 does not. */
bool_t svc_register(SVCXPRT *, rpcprog_t, rpcvers_t, svc_dispatch, rpcprot_t protocol);
void svc_unregister(rpcprog_t, rpcvers_t);

bool_t svc_sendreply(SVCXPRT *, xdrproc_t, void *);
void svcerr_decode(SVCXPRT *);
void svcerr_weakauth(SVCXPRT *);
void svcerr_noproc(SVCXPRT *);
void svcerr_progvers(SVCXPRT *, rpcvers_t low, rpcvers_t high);
void svcerr_auth(SVCXPRT *, enum auth_stat);
void svcerr_noprog(SVCXPRT *);
void svcerr_systemerr(SVCXPRT *);
void svcerr_rpcmismatch(SVCXPRT *); /* ours: a caller of another RPC version */

void svc_run(void); /* until svc_exit */
void svc_exit(void);

/*
 * What svc_run waits for: `ready(context)` is called when *word has changed (and once at the
 * start), in the order of registration, and takes in everything that is there. FALSE where there
 * are already SSS_WAITS words.
 */
bool_t svc_add_word(const volatile uint32_t *word, void (*ready)(void *context), void *context);
void svc_remove_word(const volatile uint32_t *word);
/*
 * From then on the loop does not sleep: `look(context, turns)` looks so many times for what is its
 * own, serves it, and returns TRUE if anything was there. One for a task.
 */
void svc_poll(bool_t (*look)(void *context, unsigned turns), void *context);
/* One turn of svc_run: waits at most `timeout_ns`, serves what is there. FALSE at a timeout. */
bool_t svc_turn(uint64_t timeout_ns);

/* For transports: one call that xp_recv has, from the message's header to the reply. */
void svc_getreq_transport(SVCXPRT *);

/* `socket`: RPC_ANYSOCK or one of rpc_socket (socket.h). NULL where it cannot be made. */
SVCXPRT *svcudp_create(int socket);
SVCXPRT *svcudp_bufcreate(int socket, u_int sendsize, u_int recvsize);
SVCXPRT *svctcp_create(int socket, u_int sendsize, u_int recvsize);

/*
 * At most once over UDP: the newest `entries` replies are kept and sent again to a request with the
 * same transaction number, caller, program, version and procedure. 1 where it is on now.
 */
int svcudp_enablecache(SVCXPRT *, u_long entries);
struct svcudp_counters {
    u_long requests;
    u_long answered_from_cache;
};
void svcudp_counters(const SVCXPRT *, struct svcudp_counters *);

/* Who a request comes from: fills rq_clntcred, of the AUTH_SYS area that follows. */
enum auth_stat _authenticate(struct svc_req *, struct rpc_msg *);
