/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * The clock that measurements are taken with. Under virtual time the TSC counts nanoseconds of the
 * machine's virtual clock exactly (1 tick = 1 ns), while every kernel clock is scaled by the
 * kernel's own calibration; with real time the TSC has no known rate and the raw clock is used.
 */
enum clock_source { CLOCK_SOURCE_TSC, CLOCK_SOURCE_MONOTONIC };

/* Chooses the source by name, "tsc" or "monotonic"; -1 for any other name. */
int clock_select(const char *name);

/* Chooses by the variable SUNDIAL_CLOCK that the runner sets; monotonic where there is none. */
int clock_select_from_environment(void);

const char *clock_name(void);

/* A raw reading in nanoseconds. Its zero means nothing; the harness converts. */
uint64_t clock_now_ns(void);
