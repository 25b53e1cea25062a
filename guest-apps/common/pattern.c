/* SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

#include <string.h>

enum {
    BLOCK = 256,
    CALL_STEP = 131,
    BYTE_STEP = 7,
    BYTE_STEP_INVERSE = 183, /* 7 * 183 = 1 (mod 256) */
    FIRST_PRINTABLE = 33,
    PRINTABLES = 94,
};

#define OPAQUE(m)     ((uint8_t)((m)*BYTE_STEP))
#define TEXT(m)       ((uint8_t)(FIRST_PRINTABLE + OPAQUE(m) % PRINTABLES))
#define FOUR(f, m)    f(m), f((m) + 1), f((m) + 2), f((m) + 3)
#define SIXTEEN(f, m) FOUR(f, m), FOUR(f, (m) + 4), FOUR(f, (m) + 8), FOUR(f, (m) + 12)
#define SIXTY_FOUR(f, m)                                                                           \
    SIXTEEN(f, m), SIXTEEN(f, (m) + 16), SIXTEEN(f, (m) + 32), SIXTEEN(f, (m) + 48)
#define PERIOD(f, m)                                                                               \
    SIXTY_FOUR(f, m), SIXTY_FOUR(f, (m) + 64), SIXTY_FOUR(f, (m) + 128), SIXTY_FOUR(f, (m) + 192)

/* Two periods of 7 * m (mod 256), so that a block can be read from any start below 256. */
static const uint8_t tables[2][2 * BLOCK] = {
    [PATTERN_OPAQUE] = {PERIOD(OPAQUE, 0), PERIOD(OPAQUE, 256)},
    [PATTERN_TEXT] = {PERIOD(TEXT, 0), PERIOD(TEXT, 256)},
};

/* Where in the table the block starts whose first byte has the value base + block number. */
static const uint8_t *block_start(enum pattern_kind kind, uint8_t base, size_t block)
{
    return tables[kind] + (((base + block) * BYTE_STEP_INVERSE) & (BLOCK - 1));
}

void pattern_fill(enum pattern_kind kind, uint32_t sequence, size_t from, void *bytes,
                  size_t length)
{
    uint8_t *out = bytes;
    uint8_t base = (uint8_t)(sequence * CALL_STEP);

    while (length > 0) {
        size_t offset = from % BLOCK;
        size_t part = BLOCK - offset < length ? BLOCK - offset : length;

        memcpy(out, block_start(kind, base, from / BLOCK) + offset, part);
        out += part;
        from += part;
        length -= part;
    }
}

/* Two words: one register of SSE2 where the compiler may use it. */
typedef uint64_t word_pair __attribute__((vector_size(16)));

static void add_difference(word_pair *sum, const uint8_t *a, const uint8_t *b)
{
    word_pair from_a, from_b;

    memcpy(&from_a, a, sizeof(from_a));
    memcpy(&from_b, b, sizeof(from_b));
    *sum |= from_a ^ from_b;
}

static uint64_t load_word(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

/* memcmp() == 0, by words: musl's memcmp compares bytes, six instructions each. */
static bool are_equal(const uint8_t *a, const uint8_t *b, size_t length)
{
    word_pair pairs = {0, 0};
    uint64_t difference;

    for (; length >= 64; length -= 64, a += 64, b += 64) {
        add_difference(&pairs, a, b);
        add_difference(&pairs, a + 16, b + 16);
        add_difference(&pairs, a + 32, b + 32);
        add_difference(&pairs, a + 48, b + 48);
    }
    difference = pairs[0] | pairs[1];
    for (; length >= 8; length -= 8, a += 8, b += 8)
        difference |= load_word(a) ^ load_word(b);
    for (; length > 0; length--)
        difference |= *a++ ^ *b++;
    return difference == 0;
}

static bool matches_base(enum pattern_kind kind, uint8_t base, size_t from, const uint8_t *bytes,
                         size_t length)
{
    while (length > 0) {
        size_t offset = from % BLOCK;
        size_t part = BLOCK - offset < length ? BLOCK - offset : length;

        if (!are_equal(bytes, block_start(kind, base, from / BLOCK) + offset, part))
            return false;
        bytes += part;
        from += part;
        length -= part;
    }
    return true;
}

bool pattern_matches(enum pattern_kind kind, uint32_t sequence, size_t from, const void *bytes,
                     size_t length)
{
    return matches_base(kind, (uint8_t)(sequence * CALL_STEP), from, bytes, length);
}

bool pattern_matches_any(enum pattern_kind kind, const void *bytes, size_t length)
{
    const uint8_t *first = bytes;

    if (length == 0)
        return true;
    if (kind == PATTERN_OPAQUE)
        return matches_base(kind, *first, 0, bytes, length);
    if (*first < FIRST_PRINTABLE || *first >= FIRST_PRINTABLE + PRINTABLES)
        return false;
    /* The first character tells the base only modulo 94: at most three bases are left. */
    for (unsigned base = *first - FIRST_PRINTABLE; base < BLOCK; base += PRINTABLES)
        if (matches_base(kind, (uint8_t)base, 0, bytes, length))
            return true;
    return false;
}
