// SPDX-License-Identifier: Apache-2.0

#include "policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool number(const char *text, unsigned long long most, unsigned long long *value,
                   const char **end)
{
    char *after;
    errno = 0;
    if (*text < '0' || *text > '9')
        return false;
    *value = strtoull(text, &after, 10);
    *end = after;
    return errno == 0 && *value <= most;
}

static bool add(struct policy *policy, enum right right, const char *path)
{
    if (policy->count == POLICY_PLACES)
        return false;
    policy->places[policy->count++] = (struct place){right, path};
    return true;
}

static bool take(struct policy *policy, const char *word, const char *value)
{
    const char *end;
    unsigned long long user, group;
    if (strcmp(word, "user") == 0) {
        if (!number(value, 0xfffffffe, &user, &end) || *end != ' ' ||
            !number(end + 1, 0xfffffffe, &group, &end))
            return false;
        policy->user = (unsigned)user;
        policy->group = (unsigned)group;
        return *end == '\0' && user > 0 && group > 0;
    }
    if (strcmp(word, "file_bytes") == 0)
        return number(value, 1ull << 62, &policy->file_bytes, &end) && *end == '\0';
    if (value[0] != '/')
        return false;
    if (strcmp(word, "emulator") == 0) {
        policy->emulator = value;
        return true;
    }
    if (strcmp(word, "read") == 0)
        return add(policy, RIGHT_READ, value);
    if (strcmp(word, "program") == 0)
        return add(policy, RIGHT_PROGRAM, value);
    if (strcmp(word, "write") == 0)
        return add(policy, RIGHT_WRITE, value);
    if (strcmp(word, "device") == 0)
        return add(policy, RIGHT_DEVICE, value);
    return false;
}

bool policy_read(struct policy *policy, const char *path, char *why, size_t size)
{
    memset(policy, 0, sizeof *policy);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(why, size, "%s", strerror(errno));
        return false;
    }
    size_t length = fread(policy->text, 1, sizeof policy->text, file);
    fclose(file);
    if (length == sizeof policy->text || memchr(policy->text, '\0', length) != NULL) {
        snprintf(why, size, "is too long or no text");
        return false;
    }
    int line = 1;
    for (char *text = policy->text; *text != '\0'; line++) {
        char *end = strchr(text, '\n');
        char *space = strchr(text, ' ');
        if (end == NULL || space == NULL || space > end) {
            snprintf(why, size, "line %d is not 'WORD VALUE'", line);
            return false;
        }
        *end = *space = '\0';
        if (!take(policy, text, space + 1)) {
            snprintf(why, size, "line %d: '%s' is not known, or not with this value", line, text);
            return false;
        }
        text = end + 1;
    }
    if (policy->emulator == NULL)
        snprintf(why, size, "names no emulator");
    return policy->emulator != NULL;
}
