/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The command server of interactive machines, on the virtio-serial port "sundial.exec". One JSON
 * object a line in, {"id":N,"argv":[...]} or {"id":N,"shell":"..."}; one a line out,
 * {"id":N,"status":S,"stdout":BASE64,"stderr":BASE64,"dropped":BYTES}, or {"id":N,"error":TEXT}.
 * Status is the exit status, 128 + signal for a killed command; at most 1 MiB of each stream is
 * kept, and `dropped` says how much more there was. Commands run one after another. Returns only
 * where the machine has no such port.
 */
void exec_serve(void);

/* Runs one request line and gives the answer without its newline; the caller frees it. */
char *exec_answer(const char *request);
