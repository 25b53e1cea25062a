/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The monitor on the virtio-serial port sundial.exec, for programs: the protocol is that of
 * guest-apps/runner/exec.h. */
void exec_init(void);
