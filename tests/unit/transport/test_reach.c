/* SPDX-License-Identifier: Apache-2.0 */
/* ps_reach: what the system says of an endpoint where nobody answers. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "transport/sockets/reach.h"

#define WAIT_MS 30000 /* nothing here takes long */

/* A socket that has a port of its own, and does not listen on it yet. */
static int take_port(char ret_endpoint[64])
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_geq(handle, 0);
    cr_assert_eq(bind(handle, (const struct sockaddr *)&at, sizeof at), 0);
    cr_assert_eq(getsockname(handle, (struct sockaddr *)&at, &size), 0);
    (void)snprintf(ret_endpoint, 64, "tcp://127.0.0.1:%u", (unsigned)ntohs(at.sin_port));
    return handle;
}

static void expect_why(const char *endpoint, ps_reach_t outcome, const char *wanted)
{
    char why[PS_REACH_TEXT];

    cr_assert_eq(ps_reach_why(endpoint, WAIT_MS, why), outcome, "%s", why);
    cr_assert_not_null(strstr(why, wanted), "%s: \"%s\" has no \"%s\"", endpoint, why, wanted);
}

Test(reach, names_what_the_system_says)
{
    char endpoint[64];
    int handle = take_port(endpoint);

    expect_why(endpoint, PS_REACH_REFUSED_HERE, "Connection refused");
    cr_assert_eq(listen(handle, 1), 0);
    expect_why(endpoint, PS_REACH_LISTENS,
               "something listens there and does not answer like psd: another service, the port of "
               "a shard, or a psd that hangs");
    (void)snprintf(endpoint + strlen(endpoint), 8, "#abc");
    expect_why(endpoint, PS_REACH_LISTENS,
               "does not answer under the key that the endpoint names: a psd with another key, ");
    (void)close(handle);
    expect_why("ipc:///nowhere/psd.ipc", PS_REACH_REFUSED_HERE, "No such file");
    expect_why("tcp://no-such-host.invalid:1", PS_REACH_REFUSED, "host \"no-such-host.invalid\": ");
    expect_why("tcp://nohost", PS_REACH_UNKNOWN, "there is no port");
}

Test(reach, takes_any_text)
{
    char path[400] = "ipc://";
    char why[PS_REACH_TEXT];

    memset(path + strlen(path), 'x', sizeof path - strlen(path) - 1);
    path[sizeof path - 1] = '\0';
    expect_why(path, PS_REACH_REFUSED_HERE, "File name too long");
    cr_assert_eq(ps_reach_why("udp://127.0.0.1:1", WAIT_MS, why), PS_REACH_UNKNOWN);
    cr_assert_str_empty(why);
}

/* A socket at a path: there and listening, full, and left behind by one who is
 * gone. */
Test(reach, tells_a_socket_from_its_file)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char directory[] = "/tmp/psd-reach-XXXXXX";
    char endpoint[160];
    int handle = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int full = -1;

    cr_assert_not_null(mkdtemp(directory));
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/s", directory);
    (void)snprintf(endpoint, sizeof endpoint, "ipc://%s", at.sun_path);
    cr_assert_not(ps_reach_ipc_listens(endpoint));
    cr_assert_eq(bind(handle, (const struct sockaddr *)&at, sizeof at), 0);
    cr_assert_not(ps_reach_ipc_listens(endpoint));
    cr_assert_eq(listen(handle, 0), 0);
    cr_assert(ps_reach_ipc_listens(endpoint));
    full = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)connect(full, (const struct sockaddr *)&at, sizeof at);
    cr_assert(ps_reach_ipc_listens(endpoint));
    (void)close(full);
    (void)close(handle);
    cr_assert_eq(access(at.sun_path, F_OK), 0);
    cr_assert_not(ps_reach_ipc_listens(endpoint));
    cr_assert_not(ps_reach_ipc_listens(""));
    cr_assert_not(ps_reach_ipc_listens("tcp://127.0.0.1:1"));
    cr_assert_eq(unlink(at.sun_path), 0);
    cr_assert_eq(rmdir(directory), 0);
}

/* A port that takes no connection more: whoever wants one waits. */
Test(reach, ends_with_its_time)
{
    char endpoint[64];
    char why[PS_REACH_TEXT];
    int taken[4] = {-1, -1, -1, -1};
    int handle = take_port(endpoint);
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    struct timespec before;
    struct timespec after;

    cr_assert_eq(listen(handle, 0), 0);
    cr_assert_eq(getsockname(handle, (struct sockaddr *)&at, &size), 0);
    for (size_t i = 0; i < 4; i++) {
        taken[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(taken[i], (const struct sockaddr *)&at, size);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &before);
    cr_assert_eq(ps_reach_why(endpoint, 20, why), PS_REACH_UNKNOWN);
    (void)clock_gettime(CLOCK_MONOTONIC, &after);
    cr_assert(strcmp(why, "connecting takes long") == 0 ||
                  strcmp(why, "its host is still being looked up") == 0 ||
                  strcmp(why, "Connection timed out") == 0,
              "%s", why);
    cr_assert_lt(after.tv_sec - before.tv_sec, 30);
    for (size_t i = 0; i < 4; i++) {
        (void)close(taken[i]);
    }
    (void)close(handle);
}
