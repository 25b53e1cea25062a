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

int main(void)
{
    static const struct test tests[] = {
        {"the_header_has_the_specified_bytes", the_header_has_the_specified_bytes},
        {"short_payloads_are_the_beginning_of_a_header",
         short_payloads_are_the_beginning_of_a_header},
        {"damage_is_seen_everywhere_but_in_the_attempt",
         damage_is_seen_everywhere_but_in_the_attempt},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
