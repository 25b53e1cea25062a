/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's XDR and messages against libtirpc's, in one process: the other library and code
 * that rpcgen has made for it are in a shared object of their own (argv[1]). Structures have the
 * same layout in both, so that one object goes through both.
 *
 *   - both encode the same object to the same bytes;
 *   - of bytes that were changed, ours accepts only what the other accepts, with the same meaning,
 * and refuses only what is not the one right encoding of what the other made of it (rpcgen's inline
 * code for runs of integers cuts them off in both).
 */
#include <assert.h>
#include <dlfcn.h>
#include <rpc/rpc.h>
#include <stdio.h>

#include "echo.h"
#include "nasty.h"

enum { BUFFER = 8192, OBJECT = 1024, ROUNDS = 30000, MUTATIONS = 12 };

typedef bool_t (*filter)(void *xdrs, void *object);

struct type {
    const char *name;
    xdrproc_t ours;
    size_t bytes;
    filter theirs;
};

static struct type types[] = {
    {"nasty", (xdrproc_t)xdr_nasty, sizeof(nasty), NULL},
    {"nasty_value", (xdrproc_t)xdr_nasty_value, sizeof(nasty_value), NULL},
    {"nasty_node", (xdrproc_t)xdr_nasty_node, sizeof(nasty_node), NULL},
    {"nasty_add_7_argument", (xdrproc_t)xdr_nasty_add_7_argument, sizeof(nasty_add_7_argument),
     NULL},
    {"nasty_name_7_argument", (xdrproc_t)xdr_nasty_name_7_argument, sizeof(nasty_name_7_argument),
     NULL},
    {"echo_source_request", (xdrproc_t)xdr_echo_source_request, sizeof(echo_source_request), NULL},
};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

static void *their_library;
static void (*their_xdrmem_create)(void *, char *, u_int, int);
static void (*their_xdr_free)(filter, void *);

/* Room for the other library's XDR, and where its memory stream keeps its place is asked by its own
 * op. */
union their_xdr {
    struct {
        int op;
        const struct {
            void *getlong, *putlong, *getbytes, *putbytes;
            u_int (*position)(void *);
        } * ops;
    };
    char room[256];
};

static uint64_t random_state = 0x5851f42d4c957f2du;

static uint32_t random_word(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) ^ (uint32_t)(random_state >> 12 & 0x80000000u);
}

static uint32_t below(uint32_t limit)
{
    return (uint32_t)((uint64_t)random_word() * limit >> 32);
}

/* ---- objects: decoded from a stream that makes up words which often mean something ---- */

static bool_t made_up_long(XDR *xdrs, long *value)
{
    static const int32_t colours[] = {1, -5, 100000, 7};

    (void)xdrs;
    switch (below(8)) {
    case 0:
        *value = (int32_t)random_word();
        break;
    case 1:
        *value = colours[below(4)];
        break;
    case 2:
        *value = (int32_t)below(34);
        break;
    default:
        *value = (int32_t)below(2);
    }
    return TRUE;
}

static bool_t made_up_bytes(XDR *xdrs, char *bytes, u_int length)
{
    bool padding = length < BYTES_PER_XDR_UNIT && below(8) != 0;

    (void)xdrs;
    for (u_int i = 0; i < length; i++)
        bytes[i] = padding ? 0 : (char)(1 + below(255));
    return TRUE;
}

static int32_t *nothing_in_place(XDR *xdrs, u_int length)
{
    (void)xdrs;
    (void)length;
    return NULL;
}

static u_int plenty(XDR *xdrs)
{
    (void)xdrs;
    return BUFFER;
}

static void make_up(const struct type *type, void *object)
{
    static const struct xdr_ops ops = {.x_getlong = made_up_long,
                                       .x_getbytes = made_up_bytes,
                                       .x_inline = nothing_in_place,
                                       .x_left = plenty};

    for (;;) {
        XDR xdrs = {.x_op = XDR_DECODE, .x_ops = &ops};

        memset(object, 0, OBJECT);
        if (type->ours(&xdrs, object))
            return;
        xdr_free(type->ours, object);
    }
}

/* ---- both libraries; a length of 0: refused ---- */

static u_int our_encode(const struct type *type, void *object, char *bytes)
{
    XDR xdrs;

    xdrmem_create(&xdrs, bytes, BUFFER, XDR_ENCODE);
    return type->ours(&xdrs, object) ? XDR_GETPOS(&xdrs) : 0;
}

static u_int our_decode(const struct type *type, void *object, char *bytes, u_int length)
{
    XDR xdrs;

    memset(object, 0, OBJECT);
    xdrmem_create(&xdrs, bytes, length, XDR_DECODE);
    return type->ours(&xdrs, object) ? XDR_GETPOS(&xdrs) : 0;
}

static u_int their_code(const struct type *type, void *object, char *bytes, u_int length, int op)
{
    union their_xdr xdrs;

    memset(&xdrs, 0, sizeof(xdrs));
    their_xdrmem_create(&xdrs, bytes, length, op);
    return type->theirs(&xdrs, object) ? xdrs.ops->position(&xdrs) : 0;
}

