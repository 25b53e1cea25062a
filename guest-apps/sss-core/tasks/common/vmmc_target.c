/* SPDX-License-Identifier: Apache-2.0 */
#include "vmmc_target.h"

#include <stdio.h>
#include <string.h>

#include "pattern.h"
#include "sss/system.h"

enum { TURNS = 2000, ACKNOWLEDGED_PART = 4, STREAM_AT = 16, TRANSFERS_AT = 20, SIZE_AT = 44 };
/* No eight bytes of the pattern in a row are these. */
#define FLAG UINT64_C(0x434d4d5600000000)

const char *const vmmc_operation_names[] = {"au", "au-combined", "du", NULL};

uint64_t vmmc_batch_word(const struct vmmc_batch *batch)
{
    return batch->number | (uint64_t)batch->stream << STREAM_AT |
           (uint64_t)batch->transfers << TRANSFERS_AT | (uint64_t)batch->size << SIZE_AT;
}

struct vmmc_batch vmmc_batch_of(uint64_t word)
{
    return (struct vmmc_batch){.number = word & 0xffff,
                               .stream = (word >> STREAM_AT & 1) != 0,
                               .transfers = word >> TRANSFERS_AT & 0xffffff,
                               .size = (uint32_t)(word >> SIZE_AT)};
}

struct vmmc_pair_setup vmmc_target_setup(enum vmmc_operation operation)
{
    struct vmmc_pair_setup setup = {.hash = VMMC_TARGET_HASH,
                                    .pages = VMMC_TARGET_PAGES,
                                    .use = VMMC_MEMORY,
                                    .combine = operation == VMMC_AU_COMBINED};

    snprintf(setup.name, sizeof(setup.name), "vmmc.%s", vmmc_operation_names[operation]);
    return setup;
}

int vmmc_target_prepare(struct vmmc_target *target)
{
    target->message = sss_map(NULL, (size_t)VMMC_TARGET_PAGES * VMMC_PAGE, SSS_READ | SSS_WRITE);
    if (target->message == NULL)
        return -SSS_ENOMEM;
    if (target->operation != VMMC_DU)
        return 0;
    target->source = vmmc_source(target->pair.handle, target->message, VMMC_TARGET_PAGES);
    return target->source < 0 ? target->source : 0;
}

void vmmc_target_close(struct vmmc_target *target)
{
    vmmc_pair_close(&target->pair);
    if (target->message != NULL)
        sss_unmap(target->message, (size_t)VMMC_TARGET_PAGES * VMMC_PAGE);
    target->message = NULL;
}

/* ---- transfers ---- */

static uint32_t slot_bytes(uint32_t size)
{
    return (size + VMMC_PAGE - 1) / VMMC_PAGE * VMMC_PAGE;
}

uint32_t vmmc_target_slots(uint32_t size)
{
    return VMMC_TARGET_PAGES * VMMC_PAGE / slot_bytes(size);
}

uint32_t vmmc_target_acknowledged(uint32_t size)
{
    return vmmc_target_slots(size) / ACKNOWLEDGED_PART;
}

/* In the data pages. */
static uint32_t place_of(uint32_t size, uint32_t number)
{
    return (number % vmmc_target_slots(size) + 1) * slot_bytes(size) - size;
}

static uint64_t flag_of(const struct vmmc_target *target, uint32_t number)
{
    return FLAG | (target->done + number + 1);
}

void vmmc_target_fill(struct vmmc_target *target, uint32_t number)
{
    uint32_t size = target->batch.size, pattern = size - VMMC_TARGET_WORD;
    uint8_t *message = target->message + place_of(size, number);
    uint64_t flag = flag_of(target, number);

    pattern_fill(PATTERN_OPAQUE, number, 0, message, pattern);
    memcpy(message + pattern, &flag, sizeof(flag));
}

/* A function by itself: storing takes no longer for what this one saves. */
static __attribute__((noinline)) void send_deliberately(const struct vmmc_target *target,
                                                        uint32_t place)
{
    vmmc_pair_send(&target->pair, (unsigned)target->source, place, VMMC_PAGE + place,
                   target->batch.size, false);
}

void vmmc_target_send(struct vmmc_target *target, uint32_t number)
{
    uint32_t size = target->batch.size, place = place_of(size, number);
    const uint64_t *from = (const uint64_t *)(target->message + place);
    volatile uint64_t *to = (volatile uint64_t *)(target->pair.out + VMMC_PAGE + place);

    if (target->operation == VMMC_DU) {
        send_deliberately(target, place);
        return;
    }
    for (uint32_t word = 0; word < size / VMMC_TARGET_WORD; word++)
        to[word] = from[word];
}

/* Whether a word gets to `least`, or to at most so much more. */
static bool await(struct vmmc_target *target, const volatile uint64_t *word, uint64_t least,
                  uint64_t more, uint64_t deadline_ns)
{
    for (;;) {
        /* Read first: what was stored before the peer ended has arrived before it. */
        bool ended = vmmc_pair_ended(&target->pair);

        for (unsigned turn = 1; turn <= TURNS; turn++)
            if (__atomic_load_n(word, __ATOMIC_ACQUIRE) - least <= more) {
                target->polls += turn;
                return true;
            }
        target->polls += TURNS;
        if (ended || sss_now_ns() >= deadline_ns)
            return false;
        sss_yield();
    }
}

bool vmmc_target_await(struct vmmc_target *target, uint32_t number, uint64_t deadline_ns)
{
    uint32_t end = place_of(target->batch.size, number) + target->batch.size;
    const volatile uint8_t *flag = target->pair.in + VMMC_PAGE + end - VMMC_TARGET_WORD;

    return await(target, (const volatile uint64_t *)flag, flag_of(target, number), 0, deadline_ns);
}

bool vmmc_target_await_word(struct vmmc_target *target, unsigned word, uint64_t least,
                            uint64_t deadline_ns)
{
    return await(target, vmmc_target_word(target->pair.in, word), least,
                 word == VMMC_TARGET_TAKEN ? UINT32_MAX : 0, deadline_ns);
}

bool vmmc_target_is_right(const struct vmmc_target *target, uint32_t number)
{
    uint32_t size = target->batch.size, pattern = size - VMMC_TARGET_WORD;
    const volatile uint8_t *message = target->pair.in + VMMC_PAGE + place_of(size, number);
    uint64_t flag = *(const volatile uint64_t *)(message + pattern);

    /* Nothing is written there before it is answered. */
    return flag == flag_of(target, number) &&
           pattern_matches(PATTERN_OPAQUE, number, 0, (const void *)(uintptr_t)message, pattern);
}

void vmmc_target_end(struct vmmc_target *target)
{
    target->done += target->batch.transfers;
}
