/* SPDX-License-Identifier: Apache-2.0 */
/* transport/discovery/discovery.h: which psd of this host is found, and whose file is believed. */
#include "transport/discovery/discovery.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "support/temp_dir.h"

#define KEY "#0000000000000000000000000000000000000000000000000000000000000001"
#define AT "tcp://127.0.0.1:4321"
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
    (void)setenv("XDG_STATE_HOME", temp.path, 1);
    (void)setenv("PSD_RUNTIME_DIR", temp.path, 1);
    listen_at_socket();
}

static void stop_listening(void)
{
    if (listening >= 0) {
        (void)close(listening);
        listening = -1;
    }
}

static void take_down(void)
{
    stop_listening();
    temp_dir_drop(&temp);
}

TestSuite(discovery, .init = set_up, .fini = take_down);

/* What psd writes for its user, as it would: the text of it is in *ret. */
static ps_discovery_t describe(const char *listens, const char *key_file)
{
    ps_discovery_t one = {.cluster.bytes = {1}};

    (void)snprintf(one.control, sizeof one.control, "%s%s", listens, KEY);
    (void)snprintf(one.ipc, sizeof one.ipc, "ipc://%.200s/psd.ipc", temp.path);
    (void)snprintf(one.listens, sizeof one.listens, "%s", listens);
    (void)snprintf(one.key_file, sizeof one.key_file, "%s", key_file);
    return one;
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file, "%s", path);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(chmod(path, S_IRUSR | S_IWUSR), 0);
}

/* Writes it where psd does, with one text in place of another; ret_path: the file. */
static void write_changed(const ps_discovery_t *one, const char *old, const char *new,
                          char ret_path[PATH_SIZE])
{
    ps_buffer_t name = {0};
    ps_buffer_t text = {0};
    char dir[PATH_MAX];
    char changed[4096];
    const char *at = NULL;

    cr_assert(ps_discovery_dir(dir));
    for (char *slash = strchr(dir + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(dir, S_IRWXU);
        *slash = '/';
    }
    (void)mkdir(dir, S_IRWXU);
    cr_assert(ps_discovery_print(one, &name, &text));
    at = old == NULL ? NULL : strstr((const char *)text.data, old);
    cr_assert(old == NULL || at != NULL, "no %s in %s", old, (const char *)text.data);
    (void)snprintf(changed, sizeof changed, "%.*s%s%s",
                   at == NULL ? 0 : (int)(at - (const char *)text.data), (const char *)text.data,
                   at == NULL ? "" : new, at == NULL ? (const char *)text.data : at + strlen(old));
    (void)snprintf(ret_path, PATH_SIZE, "%.3000s/%s", dir, (const char *)name.data);
    put(ret_path, changed);
    ps_buffer_done(&name);
    ps_buffer_done(&text);
}

static void write_one(const char *listens, const char *key_file, char ret_path[PATH_SIZE])
{
    ps_discovery_t one = describe(listens, key_file);

    write_changed(&one, NULL, NULL, ret_path);
}

static bool finds(const char *endpoint)
{
    ps_discovery_t found;

    return ps_discovery_find(endpoint, &found);
}

Test(discovery, a_psd_of_this_user_is_found_by_its_port)
{
    char path[PATH_SIZE];
    ps_discovery_t found;

    write_one(AT, "/k", path);
    cr_assert(ps_discovery_find(AT, &found));
    cr_expect_str_eq(found.control, AT KEY);
    cr_expect_str_eq(found.key_file, "/k");
    cr_expect(finds(AT KEY));
    cr_expect(finds("tcp://localhost:4321"));
}

Test(discovery, only_what_leads_to_it_is_it)
{
    static const char *const OTHERS[] = {
        "tcp://127.0.0.1:4322", "tcp://127.0.0.1:43210", "tcp://127.0.0.2:4321",
        "tcp://[::1]:4321",     "tcp://192.0.2.1:4321",  AT "#0000",
        "tcp://127.0.0.1",      "ipc://127.0.0.1:4321",  ""};
    char path[PATH_SIZE];

    write_one(AT, "", path);
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        cr_expect(!finds(OTHERS[i]), "%s", OTHERS[i]);
    }
}

Test(discovery, one_that_listens_at_all_addresses_is_found_by_each)
{
    char path[PATH_SIZE];

    write_one("tcp://0.0.0.0:4321", "", path);
    cr_expect(finds("tcp://127.0.0.1:4321"));
    cr_expect(finds("tcp://127.0.0.2:4321"));
    cr_expect(finds("tcp://localhost:4321"));
    cr_expect(!finds("tcp://192.0.2.1:4321"), "an address of another host");
}

