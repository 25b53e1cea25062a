/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side that all transports share: registered programs, replies, and one loop for
 * everything. */
#include <rpc/rpc.h>
#include <sss/system.h>

struct program {
    struct program *next;
    rpcprog_t program;
    rpcvers_t version;
    svc_dispatch dispatch;
    bool registered; /* with the portmapper */
};

struct watched {
    const volatile uint32_t *word;
    uint32_t seen;
    void (*ready)(void *context);
    void *context;
};

enum {
    LOOKS = 64, /* in a row, between those at the words of others */
    TURNS = 32, /* of that, until other tasks may run */
};

static struct program *programs;
static struct watched watched[SSS_WAITS];
static unsigned watched_count;
static bool_t (*poll_look)(void *context, unsigned turns);
static void *poll_context;
static bool ending;

/* ---- programs ---- */

static struct program *find_program(rpcprog_t program, rpcvers_t version)
{
    struct program *found = programs;

    while (found != NULL && (found->program != program || found->version != version))
        found = found->next;
    return found;
}

bool_t svc_register(SVCXPRT *transport, rpcprog_t program, rpcvers_t version, svc_dispatch dispatch,
                    rpcprot_t protocol)
{
    struct program *entry = find_program(program, version);

    if (entry != NULL && entry->dispatch != dispatch)
        return FALSE;
    if (entry == NULL) {
        entry = mem_alloc(sizeof(*entry));
        if (entry == NULL)
            return FALSE;
        *entry = (struct program){
            .next = programs, .program = program, .version = version, .dispatch = dispatch};
        programs = entry;
    }
    if (transport->xp_offer != NULL && !transport->xp_offer(transport, program, version))
        return FALSE;
    if (protocol == 0)
        return TRUE;
    entry->registered = true;
    return pmap_set(program, version, (int)protocol, transport->xp_port);
}

void svc_unregister(rpcprog_t program, rpcvers_t version)
{
    struct program *entry = find_program(program, version);
    struct program **place = &programs;

    if (entry == NULL)
        return;
    while (*place != entry)
        place = &(*place)->next;
    *place = entry->next;
    if (entry->registered)
        pmap_unset(program, version);
    free(entry);
}

/* ---- replies ---- */

static void set_accepted(SVCXPRT *transport, struct rpc_msg *reply, enum accept_stat status)
{
    memset(reply, 0, sizeof(*reply));
    reply->rm_direction = REPLY;
    reply->rm_reply.rp_stat = MSG_ACCEPTED;
    reply->acpted_rply.ar_verf = transport->xp_verf;
    reply->acpted_rply.ar_stat = status;
}

bool_t svc_sendreply(SVCXPRT *transport, xdrproc_t encode, void *results)
{
    struct rpc_msg reply;

    set_accepted(transport, &reply, SUCCESS);
    reply.acpted_rply.ar_results.where = results;
    reply.acpted_rply.ar_results.proc = encode;
    return SVC_REPLY(transport, &reply);
}

static void refuse(SVCXPRT *transport, enum accept_stat status)
{
    struct rpc_msg reply;

    set_accepted(transport, &reply, status);
    SVC_REPLY(transport, &reply);
}

void svcerr_noproc(SVCXPRT *transport)
{
    refuse(transport, PROC_UNAVAIL);
}

void svcerr_decode(SVCXPRT *transport)
{
    refuse(transport, GARBAGE_ARGS);
}

void svcerr_systemerr(SVCXPRT *transport)
{
    refuse(transport, SYSTEM_ERR);
}

void svcerr_noprog(SVCXPRT *transport)
{
    refuse(transport, PROG_UNAVAIL);
}

void svcerr_progvers(SVCXPRT *transport, rpcvers_t low, rpcvers_t high)
{
    struct rpc_msg reply;

    set_accepted(transport, &reply, PROG_MISMATCH);
    reply.acpted_rply.ar_vers.low = low;
    reply.acpted_rply.ar_vers.high = high;
    SVC_REPLY(transport, &reply);
}

static void deny(SVCXPRT *transport, struct rejected_reply rejected)
{
    struct rpc_msg reply;

    memset(&reply, 0, sizeof(reply));
    reply.rm_direction = REPLY;
    reply.rm_reply.rp_stat = MSG_DENIED;
    reply.rjcted_rply = rejected;
    SVC_REPLY(transport, &reply);
}

void svcerr_auth(SVCXPRT *transport, enum auth_stat why)
{
    deny(transport, (struct rejected_reply){.rj_stat = AUTH_ERROR, .rj_why = why});
}

void svcerr_weakauth(SVCXPRT *transport)
{
    svcerr_auth(transport, AUTH_TOOWEAK);
}

void svcerr_rpcmismatch(SVCXPRT *transport)
{
    deny(transport, (struct rejected_reply){.rj_stat = RPC_MISMATCH,
                                            .rj_vers = {RPC_MSG_VERSION, RPC_MSG_VERSION}});
}

/* ---- who calls ---- */

/* The credential of AUTH_SYS, decoded; rq_clntcred points to one. */
struct sys_credential {
    struct authunix_parms parms;
    char machine[MAX_MACHINE_NAME + 1];
    gid_t groups[NGRPS];
};

