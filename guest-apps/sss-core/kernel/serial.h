/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Registers of a 16550 (PC16550D data sheet, table II), from COM1's base. */
enum {
    COM1 = 0x3f8,
    SERIAL_DATA = COM1,
    SERIAL_INTERRUPT_ENABLE = COM1 + 1,
    SERIAL_FIFO_CONTROL = COM1 + 2,
    SERIAL_LINE_CONTROL = COM1 + 3,
    SERIAL_MODEM_CONTROL = COM1 + 4,
    SERIAL_LINE_STATUS = COM1 + 5,
};
enum {
    SERIAL_DIVISOR_ACCESS = 0x80,
    SERIAL_EIGHT_BITS = 0x03,
    SERIAL_FIFO_ON_AND_EMPTY = 0x07,
    SERIAL_DTR_RTS_OUT2 = 0x0b, /* OUT2 lets the interrupt through */
    SERIAL_RECEIVED_INTERRUPT = 0x01,
    SERIAL_DATA_READY = 0x01,
    SERIAL_TRANSMITTER_EMPTY = 0x20,
    COM1_GSI = 4,
};
