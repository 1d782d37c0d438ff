/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/files.c: who connects while there is no descriptor left. */
#include "daemon/files.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FILES 64

static int listen_at(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

    cr_assert_geq(fd, 0);
    cr_assert_eq(bind(fd, (const struct sockaddr *)at, sizeof *at), 0);
    cr_assert_eq(listen(fd, 4), 0);
    return fd;
}

static void use_up(void)
{
    const struct rlimit limit = {.rlim_cur = FILES, .rlim_max = FILES};

    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (fcntl(0, F_DUPFD, 0) >= 0) {
    }
    cr_assert_eq(errno, EMFILE);
}

/* Linux says EMFILE of an empty queue, too: a caller that asked again for ever
 * would never get anything else. */
Test(files, without_a_descriptor_each_is_hung_up_on_once, .timeout = 60)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX}; /* the system's name */
    socklen_t size = sizeof at;
    int listener = 0;
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    char byte = 0;

    (void)snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "psd-files-%d", getpid());
    listener = listen_at(&at);
    ps_files_start();
    use_up();
    cr_assert_eq(connect(client, (const struct sockaddr *)&at, size), 0);
    for (int i = 0; i < 3; i++) {
        errno = 0;
        cr_expect_eq(accept4(listener, NULL, NULL, SOCK_CLOEXEC), -1);
        cr_expect_eq(errno, i == 0 ? ECONNABORTED : EAGAIN, "%d: %d", i, errno);
    }
    cr_expect_eq(read(client, &byte, 1), 0);
    cr_expect(ps_files_are_out(1000));
}