Test(discovery, what_counts_elsewhere_does_not_here)
{
    ps_discovery_t one = describe(AT, "");
    char path[PATH_SIZE];

    write_changed(&one, "\"net\":", "\"net\":1", path);
    cr_expect(!finds(AT), "another network namespace");
    write_changed(&one, "\"mount\":", "\"mount\":1", path);
    cr_expect(!finds(AT), "another mount namespace");
    write_changed(&one, KEY, "", path);
    cr_expect(!finds(AT), "it asks for no key");
    write_changed(&one, "}", "", path);
    cr_expect(!finds(AT), "half a file");
    write_changed(&one, NULL, NULL, path);
    cr_expect(finds(AT));
}

Test(discovery, who_else_may_write_the_file_may_not_say)
{
    char path[PATH_SIZE];
    char aside[PATH_SIZE];

    write_one(AT, "", path);
    cr_assert_eq(chmod(path, S_IRUSR | S_IWUSR | S_IWGRP), 0);
    cr_expect(!finds(AT), "the group may");
    cr_assert_eq(chmod(path, S_IRUSR | S_IWUSR | S_IWOTH), 0);
    cr_expect(!finds(AT), "others may");
    cr_assert_eq(chmod(path, S_IRUSR | S_IWUSR), 0);
    (void)snprintf(aside, sizeof aside, "%s/aside", temp.path);
    cr_assert_eq(rename(path, aside), 0);
    cr_assert_eq(symlink(aside, path), 0);
    cr_expect(!finds(AT), "a link");
}

Test(discovery, what_a_killed_psd_left_names_nobody)
{
    char path[PATH_SIZE];

    write_one(AT, "", path);
    stop_listening();
    cr_expect(!finds(AT));
}

Test(discovery, a_node_that_joined_has_its_clusters_key_file)
{
    char path[PATH_SIZE];
    ps_discovery_t found;
    ps_discovery_t other = describe("tcp://127.0.0.1:4323", "/other");

    write_one(AT, "", path);
    other.cluster.bytes[0] = 2;
    write_changed(&other, NULL, NULL, path);
    cr_assert(ps_discovery_find(AT, &found));
    cr_expect_str_eq(found.key_file, "", "of another cluster");
    write_one("tcp://127.0.0.1:4322", "/k", path);
    cr_assert(ps_discovery_find(AT, &found));
    cr_expect_str_eq(found.key_file, "/k");
}

Test(discovery, a_runtime_dir_is_looked_at_as_well)
{
    ps_discovery_t one = describe(AT, "/of_its_owner");
    ps_discovery_t found;
    ps_buffer_t name = {0};
    ps_buffer_t text = {0};
    char path[PATH_SIZE];
    char endpoint[PS_ENDPOINT_MAX + 1];

    cr_assert(ps_discovery_print(&one, &name, &text));
    (void)snprintf(path, sizeof path, "%s/endpoints.json", temp.path);
    put(path, (const char *)text.data);
    cr_assert(ps_discovery_find(AT, &found));
    cr_expect_str_eq(found.key_file, "", "whoever has that directory names no key of ours");
    ps_discovery_nearest(endpoint);
    cr_expect_str_eq(endpoint, one.ipc);
    ps_buffer_done(&name);
    ps_buffer_done(&text);
}

Test(discovery, without_a_runtime_dir_an_own_psd_comes_first)
{
    ps_discovery_t one = describe(AT, "");
    ps_buffer_t name = {0};
    ps_buffer_t text = {0};
    char path[PATH_SIZE];
    char endpoint[PS_ENDPOINT_MAX + 1];

    (void)unsetenv("PSD_RUNTIME_DIR");
    cr_assert(ps_discovery_print(&one, &name, &text));
    (void)snprintf(path, sizeof path, "%s/psd", temp.path);
    cr_assert_eq(mkdir(path, S_IRWXU), 0);
    (void)snprintf(path, sizeof path, "%s/psd/endpoints.json", temp.path);
    put(path, (const char *)text.data);
    ps_discovery_nearest(endpoint);
    cr_expect_str_eq(endpoint, one.ipc);
    ps_buffer_done(&name);
    ps_buffer_done(&text);
}

Test(discovery, a_sweep_takes_what_is_gone_and_what_is_its_callers)
{
    ps_discovery_t one = describe(AT, "");
    char path[PATH_SIZE];

    write_one(AT, "", path);
    ps_discovery_sweep("ipc:///other", true);
    cr_expect_eq(access(path, F_OK), 0, "it runs");
    ps_discovery_sweep(one.ipc, false);
    cr_expect_neq(access(path, F_OK), 0, "it is the caller's");
    write_changed(&one, "\"mount\":", "\"mount\":1", path);
    stop_listening();
    ps_discovery_sweep("ipc:///other", true);
    cr_expect_eq(access(path, F_OK), 0, "nobody here can say");
    write_one(AT, "", path);
    ps_discovery_sweep("ipc:///other", false);
    cr_expect_eq(access(path, F_OK), 0, "a psd that ends looks at its own");
    ps_discovery_sweep("ipc:///other", true);
    cr_expect_neq(access(path, F_OK), 0, "it is gone");
}
