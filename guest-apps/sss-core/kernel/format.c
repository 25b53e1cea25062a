/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's names for what it shares with the tasks' library. */
#include <stdio.h>

#include "kernel.h"

int kvsnprintf(char *text, size_t size, const char *format, va_list arguments)
{
    return vsnprintf(text, size, format, arguments);
}

int ksnprintf(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text, size, format, arguments);
    va_end(arguments);
    return length;
}
