/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The representations of the twelve functions' arguments and results, written by hand from C706,
 * chapter 14, and what is none of them.
 */
#include "../twelve_ndr.h"
#include "expect.h"

enum { DIRTY = 0xa5, MOST = 64 };

/* `little` and `big`: the bytes of the two orders. */
struct golden {
    enum function function;
    enum dce_way way;
    size_t length;
    uint8_t little[MOST], big[MOST];
};

#define BOTH(...)                                                                                  \
    {__VA_ARGS__},                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static const struct golden goldens[] = {
    {FUNCTION_VOID, DCE_ARGUMENTS, 0, {0}, {0}},
    {FUNCTION_VOID, DCE_RESULTS, 0, {0}, {0}},
    {FUNCTION_BOOLEAN, DCE_ARGUMENTS, 1, BOTH(1)},
    {FUNCTION_BOOLEAN, DCE_RESULTS, 1, BOTH(1)},
    {FUNCTION_INT, DCE_ARGUMENTS, 4, {0x15, 0xcd, 0x5b, 0x07}, {0x07, 0x5b, 0xcd, 0x15}},
    {FUNCTION_INT, DCE_RESULTS, 4, {0x15, 0xcd, 0x5b, 0x07}, {0x07, 0x5b, 0xcd, 0x15}},
    {FUNCTION_LONG,
     DCE_ARGUMENTS,
     8,
     {0x15, 0x81, 0xe9, 0x7d, 0xf4, 0x10, 0x22, 0x11},
     {0x11, 0x22, 0x10, 0xf4, 0x7d, 0xe9, 0x81, 0x15}},
    {FUNCTION_LONG,
     DCE_RESULTS,
     8,
     {0x15, 0x81, 0xe9, 0x7d, 0xf4, 0x10, 0x22, 0x11},
     {0x11, 0x22, 0x10, 0xf4, 0x7d, 0xe9, 0x81, 0x15}},
    /* Room for 33 with the NUL, from 0, 33 of them. */
    {FUNCTION_STRING_32, DCE_ARGUMENTS, 45,
     "\x21\0\0\0\0\0\0\0\x21\0\0\0"
     "abcdefghijklmnopqrstuvwxyzabcdef",
     "\0\0\0\x21\0\0\0\0\0\0\0\x21"
     "abcdefghijklmnopqrstuvwxyzabcdef"},
    {FUNCTION_STRING_32, DCE_RESULTS, 45,
     "\x21\0\0\0\0\0\0\0\x21\0\0\0"
     "abcdefghijklmnopqrstuvwxyzabcdef",
     "\0\0\0\x21\0\0\0\0\0\0\0\x21"
     "abcdefghijklmnopqrstuvwxyzabcdef"},
    /* A pointer to the name, 30, 70.5; then the name, of 10 with its NUL. */
    {FUNCTION_PERSON, DCE_ARGUMENTS, 34,
     "\0\0\2\0\x1e\0\0\0\0\0\x8d\x42"
     "\x0a\0\0\0\0\0\0\0\x0a\0\0\0"
     "Nine char",
     "\0\2\0\0\0\0\0\x1e\x42\x8d\0\0"
     "\0\0\0\x0a\0\0\0\0\0\0\0\x0a"
     "Nine char"},
    {FUNCTION_PERSON, DCE_RESULTS, 34,
     "\0\0\2\0\x1e\0\0\0\0\0\x8d\x42"
     "\x0a\0\0\0\0\0\0\0\x0a\0\0\0"
     "Nine char",
     "\0\2\0\0\0\0\0\x1e\x42\x8d\0\0"
     "\0\0\0\x0a\0\0\0\0\0\0\0\x0a"
     "Nine char"},
    /* 0, 0.5, 1, 3, 2.5, 1; the root of 13. */
    {FUNCTION_DISTANCE,
     DCE_ARGUMENTS,
     24,
     {0, 0, 0,    0,    0, 0, 0,    0x3f, 0, 0, 0x80, 0x3f,
      0, 0, 0x40, 0x40, 0, 0, 0x20, 0x40, 0, 0, 0x80, 0x3f},
     {0,    0,    0, 0, 0x3f, 0,    0, 0, 0x3f, 0x80, 0, 0,
      0x40, 0x40, 0, 0, 0x40, 0x20, 0, 0, 0x3f, 0x80, 0, 0}},
    {FUNCTION_DISTANCE,
     DCE_RESULTS,
     8,
     {0xf3, 0x59, 0x61, 0x44, 0x2b, 0xd8, 0x0c, 0x40},
     {0x40, 0x0c, 0xd8, 0x2b, 0x44, 0x61, 0x59, 0xf3}},
};
enum { GOLDENS = sizeof(goldens) / sizeof(*goldens) };

