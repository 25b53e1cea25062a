/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/*
 * The smallest test harness: a table of named functions, one line for each, a final line and an
 * exit status. A failed expectation prints where it is and lets the test continue.
 */
static unsigned expect_failures;

#define EXPECT(condition) EXPECT_OF(condition, "%s", "")

/* The same, and says of which input: a format of printf with its arguments. */
#define EXPECT_OF(condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            expect_failures++;                                                                     \
            printf("%s:%d: expected %s ", __FILE__, __LINE__, #condition);                         \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
        }                                                                                          \
    } while (0)

struct test {
    const char *name;
    void (*run)(void);
};

static inline int run_tests(const struct test *tests, unsigned count)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < count; i++) {
        unsigned before = expect_failures;

        tests[i].run();
        if (expect_failures != before)
            failed++;
        printf("@T %s %s\n", tests[i].name, expect_failures == before ? "ok" : "fail");
    }
    printf("@T done %u %u\n", count - failed, failed);
    return failed == 0 ? 0 : 1;
}
