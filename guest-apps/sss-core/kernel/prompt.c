/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts put what is typed into a small ring; a line editor hands whole lines to the monitor.
 */
#include "prompt.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "console.h"
#include "cpu.h"
#include "interrupt.h"
#include "kformat.h"
#include "monitor.h"
#include "serial.h"

enum { INPUT_BYTES = 256 /* a power of two */, LINE_BYTES = 256, PROMPT_BYTES = 64 };

static struct {
    char bytes[INPUT_BYTES];
    unsigned head, tail; /* ever put in, ever taken out */
} input;

static const char *machine_name;
static char line[LINE_BYTES];
static size_t line_length;

/* A typed byte, or -1. */
static int read_byte(void)
{
    return input.head == input.tail ? -1 : (unsigned char)input.bytes[input.tail++ % INPUT_BYTES];
}

/* What does not fit is dropped, as on any serial line. */
static void receive(void)
{
    while ((inb(SERIAL_LINE_STATUS) & SERIAL_DATA_READY) != 0) {
        char byte = (char)inb(SERIAL_DATA);

        if (input.head - input.tail < INPUT_BYTES)
            input.bytes[input.head++ % INPUT_BYTES] = byte;
    }
}

/* ---- the line editor: backspace, ^U (clear), ^W (delete the last word), ^C (leave the line) ----
 */

static void rub_out(void)
{
    console_show("\b \b", 3);
    line_length--;
}

static void rub_out_word(void)
{
    while (line_length > 0 && line[line_length - 1] == ' ')
        rub_out();
    while (line_length > 0 && line[line_length - 1] != ' ')
        rub_out();
}

static void show_prompt(void)
{
    char text[PROMPT_BYTES];
    int length = ksnprintf(text, sizeof(text), "sss %s> ",
                           machine_name[0] == '\0' ? "?" : machine_name);

    console_show(text, (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1);
}

static void print(void *context, const char *text)
{
    (void)context;
    console_show(text, strlen(text));
}

static void end_line(bool complete)
{
    console_show(complete ? "\n" : "^C\n", complete ? 1 : 3);
    line[complete ? line_length : 0] = '\0';
    line_length = 0;
    monitor_line(line, print, NULL);
    show_prompt();
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
        console_show(&byte, 1);
    }
}

static void interrupted(void *argument)
{
    int byte;

    (void)argument;
    receive();
    while ((byte = read_byte()) >= 0)
        edit((char)byte);
}

void prompt_open(const char *machine)
{
    machine_name = machine;
    show_prompt();
    interrupt_route(COM1_GSI, interrupt_allocate(interrupted, NULL));
    outb(SERIAL_INTERRUPT_ENABLE, SERIAL_RECEIVED_INTERRUPT);
    interrupted(NULL); /* what was typed before would not raise the line again */
}
