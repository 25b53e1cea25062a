/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of vmmc-client: answers each transfer of a round trip with one of the same size,
 * and says of a stream how much has come. Each byte is checked on arrival. It polls while a batch
 * is under way, for one client at a time; others wait for their turn between batches.
 */
#include <string.h>

#include "client_limits.h"
#include "options.h"
#include "sss/system.h"
#include "vmmc_target.h"

enum { PLACES = 8, BINDING_MS = 30000, BATCH_MS = 25000 };
#define PAUSE_NS UINT64_C(20000)

enum state { FREE, OFFERED, CONNECTED };

static struct place {
    enum state state;
    struct vmmc_target target;
} places[PLACES];
static unsigned offered; /* operations, as a mask */
static struct {
    uint64_t transfers, bytes, wrong, polls;
} counts;

static void report(void)
{
    sss_record("{\"type\":\"counters\",\"app\":\"vmmc-server\",\"calls\":%llu,\"bytes\":%llu,"
               "\"wrong\":%llu,\"polls\":%llu}",
               (unsigned long long)counts.transfers, (unsigned long long)counts.bytes,
               (unsigned long long)counts.wrong, (unsigned long long)counts.polls);
}

/* ---- batches ---- */

static void acknowledge(struct vmmc_target *target, uint32_t done)
{
    if (done % vmmc_target_acknowledged(target->batch.size) == 0 || done == target->batch.transfers)
        *vmmc_target_word(target->pair.out, VMMC_TARGET_TAKEN) = done;
}

static bool is_known(const struct vmmc_batch *batch)
{
    return batch->number != 0 && batch->size >= VMMC_TARGET_WORD &&
           batch->size <= VMMC_TARGET_MOST && batch->size % VMMC_TARGET_WORD == 0;
}

/* It is ready when it has made its first answer and forgotten the stream before. */
static void run_batch(struct vmmc_target *target)
{
    uint64_t word = vmmc_batch_word(&target->batch);
    bool stream = target->batch.stream;

    *vmmc_target_word(target->pair.out, VMMC_TARGET_TAKEN) = 0;
    if (!stream)
        vmmc_target_fill(target, 0);
    *vmmc_target_word(target->pair.out, VMMC_TARGET_BATCH) = word;
    for (uint32_t number = 0; number < target->batch.transfers; number++) {
        if (!vmmc_target_await(target, number, sss_now_ns() + BATCH_MS * NS_PER_MS))
            break;
        if (!stream)
            vmmc_target_send(target, number);
        counts.wrong += !vmmc_target_is_right(target, number);
        counts.transfers++;
        counts.bytes += target->batch.size;
        if (stream)
            acknowledge(target, number + 1);
        else
            vmmc_target_fill(target, number + 1);
    }
    vmmc_target_end(target);
    counts.polls += target->polls;
    target->polls = 0;
}

/* ---- clients ---- */

static void offer(struct place *place, enum vmmc_operation operation)
{
    struct vmmc_pair_setup setup = vmmc_target_setup(operation);
    int error;

    setup.timeout_ns = BINDING_MS * NS_PER_MS;
    place->target = (struct vmmc_target){.operation = operation};
    error = vmmc_pair_offer(&place->target.pair, &setup);
    if (error < 0)
        task_fail("%s cannot be offered: %s", vmmc_operation_names[operation],
                  vmmc_error_text(error));
    place->state = OFFERED;
}

/* One pair of each operation is there to be connected to, as long as there are places. */
static void offer_all(void)
{
    unsigned lacking = offered;
    struct place *place;

    for (place = places; place < places + PLACES; place++)
        if (place->state == OFFERED)
            lacking &= ~(1u << place->target.operation);
    for (unsigned operation = 0; operation < VMMC_OPERATIONS; operation++)
        for (place = places; (lacking >> operation & 1) != 0 && place < places + PLACES; place++)
            if (place->state == FREE) {
                offer(place, (enum vmmc_operation)operation);
                lacking &= ~(1u << operation);
            }
}

/* Whether something has changed at the place. */
static bool visit(struct place *place)
{
    struct vmmc_target *target = &place->target;
    uint64_t word;
    int heard;

    if (place->state == FREE)
        return false;
    if (place->state == OFFERED) {
        heard = vmmc_pair_accept(&target->pair);
        if (heard > 0) {
            int error = vmmc_target_prepare(target);

            if (error < 0) {
                vmmc_target_close(target);
                heard = error;
            }
        }
        if (heard < 0 && heard != -(VMMC_REFUSED + VMMC_GONE))
            sss_log("vmmc-server: a client of %s is refused: %s",
                    vmmc_operation_names[target->operation], vmmc_error_text(heard));
        place->state = heard > 0 ? CONNECTED : heard < 0 ? FREE : OFFERED;
        return heard != 0;
    }
    word = __atomic_load_n(vmmc_target_word(target->pair.in, VMMC_TARGET_BATCH), __ATOMIC_ACQUIRE);
    if (word != vmmc_batch_word(&target->batch)) {
        struct vmmc_batch batch = vmmc_batch_of(word);

        if (!is_known(&batch))
            task_fail("node %u asks for a batch that cannot be", target->pair.peer);
        target->batch = batch;
        run_batch(target);
        return true;
    }
    if (!vmmc_pair_ended(&target->pair))
        return false;
    vmmc_target_close(target);
    place->state = FREE;
    report();
    return true;
}

/* Until a client imports, or for a while where that has happened. */
static void pause(void)
{
    static const volatile uint32_t nothing;
    struct sss_wait words[PLACES + 1] = {{&nothing, 0, 0}};
    unsigned count = 1;
    bool busy = false;

    for (struct place *place = places; place < places + PLACES; place++) {
        busy |= place->state == CONNECTED ||
                (place->state == OFFERED && place->target.pair.imported != 0);
        if (place->state == OFFERED)
            words[count++] = (struct sss_wait){&place->target.pair.imported, 0, 0};
    }
    sss_wait(words, busy ? 1 : count, busy ? PAUSE_NS : SSS_FOREVER);
}

int main(int argc, char **argv)
{
    options_open(argc, argv, "vmmc-server");
    offered = options_words("transports", vmmc_operation_names, (1u << VMMC_OPERATIONS) - 1);
    options_check_all_taken();
    offer_all();
    sss_ready();
    for (;;) {
        bool changed = false;

        for (struct place *place = places; place < places + PLACES; place++)
            changed |= visit(place);
        offer_all();
        if (!changed)
            pause();
    }
}
