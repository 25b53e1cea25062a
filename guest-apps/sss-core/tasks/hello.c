/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest task: says who it is on the console, and ends. See README.md for how to make another
 * one of it. */
#include <stdio.h>

#include "sss/system.h"

int main(int argc, char **argv)
{
    (void)argc;
    printf("%s: task %u of node %u, %lu ns since the clock's begin, options %s\n", argv[0],
           SSS_INFO->task, SSS_INFO->node, sss_now_ns(), argv[1]);
    return 0;
}
