/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* "udp", "tcp", then the types of MBCF in the order of enum mbcf_type, "vrpc", "vrpc-mbcf"; ended
 * by NULL. */
extern const char *const transport_names[];
