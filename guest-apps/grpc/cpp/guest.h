/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What programs of guests share (guest-apps/common), which is C. */
#define _Noreturn [[noreturn]]
extern "C" {
#include "clock.h"
#include "functions.h"
#include "options.h"
#include "samples.h"
}
#undef _Noreturn
