/* SPDX-License-Identifier: Apache-2.0 */
/* printf without floating point, for tasks and for the kernel: %d %i %u %x %X %p %s %c %%, with
 * flags - 0, width, precision, h hh l ll z. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct output {
    char *text;
    size_t size;
    size_t length; /* of everything, written or not */
};

struct conversion {
    bool left;
    bool zeros;
    int width;
    int precision; /* -1: none given */
    int longs;     /* 2 for ll and z, as on this machine long is as wide */
};

static void put(struct output *output, char character)
{
    if (output->length + 1 < output->size)
        output->text[output->length] = character;
    output->length++;
}

static void put_padded(struct output *output, const struct conversion *how, const char *text,
                       size_t length)
{
    size_t pad = how->width > 0 && (size_t)how->width > length ? (size_t)how->width - length : 0;
    bool sign = how->zeros && length > 0 && *text == '-';

    if (sign)
        put(output, *text);
    for (size_t i = 0; !how->left && i < pad; i++)
        put(output, how->zeros ? '0' : ' ');
    for (size_t i = sign ? 1 : 0; i < length; i++)
        put(output, text[i]);
    for (size_t i = 0; how->left && i < pad; i++)
        put(output, ' ');
}

static void put_text(struct output *output, const struct conversion *how, const char *text)
{
    struct conversion spaces = *how;
    size_t length = 0;

    if (text == NULL)
        text = "(null)";
    while ((how->precision < 0 || length < (size_t)how->precision) && text[length] != '\0')
        length++;
    spaces.zeros = false;
    put_padded(output, &spaces, text, length);
}

static void put_number(struct output *output, const struct conversion *how, uint64_t number,
                       bool minus, unsigned base, const char *digits)
{
    char text[72];
    size_t at = sizeof(text);
    size_t least = how->precision < 0 ? 1 : how->precision > 64 ? 64 : (size_t)how->precision;

    while (number != 0 || sizeof(text) - at < least) {
        /* cppcheck-suppress zerodivcond; it takes the base for the number */
        text[--at] = digits[number % base];
        number /= base;
    }
    if (minus)
        text[--at] = '-';
    put_padded(output, how, text + at, sizeof(text) - at);
}

static int read_number(const char **format, va_list *arguments)
{
    int number = 0;

    if (**format == '*') {
        (*format)++;
        return va_arg(*arguments, int);
    }
    while (**format >= '0' && **format <= '9')
        number = number * 10 + (*(*format)++ - '0');
    return number;
}

static struct conversion read_conversion(const char **format, va_list *arguments)
{
    struct conversion how = {.precision = -1};

    for (; **format == '-' || **format == '0'; (*format)++) {
        how.left |= **format == '-';
        how.zeros |= **format == '0';
    }
    how.width = read_number(format, arguments);
    if (how.width < 0) { /* as ISO C 7.21.6.1 has it for '*' */
        how.left = true;
        how.width = -how.width;
    }
    if (how.left)
        how.zeros = false;
    if (**format == '.') {
        (*format)++;
        how.precision = read_number(format, arguments);
    }
    for (; **format == 'l' || **format == 'h' || **format == 'z'; (*format)++)
        how.longs += **format == 'l' ? 1 : **format == 'z' ? 2 : -1;
    return how;
}

static void put_integer(struct output *output, const struct conversion *how, char kind,
                        va_list *arguments)
{
    static const char lower[] = "0123456789abcdef";
    static const char upper[] = "0123456789ABCDEF";
    bool is_signed = kind == 'd' || kind == 'i';
    uint64_t number;

    if (is_signed) {
        int64_t given = how->longs > 0 ? va_arg(*arguments, long) : va_arg(*arguments, int);

        number = given < 0 ? -(uint64_t)given : (uint64_t)given;
        put_number(output, how, number, given < 0, 10, lower);
        return;
    }
    number = how->longs > 0 ? va_arg(*arguments, unsigned long) : va_arg(*arguments, unsigned int);
    put_number(output, how, number, false, kind == 'u' ? 10 : 16, kind == 'X' ? upper : lower);
}

static void put_conversion(struct output *output, const char **format, va_list *arguments)
{
    struct conversion how = read_conversion(format, arguments);
    char kind = **format;
    char character;

    switch (kind) {
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
        put_integer(output, &how, kind, arguments);
        break;
    case 'p':
        put_text(output, &(struct conversion){.precision = -1}, "0x");
        put_number(output, &how, (uint64_t)va_arg(*arguments, void *), false, 16,
                   "0123456789abcdef");
        break;
    case 's':
        put_text(output, &how, va_arg(*arguments, const char *));
        break;
    case 'c':
        character = (char)va_arg(*arguments, int);
        put_padded(output, &how, &character, 1);
        break;
    case '\0':
        return;
    default:
        put(output, kind);
    }
    (*format)++;
}

int vsnprintf(char *text, size_t size, const char *format, va_list arguments)
{
    struct output output = {.text = text, .size = size};
    va_list own;

    va_copy(own, arguments);
    while (*format != '\0') {
        if (*format != '%') {
            put(&output, *format++);
            continue;
        }
        format++;
        put_conversion(&output, &format, &own);
    }
    va_end(own);
    if (size > 0)
        text[output.length < size ? output.length : size - 1] = '\0';
    return (int)output.length;
}

int snprintf(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text, size, format, arguments);
    va_end(arguments);
    return length;
}
