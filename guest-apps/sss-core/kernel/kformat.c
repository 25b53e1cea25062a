/* SPDX-License-Identifier: Apache-2.0 */
/* Over the formatting that the tasks link, too. */
#include "kformat.h"

#include <stdio.h>

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
