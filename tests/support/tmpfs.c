/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts of our own. */
#include "support/tmpfs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILLER "filler"

bool tmpfs_enter(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        perror("a mount namespace of our own");
        return false;
    }
    return true;
}

bool tmpfs_mount(const char *path, uint64_t bytes)
{
    char options[64];

    (void)snprintf(options, sizeof options, "mode=0700,size=%" PRIu64, bytes);
    if (mount("psd-test", path, "tmpfs", 0, options) != 0) {
        perror(path);
        return false;
    }
    return true;
}

void tmpfs_unmount(const char *path)
{
    (void)umount2(path, MNT_DETACH);
}

bool tmpfs_can(void)
{
    int status = 0;
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        _exit(tmpfs_enter() && tmpfs_mount("/", 65536) ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool tmpfs_fill(const char *path)
{
    static const char zeros[4096];
    char file[PATH_MAX];
    int fd = -1;

    (void)snprintf(file, sizeof file, "%s/" FILLER, path);
    fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        perror(file);
        return false;
    }
    while (write(fd, zeros, sizeof zeros) > 0) {
    }
    (void)close(fd);
    return true;
}

bool tmpfs_empty(const char *path)
{
    char file[PATH_MAX];

    (void)snprintf(file, sizeof file, "%s/" FILLER, path);
    return unlink(file) == 0;
}
