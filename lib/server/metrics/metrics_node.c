/* SPDX-License-Identifier: Apache-2.0 */
/* What the system says of this process. */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "server/metrics/metrics_inner.h"

static uint64_t count_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t n = 0;

    if (dir == NULL) {
        return 0;
    }
    while (readdir(dir) != NULL) {
        n++;
    }
    (void)closedir(dir);
    return n > 3 ? n - 3 : 0; /* ".", "..", and that of this look */
}

static uint64_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long size = 0;
    unsigned long long resident = 0;

    if (file == NULL) {
        return 0;
    }
    if (fscanf(file, "%llu %llu", &size, &resident) != 2) {
        resident = 0;
    }
    (void)fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t ms_of(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000 + (uint64_t)time->tv_usec / 1000;
}

void ps_metrics_ask_system(ps_node_counts_t *node)
{
    struct rusage used;
    struct rlimit files;

    if (getrusage(RUSAGE_SELF, &used) == 0) {
        ps_count_set(node->cpu_ms, ms_of(&used.ru_utime) + ms_of(&used.ru_stime));
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        ps_count_set(node->files_limit, files.rlim_cur);
    }
    ps_count_set(node->open_files, count_files());
    ps_count_set(node->resident_bytes, resident_bytes());
}
