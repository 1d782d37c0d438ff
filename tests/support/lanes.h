/* SPDX-License-Identifier: Apache-2.0 */
/* lanes - whether a process shares memory of lanes with others */
#ifndef PS_TESTS_LANES_H
#define PS_TESTS_LANES_H

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* Mappings of lanes that the process has. */
static inline int lanes_of(pid_t pid)
{
    char path[64];
    char line[512];
    FILE *maps = NULL;
    int n = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        n += strstr(line, "memfd:psd-lane") != NULL ? 1 : 0;
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return n;
}
#endif