static void short_ones_in_both_orders(void)
{
    for (unsigned i = 0; i < GOLDENS; i++)
        for (unsigned order = 0; order < 2; order++) {
            const struct golden *golden = &goldens[i];
            const uint8_t *bytes = order ? golden->big : golden->little;
            uint8_t written[DCE_TWELVE_MOST];
            struct dce_value value;

            memset(&value, DIRTY, sizeof(value));
            dce_twelve_value(golden->function, golden->way, &value);
            memset(written, DIRTY, sizeof(written));
            EXPECT_OF(dce_twelve_put(golden->function, golden->way, &value, written, order) ==
                          golden->length,
                      "%u", i);
            EXPECT_OF(memcmp(written, bytes, golden->length) == 0, "%u", i);
            EXPECT(written[golden->length] == DIRTY);
            memset(&value, DIRTY, sizeof(value));
            value.count = FUNCTION_ELEMENTS;
            EXPECT_OF(
                dce_twelve_get(golden->function, golden->way, &value, bytes, golden->length, order),
                "%u", i);
            EXPECT_OF(dce_twelve_is_value(golden->function, golden->way, &value), "%u", i);
            for (size_t cut = 0; cut <= golden->length + 1; cut++)
                EXPECT_OF(dce_twelve_get(golden->function, golden->way, &value, bytes, cut,
                                         order) == (cut == golden->length),
                          "%u, length %zu", i, cut);
        }
}

static void put32(uint8_t *at, uint32_t value, bool is_big)
{
    for (unsigned i = 0; i < 4; i++)
        at[is_big ? 3 - i : i] = (uint8_t)(value >> 8 * i);
}

/* What the long ones have to be, number by number. */
static size_t expected(enum function function, enum dce_way way, bool is_big, uint8_t *bytes)
{
    uint8_t *at = bytes;
    uint32_t characters = function == FUNCTION_STRING_512 ? 513 : 1025;

    if (function == FUNCTION_STRING_512 || function == FUNCTION_STRING_1024) {
        put32(at, characters, is_big);
        put32(at + 4, 0, is_big);
        put32(at + 8, characters, is_big);
        for (unsigned i = 0; i < characters - 1; i++)
            at[12 + i] = (uint8_t)('a' + i % 26);
        at[12 + characters - 1] = 0;
        return 12 + characters;
    }
    /* The parameter goes one way; the room of the array both. */
    for (unsigned i = 0; i < (way == DCE_ARGUMENTS ? 2 : 1); i++, at += 4)
        put32(at, 200, is_big);
    if (function == FUNCTION_STRING_ARRAY)
        for (unsigned i = 0; i < 200; i++, at += 4)
            put32(at, 0x20000, is_big);
    for (unsigned i = 0; i < 200; i++, at += 4) {
        float half = (float)i / 2;
        uint32_t bits;

        memcpy(&bits, &half, sizeof(bits));
        if (function != FUNCTION_STRING_ARRAY) {
            put32(at, function == FUNCTION_INT_ARRAY ? i : bits, is_big);
            continue;
        }
        put32(at, 7, is_big);
        put32(at + 4, 0, is_big);
        put32(at + 8, 7, is_big);
        memcpy(at + 12, "abcdef\0", 8); /* with the gap in front of the next one */
        at += 16;
    }
    return (size_t)(at - bytes) - (function == FUNCTION_STRING_ARRAY);
}

