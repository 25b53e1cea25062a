/* SPDX-License-Identifier: Apache-2.0 */
/* By itself, since of SSS-CORE's tasks it alone calculates with floating-point numbers. */
#include "functions.h"

void function_distance(const float first[FUNCTION_DIMENSIONS],
                       const float second[FUNCTION_DIMENSIONS], double *distance)
{
    double sum = 0;

    for (int i = 0; i < FUNCTION_DIMENSIONS; i++) {
        double side = (double)first[i] - second[i];

        sum += side * side;
    }
    /* The instruction: tasks have no library of mathematics. */
    __asm__("sqrtsd %1, %0" : "=x"(*distance) : "x"(sum));
}
