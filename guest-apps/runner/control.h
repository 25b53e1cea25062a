/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * Control frames: EtherType 0x88B5 (IEEE 802 local experimental), broadcast, payload "sundial-...".
 * The fabric takes them from the wire; no other guest sees them and no capture holds them.
 */
int control_say_ready(const char *device);

/* `status` 0: all went well. */
int control_say_done(const char *device, unsigned char status);
