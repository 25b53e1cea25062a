/* SPDX-License-Identifier: Apache-2.0 */
#include "fpu.h"

#include "cpu.h"
#include "kmalloc.h"
#include "runqueue.h"

enum {
    FPU_BYTES = 512,
    FPU_CONTROL = 0x37f,
    SSE_CONTROL = 0x1f80 /* as the System V ABI starts a program */
};

static struct context *fpu_owner; /* whose registers the FPU holds */
static bool fpu_open;             /* CR0.TS is clear */

void fpu_follow(const struct context *context)
{
    bool open = context == fpu_owner;

    if (open == fpu_open)
        return;
    fpu_open = open;
    if (open)
        __asm__ volatile("clts");
    else
        write_cr0(read_cr0() | 8); /* TS */
}

bool fpu_fault(void)
{
    struct context *context = runqueue.current->context;
    /* Zeros, so that no task sees registers of another one. */
    static struct {
        uint16_t control, other[11];
        uint32_t sse_control;
        uint8_t rest[FPU_BYTES - 28];
    } __attribute__((aligned(16))) fresh = {.control = FPU_CONTROL, .sse_control = SSE_CONTROL};

    if (fpu_open)
        return false;
    __asm__ volatile("clts");
    fpu_open = true;
    if (fpu_owner != NULL)
        __asm__ volatile("fxsave (%0)" : : "r"(fpu_owner->fpu) : "memory");
    fpu_owner = NULL;
    if (context->fpu != NULL) {
        __asm__ volatile("fxrstor (%0)" : : "r"(context->fpu) : "memory");
    } else {
        context->fpu = kmalloc(FPU_BYTES);
        if (context->fpu == NULL)
            return false;
        __asm__ volatile("fxrstor (%0)" : : "r"(&fresh) : "memory");
    }
    fpu_owner = context;
    return true;
}

void fpu_forget(struct context *context)
{
    if (fpu_owner == context)
        fpu_owner = NULL;
    kfree(context->fpu);
}
