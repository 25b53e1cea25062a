/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What ../../../common/samples.h names, and tasks do not use. */
typedef struct json_t json_t;
