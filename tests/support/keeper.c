/* SPDX-License-Identifier: Apache-2.0 */
/* A child that outlives the test for a moment. */
#include "support/keeper.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "support/temp_dir.h"

#define STEP_MS 5
#define TRIES 200

static void keep(const char *path, int fd)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    char byte = 0;

    while (read(fd, &byte, 1) > 0) {
    }
    for (int i = 0; i < TRIES && access(path, F_OK) == 0; i++) {
        temp_dir_t dir = {""};

        (void)snprintf(dir.path, sizeof dir.path, "%s", path);
        temp_dir_drop(&dir);
        if (access(path, F_OK) == 0) {
            (void)nanosleep(&step, NULL);
        }
    }
    _exit(0);
}

bool keeper_start(const char *path, pid_t *ret_keeper, int *ret_fd)
{
    int fds[2] = {-1, -1};

    if (pipe2(fds, O_CLOEXEC) != 0) {
        perror("pipe");
        return false;
    }
    (void)fflush(NULL);
    *ret_keeper = fork();
    if (*ret_keeper == 0) {
        (void)setsid(); /* signals from the terminal to the test are not for it */
        (void)close(fds[1]);
        keep(path, fds[0]);
    }
    (void)close(fds[0]);
    *ret_fd = fds[1];
    return *ret_keeper > 0;
}
