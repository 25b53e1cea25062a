// SPDX-License-Identifier: GPL-2.0-or-later
#include "blocks.h"

#include "qemu.h"

#include <stddef.h>

// What translated code returns: a block's address, and in its lowest bits how it was left.
typedef uintptr_t execute(void *env, const void *code);
enum { LEFT_MASK = 3, LEFT_BEFORE_BLOCK = 3 }; // TB_EXIT_MASK, TB_EXIT_REQUESTED

// IcountDecr: instructions until the chain of blocks is left; `kick` is nonzero to leave it at
// once.
struct countdown {
    uint16_t left, kick;
};

// CPUState.icount_budget and icount_extra. What was executed is budget - extra - countdown.left.
struct budget {
    int64_t all, extra;
};

static execute *execute_blocks;
static blocks_look *ask;

static volatile struct countdown *countdown;
static struct budget *budget;
static bool limited; // the countdown ends at a look, before the budget does
static bool full;    // the chain was left because the next block is longer than the countdown

// ---- Where QEMU keeps its budget --------------------------------------------------------------

// Neither place is at an offset that could be relied on from build to build. So they are looked
// for: after the executed instructions have been accounted, budget == extra + countdown. The one
// pair for which this still holds after several entries with different countdowns is then tried.
enum { CANDIDATES = 64, DIFFERENT_ENTRIES = 6, ENTRIES_MOST = 4096, COUNTDOWN_REACH = 128 };

static struct candidate {
    volatile struct countdown *countdown;
    struct budget *budget;
    uint16_t last;
    unsigned changes; // what never changes is not a countdown
} candidates[CANDIDATES];
static size_t candidate_count;
static unsigned entries;
static bool given_up;

static bool fits(const volatile struct countdown *c, const struct budget *b)
{
    return c->left && b->all > 0 && b->extra >= 0 && b->all == b->extra + c->left;
}

static void find_candidates(uint8_t *cpu, uint8_t *env)
{
    for (uint8_t *c = env - COUNTDOWN_REACH; c < env; c += _Alignof(uint32_t))
        for (uint8_t *b = cpu; b + sizeof(struct budget) <= env - COUNTDOWN_REACH;
             b += _Alignof(struct budget)) {
            struct candidate found = {(struct countdown *)c, (struct budget *)b, 0, 0};
            if (!fits(found.countdown, found.budget))
                continue;
            if (candidate_count == CANDIDATES) { // the numbers are too common: try another entry
                candidate_count = 0;
                return;
            }
            found.last = found.countdown->left;
            candidates[candidate_count++] = found;
        }
}

static void drop_candidates(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < candidate_count; i++) {
        struct candidate *c = &candidates[i];
        if (!fits(c->countdown, c->budget))
            continue;
        c->changes += c->countdown->left != c->last;
        c->last = c->countdown->left;
        candidates[kept++] = *c;
    }
    candidate_count = kept;
}

// The only candidate that changes, once it has changed often enough.
static struct candidate *only_candidate(void)
{
    struct candidate *only = NULL;
    for (size_t i = 0; i < candidate_count; i++) {
        if (!candidates[i].changes)
            continue;
        if (only)
            return NULL;
        only = &candidates[i];
    }
    return only && only->changes >= DIFFERENT_ENTRIES ? only : NULL;
}

// One instruction moved from the countdown to the rest changes nothing, if these are they; QEMU
// computes with both.
static bool works(volatile struct countdown *c, struct budget *b)
{
    int64_t executed = qemu.icount_get_raw();
    c->left--;
    b->extra++;
    bool same = qemu.icount_get_raw() == executed;
    c->left++;
    b->extra--;
    return same && qemu.icount_get_raw() == executed;
}

static void look_for_budget(void *env)
{
    if (given_up)
        return;
    given_up = ++entries == ENTRIES_MOST;
    qemu.icount_get_raw(); // accounts what was executed
    if (!candidate_count) {
        find_candidates(qemu_current_cpu(), env);
        return;
    }
    drop_candidates();
    struct candidate *found = only_candidate();
    if (!found)
        return;
    if (!works(found->countdown, found->budget)) {
        given_up = true;
        return;
    }
    budget = found->budget;
    countdown = found->countdown;
}

// ---- The door ---------------------------------------------------------------------------------

// Lets the chain of blocks be left after so many instructions, or earlier where the budget ends.
// What was executed stays as it is.
static void limit(uint64_t instructions)
{
    uint64_t left = countdown->left;
    // Where the countdown is too small for it, QEMU fills it up on the way, and asks again.
    limited = instructions <= left && instructions < left + (uint64_t)budget->extra;
    if (instructions >= left)
        return;
    budget->extra += (int64_t)(left - instructions);
    countdown->left = (uint16_t)instructions;
}

void blocks_shorten(uint64_t instructions)
{
    if (instructions < countdown->left)
        limit(instructions);
}

static uintptr_t enter(void *env, const void *code)
{
    if (countdown)
        limit(ask(full));
    else
        look_for_budget(env);
    full = false;
    uintptr_t left = execute_blocks(env, code);
    // A helper that leaves the loop with longjmp does not come here; then nothing was full.
    full = countdown && limited && (left & LEFT_MASK) == LEFT_BEFORE_BLOCK && !countdown->kick;
    return left;
}

void blocks_watch(blocks_look *look)
{
    execute **door = qemu.tcg_qemu_tb_exec;
    if (!door || !*door)
        return;
    ask = look;
    execute_blocks = *door;
    *door = enter;
}

bool blocks_watched(void)
{
    return countdown != NULL;
}

int64_t blocks_unaccounted(void)
{
    return budget->all - budget->extra - countdown->left;
}

void blocks_renew_budget(uint64_t instruction_ns)
{
    // icount_get_limit() of QEMU, but for timers in real time, which the main loop runs anyway.
    int64_t deadline_ns = qemu.clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_TIMER_ATTR_ALL);
    if (deadline_ns < 0 || deadline_ns > INT32_MAX)
        deadline_ns = INT32_MAX;
    qemu.icount_get_raw(); // accounts what was executed: what is left is all there is
    int64_t instructions = (deadline_ns + (int64_t)instruction_ns - 1) / (int64_t)instruction_ns;
    uint16_t left = (uint16_t)(instructions < UINT16_MAX ? instructions : UINT16_MAX);
    budget->all = instructions;
    budget->extra = instructions - left;
    countdown->left = left;
}
