/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks' libc: copies at every alignment and overlap, memory, numbers, formats. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sss/system.h"

enum { BYTES = 80, BLOCKS = 200 };

static unsigned failures;

static void expect(int good, const char *what)
{
    if (!good) {
        failures++;
        printf("wrong: %s\n", what);
    }
}

static void fill(uint8_t *bytes)
{
    for (unsigned i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
}

/* Against a copy by bytes into another place. */
static void test_move(void)
{
    for (unsigned from = 0; from < 24; from++)
        for (unsigned to = 0; to < 24; to++)
            for (unsigned length = 0; length < 40; length++) {
                uint8_t bytes[BYTES], expected[BYTES], part[40];

                fill(bytes);
                fill(expected);
                for (unsigned i = 0; i < length; i++)
                    part[i] = bytes[from + i];
                for (unsigned i = 0; i < length; i++)
                    expected[to + i] = part[i];
                memmove(bytes + to, bytes + from, length);
                if (memcmp(bytes, expected, BYTES) != 0) {
                    expect(0, "memmove");
                    return;
                }
            }
}

static void test_set_and_compare(void)
{
    uint8_t a[BYTES], b[BYTES];

    for (unsigned length = 0; length < 40; length++) {
        fill(a);
        fill(b);
        memset(a + 3, 0xee, length);
        for (unsigned i = 0; i < length; i++)
            b[3 + i] = 0xee;
        expect(memcmp(a, b, BYTES) == 0, "memset");
        a[length]++;
        expect(memcmp(a, b, BYTES) > 0 && memcmp(b, a, BYTES) < 0 && memcmp(a, b, length) == 0,
               "memcmp");
    }
    /* cppcheck-suppress staticStringCompare; it is strcmp that is tried */
    expect(strcmp("ab", "abc") < 0 && strcmp("b", "abc") > 0 && strcmp("", "") == 0, "strcmp");
    /* cppcheck-suppress staticStringCompare; and strncmp */
    expect(strncmp("abcd", "abxx", 2) == 0 && strncmp("ab", "abc", 5) < 0, "strncmp");
    expect(strchr("hello", 'l')[1] == 'l' && strrchr("hello", 'l')[1] == 'o' &&
               strchr("x", 'y') == NULL,
           "strchr");
    expect(strcmp(strstr("needle in hay", "in"), "in hay") == 0 && strstr("a", "ab") == NULL,
           "strstr");
    expect(memchr("abc", 'c', 2) == NULL && strnlen("abc", 2) == 2, "bounds");
}

static void test_memory(void)
{
    /* which the compiler does not know to be too much */
    volatile size_t much = 1ull << 33, all = SIZE_MAX;
    static uint8_t *blocks[BLOCKS];
    uint32_t random = 1;

    for (unsigned i = 0; i < 4000; i++) {
        uint8_t **block = &blocks[(random = random * 1664525 + 1013904223) >> 8 & 127];
        size_t bytes = (random >> 16) % (i % 50 == 0 ? 300000 : 3000);

        if (*block != NULL)
            expect((*block)[0] == (uint8_t)(uint64_t)block, "a block of its own");
        *block = i % 3 == 0 ? realloc(*block, bytes + 1) : (free(*block), malloc(bytes + 1));
        expect(*block != NULL && (uint64_t)*block % 16 == 0, "malloc");
        memset(*block, (int)(uint64_t)block & 0xff, bytes + 1);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    for (unsigned i = 0; i < 100; i++) {
        uint8_t *zeros = calloc(100, 10);

        for (unsigned k = 0; k < 1000; k++)
            if (zeros[k] != 0)
                expect(0, "calloc");
        memset(zeros, 0xff, 1000);
        free(zeros);
    }
    /* cppcheck-suppress leakReturnValNotUsed; they return nothing to free */
    expect(calloc(much, much) == NULL && malloc(all) == NULL && malloc(much << 17) == NULL,
           "too much");
}

static void test_numbers(void)
{
    char *end;

    expect(strtoul("  42x", &end, 10) == 42 && *end == 'x', "strtoul");
    expect(strtoul("0x1F", NULL, 0) == 31 && strtoul("017", NULL, 0) == 15 &&
               strtol("-7", NULL, 10) == -7,
           "bases");
    expect(strtoul("zzz", &end, 10) == 0 && *end == 'z', "no number");
    expect(strtoul("99999999999999999999999", NULL, 10) == ~0ul, "too large");
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void test_sort(void)
{
    int values[] = {5, -1, 3, 3, 0, 9, -7};

    qsort(values, 7, sizeof *values, by_value);
    for (unsigned i = 1; i < 7; i++)
        expect(values[i - 1] <= values[i], "qsort");
}

static void test_format(void)
{
    char text[64];
    const char *volatile long_text = "abcdef";

    snprintf(text, sizeof text, "%d|%5d|%-5d|%05d|%x|%lX|%s|%c|%%|%.2s|%*d", -3, 42, 42, -42, 255u,
             0xabcul, "s", 'c', "xyz", 4, 7);
    expect(strcmp(text, "-3|   42|42   |-0042|ff|ABC|s|c|%|xy|   7") == 0, text);
    expect(snprintf(text, 4, "%s", long_text) == 6 && strcmp(text, "abc") == 0, "cut");
    expect(snprintf(NULL, 0, "%u", 12345u) == 5, "length alone");
}

int main(void)
{
    test_move();
    test_set_and_compare();
    test_memory();
    test_numbers();
    test_sort();
    test_format();
    printf("library %u failures\n", failures);
    return 0;
}
