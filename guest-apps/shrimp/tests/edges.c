/* SPDX-License-Identifier: Apache-2.0 */
/* What a call can come to beside its results; the program's status is the line that is not so. */
#include "edges_shrimp.h"

#define EXPECT(what)                                                                               \
    do {                                                                                           \
        if (!(what))                                                                               \
            return __LINE__ % 251 + 1;                                                             \
    } while (0)

enum { BYTES = EDGES_SHRIMP_PAGES * SHRIMP_PAGE };
static _Alignas(SHRIMP_PAGE) uint8_t calls[BYTES], replies[BYTES];
static uint64_t scratch[EDGES_SHRIMP_SCRATCH / 8 + 1];
static struct shrimp_server server;
static uint32_t reply_length;
static bool quiet;
static unsigned idled;

static uint16_t idle(struct shrimp_client *client)
{
    (void)client;
    idled++;
    if (quiet)
        return idled < 3 ? SHRIMP_OK : SHRIMP_TIMED_OUT;
    return shrimp_serve(&server) ? SHRIMP_OK : SHRIMP_GONE;
}

uint16_t silent_serve(struct shrimp_server *self)
{
    (void)self;
    return SHRIMP_OK;
}

uint16_t text_serve(struct shrimp_server *self, const char *in, uint32_t in_length)
{
    (void)in_length;
    return text_reply(self, in, reply_length);
}

uint16_t nested_serve(struct shrimp_server *self, const struct inner *in)
{
    (void)self;
    return (uint16_t)(100 + in->some.length);
}

uint16_t bits_serve(struct shrimp_server *self, int64_t base)
{
    volatile struct bits_results *results = bits_results(self);
    for (int i = 0; i < 3; i++)
        results->values[i] = base + i;
    results->result = base * 2;
    return SHRIMP_OK;
}

uint16_t far_serve(struct shrimp_server *self)
{
    (void)self;
    return SHRIMP_OK;
}

uint16_t add_serve(struct shrimp_server *self, int32_t a, int32_t b)
{
    return add_reply(self, a + b);
}

int main(void)
{
    struct shrimp_client client;
    shrimp_server_init(&server, &edges_shrimp, calls, replies, scratch, NULL);
    shrimp_client_init(&client, EDGES_SHRIMP_PAGES, replies, calls, idle, NULL);
    int32_t number;
    const char *text_back;
    uint32_t length;
    static const char letters[16] = "abcdefgh";

    EXPECT(silent(&client, &number) == SHRIMP_NO_REPLY);

    /* Too long: nothing is stored, so no call is made. */
    uint64_t sequence = client.sequence;
    EXPECT(text(&client, letters, 9, &text_back, &length) == SHRIMP_TOO_LONG);
    EXPECT(nested(&client, &(struct inner){.some = {.length = 3}}) == SHRIMP_TOO_LONG);
    EXPECT(client.sequence == sequence);
    EXPECT(nested(&client, &(struct inner){.some = {.length = 2}}) == 102);
    reply_length = 9;
    EXPECT(text(&client, letters, 8, &text_back, &length) == SHRIMP_TOO_LONG);
    reply_length = 8;
    EXPECT(text(&client, letters, 8, &text_back, &length) == SHRIMP_OK);
    EXPECT(length == 8 && !memcmp(text_back, letters, 8));

    const int64_t *values;
    int64_t twice;
    EXPECT(bits(&client, 20, &values, &twice) == SHRIMP_OK);
    EXPECT(values[0] == 20 && values[1] == 21 && values[2] == 22 && twice == 40);

    /* The server is not what the client takes it for. */
    server.count = 0;
    EXPECT(silent(&client, &number) == SHRIMP_BAD_PROCEDURE);
    server.count = edges_shrimp.count;
    EXPECT(far(&client) == SHRIMP_OK);
    EXPECT(add(&client, 40, 2, &number) == SHRIMP_OK && number == 42);
    EXPECT(add_shrimp_number == 10 && FAR == 9);
    EXPECT(shrimp_call(&client, 5) == SHRIMP_BAD_PROCEDURE); /* the table has a gap there */

    /* A reply that is none of the procedure's. */
    uint64_t *flag = (uint64_t *)(void *)(replies + BYTES) - 1;
    flag[-1] = 9;
    flag[0] = client.sequence + SHRIMP_NEXT;
    EXPECT(text(&client, letters, 1, &text_back, &length) == SHRIMP_BAD_RESULTS);
    shrimp_serve(&server);

    /* Sequence numbers begin again behind the last one. */
    client.sequence = ~(uint64_t)0 << 16;
    EXPECT(text(&client, letters, 8, &text_back, &length) == SHRIMP_OK);
    EXPECT(client.sequence == 0);
    EXPECT(text(&client, letters, 8, &text_back, &length) == SHRIMP_OK);

    quiet = true;
    idled = 0;
    EXPECT(silent(&client, &number) == SHRIMP_TIMED_OUT);
    EXPECT(idled == 3);
    return 0;
}
