/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a task. Blocks are powers of two, each behind a header that says how large it is; free
 * ones form a list for each size. Blocks above 128 KiB are mappings of their own. Threads of one
 * task may allocate: a thread that finds the lists in use yields.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sss/system.h"

enum { SIZES = 14, LEAST = 32, LARGEST = LEAST << (SIZES - 1), ARENA = 2 * LARGEST, PAGE = 4096 };

struct block {
    size_t bytes;       /* header included */
    struct block *next; /* while it is free */
};
enum { HEADER = sizeof(struct block) };
_Static_assert(HEADER == 16, "what malloc returns is 16-byte aligned");

static struct block *free_blocks[SIZES];
static char *arena, *arena_end; /* not cut into blocks yet */
static bool in_use;

static void lock(void)
{
    while (__atomic_test_and_set(&in_use, __ATOMIC_ACQUIRE))
        sss_yield();
}

static void unlock(void)
{
    __atomic_clear(&in_use, __ATOMIC_RELEASE);
}

static unsigned size_index(size_t bytes)
{
    unsigned index = 0;

    while (((size_t)LEAST << index) < bytes)
        index++;
    return index;
}

/* What is left of an arena is given up: smaller than the block that is asked for. */
static struct block *cut(size_t bytes)
{
    struct block *block;

    if ((size_t)(arena_end - arena) < bytes) {
        arena = sss_map(NULL, ARENA, SSS_READ | SSS_WRITE);
        arena_end = arena == NULL ? NULL : arena + ARENA;
        if (arena == NULL)
            return NULL;
    }
    block = (struct block *)arena;
    arena += bytes;
    return block;
}

static struct block *take(unsigned index)
{
    struct block *block = free_blocks[index];

    if (block == NULL)
        return cut((size_t)LEAST << index);
    free_blocks[index] = block->next;
    return block;
}

void *malloc(size_t size)
{
    size_t bytes = size + HEADER;
    struct block *block;

    if (bytes < size)
        return NULL;
    if (bytes > LARGEST) {
        bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
        block = bytes == 0 ? NULL : sss_map(NULL, bytes, SSS_READ | SSS_WRITE);
    } else {
        unsigned index = size_index(bytes);

        bytes = (size_t)LEAST << index;
        lock();
        block = take(index);
        unlock();
    }
    if (block == NULL)
        return NULL;
    block->bytes = bytes;
    return block + 1;
}

void free(void *memory)
{
    struct block *block;
    unsigned index;

    if (memory == NULL)
        return;
    block = (struct block *)memory - 1;
    if (block->bytes > LARGEST) {
        sss_unmap(block, block->bytes);
        return;
    }
    index = size_index(block->bytes);
    lock();
    block->next = free_blocks[index];
    free_blocks[index] = block;
    unlock();
}

void *calloc(size_t count, size_t bytes)
{
    void *memory;

    if (bytes != 0 && count > SIZE_MAX / bytes)
        return NULL;
    memory = malloc(count * bytes);
    return memory == NULL ? NULL : memset(memory, 0, count * bytes);
}

void *realloc(void *memory, size_t bytes)
{
    size_t old = memory == NULL ? 0 : ((struct block *)memory - 1)->bytes - HEADER;
    void *moved;

    if (memory != NULL && bytes <= old)
        return memory;
    moved = malloc(bytes);
    if (moved == NULL)
        return NULL;
    memcpy(moved, memory, old);
    free(memory);
    return moved;
}

char *strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);

    return copy == NULL ? NULL : memcpy(copy, text, bytes);
}

/* ---- ends ---- */

void exit(int status)
{
    fflush(NULL);
    sss_exit(status);
}

void abort(void)
{
    __builtin_trap();
}

/* ---- numbers ---- */

static int digit_of(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    character |= 0x20;
    return character >= 'a' && character <= 'z' ? character - 'a' + 10 : 36;
}

unsigned long strtoul(const char *text, char **end, int base)
{
    const char *at = text;
    unsigned long value = 0;
    bool minus = false, any = false;

    while (*at == ' ' || (*at >= '\t' && *at <= '\r'))
        at++;
    if (*at == '-' || *at == '+')
        minus = *at++ == '-';
    if ((base == 0 || base == 16) && at[0] == '0' && (at[1] | 0x20) == 'x' &&
        digit_of(at[2]) < 16) {
        base = 16;
        at += 2;
    } else if (base == 0) {
        base = *at == '0' ? 8 : 10;
    }
    for (; digit_of(*at) < base; at++, any = true) {
        unsigned long digit = (unsigned long)digit_of(*at);

        /* What is too large stays at the largest. */
        value = value > (~0ul - digit) / (unsigned long)base ? ~0ul
                                                             : value * (unsigned long)base + digit;
    }
    if (end != NULL)
        *end = (char *)(uintptr_t)(any ? at : text);
    return minus ? -value : value;
}

long strtol(const char *text, char **end, int base)
{
    return (long)strtoul(text, end, base);
}

int atoi(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

/* ---- sorting: by insertion into a sorted front, which is stable; for the few dozen things a task
 * sorts ---- */

static void swap_bytes(char *a, char *b, size_t bytes)
{
    while (bytes-- != 0) {
        char kept = *a;

        *a++ = *b;
        *b++ = kept;
    }
}

void qsort(void *base, size_t count, size_t bytes, int (*compare)(const void *a, const void *b))
{
    char *first = base;

    for (size_t i = 1; i < count; i++)
        for (char *at = first + i * bytes; at > first && compare(at - bytes, at) > 0; at -= bytes)
            swap_bytes(at - bytes, at, bytes);
}
