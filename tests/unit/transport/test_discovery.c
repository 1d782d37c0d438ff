/* SPDX-License-Identifier: Apache-2.0 */
/* transport/discovery/discovery.h: which psd of this host is found, and whose file is believed. */
#include "transport/discovery/discovery.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/temp_dir.h"

#define KEY "#0000000000000000000000000000000000000000000000000000000000000001"
#define PORT 4321
#define PATH_SIZE (PATH_MAX + 64)

static temp_dir_t temp;
static int listening; /* at DIR/psd.ipc */

static void listen_at_socket(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%.90s/psd.ipc", temp.path);
    listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(listening, (const struct sockaddr *)&at, sizeof at), 0);
    cr_assert_eq(listen(listening, 8), 0);
}

static void set_up(void)
{
    cr_assert(temp_dir_make(&temp));
    (void)setenv("XDG_RUNTIME_DIR", temp.path, 1);
    (void)setenv("XDG_STATE_HOME", temp.path, 1);
    (void)setenv("PSD_RUNTIME_DIR", temp.path, 1);
    listen_at_socket();
}

static void take_down(void)
{
    (void)close(listening);
    temp_dir_drop(&temp);
}

TestSuite(discovery, .init = set_up, .fini = take_down);

/* TEMP/psd/NAME, or TEMP/NAME. */
static void write_file(const char *name, const char *control, uint64_t net)
{
    char path[PATH_SIZE];
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "%s/psd", temp.path);
    (void)mkdir(path, S_IRWXU);
    (void)snprintf(path, sizeof path, "%s/%s", temp.path, name);
    file = fopen(path, "w");
    cr_assert_not_null(file);
    cr_assert_gt(fprintf(file,
                         "{\"control\":\"%s\",\"ipc\":\"ipc://%s/psd.ipc\",\"key_file\":\"/k\","
                         "\"net\":%" PRIu64 "}\n",
                         control, temp.path, net),
                 0);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(chmod(path, S_IRUSR | S_IWUSR), 0);
}

static bool is_there(const char *name)
{
    char path[PATH_SIZE];

    (void)snprintf(path, sizeof path, "%s/%s", temp.path, name);
    return access(path, F_OK) == 0;
}

Test(discovery, the_port_of_an_endpoint)
{
    static const struct {
        const char *endpoint;
        uint32_t port;
    } ROWS[] = {{"tcp://127.0.0.1:4321", 4321},
                {"tcp://[::1]:4321" KEY, 4321},
                {"tcp://host:65536", 0},
                {"tcp://host:12x", 0},
                {"tcp://host", 0},
                {"ipc:///run/psd.ipc:12", 0},
                {"tcp://", 0},
                {"", 0}};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        cr_expect_eq(ps_discovery_port(ROWS[i].endpoint), ROWS[i].port, "%s", ROWS[i].endpoint);
    }
}

Test(discovery, a_psd_of_this_user_is_found_by_its_port)
{
    ps_discovery_t found;

    write_file("psd/4321.json", "tcp://127.0.0.1:4321" KEY, ps_discovery_net());
    cr_assert(ps_discovery_find(PORT, &found));
    cr_expect_str_eq(found.control, "tcp://127.0.0.1:4321" KEY);
    cr_expect_str_eq(found.key_file, "/k");
    cr_expect(!ps_discovery_find(PORT + 1, &found));
    cr_expect(!ps_discovery_find(0, &found));
}

Test(discovery, of_another_port_namespace_or_level_it_is_not)
{
    ps_discovery_t found;

    write_file("psd/4321.json", "tcp://127.0.0.1:4322" KEY, ps_discovery_net());
    cr_expect(!ps_discovery_find(PORT, &found), "another port");
    write_file("psd/4321.json", "tcp://127.0.0.1:4321" KEY, ps_discovery_net() + 1);
    cr_expect(!ps_discovery_find(PORT, &found), "another network namespace");
    write_file("psd/4321.json", "tcp://127.0.0.1:4321", ps_discovery_net());
    cr_expect(!ps_discovery_find(PORT, &found), "it asks for no key");
}

Test(discovery, what_a_killed_psd_left_names_nobody)
{
    ps_discovery_t found;

    write_file("psd/4321.json", "tcp://127.0.0.1:4321" KEY, ps_discovery_net());
    (void)close(listening);
    cr_expect(!ps_discovery_find(PORT, &found));
}

Test(discovery, a_runtime_dir_is_looked_at_as_well)
{
    ps_discovery_t found;
    char endpoint[PS_ENDPOINT_MAX + 1];

    write_file("endpoints.json", "tcp://127.0.0.1:4321" KEY, ps_discovery_net());
    cr_assert(ps_discovery_find(PORT, &found));
    ps_discovery_nearest(endpoint);
    cr_expect_str_eq(endpoint, found.ipc);
}

Test(discovery, without_a_runtime_dir_an_own_psd_comes_first)
{
    char endpoint[PS_ENDPOINT_MAX + 1];

    (void)unsetenv("PSD_RUNTIME_DIR");
    write_file("psd/endpoints.json", "tcp://127.0.0.1:4321", ps_discovery_net());
    ps_discovery_nearest(endpoint);
    cr_expect(strncmp(endpoint, "ipc://", 6) == 0 && strstr(endpoint, temp.path) != NULL, "%s",
              endpoint);
}

Test(discovery, a_sweep_takes_what_is_gone_and_what_is_the_callers)
{
    char dir[PATH_MAX];
    char own[PATH_SIZE];

    cr_assert(ps_discovery_dir(dir));
    (void)snprintf(own, sizeof own, "ipc://%s/psd.ipc", temp.path);
    write_file("psd/4321.json", "tcp://127.0.0.1:4321" KEY, ps_discovery_net());
    ps_discovery_sweep(dir, "ipc:///other");
    cr_expect(is_there("psd/4321.json"), "it runs");
    ps_discovery_withdraw(PORT, "ipc:///other");
    cr_expect(is_there("psd/4321.json"), "it is another one's");
    ps_discovery_sweep(dir, own);
    cr_expect(!is_there("psd/4321.json"), "it had another port");
    write_file("psd/4321.json", "tcp://127.0.0.1:4321" KEY, ps_discovery_net());
    (void)close(listening);
    ps_discovery_sweep(dir, "ipc:///other");
    cr_expect(!is_there("psd/4321.json"), "it is gone");
}
