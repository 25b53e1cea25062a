/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * MBCF packets. The format is Sundial's own: the papers describe the operations, not the bytes.
 * EtherType 0x88B6 (IEEE 802 local experimental 2; 0x88B5 carries Sundial's control frames). The
 * header follows the 14 bytes of Ethernet; all fields are big endian.
 *
 *  off size field
 *    0  1   version      1
 *    1  1   op           enum mbw_op
 *    2  1   flags        enum mbw_flag
 *    3  1   status       RESULT: enum mb_status; SIGNAL: number of arguments; else 0
 *    4  2+2 source       node, task
 *    8  2+2 destination  node, task
 *   12  4   epoch        the sender's incarnation, never 0
 *   16  4   seq          0: outside the sequence (ACK, RST, PROBE); SYN, SYNACK: nothing up to it
 * will be sent again 20  4   ack          the highest seq of the peer executed, all before it too
 *   24  8   key          accesskey of the destination task
 *   32  8   address      in the destination task: data, FIFO, handler entry
 *   40  4   op_id        echoed in the RESULT: names the operation, or (bit 31) the connection of
 * one that nobody waits for 44  2   length       bytes of payload 46  2   ack_epoch    low half of
 * the epoch that `ack` belongs to, 0xffff where that is 0; 0: `ack` means nothing
 *
 * An operation has succeeded when all its frames have been acknowledged: by a frame that is not
 * UNSURE and comes in its turn, again, or outside the sequence. A RESULT tells of an error, or has
 * the data of READ, or the old value of an atomic operation whose op_id names it (not its
 * connection).
 *
 * A frame is never padded (62 bytes at least), so its length must be that of header and payload
 * exactly.
 */
#include <stdint.h>

enum {
    MBW_ETHERTYPE = 0x88b6,
    MBW_VERSION = 1,
    MBW_ETHERNET = 14,
    MBW_HEADER = 48,
    MBW_PAYLOAD = 1408, /* the largest data size of kamesawa98 table 2 */
    MBW_FRAME_LEAST = 60,
    MBW_FRAME_MOST = MBW_ETHERNET + MBW_HEADER + MBW_PAYLOAD,
};

enum mbw_op {
    MBW_ACK = 0x00,
    MBW_SYN = 0x01,
    MBW_SYNACK = 0x02,
    MBW_RST = 0x03,
    MBW_PROBE = 0x04, /* asks for an ACK */
    MBW_TASKQUE = 0x10,
    MBW_WRITE = 0x11,
    MBW_READ = 0x12,
    MBW_FIFO = 0x13,
    MBW_SIGNAL = 0x14,
    MBW_SWAP = 0x15,
    MBW_CAS = 0x16,
    MBW_FETCH_ADD = 0x17,
    MBW_CLOSE = 0x18,
    MBW_RESULT = 0x20,
};

enum mbw_flag {
    /* an error RESULT of the sender that the receiver may not have yet is on its way */
    MBW_UNSURE = 1,
    /* acknowledge this frame at once: somebody waits for it, or the window is full, or it goes
       again */
    MBW_ACK_NOW = 2,
    MBW_MORE = 4,  /* further parts of this segment follow */
    MBW_RETX = 8,  /* sent before; for statistics and dissectors only */
    MBW_WIDE = 16, /* an atomic operation on 8 bytes */
    MBW_PART = 32, /* FIFO: payload begins with struct mbw_part */
};

/*
 * Payloads. WRITE: data. FIFO: data, behind total u32 and offset u32 with PART; total 0: the
 * segment is given up. TASKQUE: key u64, permission u32, the writer's name of the connection u32,
 * data. READ: length u32, 0 u32. SIGNAL: its arguments u64 (four at most), data. SWAP, FETCH_ADD:
 * operand u64. CAS: expected u64, new u64. RESULT: what was read, or the old value u64 of an atomic
 * operation, or nothing. CLOSE: nothing; op_id is the sender's name of the connection, address the
 * receiver's (0: not known); to task 0: the source task has ended.
 */
enum {
    MBW_PART_HEAD = 8,
    MBW_TASKQUE_HEAD = 16,
    MBW_SIGNAL_ARGUMENT = 8,
    MBW_SIGNAL_ARGUMENTS = 4, /* at most */
    MBW_READ_PAYLOAD = 8,
    MBW_TASKQUE_MOST = MBW_PAYLOAD - MBW_TASKQUE_HEAD, /* 1392 */
    /* 1376: data that go with any arguments */
    MBW_SIGNAL_MOST = MBW_PAYLOAD - MBW_SIGNAL_ARGUMENTS * MBW_SIGNAL_ARGUMENT,
};
