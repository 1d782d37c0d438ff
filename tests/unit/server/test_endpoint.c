/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/config/endpoint.h: addresses as text. */
#include "server/config/endpoint.h"

#include <criterion/criterion.h>
#include <string.h>

Test(endpoint, valid_ones_are_taken)
{
    static const char *const GOOD[] = {
        "tcp://127.0.0.1:7171", "tcp://localhost:0", "tcp://*:1", "tcp://[::1]:7171",
        "tcp://a.b-c_d:*",      "ipc:///tmp/x",      "ipc://x"};

    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        cr_assert(ps_endpoint_is_valid(GOOD[i]), "%s", GOOD[i]);
    }
}

Test(endpoint, others_are_refused)
{
    static const char *const BAD[] = {
        "",           "tcp://",         "tcp://a",      "tcp://:1",
        "tcp://a:",   "tcp://a:65536",  "tcp://a:-1",   "tcp://a b:1",
        "tcp://a:1 ", "tcp://a/b:1",    "tcp://[::1:1", "tcp://[]:1",
        "ipc://",     "inproc://x",     "http://a:1",   "127.0.0.1:7171",
        "TCP://a:1",  "tcp://a;eth0:1", "tcp://[zz]:1", "udp://a:1",
        "ipc://a\ab"};
    char long_path[200];

    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        cr_assert(!ps_endpoint_is_valid(BAD[i]), "%s", BAD[i]);
    }
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    memcpy(long_path, "ipc://", 6);
    cr_assert(!ps_endpoint_is_valid(long_path));
}

Test(endpoint, the_host_keeps_its_brackets)
{
    char host[PS_ENDPOINT_MAX + 1];

    ps_endpoint_host("tcp://127.0.0.1:7171", host);
    cr_assert_str_eq(host, "127.0.0.1");
    ps_endpoint_host("tcp://[::1]:7171", host);
    cr_assert_str_eq(host, "[::1]");
    ps_endpoint_host("ipc://x", host);
    cr_assert_str_eq(host, "");
}

Test(endpoint, another_host_keeps_the_port)
{
    char text[PS_ENDPOINT_MAX + 1];

    ps_endpoint_with_host("tcp://0.0.0.0:7171", "node-a", text);
    cr_assert_str_eq(text, "tcp://node-a:7171");
    ps_endpoint_with_host("ipc://x", "node-a", text);
    cr_assert_str_eq(text, "ipc://x");
}

Test(endpoint, wildcards_are_every_address)
{
    cr_assert(ps_endpoint_is_wildcard("tcp://*:1"));
    cr_assert(ps_endpoint_is_wildcard("tcp://0.0.0.0:1"));
    cr_assert(ps_endpoint_is_wildcard("tcp://[::]:1"));
    cr_assert(!ps_endpoint_is_wildcard("tcp://127.0.0.1:1"));
    cr_assert(!ps_endpoint_is_wildcard("ipc://*"));
}
