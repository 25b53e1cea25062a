/* SPDX-License-Identifier: Apache-2.0 */
#include "apps.h"

#include <stdio.h>
#include <string.h>

enum { NO_SUCH_APPLICATION = 127 };

static const struct {
    const char *name;
    app_main *main;
} apps[] = {
#define APPLET(name, main) {name, main},
#include "applets.h"
#undef APPLET
};

int apps_run(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : argc > 0 ? argv[0] : "";

    for (size_t i = 0; i < sizeof(apps) / sizeof(*apps); i++)
        if (strcmp(name, apps[i].name) == 0)
            return apps[i].main(argc, argv);
    fprintf(stderr, "%s: no such application\n", name);
    return NO_SUCH_APPLICATION;
}

int main(int argc, char **argv)
{
    return apps_run(argc, argv);
}
