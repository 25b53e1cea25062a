/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>

#include "duplicates.h"
#include "expect.h"

static bool comes(uint32_t xid, uint32_t address, uint16_t port)
{
    struct sockaddr_in caller = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(address), .sin_port = htons(port)};

    return duplicates_note(xid, &caller);
}

/* Two callers whose numbers are in the same list, one call of each open. */
static void requests_between_hide_no_duplicate(void)
{
    enum { CLIENT1 = 0x0a000001, CLIENT2 = 0x0a000002, PORT = 1000 };
    uint32_t other = 7 ^ htonl(CLIENT1) ^ htonl(CLIENT2);

    EXPECT(!comes(7, CLIENT1, PORT));
    EXPECT(!comes(other, CLIENT2, PORT));
    EXPECT(comes(7, CLIENT1, PORT));
    EXPECT(comes(other, CLIENT2, PORT));
}

static void one_number_of_other_callers_is_another_call(void)
{
    enum { CLIENT = 0x0a000003 };

    EXPECT(!comes(1, CLIENT, 1));
    EXPECT(!comes(1, CLIENT, 2));
    EXPECT(!comes(1, CLIENT + 1, 1));
    EXPECT(!comes(2, CLIENT, 1));
    EXPECT(comes(1, CLIENT, 2));
}

/* Calls whose numbers are a multiple of the places: all are in one list. */
static void the_oldest_call_gives_way(void)
{
    enum { CLIENT = 0x0a000005 };

    for (uint32_t i = 0; i < DUPLICATES_REMEMBERED; i++)
        EXPECT(!comes(i * DUPLICATES_REMEMBERED, CLIENT, 1));
    for (uint32_t i = 0; i < DUPLICATES_REMEMBERED; i++)
        EXPECT(comes(i * DUPLICATES_REMEMBERED, CLIENT, 1));
    EXPECT(!comes(1, CLIENT, 1));
    EXPECT(comes(DUPLICATES_REMEMBERED, CLIENT, 1));
    EXPECT(!comes(0, CLIENT, 1));
}

int main(void)
{
    static const struct test tests[] = {
        {"requests_between_hide_no_duplicate", requests_between_hide_no_duplicate},
        {"one_number_of_other_callers_is_another_call",
         one_number_of_other_callers_is_another_call},
        {"the_oldest_call_gives_way", the_oldest_call_gives_way},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
