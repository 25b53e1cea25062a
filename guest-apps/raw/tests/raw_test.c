/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "expect.h"
#include "header.h"

enum { SIZE = 1000, DIRTY = 0xa5 };

static void the_header_has_the_specified_bytes(void)
{
    static const uint8_t expected[] = {'S', 'D', 'L', '1', 0, 0, 1, 2, 0, 0, 0, 20, 0, 0, 0, 3};
    uint8_t payload[21];

    memset(payload, DIRTY, sizeof(payload));
    header_make_payload(payload, 20, 0x102, 3);
    EXPECT(memcmp(payload, expected, sizeof(expected)) == 0);
    /* Byte 16 of call 258: (258 * 131 + 16 * 7) & 0xff. */
    EXPECT(payload[16] == ((258 * 131 + 16 * 7) & 0xff));
    EXPECT(payload[20] == DIRTY);
}

static void short_payloads_are_the_beginning_of_a_header(void)
{
    for (size_t size = 0; size < HEADER_BYTES; size++) {
        uint8_t payload[HEADER_BYTES + 1];

        memset(payload, DIRTY, sizeof(payload));
        header_make_payload(payload, size, 7, 0);
        EXPECT(payload[size] == DIRTY);
        EXPECT(header_is_payload(payload, size, 7));
        EXPECT(header_is_any_payload(payload, size));
        header_set_attempt(payload, size, 0x01020304);
        EXPECT(payload[size] == DIRTY);
        EXPECT(header_is_payload(payload, size, 7));
    }
}

static void damage_is_seen_everywhere_but_in_the_attempt(void)
{
    static uint8_t payload[SIZE];

    for (size_t i = 0; i < SIZE; i++) {
        bool attempt = i >= 12 && i < 16;
        bool other_call = i >= 4 && i < 7; /* call s + 256 k has the same pattern as call s */

        header_make_payload(payload, SIZE, 9, 0);
        payload[i] ^= 0x10;
        EXPECT(header_is_payload(payload, SIZE, 9) == attempt);
        if (!attempt && !other_call)
            EXPECT(!header_is_any_payload(payload, SIZE));
    }
    header_make_payload(payload, SIZE, 9, 5);
    EXPECT(header_is_payload(payload, SIZE, 9));
    EXPECT(!header_is_payload(payload, SIZE, 10));
    EXPECT(!header_is_any_payload(payload, SIZE - 1));
}

/* Call 258 of "person", by hand: 30 and 70.5 in IEEE 754 (0x428d0000), little endian. */
static void a_function_has_the_specified_bytes(void)
{
    static const uint8_t expected[] = {'S', 'D', 'F', 11, 0, 0,   1,   2,   0,   0,    0,
                                       33,  0,   0,   0,  3, 'N', 'i', 'n', 'e', ' ',  'c',
                                       'h', 'a', 'r', 30, 0, 0,   0,   0,   0,   0x8d, 0x42};
    uint8_t message[sizeof(expected) + 1];

    memset(message, DIRTY, sizeof(message));
    EXPECT(header_call_size(FUNCTION_PERSON) == sizeof(expected));
    header_make_call(message, FUNCTION_PERSON, 0x102, 3);
    EXPECT(memcmp(message, expected, sizeof(expected)) == 0);
    EXPECT(message[sizeof(expected)] == DIRTY);
}

static void functions_return_what_they_must(void)
{
    static uint8_t message[SIZE + FUNCTION_SIZE_MOST];

    for (int i = FUNCTION_VOID; i <= FUNCTIONS; i++) {
        enum function function = (enum function)i;
        size_t length = header_call_size(function);
        uint8_t room[ANSWER_ROOM];
        const uint8_t *reply;

        header_make_call(message, function, 9, 5);
        EXPECT(header_is_any_payload(message, length));
        reply = header_answer(message, room, &length);
        EXPECT(length == header_return_size(function));
        EXPECT(header_is_return(reply, function, 9));
        EXPECT(!header_is_return(reply, function, 10));
        EXPECT((reply == message) == (function != FUNCTION_DISTANCE));
    }
}

static void damage_of_a_function_is_seen(void)
{
    static uint8_t message[SIZE + FUNCTION_SIZE_MOST];

    for (int i = FUNCTION_VOID; i <= FUNCTIONS; i++) {
        enum function function = (enum function)i;
        size_t length = header_call_size(function);

        for (size_t at = 0; at < length; at++) {
            bool free = at >= 4 && at < 16 && !(at >= 8 && at < 12); /* call and attempt */

            header_make_call(message, function, 9, 0);
            message[at] ^= 0x20;
            EXPECT(header_is_any_payload(message, length) == free);
        }
        header_make_call(message, function, 9, 0);
        EXPECT(!header_is_any_payload(message, length + 1));
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"the_header_has_the_specified_bytes", the_header_has_the_specified_bytes},
        {"short_payloads_are_the_beginning_of_a_header",
         short_payloads_are_the_beginning_of_a_header},
        {"a_function_has_the_specified_bytes", a_function_has_the_specified_bytes},
        {"functions_return_what_they_must", functions_return_what_they_must},
        {"damage_of_a_function_is_seen", damage_of_a_function_is_seen},
        {"damage_is_seen_everywhere_but_in_the_attempt",
         damage_is_seen_everywhere_but_in_the_attempt},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