static void long_ones_in_both_orders(void)
{
    static const struct {
        enum function function;
        size_t arguments, results;
    } functions[] = {
        {FUNCTION_STRING_512, 525, 525},
        {FUNCTION_STRING_1024, 1037, 1037},
        {FUNCTION_INT_ARRAY, 808, 804},
        {FUNCTION_FLOAT_ARRAY, 808, 804},
        {FUNCTION_STRING_ARRAY, DCE_TWELVE_MOST, 4803},
    };
    static uint8_t right[DCE_TWELVE_MOST + 8], written[DCE_TWELVE_MOST];
    static struct dce_value value;

    EXPECT(DCE_TWELVE_MOST == 4807);
    for (unsigned i = 0; i < 4 * sizeof(functions) / sizeof(*functions); i++) {
        enum function function = functions[i / 4].function;
        enum dce_way way = i % 2 ? DCE_ARGUMENTS : DCE_RESULTS;
        bool is_big = i / 2 % 2;
        size_t length = expected(function, way, is_big, right);

        EXPECT(length ==
               (way == DCE_ARGUMENTS ? functions[i / 4].arguments : functions[i / 4].results));
        dce_twelve_value(function, way, &value);
        EXPECT_OF(dce_twelve_put(function, way, &value, written, is_big) == length, "%u", i);
        EXPECT_OF(memcmp(written, right, length) == 0, "%u", i);
        memset(&value, DIRTY, sizeof(value));
        value.count = FUNCTION_ELEMENTS;
        EXPECT_OF(dce_twelve_get(function, way, &value, right, length, is_big), "%u", i);
        EXPECT_OF(dce_twelve_is_value(function, way, &value), "%u", i);
        for (size_t cut = 0; cut <= length + 1; cut++)
            EXPECT_OF(dce_twelve_get(function, way, &value, right, cut, is_big) == (cut == length),
                      "%u, length %zu", i, cut);
    }
}

/* What a number of the function's arguments does in the place of another one. */
enum outcome { NONE, OTHER, SAME };
static const struct {
    enum function function;
    size_t at;
    uint32_t value;
    enum outcome outcome;
} changes[] = {
    {FUNCTION_BOOLEAN, 0, 0, OTHER},
    {FUNCTION_BOOLEAN, 0, 0xff000000, SAME}, /* any number but 0 is true */
    {FUNCTION_INT, 0, 123456788, OTHER},
    {FUNCTION_LONG, 4, 0, OTHER},
    {FUNCTION_STRING_32, 0, 32, NONE}, /* more than there is room for */
    {FUNCTION_STRING_32, 0, 40, SAME}, /* more room than it takes */
    {FUNCTION_STRING_32, 4, 1, NONE},  /* it does not begin at the beginning */
    {FUNCTION_STRING_32, 8, 32, NONE}, /* without its NUL */
    {FUNCTION_STRING_32, 8, 0, NONE},
    {FUNCTION_STRING_32, 12, 0, NONE}, /* NULs in the middle */
    {FUNCTION_STRING_32, 12, 0x7a7a7a7a, OTHER},
    {FUNCTION_INT_ARRAY, 0, 201, NONE}, /* more than the type has */
    {FUNCTION_INT_ARRAY, 0, 199, NONE}, /* not what stands in front of the elements */
    {FUNCTION_INT_ARRAY, 4, 199, NONE},
    {FUNCTION_INT_ARRAY, 8, 1, OTHER},
    {FUNCTION_FLOAT_ARRAY, 804, 0, OTHER},
    {FUNCTION_STRING_ARRAY, 8, 0, NONE}, /* a string that is not there */
    {FUNCTION_STRING_ARRAY, 8, 4, SAME}, /* any number but 0 points to it */
    {FUNCTION_STRING_ARRAY, 808, 0, NONE},
    {FUNCTION_STRING_ARRAY, 820, 0x7a7a7a7a, OTHER},
    {FUNCTION_PERSON, 0, 0, NONE},
    {FUNCTION_PERSON, 4, 31, OTHER},
    {FUNCTION_PERSON, 8, 0, OTHER},
    {FUNCTION_PERSON, 20, 11, NONE},
    {FUNCTION_PERSON, 24, 0x7a7a7a7a, OTHER},
    {FUNCTION_DISTANCE, 20, 0, OTHER},
};

static void what_is_none_or_another(void)
{
    static uint8_t bytes[DCE_TWELVE_MOST];
    static struct dce_value value;

    for (unsigned i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        enum function function = changes[i].function;
        enum outcome outcome = NONE;
        size_t length;

        dce_twelve_value(function, DCE_ARGUMENTS, &value);
        length = dce_twelve_put(function, DCE_ARGUMENTS, &value, bytes, true);
        put32(bytes + changes[i].at, changes[i].value, true);
        if (dce_twelve_get(function, DCE_ARGUMENTS, &value, bytes, length, true))
            outcome = dce_twelve_is_value(function, DCE_ARGUMENTS, &value) ? SAME : OTHER;
        EXPECT_OF(outcome == changes[i].outcome, "%u", i);
    }
}

int main(void)
{
    static const struct test tests[] = {
        {"short_ones_in_both_orders", short_ones_in_both_orders},
        {"long_ones_in_both_orders", long_ones_in_both_orders},
        {"what_is_none_or_another", what_is_none_or_another},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
