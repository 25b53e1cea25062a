/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fills the machine's free memory with zeros, once. Free pages keep what booting left in them; as
 * zeros they take no room in a snapshot, nor in the machines that are restored from it.
 */
void memory_clear_free(void);
