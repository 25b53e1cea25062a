/* SPDX-License-Identifier: Apache-2.0 */
/* A task that wants to harm its node: the attacks are numbered; `hold` sleeps with all it has got.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sss/system.h"

enum { PAGE = 4096, MAPS = 70000 };
#define WINDOW 0x200000000ull
#define GIB    0x40000000ull

/* Maps one shared page again and again, `stride` apart, until the kernel refuses. */
static void map_many(uint64_t stride, unsigned most)
{
    void *memory = sss_map(NULL, PAGE, SSS_READ | SSS_WRITE);
    int csm = sss_csm_share(memory, PAGE);
    unsigned done = 0;
    int error = 0;

    while (done < most && error == 0) {
        error = sss_csm_map(0, csm, WINDOW + done * stride, SSS_READ);
        done += error == 0;
    }
    printf("mapped %u times, then %d\n", done, error);
}

static void use_memory_up(void)
{
    uint64_t pages = 0;

    for (size_t chunk = 256; chunk != 0; chunk /= 2)
        while (sss_map(NULL, chunk * PAGE, SSS_READ | SSS_WRITE) != NULL)
            pages += chunk;
    printf("mapped some pages %d, dummies", pages != 0);
    while (sss_task("dummy", NULL, SSS_EMPTY) > 0)
        ;
    printf(" %d\n", sss_task("dummy", NULL, SSS_EMPTY));
}

/* Every way to write a page that can be executed. */
static void write_and_execute(void)
{
    unsigned char *memory = sss_map(NULL, PAGE, SSS_READ | SSS_WRITE);
    int csm = sss_csm_share(memory, PAGE);
    char *second = (char *)WINDOW, *third = (char *)WINDOW + PAGE;
    unsigned char *alone = sss_map(NULL, PAGE, SSS_READ | SSS_WRITE);

    printf("owner to execute %d\n", sss_protect(memory, PAGE, SSS_READ | SSS_EXECUTE));
    printf("map %d", sss_csm_map(0, csm, (uint64_t)second, SSS_READ));
    printf(", to execute %d", sss_protect(second, PAGE, SSS_READ | SSS_EXECUTE));
    printf(", to writable %d", sss_protect(second, PAGE, SSS_READ | SSS_WRITE));
    printf(", mapped to execute %d\n", sss_csm_map(0, csm, (uint64_t)third, SSS_EXECUTE));
    printf("map writable %d", sss_csm_map(0, csm, (uint64_t)third, SSS_READ | SSS_WRITE));
    printf(", to read %d", sss_protect(third, PAGE, SSS_READ));
    printf(", and back %d\n", sss_protect(third, PAGE, SSS_READ | SSS_WRITE));
    printf("owner unmaps %d", sss_unmap(memory, PAGE));
    printf(", the last but one %d", sss_unmap(third, PAGE));
    printf(", alone to writable %d", sss_protect(second, PAGE, SSS_READ | SSS_WRITE));
    printf(", to execute %d\n", sss_protect(second, PAGE, SSS_READ | SSS_EXECUTE));
    alone[0] = 0xc3; /* ret */
    printf("own page to execute %d", sss_protect(alone, PAGE, SSS_READ | SSS_EXECUTE));
    __asm__ volatile("call *%0" : : "r"(alone) : "memory");
    printf(", shared %d", sss_csm_share(alone, PAGE));
    printf(", to writable %d", sss_protect(alone, PAGE, SSS_READ | SSS_WRITE));
    printf(", shared %d", sss_csm_share(alone, PAGE) > 0);
    printf(", to execute %d\n", sss_protect(alone, PAGE, SSS_READ | SSS_EXECUTE));
}

int main(int argc, char **argv)
{
    (void)argc;
    if (argv[1][0] == '1')
        map_many(PAGE, MAPS);
    if (argv[1][0] == '2')
        map_many(GIB, MAPS);
    if (argv[1][0] == '3')
        use_memory_up();
    if (argv[1][0] == '4')
        write_and_execute();
    printf("attack %s is over\n", argv[1]);
    if (strstr(argv[1], "hold") != NULL)
        sss_wait(NULL, 0, SSS_FOREVER);
    return 0;
}
