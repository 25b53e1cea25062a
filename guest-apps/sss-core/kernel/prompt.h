/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The monitor on the console: a prompt with the machine's name ("": not known), and a line editor.
 */
void prompt_open(const char *machine);
