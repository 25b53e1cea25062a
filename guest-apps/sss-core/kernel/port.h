/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* I/O ports and the compiler's and processor's barriers. */
#include <stdint.h>

static inline void port_write8(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static inline void port_write16(uint16_t port, uint16_t value)
{
    __asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static inline void port_write32(uint16_t port, uint32_t value)
{
    __asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static inline uint8_t port_read8(uint16_t port)
{
    uint8_t value;

    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port) : "memory");
    return value;
}

static inline uint32_t port_read32(uint16_t port)
{
    uint32_t value;

    __asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port) : "memory");
    return value;
}

/* x86 keeps stores in order and loads in order (Intel SDM 3A 8.2.2): the compiler alone must not reorder them. */
static inline void compiler_barrier(void)
{
    __asm__ volatile("" : : : "memory");
}

/* A store before must be seen before a load after it. */
static inline void full_barrier(void)
{
    __asm__ volatile("mfence" : : : "memory");
}
