/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The command server of interactive machines, on the virtio-serial port "sundial.exec". One JSON
 * object a line, both ways; `id` is the host's number of a command, and several run at a time. The
 * host writes
 *
 *   {"id":N,"argv":[TEXT,...]}             start it; "terminal":{"type":TEXT,"rows":R,"columns":C}
 *                                          gives it a terminal instead of three pipes
 *   {"id":N,"input":BASE64}, "input":null  its input, the end of its input
 *   {"id":N,"signal":NUMBER}               to its processes
 *   {"id":N,"window":{"rows":R,"columns":C}}
 *   {"id":N,"taken":BYTES}                 so much of its output has been passed on
 *   {"id":N,"hang_up":true}                no client listens any more: SIGHUP, SIGKILL 2 s later
 *
 * and reads
 *
 *   {"id":N,"stdout":BASE64}, {"id":N,"stderr":BASE64}
 *   {"id":N,"taken":BYTES}                 so much of its input has been passed on
 *   {"id":N,"status":S}                    the last line: exit status, 128 + signal if it was
 * killed
 *   {"id":N,"error":TEXT}                  instead, where it cannot be run
 *
 * At most EXEC_OUTPUT_BYTES of output, and COMMAND_INPUT_BYTES of input, are on their way before
 * the other side has said that they were taken. A host that disconnects hangs up everything.
 */
enum { EXEC_OUTPUT_BYTES = 128 * 1024 };

/* Returns only where the machine has no such port. */
void exec_serve(void);

/* Serves one host until it disconnects from `port`. */
void exec_serve_host(int port);