static _Noreturn void fail(const struct type *type, const char *what, const char *bytes,
                           u_int length)
{
    printf("%s: %s:", type->name, what);
    for (u_int i = 0; i < length; i++)
        printf(" %02x", (unsigned char)bytes[i]);
    printf("\n");
    exit(1);
}

static void compare_changed(const struct type *type, char *bytes, u_int length)
{
    static char again[BUFFER];
    static char theirs_again[BUFFER];
    uint64_t our_object[OBJECT / 8];
    uint64_t their_object[OBJECT / 8];
    u_int ours = our_decode(type, our_object, bytes, length);
    u_int theirs;

    memset(their_object, 0, OBJECT);
    theirs = their_code(type, their_object, bytes, length, XDR_DECODE);
    if (ours != 0) {
        if (theirs != ours)
            fail(type, "accepted by ours alone", bytes, length);
        memset(again, 0, sizeof(again));
        memset(theirs_again, 0, sizeof(theirs_again));
        if (our_encode(type, our_object, again) != our_encode(type, their_object, theirs_again) ||
            memcmp(again, theirs_again, BUFFER) != 0)
            fail(type, "understood in another way", bytes, length);
    } else if (theirs != 0) {
        memset(again, 0, BUFFER);
        if (their_code(type, their_object, again, BUFFER, XDR_ENCODE) == theirs &&
            memcmp(again, bytes, theirs) == 0)
            fail(type, "refused, but right", bytes, length);
    }
    xdr_free(type->ours, our_object);
    their_xdr_free(type->theirs, their_object);
}

static u_int change(char *bytes, u_int length)
{
    switch (below(4)) {
    case 0:
        return below(length + 1);
    case 1:
        bytes[below(length)] ^= (char)(1 << below(8));
        return length;
    case 2:
        memset(bytes + below(length) / 4 * 4, below(2) ? 0xff : 0, 4);
        return length;
    default:
        bytes[below(length)] = (char)random_word();
        return length;
    }
}

static void compare_type(const struct type *type)
{
    static char ours[BUFFER];
    static char theirs[BUFFER];
    uint64_t object[OBJECT / 8];

    for (unsigned round = 0; round < ROUNDS; round++) {
        u_int length;

        make_up(type, object);
        length = our_encode(type, object, ours);
        if (length == 0 || their_code(type, object, theirs, BUFFER, XDR_ENCODE) != length ||
            memcmp(ours, theirs, length) != 0)
            fail(type, "encoded differently", ours, length);
        if (xdr_sizeof(type->ours, object) != length)
            fail(type, "xdr_sizeof is wrong", ours, length);
        xdr_free(type->ours, object);
        for (unsigned i = 0; i < MUTATIONS; i++) {
            memcpy(ours, theirs, length);
            compare_changed(type, ours, change(ours, length));
        }
    }
}

/* ---- messages ---- */

static struct type call_type = {"rpc_msg call", (xdrproc_t)xdr_callmsg, sizeof(struct rpc_msg),
                                NULL};
static struct type reply_type = {"rpc_msg reply", (xdrproc_t)xdr_replymsg, sizeof(struct rpc_msg),
                                 NULL};

static void compare_message(const struct type *type, struct rpc_msg *message)
{
    char ours[BUFFER];
    /* libtirpc skips the padding of a credential and leaves there what was */
    char theirs[BUFFER] = {0};
    u_int length = our_encode(type, message, ours);

    if (length == 0 || their_code(type, message, theirs, BUFFER, XDR_ENCODE) != length ||
        memcmp(ours, theirs, length) != 0)
        fail(type, "encoded differently", ours, length);
}

static void compare_calls(void)
{
    char body[MAX_AUTH_BYTES];

    for (u_int i = 0; i < sizeof(body); i++)
        body[i] = (char)i;
    for (u_int length = 0; length <= MAX_AUTH_BYTES; length++) {
        struct rpc_msg call = {.rm_xid = random_word(), .rm_direction = CALL};

        call.rm_call = (struct call_body){RPC_MSG_VERSION,
                                          random_word(),
                                          random_word(),
                                          random_word(),
                                          {AUTH_SYS, body, length},
                                          {AUTH_NONE, body, length % 8}};
        compare_message(&call_type, &call);
    }
}

