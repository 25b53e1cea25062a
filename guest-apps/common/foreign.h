/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * A program that knows nothing of Sundial as a service of a job: this process becomes `argv`, after
 * leaving another one behind that says "ready" once `is_serving`, which it asks each millisecond.
 */
_Noreturn void foreign_become(char *const argv[], bool (*is_serving)(void));
