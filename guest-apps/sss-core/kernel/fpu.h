/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The FPU holds the registers of the context that used it last, until another one uses it. */
#include <stdbool.h>

struct context;

void fpu_follow(const struct context *context); /* this context runs next */
/* The current thread uses the FPU. False: there is no memory for its registers. */
bool fpu_fault(void);
void fpu_forget(struct context *context);
