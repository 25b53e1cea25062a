/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ShrimpRPC: what stubs of shrimpgen need. Each side has a buffer that it sends by, bound to the
 * buffer that the other side receives in: what is stored here appears there. Pure: who binds the
 * buffers, and what a side does while it waits, is its caller's. README.md has the layout.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SHRIMP_PAGE = 4096, SHRIMP_TURNS = 2000 };

/* What a call returns and a reply's flag holds; a procedure's own are 1 to SHRIMP_OWN_MOST. */
enum shrimp_status {
    SHRIMP_OK = 0,
    SHRIMP_OWN_MOST = 0xfeff,
    SHRIMP_BAD_PROCEDURE = 0xff00, /* the server has none of this number */
    SHRIMP_GARBAGE = 0xff01,       /* the arguments are not the procedure's */
    SHRIMP_NO_REPLY = 0xff02,      /* it returned without its results */
    SHRIMP_TOO_LONG = 0xff03,      /* a length above its bound: of arguments, nothing was sent */
    /* of the caller's side, never in a flag */
    SHRIMP_GONE = 0xff81,        /* the server is no longer there */
    SHRIMP_BAD_RESULTS = 0xff82, /* the results are not the procedure's */
    SHRIMP_TIMED_OUT = 0xff83,   /* no reply so far; it may still be executed */
};

/* Of XDR's size; 0 is false. */
typedef int32_t shrimp_bool;

/* The last word of a buffer: the sequence number in the upper 48 bits, below it procedure or
 * status. */
enum { SHRIMP_NEXT = 1 << 16 };

struct shrimp_client {
    volatile uint64_t *out;      /* the flag of the buffer that is bound */
    const volatile uint64_t *in; /* that of the buffer that is received in */
    uint64_t sequence;           /* of the last call, where flags have it */
    uint32_t turns;              /* of polling, until `idle` is called, each time */
    uint32_t left;               /* of these, when the reply was there */
    /* SHRIMP_OK: poll on; else the call ends with this. NULL: poll on */
    uint16_t (*idle)(struct shrimp_client *client);
    void *context;
};

struct shrimp_server;
typedef uint16_t (*shrimp_procedure)(struct shrimp_server *server);

/* What shrimpgen says of an interface: to both sides, and to a server. */
struct shrimp_identity {
    uint32_t program, version;
    uint64_t hash;  /* compared when client and server meet */
    uint32_t pages; /* of each buffer */
};
struct shrimp_interface {
    struct shrimp_identity identity;
    uint32_t scratch;
    uint32_t count;
    const shrimp_procedure *table; /* by number, shrimp_no_procedure where there is none */
};
/* SHRIMP_BAD_PROCEDURE */
uint16_t shrimp_no_procedure(struct shrimp_server *server);

struct shrimp_server {
    volatile uint64_t *out;
    const volatile uint64_t *in;
    uint64_t seen; /* the flag of the last call */
    uint32_t count;
    const shrimp_procedure *table;
    void *scratch; /* where arguments are that cannot be used in place */
    bool replied;
    void *context; /* the procedures' */
};

/* Buffers are page-aligned and zero. The scratch has the interface's size, and is 8-byte aligned.
 */
void shrimp_client_init(struct shrimp_client *client, uint32_t pages, const void *in, void *out,
                        uint16_t (*idle)(struct shrimp_client *client), void *context);
void shrimp_server_init(struct shrimp_server *server, const struct shrimp_interface *interface,
                        const void *in, void *out, void *scratch, void *context);

/* The polling loop, after the first `turns` turns. */
uint16_t shrimp_wait(struct shrimp_client *client);

/* The last step of a call, its arguments being stored: the flag, and waiting for the reply's. */
static inline uint16_t shrimp_call(struct shrimp_client *client, uint16_t procedure)
{
    uint64_t sequence = client->sequence += SHRIMP_NEXT;
    __atomic_store_n(client->out, sequence | procedure, __ATOMIC_RELEASE);
    for (uint32_t turn = client->turns; turn; turn--) {
        uint64_t beyond = __atomic_load_n(client->in, __ATOMIC_ACQUIRE) ^ sequence;
        if (beyond < SHRIMP_NEXT) {
            client->left = turn;
            return (uint16_t)beyond;
        }
    }
    return shrimp_wait(client);
}

/* Executes the call with this flag, and replies. */
static inline void shrimp_execute(struct shrimp_server *server, uint64_t flag)
{
    server->seen = flag;
    uint16_t procedure = (uint16_t)flag, status = SHRIMP_BAD_PROCEDURE;
    if (procedure < server->count)
        status = server->table[procedure](server);
    __atomic_store_n(server->out, (flag ^ procedure) | status, __ATOMIC_RELEASE);
}

