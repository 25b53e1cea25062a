/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "samples.h"

/* A line of the record stream (harness/schemas/README.md, "Samples"): one object, made field by
 * field. record.c writes it on Linux, ../sss-core/dce/ on SSS-CORE. */
struct dce_record;

/* With type, step and app. */
struct dce_record *dce_record_new(const char *type);
void dce_record_integer(struct dce_record *record, const char *name, long long value);
void dce_record_flag(struct dce_record *record, const char *name, bool value);
void dce_record_text(struct dce_record *record, const char *name, const char *text);
/* The fields that follow are those of an object inside, until the end of it. */
void dce_record_object(struct dce_record *record, const char *name);
void dce_record_object_end(struct dce_record *record);

/* Writes it, and frees it. */
void dce_record_put(struct dce_record *record);
/* The same as the header of a batch, with a row for each call. */
void dce_record_put_batch(struct dce_record *record, const struct call_record *calls, size_t count,
                          failure_text_fn failure_text);