static void compare_replies(void)
{
    int argument = 42;

    for (int status = SUCCESS; status <= SYSTEM_ERR; status++) {
        struct rpc_msg reply = {.rm_xid = random_word(), .rm_direction = REPLY};

        reply.acpted_rply.ar_stat = (enum accept_stat)status;
        reply.acpted_rply.ar_vers.low = 3;
        reply.acpted_rply.ar_vers.high = 9;
        if (status == SUCCESS) {
            reply.acpted_rply.ar_results.proc = (xdrproc_t)xdr_void;
            reply.acpted_rply.ar_results.where = (char *)&argument;
        }
        compare_message(&reply_type, &reply);
    }
    for (int why = RPC_MISMATCH; why <= AUTH_ERROR; why++) {
        struct rpc_msg reply = {.rm_xid = random_word(), .rm_direction = REPLY};

        reply.rm_reply.rp_stat = MSG_DENIED;
        reply.rjcted_rply.rj_stat = (enum reject_stat)why;
        if (why == AUTH_ERROR)
            reply.rjcted_rply.rj_why = AUTH_TOOWEAK;
        else
            reply.rjcted_rply.rj_vers.low = reply.rjcted_rply.rj_vers.high = 2;
        compare_message(&reply_type, &reply);
    }
}

/* Any bytes at all: nothing but an answer, and no memory lost. */
static void decode_noise(void)
{
    char bytes[256];
    char credential[MAX_AUTH_BYTES];
    char verifier[MAX_AUTH_BYTES];

    for (unsigned round = 0; round < ROUNDS; round++) {
        struct rpc_msg message = {0};
        u_int length = below(sizeof(bytes));
        XDR xdrs;

        for (u_int i = 0; i + 4 <= length; i += 4) {
            uint32_t word = htonl(below(4) ? below(3) : random_word());

            memcpy(bytes + i, &word, sizeof(word));
        }
        message.rm_call.cb_cred.oa_base = credential;
        message.rm_call.cb_verf.oa_base = verifier;
        xdrmem_create(&xdrs, bytes, length, XDR_DECODE);
        xdr_callmsg(&xdrs, &message);
        memset(&message, 0, sizeof(message));
        message.acpted_rply.ar_verf.oa_base = verifier;
        message.acpted_rply.ar_results.proc = (xdrproc_t)xdr_void;
        xdrmem_create(&xdrs, bytes, length, XDR_DECODE);
        xdr_replymsg(&xdrs, &message);
        for (size_t type = 0; type < TYPES; type++) {
            uint64_t object[OBJECT / 8];

            our_decode(&types[type], object, bytes, length);
            xdr_free(types[type].ours, object);
        }
    }
}

/* ---- limits ---- */

static void limits(void)
{
    static char bytes[BUFFER];
    nasty_node *list = NULL;
    XDR xdrs;

    /* A length that the stream cannot hold takes no memory: this would be 4 GB. */
    memset(bytes, 0xff, 4);
    {
        char *text = NULL;

        xdrmem_create(&xdrs, bytes, BUFFER, XDR_DECODE);
        assert(!xdr_wrapstring(&xdrs, &text) && text == NULL);
    }
    /* A list of 101 nodes is one too many. */
    for (unsigned i = 0; i < BUFFER / 12; i++) {
        uint32_t node[3] = {0, htonl(i), htonl(1)};

        memcpy(bytes + 4 + (size_t)i * 12, node, sizeof(node));
    }
    memcpy(bytes, "\0\0\0\1", 4);
    for (unsigned nodes = XDR_DEPTH; nodes <= XDR_DEPTH + 1; nodes++) {
        memset(bytes + nodes * 12, 0, 4);
        xdrmem_create(&xdrs, bytes, BUFFER, XDR_DECODE);
        assert(xdr_pointer(&xdrs, (char **)&list, sizeof(nasty_node), (xdrproc_t)xdr_nasty_node) ==
               (nodes == XDR_DEPTH));
        xdrs.x_op = XDR_FREE;
        xdrs.x_depth = 0;
        xdr_pointer(&xdrs, (char **)&list, sizeof(nasty_node), (xdrproc_t)xdr_nasty_node);
        memcpy(bytes + nodes * 12, "\0\0\0\1", 4);
    }
    /* A long that 32 bits cannot hold. */
    {
        long big = 1l << 32;

        xdrmem_create(&xdrs, bytes, BUFFER, XDR_ENCODE);
        assert(!xdr_long(&xdrs, &big));
    }
}

static void *their(const char *name)
{
    void *found = dlsym(their_library, name);

    if (found == NULL) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return found;
}

int main(int argc, char **argv)
{
    char name[64];

    assert(argc == 2);
    their_library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (their_library == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    their_xdrmem_create = (void (*)(void *, char *, u_int, int))their("xdrmem_create");
    their_xdr_free = (void (*)(filter, void *))their("xdr_free");
    for (size_t type = 0; type < TYPES; type++) {
        snprintf(name, sizeof(name), "xdr_%s", types[type].name);
        types[type].theirs = (filter)their(name);
        assert(types[type].bytes <= OBJECT);
        compare_type(&types[type]);
    }
    call_type.theirs = (filter)their("xdr_callmsg");
    reply_type.theirs = (filter)their("xdr_replymsg");
    compare_calls();
    compare_replies();
    decode_noise();
    limits();
    printf("rpc: %zu types, %d objects each, as libtirpc's\n", (size_t)TYPES, ROUNDS);
    return 0;
}
