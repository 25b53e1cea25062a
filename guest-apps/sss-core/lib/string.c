/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and strings, for tasks and for the kernel. Copies go by words: under icount each
 * repetition of a string instruction counts as an instruction, and by bytes they would be eight
 * times as many.
 */
#include <stdint.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
    void *result = to;
    size_t words = length / 8, bytes = length % 8;

    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
    if (bytes != 0)
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return result;
}

void *memmove(void *to, const void *from, size_t length)
{
    char *last = (char *)to + length - 1;
    const char *last_from = (const char *)from + length - 1;
    size_t bytes = length % 8, words = length / 8;

    if ((uintptr_t)to - (uintptr_t)from >= length)
        return memcpy(to, from, length);
    /* Backwards; the direction flag is clear everywhere else. */
    __asm__ volatile("std; rep movsb; subq $7, %0; subq $7, %1; movq %3, %2; rep movsq; cld"
                     : "+D"(last), "+S"(last_from), "+c"(bytes)
                     : "r"(words)
                     : "memory");
    return to;
}

void *memset(void *to, int value, size_t length)
{
    void *result = to;
    size_t words = length / 8, bytes = length % 8;
    uint64_t pattern = (uint8_t)value * 0x0101010101010101ull;

    __asm__ volatile("rep stosq" : "+D"(to), "+c"(words) : "a"(pattern) : "memory");
    if (bytes != 0)
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(pattern) : "memory");
    return result;
}

int memcmp(const void *a, const void *b, size_t length)
{
    const uint8_t *left = a, *right = b;

    while (length >= 8 && *(const uint64_t *)left == *(const uint64_t *)right) {
        left += 8;
        right += 8;
        length -= 8;
    }
    for (; length != 0; length--, left++, right++)
        if (*left != *right)
            return *left - *right;
    return 0;
}

enum { WORD = 8 };
typedef uint64_t __attribute__((may_alias)) any_word;

/* Not 0 where one of the bytes is 0; the lowest of them is the lowest bit that is set. */
static inline uint64_t zero_bytes(uint64_t word)
{
    return (word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull;
}

/* By aligned words, which never reach into a page where none of the bytes is. */
void *memchr(const void *where, int value, size_t length)
{
    const uint8_t *at = where;
    const uint8_t *end = length < UINTPTR_MAX - (uintptr_t)where
                             ? at + length
                             : (const uint8_t *)UINTPTR_MAX - WORD;
    uint64_t pattern = (uint8_t)value * 0x0101010101010101ull;

    for (; at < end && (uintptr_t)at % WORD != 0; at++)
        if (*at == (uint8_t)value)
            return (void *)(uintptr_t)at;
    for (; at < end; at += WORD) {
        uint64_t found = zero_bytes(*(const any_word *)(const void *)at ^ pattern);

        if (found != 0) {
            at += __builtin_ctzll(found) / 8;
            return at < end ? (void *)(uintptr_t)at : NULL;
        }
    }
    return NULL;
}

size_t strlen(const char *text)
{
    const char *end = text;
    uint64_t found;

    for (; (uintptr_t)end % WORD != 0; end++)
        if (*end == '\0')
            return (size_t)(end - text);
    while ((found = zero_bytes(*(const any_word *)(const void *)end)) == 0)
        end += WORD;
    return (size_t)(end - text) + (size_t)__builtin_ctzll(found) / 8;
}

size_t strnlen(const char *text, size_t most)
{
    const char *end = memchr(text, '\0', most);

    return end == NULL ? most : (size_t)(end - text);
}

int strcmp(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

int strncmp(const char *a, const char *b, size_t length)
{
    for (; length != 0; length--, a++, b++)
        if (*a != *b || *a == '\0')
            return (unsigned char)*a - (unsigned char)*b;
    return 0;
}

char *strcpy(char *restrict to, const char *restrict from)
{
    return memcpy(to, from, strlen(from) + 1);
}

char *strncpy(char *restrict to, const char *restrict from, size_t size)
{
    size_t length = strnlen(from, size);

    memcpy(to, from, length);
    memset(to + length, 0, size - length);
    return to;
}

char *strcat(char *restrict to, const char *restrict from)
{
    strcpy(to + strlen(to), from);
    return to;
}

char *strchr(const char *text, int character)
{
    for (; *text != (char)character; text++)
        if (*text == '\0')
            return NULL;
    return (char *)(uintptr_t)text;
}

char *strrchr(const char *text, int character)
{
    const char *found = NULL;

    for (;; text++) {
        if (*text == (char)character)
            found = text;
        if (*text == '\0')
            return (char *)(uintptr_t)found;
    }
}

char *strstr(const char *text, const char *part)
{
    size_t length = strlen(part);

    for (; strncmp(text, part, length) != 0; text++)
        if (*text == '\0')
            return NULL;
    return (char *)(uintptr_t)text;
}
