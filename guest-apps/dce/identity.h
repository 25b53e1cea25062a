/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pdu.h"

enum { DCE_UUID_TEXT = 37 };

/* A UUID that depends on the run's seed, the machine, the step, a word and a number only. */
struct dce_uuid dce_identity(const char *word, uint64_t index);
/* Another one for each process, never 0: after a restart a server must not be taken for the one
 * before. */
uint32_t dce_boot_time(void);
void dce_uuid_text(const struct dce_uuid *uuid, char text[DCE_UUID_TEXT]);
