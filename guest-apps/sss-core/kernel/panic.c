/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine ends because of a fault in the kernel. There are no frame pointers: the backtrace is
 * each word on the stack that points after a call instruction, so a line may be a leftover of an
 * earlier call.
 */
#include "panic.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "console.h"
#include "cpu.h"
#include "kformat.h"
#include "memory.h"
#include "symbols.h"
#include "trap.h"

enum { LINES = 24, STACK_WORDS = 2048 };

extern char kernel_begin[], kernel_rodata[], kernel_data[], kernel_end[], kernel_stack_guard[];

static bool in_text(uint64_t address)
{
    return address >= (uint64_t)kernel_begin && address < (uint64_t)kernel_rodata;
}

static void print_place(uint64_t address)
{
    uint64_t offset;
    const char *name = in_text(address) ? symbol_at(address, &offset) : NULL;

    if (name == NULL)
        kprintf("  0x%lx\n", address);
    else
        kprintf("  0x%lx %s+0x%lx\n", address, name, offset);
}

/* call rel32, or call through a register or memory (ff /2, of 2, 3, 6 or 7 bytes). */
static bool follows_call(uint64_t address)
{
    static const uint8_t lengths[] = {2, 3, 6, 7};
    const uint8_t *at = (const uint8_t *)address;

    if (!in_text(address - 8) || !in_text(address))
        return false;
    if (at[-5] == 0xe8) {
        uint64_t target = address + (uint64_t)(int64_t) * (const int32_t *)(at - 4);

        if (target >= (uint64_t)kernel_begin && target < (uint64_t)kernel_end)
            return true;
    }
    for (unsigned i = 0; i < sizeof(lengths); i++)
        if (at[-lengths[i]] == 0xff && (at[-lengths[i] + 1] & 0x38) == 0x10)
            return true;
    return false;
}

static bool in_data(uint64_t address)
{
    return address >= (uint64_t)kernel_data && address < (uint64_t)kernel_end - sizeof(uint64_t) &&
           address - (uint64_t)kernel_stack_guard >= PAGE;
}

static void print_backtrace(uint64_t rsp)
{
    unsigned lines = 0;

    kprintf("backtrace:\n");
    for (unsigned i = 0; i < STACK_WORDS && lines < LINES; i++, rsp += sizeof(uint64_t)) {
        if (!in_data(rsp)) {
            /* The guard page: the stack has overflowed and continues above it. */
            if (rsp - (uint64_t)kernel_stack_guard >= PAGE)
                return;
            rsp = (uint64_t)kernel_stack_guard + PAGE - sizeof(uint64_t);
            continue;
        }
        if (follows_call(*(const uint64_t *)rsp)) {
            print_place(*(const uint64_t *)rsp);
            lines++;
        }
    }
}

static void print_registers(const struct trap_frame *frame)
{
    kprintf("rip %016lx rflags %08lx cs %lx ss %lx\n", frame->rip, frame->rflags, frame->cs,
            frame->ss);
    kprintf("rax %016lx rbx %016lx rcx %016lx rdx %016lx\n", frame->rax, frame->rbx, frame->rcx,
            frame->rdx);
    kprintf("rsi %016lx rdi %016lx rbp %016lx rsp %016lx\n", frame->rsi, frame->rdi, frame->rbp,
            frame->rsp);
    kprintf("r8  %016lx r9  %016lx r10 %016lx r11 %016lx\n", frame->r8, frame->r9, frame->r10,
            frame->r11);
    kprintf("r12 %016lx r13 %016lx r14 %016lx r15 %016lx\n", frame->r12, frame->r13, frame->r14,
            frame->r15);
    kprintf("cr2 %016lx cr3 %016lx vector %lu error %lx\n", read_cr2(), read_cr3(), frame->vector,
            frame->error);
}

/* ACPI S5 of QEMU's q35 and pc machines; SeaBIOS has put the registers there. */
static _Noreturn void power_off(void)
{
    outw(0x604, 0x2000);
    for (;;)
        __asm__ volatile("cli; hlt");
}

static void (*print_who)(void);

void panic_who(void (*print)(void))
{
    print_who = print;
}

static _Noreturn void end(const struct trap_frame *frame, const char *format, va_list arguments)
{
    static bool ending;
    char what[160];

    if (ending)
        power_off(); /* a panic while one is being printed */
    ending = true;
    kvsnprintf(what, sizeof(what), format, arguments);
    kprintf("PANIC: %s\n", what);
    if (print_who != NULL)
        print_who();
    if (frame != NULL) {
        print_registers(frame);
        kprintf("at:\n");
        print_place(frame->rip);
    }
    print_backtrace(frame != NULL ? frame->rsp : (uint64_t)__builtin_frame_address(0));
    power_off();
}

void panic(const char *format, ...)
{
    va_list arguments;

    __asm__ volatile("cli");
    va_start(arguments, format);
    end(NULL, format, arguments);
    /* cppcheck-suppress va_end_missing; end() does not return */
}

void panic_at(const struct trap_frame *frame, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    end(frame, format, arguments);
    /* cppcheck-suppress va_end_missing; end() does not return */
}
