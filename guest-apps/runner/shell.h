/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A root shell with job control on the serial console, again and again; for interactive machines.
 */
void shell_serve_console(void);
