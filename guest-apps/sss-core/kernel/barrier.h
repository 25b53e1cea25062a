/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The compiler's and the processor's barriers: between the kernel and its devices. */

/* x86 keeps stores in order and loads in order (Intel SDM 3A 8.2.2): the compiler alone must not
 * reorder them. */
static inline void compiler_barrier(void)
{
    __asm__ volatile("" : : : "memory");
}

/* Earlier stores are visible before later loads. */
static inline void full_barrier(void)
{
    __asm__ volatile("mfence" : : : "memory");
}
