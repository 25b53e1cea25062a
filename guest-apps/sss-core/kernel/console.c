/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first serial port, a 16550: polled for output; input by interrupt into a small ring once
 * console_listen was called. A line editor hands whole lines to the monitor.
 */
#include "console.h"

#include "cpu.h"
#include "kernel.h"

/* Registers of a 16550 (PC16550D data sheet, table II) from COM1's base. */
enum {
    COM1 = 0x3f8,
    DATA = COM1,
    INTERRUPT_ENABLE = COM1 + 1,
    FIFO_CONTROL = COM1 + 2,
    LINE_CONTROL = COM1 + 3,
    MODEM_CONTROL = COM1 + 4,
    LINE_STATUS = COM1 + 5,
};
enum {
    DIVISOR_ACCESS = 0x80,
    EIGHT_BITS = 0x03,
    FIFO_ON_AND_EMPTY = 0x07,
    DTR_RTS_OUT2 = 0x0b, /* OUT2 lets the interrupt through */
    RECEIVED_INTERRUPT = 0x01,
    DATA_READY = 0x01,
    TRANSMITTER_EMPTY = 0x20,
    COM1_GSI = 4,
    INPUT_BYTES = 256, /* a power of two */
    LINE_BYTES = 256,
    LOG_BYTES = 8192, /* a power of two */
};

#define GIVE_UP_TICKS                                                                              \
    400000000ull /* of the TSC, which runs at 1 GHz or faster: a tenth of a second or more */

static struct {
    char bytes[INPUT_BYTES];
    unsigned head, tail; /* ever put in, ever taken out */
} input;

/* The end of what was written, for who was not there to read it. */
static struct {
    char bytes[LOG_BYTES];
    size_t head; /* ever put in */
} written;

static char line[LINE_BYTES];
static size_t line_length;
static void (*line_taken)(const char *line);

void console_init(void)
{
    outb(INTERRUPT_ENABLE, 0);
    outb(LINE_CONTROL, DIVISOR_ACCESS | EIGHT_BITS);
    outb(DATA, 1); /* 115200 baud */
    outb(INTERRUPT_ENABLE, 0);
    outb(LINE_CONTROL, EIGHT_BITS);
    outb(FIFO_CONTROL, FIFO_ON_AND_EMPTY);
    outb(MODEM_CONTROL, DTR_RTS_OUT2);
}

static bool can_send(void)
{
    return (inb(LINE_STATUS) & TRANSMITTER_EMPTY) != 0;
}

/* A terminal that is connected and takes nothing must not stop the machine: after a while its
 * output is dropped. */
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
    outb(DATA, (uint8_t)byte);
}

void console_write(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        written.bytes[written.head++ % LOG_BYTES] = text[i];
        if (text[i] == '\n')
            put('\r');
        put(text[i]);
    }
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
    size_t end = written.head; /* what is printed now may go to the console, too */
    size_t at = end > LOG_BYTES ? end - LOG_BYTES : 0;
    char piece[2] = "";

    for (; at < end; at++) {
        piece[0] = written.bytes[at % LOG_BYTES];
        print(context, piece);
    }
}

int console_read(void)
{
    return input.head == input.tail ? -1 : (unsigned char)input.bytes[input.tail++ % INPUT_BYTES];
}

/* What does not fit is dropped, as on any serial line. */
static void receive(void)
{
    while ((inb(LINE_STATUS) & DATA_READY) != 0) {
        char byte = (char)inb(DATA);

        if (input.head - input.tail < INPUT_BYTES)
            input.bytes[input.head++ % INPUT_BYTES] = byte;
    }
}

/* ---- the line editor: backspace, ^U (begin anew), ^W (take the last word away), ^C (leave the
 * line) ---- */
static void rub_out(void)
{
    console_write("\b \b", 3);
    line_length--;
}

static void rub_out_word(void)
{
    while (line_length > 0 && line[line_length - 1] == ' ')
        rub_out();
    while (line_length > 0 && line[line_length - 1] != ' ')
        rub_out();
}

static void end_line(bool taken)
{
    console_write(taken ? "\n" : "^C\n", taken ? 1 : 3);
    line[taken ? line_length : 0] = '\0';
    line_length = 0;
    line_taken(line);
}

static void edit(char byte)
{
    enum { CONTROL_C = 3, CONTROL_U = 21, CONTROL_W = 23, BACKSPACE = 8, DELETE = 127 };

    if (byte == '\r' || byte == '\n')
        end_line(true);
    else if (byte == CONTROL_C)
        end_line(false);
    else if ((byte == BACKSPACE || byte == DELETE) && line_length > 0)
        rub_out();
    else if (byte == CONTROL_W)
        rub_out_word();
    else if (byte == CONTROL_U)
        while (line_length > 0)
            rub_out();
    else if (byte >= ' ' && byte < DELETE && line_length + 1 < LINE_BYTES) {
        line[line_length++] = byte;
        console_write(&byte, 1);
    }
}

static void interrupted(void)
{
    int byte;

    receive();
    while ((byte = console_read()) >= 0)
        edit((char)byte);
}

void console_listen(void (*taken)(const char *line))
{
    line_taken = taken;
    interrupt_route(COM1_GSI, interrupt_allocate(interrupted));
    outb(INTERRUPT_ENABLE, RECEIVED_INTERRUPT);
    interrupted(); /* what came before would not raise the line again */
}
