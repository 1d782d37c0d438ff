/* SPDX-License-Identifier: Apache-2.0 */
/* thread_stop TID SECONDS: stops a thread of another process, prints
 * "stopped", and resumes it after SECONDS, or when its process has ended. */
#include "support/stop_thread.h"

#include <stdlib.h>
#include <time.h>

#define NAP_NS 50000000L

static double now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    pid_t tid = argc == 3 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
    double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;
    double end_s = now_s() + seconds;

    if (tid <= 0 || seconds <= 0) {
        (void)fprintf(stderr, "usage: thread_stop TID SECONDS\n");
        return 2;
    }
    if (!stop_thread(tid)) {
        return 1;
    }
    (void)puts("stopped");
    (void)fflush(stdout);
    while (now_s() < end_s) {
        if (stopped_thread_is_gone(tid)) {
            (void)puts("gone");
            return 0;
        }
        (void)nanosleep(&nap, NULL);
    }
    (void)puts("goes on");
    return let_thread_go(tid) ? 0 : 1;
}
