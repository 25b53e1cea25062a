/* SPDX-License-Identifier: Apache-2.0 */
/* Does one forbidden thing, which its options name. What comes back from it without ending the task
 * is a hole. */
#include <stdio.h>
#include <string.h>

#include "sss/system.h"

typedef void (*function)(void);

static uint8_t code[16] __attribute__((aligned(16))) = {0xc3};

static void read_at(uint64_t address)
{
    (void)*(volatile uint8_t *)address;
}

static void write_at(uint64_t address)
{
    *(volatile uint8_t *)address = 1;
}

static void execute_at(uint64_t address)
{
    ((function)address)();
}

/* Another rsp than the thread's own, and a system call there: the kernel must not follow it. */
static void call_with_stack(uint64_t stack)
{
    __asm__ volatile(
        "mov %%rsp, %%rbx; mov %0, %%rsp; mov $4, %%eax; mov $0, %%esi; syscall; mov %%rbx, %%rsp"
        :
        : "r"(stack), "D"(0), "d"(0)
        : "rax", "rbx", "rcx", "rsi", "r11", "memory");
}

static void far_jump_to_32_bits(void)
{
    __asm__ volatile("pushq $0x1b; pushq $0x400000; lretq");
}

static void single_step(void)
{
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq; nop; nop" : : : "memory", "cc");
}

/* The nested-task flag would make the kernel's iret fault, did the way in not clear it. */
static void nested_task(void)
{
    __asm__ volatile("pushfq; orq $0x4000, (%%rsp); popfq" : : : "memory", "cc");
    sss_yield();
    sss_wait(NULL, 0, 1000000);
}

static void overflow_stack(volatile char *below)
{
    volatile char page[4096];

    page[0] = *below;
    if (page[0] != 1) /* which it never is */
        overflow_stack(page);
    page[1] = page[0];
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*what)(uint64_t address);
        uint64_t address;
    } accesses[] = {
        {"read-kernel", read_at, 0xffffffff80100000},
        {"read-direct", read_at, 0xffff800000100000},
        {"write-kernel", write_at, 0xffffffff80100000},
        {"execute-kernel", execute_at, 0xffffffff80100000},
        {"read-null", read_at, 0},
        {"read-device", read_at, 0xffff808000000000},
        {"write-text", write_at, 0x400000},
        {"write-info", write_at, 0x3ff000},
        {"read-hole", read_at, 0x800000000000},
        {"execute-hole", execute_at, 0x8000000000000000},
        {"read-guard", read_at, SSS_STACK_TOP - SSS_STACK_BYTES - 1},
        {"execute-guard", execute_at, SSS_STACK_TOP - SSS_STACK_BYTES - 16},
        {"execute-data", execute_at, (uint64_t)code},
        {"stack-kernel", call_with_stack, 0xffffffff80120000},
        {"stack-null", call_with_stack, 0},
    };
    const char *what = argv[1];
    char on_stack[16] = {(char)0xc3};
    void *heap = sss_map(NULL, 4096, SSS_READ | SSS_WRITE);

    (void)argc;
    memcpy(heap, code, sizeof code);
    printf("does %s\n", what);
    for (unsigned i = 0; i < sizeof accesses / sizeof accesses[0]; i++)
        if (strcmp(what, accesses[i].name) == 0)
            accesses[i].what(accesses[i].address);
    if (strcmp(what, "execute-stack") == 0)
        execute_at((uint64_t)on_stack);
    else if (strcmp(what, "execute-heap") == 0)
        execute_at((uint64_t)heap);
    else if (strcmp(what, "privileged") == 0)
        __asm__ volatile("hlt");
    else if (strcmp(what, "port") == 0)
        __asm__ volatile("outb %%al, $0xf4" : : "a"(0));
    else if (strcmp(what, "interrupt") == 0)
        __asm__ volatile("int $32");
    else if (strcmp(what, "compatibility") == 0)
        far_jump_to_32_bits();
    else if (strcmp(what, "single-step") == 0)
        single_step();
    else if (strcmp(what, "nested-task") == 0)
        nested_task();
    else if (strcmp(what, "divide") == 0)
        __asm__ volatile("xorl %%ecx, %%ecx; divl %%ecx" : : : "eax", "ecx", "edx");
    else if (strcmp(what, "overflow") == 0)
        overflow_stack(on_stack);
    printf("came back from %s\n", what);
    return 0;
}