enum auth_stat _authenticate(struct svc_req *request, struct rpc_msg *message)
{
    struct sys_credential *credential = request->rq_clntcred;
    XDR xdrs;

    request->rq_cred = message->rm_call.cb_cred;
    request->rq_xprt->xp_verf = _null_auth;
    switch (request->rq_cred.oa_flavor) {
    case AUTH_NONE:
        return AUTH_OK;
    case AUTH_SYS:
        credential->parms = (struct authunix_parms){.aup_machname = credential->machine,
                                                    .aup_gids = credential->groups};
        xdrmem_create(&xdrs, request->rq_cred.oa_base, request->rq_cred.oa_length, XDR_DECODE);
        return xdr_authunix_parms(&xdrs, &credential->parms) &&
                       XDR_GETPOS(&xdrs) == request->rq_cred.oa_length
                   ? AUTH_OK
                   : AUTH_BADCRED;
    default:
        return AUTH_REJECTEDCRED;
    }
}

/* ---- one call ---- */

static void refuse_program(SVCXPRT *transport, rpcprog_t program)
{
    rpcvers_t low = UINT32_MAX;
    rpcvers_t high = 0;

    for (const struct program *entry = programs; entry != NULL; entry = entry->next) {
        if (entry->program != program)
            continue;
        low = entry->version < low ? entry->version : low;
        high = entry->version > high ? entry->version : high;
    }
    if (low > high)
        svcerr_noprog(transport);
    else
        svcerr_progvers(transport, low, high);
}

static void serve(SVCXPRT *transport, struct rpc_msg *message, struct sys_credential *credential)
{
    const struct call_body *call = &message->rm_call;
    struct svc_req request = {
        .rq_prog = call->cb_prog,
        .rq_vers = call->cb_vers,
        .rq_proc = call->cb_proc,
        .rq_clntcred = credential,
        .rq_xprt = transport,
        .rq_xid = message->rm_xid,
    };
    const struct program *entry;
    enum auth_stat why;

    if (call->cb_rpcvers != RPC_MSG_VERSION) {
        transport->xp_verf = _null_auth;
        svcerr_rpcmismatch(transport);
        return;
    }
    why = _authenticate(&request, message);
    if (why != AUTH_OK) {
        svcerr_auth(transport, why);
        return;
    }
    entry = find_program(call->cb_prog, call->cb_vers);
    if (entry != NULL)
        entry->dispatch(&request, transport);
    else
        refuse_program(transport, call->cb_prog);
}

void svc_getreq_transport(SVCXPRT *transport)
{
    char credential_body[MAX_AUTH_BYTES];
    char verifier_body[MAX_AUTH_BYTES];
    struct sys_credential credential;
    struct rpc_msg message;

    message.rm_call.cb_cred.oa_base = credential_body;
    message.rm_call.cb_verf.oa_base = verifier_body;
    if (SVC_RECV(transport, &message))
        serve(transport, &message, &credential);
}

/* ---- the loop ---- */

bool_t svc_add_word(const volatile uint32_t *word, void (*ready)(void *context), void *context)
{
    if (watched_count == SSS_WAITS)
        return FALSE;
    /* Not what the word is now, so that `ready` is called once at the start. */
    watched[watched_count++] = (struct watched){word, *word - 1, ready, context};
    return TRUE;
}

void svc_remove_word(const volatile uint32_t *word)
{
    unsigned place = 0;

    while (place < watched_count && watched[place].word != word)
        place++;
    if (place == watched_count)
        return;
    watched_count--;
    for (; place < watched_count; place++)
        watched[place] = watched[place + 1];
}

/* A `ready` may add and remove words: one that is skipped by this is found changed by the next
 * turn. */
static bool serve_changed(void)
{
    bool any = false;

    for (unsigned i = 0; i < watched_count; i++) {
        uint32_t now = *watched[i].word;

        if (now == watched[i].seen)
            continue;
        watched[i].seen = now;
        any = true;
        watched[i].ready(watched[i].context);
    }
    return any;
}

void svc_poll(bool_t (*look)(void *context, unsigned turns), void *context)
{
    poll_look = look;
    poll_context = context;
}

static bool_t poll_turn(uint64_t timeout_ns)
{
    uint64_t now = sss_now_ns();
    uint64_t deadline = timeout_ns > SSS_FOREVER - now ? SSS_FOREVER : now + timeout_ns;

    while (now < deadline) {
        for (unsigned turn = 0; turn < TURNS; turn++)
            if (poll_look(poll_context, LOOKS) || serve_changed())
                return TRUE;
        sss_yield();
        now = sss_now_ns();
    }
    return FALSE;
}

bool_t svc_turn(uint64_t timeout_ns)
{
    struct sss_wait words[SSS_WAITS];

    if (serve_changed())
        return TRUE;
    if (poll_look != NULL)
        return poll_turn(timeout_ns);
    for (unsigned i = 0; i < watched_count; i++)
        words[i] = (struct sss_wait){.address = watched[i].word, .seen = watched[i].seen};
    if (sss_wait(words, watched_count, timeout_ns) == -SSS_ETIMEDOUT)
        return FALSE;
    serve_changed();
    return TRUE;
}

void svc_run(void)
{
    ending = false;
    while (!ending)
        svc_turn(SSS_FOREVER);
}

void svc_exit(void)
{
    ending = true;
}