/* Serves the call that has come, if one has. */
static inline bool shrimp_serve(struct shrimp_server *server)
{
    uint64_t flag = __atomic_load_n(server->in, __ATOMIC_ACQUIRE);
    if (flag == server->seen)
        return false;
    shrimp_execute(server, flag);
    return true;
}

/* ---- storing: words of 8 bytes, upwards, each returns where the next one goes ---- */

static inline volatile uint64_t *shrimp_put_word(volatile uint64_t *at, uint64_t word)
{
    *at = word;
    return at + 1;
}

/* The lowest `count` bytes (below 8) of a word; the others are 0. */
static inline uint64_t shrimp_load_rest(const uint8_t *from, size_t count)
{
    uint64_t word = 0;
    unsigned shift = 0;
    if (count & 4) {
        uint32_t part;
        memcpy(&part, from, sizeof part);
        word = part;
        shift = 32;
        from += 4;
    }
    if (count & 2) {
        uint16_t part;
        memcpy(&part, from, sizeof part);
        word |= (uint64_t)part << shift;
        shift += 16;
        from += 2;
    }
    if (count & 1)
        word |= (uint64_t)*from << shift;
    return word;
}

static inline uint64_t shrimp_load(const uint8_t *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

static inline volatile uint64_t *shrimp_put(volatile uint64_t *at, const void *from, size_t bytes)
{
    const uint8_t *next = from;
    for (size_t left = bytes / 64; left; left--, next += 64, at += 8) {
        at[0] = shrimp_load(next);
        at[1] = shrimp_load(next + 8);
        at[2] = shrimp_load(next + 16);
        at[3] = shrimp_load(next + 24);
        at[4] = shrimp_load(next + 32);
        at[5] = shrimp_load(next + 40);
        at[6] = shrimp_load(next + 48);
        at[7] = shrimp_load(next + 56);
    }
    if (!(bytes & 63))
        return at;
    if (bytes & 32) {
        at[0] = shrimp_load(next);
        at[1] = shrimp_load(next + 8);
        at[2] = shrimp_load(next + 16);
        at[3] = shrimp_load(next + 24);
        next += 32;
        at += 4;
    }
    if (bytes & 16) {
        at[0] = shrimp_load(next);
        at[1] = shrimp_load(next + 8);
        next += 16;
        at += 2;
    }
    if (bytes & 8) {
        *at++ = shrimp_load(next);
        next += 8;
    }
    size_t rest = bytes & 7;
    if (!rest)
        return at;
    /* Where there are bytes before the rest, one load that ends where it ends. */
    return shrimp_put_word(at, bytes > 8 ? shrimp_load(next + rest - 8) >> (64 - 8 * rest)
                                         : shrimp_load_rest(next, rest));
}

/* A length and, behind it in the same word, the first elements: those aligned to 4 or less. */
static inline volatile uint64_t *shrimp_put_counted(volatile uint64_t *at, uint32_t length,
                                                    const void *from, size_t bytes)
{
    const uint8_t *next = from;
    size_t first = bytes < 4 ? bytes : 4;
    at = shrimp_put_word(at, length | shrimp_load_rest(next, first) << 32);
    return bytes > 4 ? shrimp_put(at, next + 4, bytes - 4) : at;
}

/* ---- loading: the other side may be hostile, and store while this is read ---- */

static inline uint32_t shrimp_once(const uint32_t *length)
{
    return *(const volatile uint32_t *)length;
}

/* What is between two places. */
struct shrimp_input {
    const uint8_t *at, *end;
};

/* The next bytes, rounded up to words, where they are; NULL: there are fewer. */
static inline const void *shrimp_take(struct shrimp_input *input, size_t bytes)
{
    size_t rounded = (bytes + 7) & ~(size_t)7;
    if ((size_t)(input->end - input->at) < rounded)
        return NULL;
    const uint8_t *here = input->at;
    input->at += rounded;
    return here;
}

/* The next elements where they are, their number being read once; NULL: too many, or fewer bytes.
 */
static inline const void *shrimp_take_counted(struct shrimp_input *input, uint32_t bound,
                                              size_t items_at, size_t size, uint32_t *length)
{
    if (input->at == input->end)
        return NULL;
    *length = shrimp_once((const void *)input->at);
    if (*length > bound)
        return NULL;
    const uint8_t *here = shrimp_take(input, items_at + *length * size);
    return here ? here + items_at : NULL;
}
