/* SPDX-License-Identifier: Apache-2.0 */
#include "mix.h"

/*
 * The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
 */
static uint64_t scramble(uint64_t value)
{
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

uint64_t mix_seed(uint64_t seed, const char *name, uint64_t index)
{
    uint64_t state = scramble(seed);

    for (; *name != '\0'; name++)
        state = scramble(state ^ (unsigned char)*name);
    return scramble(state ^ index);
}
