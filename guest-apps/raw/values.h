/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Arguments and results of the twelve functions as they lie in memory: little endian, the members
 * of a structure and the strings of an array one behind the other, without NULs.
 */
#include <stdbool.h>

#include "functions.h"

/* Writes an argument of function_size bytes. */
void values_put_argument(uint8_t *at, enum function function);
bool values_are_argument(const uint8_t *at, enum function function);

/* Bytes of the result. */
size_t values_result_size(enum function function);
/* Executes function 12; the others return their argument. */
void values_execute_distance(const uint8_t *argument, uint8_t *result);
bool values_are_result(const uint8_t *at, enum function function);
