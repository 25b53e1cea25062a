/* SPDX-License-Identifier: Apache-2.0 */
/* Polled output on the first serial port. */
#include "console.h"

#include <stdbool.h>

#include "cpu.h"
#include "kformat.h"
#include "serial.h"

enum { LOG_BYTES = 8192 /* a power of two */ };
/* Of the TSC, which runs at 1 GHz or faster: at most 0.4 s. */
#define GIVE_UP_TICKS 400000000ull

/* The end of what was written, for the monitor's `log`. */
static struct {
    char bytes[LOG_BYTES];
    size_t head; /* ever put in */
} written;

void console_init(void)
{
    outb(SERIAL_INTERRUPT_ENABLE, 0);
    outb(SERIAL_LINE_CONTROL, SERIAL_DIVISOR_ACCESS | SERIAL_EIGHT_BITS);
    outb(SERIAL_DATA, 1); /* 115200 baud */
    outb(SERIAL_INTERRUPT_ENABLE, 0);
    outb(SERIAL_LINE_CONTROL, SERIAL_EIGHT_BITS);
    outb(SERIAL_FIFO_CONTROL, SERIAL_FIFO_ON_AND_EMPTY);
    outb(SERIAL_MODEM_CONTROL, SERIAL_DTR_RTS_OUT2);
}

static bool can_send(void)
{
    return (inb(SERIAL_LINE_STATUS) & SERIAL_TRANSMITTER_EMPTY) != 0;
}

/* A terminal that accepts nothing must not stop the machine: after a while its output is dropped.
 */
static void put(char byte)
{
    static bool stuck;
    uint64_t began = rdtsc();

    while (!can_send()) {
        if (stuck || rdtsc() - began > GIVE_UP_TICKS) {
            stuck = true;
            return;
        }
    }
    stuck = false;
    outb(SERIAL_DATA, (uint8_t)byte);
}

void console_show(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n')
            put('\r');
        put(text[i]);
    }
}

void console_write(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        written.bytes[written.head++ % LOG_BYTES] = text[i];
    console_show(text, length);
}

void kprintf(const char *format, ...)
{
    char text[512];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = kvsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    console_write(text, (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1);
}

void console_replay(void (*print)(void *context, const char *text), void *context)
{
    size_t end = written.head;
    size_t at = end > LOG_BYTES ? end - LOG_BYTES : 0;
    char piece[2] = "";

    for (; at < end; at++) {
        piece[0] = written.bytes[at % LOG_BYTES];
        print(context, piece);
    }
}
