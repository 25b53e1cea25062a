/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a test over a backplane: `case` of the options names what it does, which stands in
 * tests/tasks/backplane/. What happened goes to the records as lines of a name and a number.
 */
#include <string.h>

#include "backplane/cases.h"
#include "json.h"

static const struct task_case *const themes[] = {updates_cases, refusals_cases, isolation_cases,
                                                 ends_cases};

static const struct task_case *find(const struct json_value *name)
{
    for (size_t i = 0; i < sizeof(themes) / sizeof(*themes); i++)
        for (const struct task_case *each = themes[i]; each->name != NULL; each++)
            if (json_is(name, each->name))
                return each;
    return NULL;
}

int main(int argc, char **argv)
{
    struct json_value options, value;
    const struct task_case *found;

    (void)argc;
    if (json_check(argv[1], strlen(argv[1]), &options) != NULL)
        return 2;
    if (json_field(&options, "peer", &value))
        json_uint(&value, &peer);
    if (json_field(&options, "address", &value))
        json_uint(&value, &address);
    if (!json_field(&options, "case", &value) || (found = find(&value)) == NULL)
        return 2;
    case_name = found->name;
    found->run();
    return 0;
}
