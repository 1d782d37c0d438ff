/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/config/config.h: every key, its bounds, its sources, and what is printed. */
#include "daemon/config_file.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static ps_config_t config;
static psd_error_t *err;

static void open_config(void)
{
    unsetenv("STATE_DIRECTORY");
    setenv("XDG_STATE_HOME", "/state", 1);
    err = psd_error_new();
    cr_assert_eq(ps_config_init(&config, err), PSD_OK, "%s", psd_error_text(err));
}

static void close_config(void)
{
    ps_config_done(&config);
    psd_error_destroy(&err);
}

TestSuite(config, .init = open_config, .fini = close_config);

static psd_status_t set_flag(ps_key_id_t id, const char *text)
{
    const ps_origin_t origin = {.source = PS_SOURCE_FLAG, .flag = "--flag"};

    psd_error_clear(err);
    return ps_config_set(&config, id, text, &origin, err);
}

/* The value of a key as it would be typed. */
static const char *shown(ps_key_id_t id)
{
    static char text[1024];
    ps_buffer_t buffer = {0};

    cr_assert(ps_config_value_print(&config, id, &buffer));
    (void)snprintf(text, sizeof text, "%s", buffer.data == NULL ? "" : (const char *)buffer.data);
    ps_buffer_done(&buffer);
    return text;
}

#define ASSERT_SET(id, text, expected)                                       \
    do {                                                                     \
        cr_assert_eq(set_flag(id, text), PSD_OK, "%s", psd_error_text(err)); \
        cr_assert_str_eq(shown(id), expected);                               \
    } while (0)

#define ASSERT_REFUSED(id, text, expected)               \
    do {                                                 \
        cr_assert_eq(set_flag(id, text), PSD_CONFIG);    \
        cr_assert_str_eq(psd_error_text(err), expected); \
    } while (0)

/* ---- defaults ---- */

Test(config, every_key_has_its_default)
{
    for (int i = 0; i < PS_KEY_COUNT; i++) {
        const ps_key_t *key = ps_config_key((ps_key_id_t)i);

        cr_assert_eq((int)key->id, i);
        if (key->fallback[0] != '\0') {
            cr_assert_str_eq(shown(key->id), key->fallback, "%s", key->path);
        }
        cr_assert_eq(config.origins[i].source, PS_SOURCE_DEFAULT);
    }
    cr_assert_eq(ps_config_check(&config, err), PSD_OK);
}

Test(config, the_data_directory_follows_systemd_then_xdg_then_home)
{
    cr_assert_str_eq(config.data_dir, "/state/psd");

    ps_config_done(&config);
    setenv("STATE_DIRECTORY", "/run/of/systemd:/second", 1);
    cr_assert_eq(ps_config_init(&config, err), PSD_OK);
    cr_assert_str_eq(config.data_dir, "/run/of/systemd");

    ps_config_done(&config);
    unsetenv("STATE_DIRECTORY");
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/home/of/me", 1);
    cr_assert_eq(ps_config_init(&config, err), PSD_OK);
    cr_assert_str_eq(config.data_dir, "/home/of/me/.local/state/psd");
}

Test(config, the_sockets_are_where_systemd_says_else_with_the_data)
{
    cr_assert_str_eq(config.runtime_dir, "");

    ps_config_done(&config);
    setenv("RUNTIME_DIRECTORY", "/run/psd:/run/second", 1);
    cr_assert_eq(ps_config_init(&config, err), PSD_OK);
    unsetenv("RUNTIME_DIRECTORY");
    cr_assert_str_eq(config.runtime_dir, "/run/psd");
}

Test(config, ports_of_shards_are_enough_and_nobody_elses)
{
    static const char *const BAD[] = {"7172",  "7175-7172",  "0-9", "1-65536",    "-7172",
                                      "7172-", "7172-7173-", "a-b", "999999999-1"};

    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        cr_expect_eq(set_flag(PS_KEY_listen_shard_ports, BAD[i]), PSD_CONFIG, "%s", BAD[i]);
        cr_expect(strstr(psd_error_text(err), "allowed: FIRST-LAST of 1 .. 65535, or \"\"") != NULL,
                  "%s", psd_error_text(err));
        psd_error_clear(err);
    }
    ASSERT_SET(PS_KEY_shards, "3", "3");
    ASSERT_SET(PS_KEY_listen_shard_ports, "", "");
    ASSERT_SET(PS_KEY_listen_shard_ports, "7172-7173", "7172-7173");
    cr_expect_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_expect_str_eq(psd_error_text(err), "--flag: listen.shard_ports is 7172-7173, which is 2 "
                                          "ports; allowed: one for each of shards, which is 3");
    psd_error_clear(err);
    ASSERT_SET(PS_KEY_listen_shard_ports, "7170-7175", "7170-7175");
    cr_expect_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_expect_str_eq(psd_error_text(err),
                     "--flag: listen.shard_ports is 7170-7175, of which shard 1 "
                     "has 7171, as listen.endpoints has "
                     "(tcp://127.0.0.1:7171); allowed: other ports");
    psd_error_clear(err);
    /* The fourth port is no shard's. */
    ASSERT_SET(PS_KEY_listen_shard_ports, "7168-7171", "7168-7171");
    cr_expect_eq(ps_config_check(&config, err), PSD_OK, "%s", psd_error_text(err));
}

Test(config, peers_are_owner_group_or_any)
{
    ASSERT_SET(PS_KEY_lane_peers, "group", "group");
    ASSERT_SET(PS_KEY_lane_peers, "any", "any");
    ASSERT_SET(PS_KEY_lane_peers, "owner", "owner");
    ASSERT_REFUSED(PS_KEY_lane_peers, "all",
                   "--flag: lane.peers is \"all\"; allowed: owner | group | "
                   "any");
}

Test(config, a_socket_without_a_file_is_refused)
{
    ASSERT_SET(PS_KEY_listen_endpoints, "ipc://@psd", "ipc://@psd");
    cr_expect_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_expect(strstr(psd_error_text(err), "ipc://@psd, which is not a file") != NULL, "%s",
              psd_error_text(err));
}

Test(config, without_any_place_the_data_directory_is_asked_for)
{
    ps_config_done(&config);
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    cr_assert_eq(ps_config_init(&config, err), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "data_dir has no default here: none of STATE_DIRECTORY, "
                                          "XDG_STATE_HOME and HOME is an absolute path; set "
                                          "--data-dir");
}

Test(config, shards_are_the_cores_but_at_most_four)
{
    cr_assert_geq(config.shards, 1);
    cr_assert_leq(config.shards, 4);
}

/* ---- bounds ---- */

Test(config, numbers_take_their_bounds_and_nothing_beyond)
{
    for (int i = 0; i < PS_KEY_COUNT; i++) {
        const ps_key_t *key = ps_config_key((ps_key_id_t)i);
        char text[32];
        char expected[256];

        if (key->kind != PS_KEY_KIND_UINT && key->kind != PS_KEY_KIND_SIZE) {
            continue;
        }
        (void)snprintf(text, sizeof text, "%" PRIu64, key->min);
        cr_assert_eq(set_flag(key->id, text), PSD_OK, "%s", key->path);
        (void)snprintf(text, sizeof text, "%" PRIu64, key->max);
        cr_assert_eq(set_flag(key->id, text), PSD_OK, "%s", key->path);
        (void)snprintf(text, sizeof text, "%" PRIu64, key->min - 1);
        cr_assert_eq(set_flag(key->id, text), PSD_CONFIG, "%s", key->path);
        (void)snprintf(text, sizeof text, "%" PRIu64, key->max + 1);
        cr_assert_eq(set_flag(key->id, text), PSD_CONFIG, "%s", key->path);
        (void)snprintf(expected, sizeof expected,
                       "--flag: %s is \"%s\"; allowed: %" PRIu64 " .. %" PRIu64 " %s", key->path,
                       text, key->min, key->max,
                       key->kind == PS_KEY_KIND_SIZE ? "bytes, or as 64k, 16MiB, 1G" : key->unit);
        cr_assert_str_eq(psd_error_text(err), expected);
        cr_assert_eq(set_flag(key->id, "9x"), PSD_CONFIG, "%s", key->path);
        cr_assert_eq(set_flag(key->id, "-1"), PSD_CONFIG, "%s", key->path);
        cr_assert_eq(set_flag(key->id, ""), PSD_CONFIG, "%s", key->path);
        cr_assert_eq(set_flag(key->id, "99999999999999999999"), PSD_CONFIG);
    }
}

Test(config, sizes_take_units)
{
    ASSERT_SET(PS_KEY_limits_chunk_bytes, "65536", "64KiB");
    ASSERT_SET(PS_KEY_limits_chunk_bytes, "2MiB", "2MiB");
    ASSERT_SET(PS_KEY_limits_chunk_bytes, "4097", "4097");
    ASSERT_REFUSED(PS_KEY_limits_chunk_bytes, "1 furlong",
                   "--flag: limits.chunk_bytes is \"1 furlong\"; allowed: 4096 "
                   ".. 67108864 bytes, or as 64k, 16MiB, 1G");
}

Test(config, a_refused_value_changes_nothing)
{
    ASSERT_SET(PS_KEY_limits_chunk_bytes, "2MiB", "2MiB");
    cr_assert_eq(set_flag(PS_KEY_limits_chunk_bytes, "1"), PSD_CONFIG);
    cr_assert_str_eq(shown(PS_KEY_limits_chunk_bytes), "2MiB");
    cr_assert_eq(set_flag(PS_KEY_listen_endpoints, "nonsense"), PSD_CONFIG);
    cr_assert_str_eq(shown(PS_KEY_listen_endpoints), "tcp://127.0.0.1:7171");
}

Test(config, names_are_names)
{
    ASSERT_SET(PS_KEY_cluster_name, "lab-1.east_2", "lab-1.east_2");
    ASSERT_REFUSED(PS_KEY_cluster_name, "two words",
                   "--flag: cluster.name is \"two words\"; allowed: 1 .. 63 of "
                   "A-Z a-z 0-9 _ . - with no . or - in front");
    cr_assert_eq(set_flag(PS_KEY_node_name, "-a"), PSD_CONFIG);
    cr_assert_eq(set_flag(PS_KEY_node_name, ""), PSD_CONFIG);
    ASSERT_SET(PS_KEY_node_name, "a", "a");
}

Test(config, paths_have_no_control_characters)
{
    ASSERT_SET(PS_KEY_data_dir, "/a place with spaces", "/a place with spaces");
    cr_assert_eq(set_flag(PS_KEY_data_dir, ""), PSD_CONFIG);
    ASSERT_REFUSED(PS_KEY_data_dir, "/a\nb",
                   "--flag: data_dir is \"/a\\nb\"; allowed: a path of at most "
                   "4000 bytes");
}

Test(config, hosts_are_hosts)
{
    ASSERT_SET(PS_KEY_listen_advertise, "node-1.example.org", "node-1.example.org");
    ASSERT_SET(PS_KEY_listen_advertise, "[fe80::1]", "[fe80::1]");
    ASSERT_SET(PS_KEY_listen_advertise, "", "");
    ASSERT_REFUSED(PS_KEY_listen_advertise, "a/b",
                   "--flag: listen.advertise is \"a/b\"; allowed: a host name "
                   "or address, without a scheme");
}

Test(config, endpoints_are_addresses)
{
    ASSERT_SET(PS_KEY_listen_endpoints, "tcp://127.0.0.1:0,ipc://x", "tcp://127.0.0.1:0,ipc://x");
    ASSERT_REFUSED(PS_KEY_listen_endpoints, "udp://127.0.0.1:1",
                   "--flag: listen.endpoints is \"udp://127.0.0.1:1\"; allowed: "
                   "1 .. 16 of tcp://HOST:PORT and ipc://PATH");
    cr_assert_eq(set_flag(PS_KEY_listen_endpoints, ""), PSD_CONFIG);
    cr_assert_eq(set_flag(PS_KEY_listen_endpoints, "tcp://a:1,"), PSD_CONFIG);
    cr_assert_eq(set_flag(PS_KEY_listen_endpoints,
                          "ipc://1,ipc://2,ipc://3,ipc://4,ipc://5,ipc://6,"
                          "ipc://7,ipc://8,ipc://9,ipc://a,ipc://b,ipc://c,"
                          "ipc://d,ipc://e,ipc://f,ipc://g,ipc://h"),
                 PSD_CONFIG);
}

Test(config, levels_and_switches_are_words)
{
    ASSERT_SET(PS_KEY_log_level, "debug", "debug");
    ASSERT_SET(PS_KEY_log_level, "error", "error");
    ASSERT_SET(PS_KEY_log_level, "warn", "warn");
    ASSERT_REFUSED(PS_KEY_log_level, "loud",
                   "--flag: log.level is \"loud\"; allowed: error | warn | info "
                   "| debug");
    ASSERT_SET(PS_KEY_security_allow_plaintext, "true", "true");
    ASSERT_REFUSED(PS_KEY_security_allow_plaintext, "yes",
                   "--flag: security.allow_plaintext is \"yes\"; allowed: true "
                   "| false");
}

/* ---- environment ---- */

Test(config, every_key_has_a_variable)
{
    setenv("PSD_LIMITS_CREDIT_REQUESTS", "7", 1);
    setenv("PSD_DATA_DIR", "/d", 1);
    setenv("PSD_LISTEN_ENDPOINTS", "tcp://127.0.0.1:0,ipc:///tmp/x", 1);
    cr_assert_eq(ps_config_take_env(&config, err), PSD_OK);
    cr_assert_eq(config.limits.credit_requests, 7);
    cr_assert_str_eq(config.data_dir, "/d");
    cr_assert_eq(config.listen.endpoints.n_items, 2);
    cr_assert_eq(config.origins[PS_KEY_data_dir].source, PS_SOURCE_ENV);
}

Test(config, a_wrong_variable_is_named)
{
    setenv("PSD_LOG_LEVEL", "loud", 1);
    cr_assert_eq(ps_config_take_env(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "PSD_LOG_LEVEL: log.level is \"loud\"; allowed: error | "
                                          "warn | info | debug");
}

/* ---- rules between values ---- */

Test(config, credits_hold_one_slice)
{
    cr_assert_eq(set_flag(PS_KEY_limits_credit_bytes, "1MiB"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "--flag: limits.credit_bytes is 1MiB; allowed: at least "
                                          "limits.slice_bytes, which is 256MiB");
}

Test(config, held_bodies_hold_one_slice)
{
    cr_assert_eq(set_flag(PS_KEY_limits_held_bytes, "1MiB"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "--flag: limits.held_bytes is 1MiB; allowed: at least "
                                          "limits.slice_bytes, which is 256MiB");
}

Test(config, a_piece_fits_a_frame)
{
    cr_assert_eq(set_flag(PS_KEY_limits_frame_bytes, "64KiB"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "--flag: limits.frame_bytes is 64KiB; allowed: at least "
                                          "limits.chunk_bytes, which is 1MiB");
}

Test(config, the_pieces_of_a_slice_fit_the_queue)
{
    cr_assert_eq(set_flag(PS_KEY_limits_high_water, "100"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "default: limits.slice_bytes is 256MiB; allowed: less "
                                          "than limits.high_water times limits.chunk_bytes, which "
                                          "is 1MiB");
}

Test(config, two_heartbeats_fit_before_a_worker_is_lost)
{
    cr_assert_eq(set_flag(PS_KEY_workers_lost_after_ms, "999"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "--flag: workers.lost_after_ms is 999; allowed: at least "
                                          "twice workers.heartbeat_ms, which is 500");
}

Test(config, a_lease_ends_before_another_primary_is_made)
{
    cr_assert_eq(set_flag(PS_KEY_copies_lease_ms, "401"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "--flag: copies.lease_ms is 401; allowed: at most "
                                          "cluster.suspect_after, which is 400");
}

Test(config, voters_are_an_odd_number)
{
    cr_assert_eq(set_flag(PS_KEY_registry_voters, "4"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "--flag: registry.voters is 4; allowed: 1, 3, 5");
}

Test(config, a_node_is_suspect_before_it_is_replaced)
{
    cr_assert_eq(set_flag(PS_KEY_cluster_suspect_after, "40000"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "--flag: cluster.suspect_after is 40000; allowed: at "
                                          "most cluster.repair_after, which is 30000");
}

Test(config, a_copy_is_slow_behind_its_lease)
{
    cr_assert_eq(set_flag(PS_KEY_copies_slow_after_ms, "299"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "--flag: copies.slow_after_ms is 299; allowed: at least "
                                          "copies.lease_ms, which is 300");
}

Test(config, what_is_under_way_fits_the_tail)
{
    cr_assert_eq(set_flag(PS_KEY_copies_flight_bytes, "65MiB"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "--flag: copies.flight_bytes is 65MiB; allowed: at most "
                                          "copies.tail_bytes, which is 64MiB");
}

Test(config, beyond_loopback_plaintext_is_asked_for)
{
    static const char *const LOCAL[] = {"tcp://127.0.0.1:1", "tcp://127.1.2.3:1", "tcp://[::1]:1",
                                        "tcp://localhost:1", "ipc:///x"};
    static const char *const FAR[] = {"tcp://0.0.0.0:1", "tcp://*:1", "tcp://10.0.0.1:1",
                                      "tcp://[::]:1", "tcp://127.example.org:1"};

    for (size_t i = 0; i < sizeof LOCAL / sizeof LOCAL[0]; i++) {
        cr_assert_eq(set_flag(PS_KEY_listen_endpoints, LOCAL[i]), PSD_OK);
        cr_assert_eq(ps_config_check(&config, err), PSD_OK, "%s", LOCAL[i]);
    }
    for (size_t i = 0; i < sizeof FAR / sizeof FAR[0]; i++) {
        cr_assert_eq(set_flag(PS_KEY_listen_endpoints, FAR[i]), PSD_OK);
        cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG, "%s", FAR[i]);
        psd_error_clear(err);
    }
    cr_assert_eq(set_flag(PS_KEY_listen_endpoints, FAR[0]), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err),
                     "--flag: listen.endpoints has tcp://0.0.0.0:1, which other "
                     "machines can reach, and security.level is plain; "
                     "allowed: loopback and ipc, or set security.level: encrypt, or "
                     "security.allow_plaintext: true");
    cr_assert_eq(set_flag(PS_KEY_security_allow_plaintext, "true"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, NULL), PSD_OK);
}

Test(config, level_encrypt_opens_tcp_and_takes_a_token)
{
    ASSERT_SET(PS_KEY_security_level, "plain", "plain");
    ASSERT_REFUSED(PS_KEY_security_level, "authenticate",
                   "--flag: security.level is \"authenticate\"; allowed: plain | encrypt");
    psd_error_clear(err);
    ASSERT_SET(PS_KEY_security_level, "encrypt", "encrypt");
    cr_assert_eq(set_flag(PS_KEY_listen_endpoints, "tcp://0.0.0.0:1"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(set_flag(PS_KEY_http_listen, "0.0.0.0:2"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG, "HTTP is not encrypted");
    psd_error_clear(err);
    cr_assert_eq(set_flag(PS_KEY_http_listen, "off"), PSD_OK);
    cr_assert_eq(set_flag(PS_KEY_cluster_join, "tcp://127.0.0.1:1"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(set_flag(PS_KEY_cluster_join, "tcp://127.0.0.1:1#00ff"), PSD_OK);
    cr_assert_eq(set_flag(PS_KEY_cluster_join, "tcp://127.0.0.1#00ff"), PSD_CONFIG);
    cr_assert_eq(set_flag(PS_KEY_cluster_join, "tcp://127.0.0.1:1#00,tcp://127.0.0.1:2#ff"),
                 PSD_OK);
    cr_assert_eq(set_flag(PS_KEY_cluster_join, "tcp://127.0.0.1:1,tcp://127.0.0.1:2#00#ff"),
                 PSD_CONFIG);
    psd_error_clear(err);
    cr_assert_eq(set_flag(PS_KEY_cluster_join, "tcp://127.0.0.1:1#00#5ec7e7"), PSD_CONFIG);
    cr_assert_null(strstr(psd_error_text(err), "5ec7e7"), "%s", psd_error_text(err));
    cr_assert_eq(set_flag(PS_KEY_listen_endpoints, "tcp://127.0.0.1:1#00ff"), PSD_CONFIG);
    psd_error_clear(err);
    ASSERT_SET(PS_KEY_security_token_file, "/b.token", "/b.token");
    cr_assert_eq(ps_config_check(&config, err), PSD_OK, "%s", psd_error_text(err));
    ASSERT_SET(PS_KEY_security_level, "plain", "plain");
    cr_assert_eq(set_flag(PS_KEY_listen_endpoints, "tcp://127.0.0.1:1"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err),
                     "--flag: a token lets a node join at security.level encrypt, and the level is "
                     "plain; allowed at plain: no token");
}

Test(config, http_listens_on_loopback_alone)
{
    static const char *const GOOD[] = {"auto", "off", "127.0.0.1:0", "[::1]:7173",
                                       "localhost:7173"};
    static const char *const BAD[] = {"", "on", "7173", ":7173", "127.0.0.1", "127.0.0.1:x"};

    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        cr_assert_eq(set_flag(PS_KEY_http_listen, GOOD[i]), PSD_OK);
        cr_expect_eq(ps_config_check(&config, err), PSD_OK, "%s: %s", GOOD[i], psd_error_text(err));
    }
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        cr_assert_eq(set_flag(PS_KEY_http_listen, BAD[i]), PSD_OK);
        cr_expect_eq(ps_config_check(&config, err), PSD_CONFIG, "%s", BAD[i]);
        cr_expect(strstr(psd_error_text(err), "allowed: HOST:PORT, auto, off") != NULL, "%s",
                  psd_error_text(err));
        psd_error_clear(err);
    }
    ASSERT_REFUSED(PS_KEY_http_listen, "http://127.0.0.1:7173",
                   "--flag: http.listen is \"http://127.0.0.1:7173\"; allowed: a host name or "
                   "address, without a scheme");
    cr_assert_eq(set_flag(PS_KEY_http_listen, "0.0.0.0:7173"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err),
                     "--flag: http.listen is 0.0.0.0:7173, which other machines can reach, and "
                     "HTTP is not encrypted; allowed: loopback, or set "
                     "security.allow_plaintext: true");
    psd_error_clear(err);
    cr_assert_eq(set_flag(PS_KEY_security_allow_plaintext, "true"), PSD_OK);
    cr_assert_eq(ps_config_check(&config, NULL), PSD_OK);
}

/* ---- print and reload ---- */

Test(config, what_is_printed_loads_to_the_same)
{
    ps_buffer_t first = {0};
    ps_buffer_t second = {0};
    ps_config_t again;

    cr_assert_eq(set_flag(PS_KEY_data_dir, "/with \"quotes\" and \\"), PSD_OK);
    cr_assert_eq(set_flag(PS_KEY_listen_endpoints, "tcp://127.0.0.1:0,ipc:///tmp/a b"), PSD_OK);
    cr_assert(ps_config_print(&config, &first));
    cr_assert_eq(ps_config_init(&again, err), PSD_OK);
    cr_assert_eq(ps_config_parse(&again, "printed", (ps_bytes_t){first.data, first.size}, err),
                 PSD_OK, "%s", psd_error_text(err));
    for (int i = 0; i < PS_KEY_COUNT; i++) {
        ps_buffer_t value = {0};

        cr_assert(ps_config_value_print(&again, (ps_key_id_t)i, &value));
        cr_assert_str_eq(value.data == NULL ? "" : (const char *)value.data, shown((ps_key_id_t)i));
        ps_buffer_done(&value);
    }
    ps_config_done(&again);
    ps_buffer_done(&first);
    ps_buffer_done(&second);
}

Test(config, each_value_is_printed_with_its_origin)
{
    ps_buffer_t text = {0};
    static const char YAML[] = "log:\n  level: warn\n";

    cr_assert_eq(ps_config_parse(&config, "a.yaml",
                                 (ps_bytes_t){(const uint8_t *)YAML, sizeof YAML - 1}, err),
                 PSD_OK);
    setenv("PSD_LIMITS_TABLES", "9", 1);
    cr_assert_eq(ps_config_take_env(&config, err), PSD_OK);
    cr_assert_eq(set_flag(PS_KEY_shards, "3"), PSD_OK);
    cr_assert(ps_config_print(&config, &text));
    cr_assert_neq(strstr((const char *)text.data, "  level: warn"), NULL);
    cr_assert_neq(strstr((const char *)text.data, " # a.yaml:2\n"), NULL);
    cr_assert_neq(strstr((const char *)text.data, " # PSD_LIMITS_TABLES\n"), NULL);
    cr_assert_neq(strstr((const char *)text.data, " # --flag\n"), NULL);
    cr_assert_neq(strstr((const char *)text.data, " # default\n"), NULL);
    ps_buffer_done(&text);
}

Test(config, a_reload_takes_what_may_change_and_names_the_rest)
{
    ps_config_t from;
    ps_key_id_t stuck[PS_KEY_COUNT];
    const ps_origin_t origin = {.source = PS_SOURCE_ENV};

    cr_assert_eq(ps_config_init(&from, err), PSD_OK);
    cr_assert_eq(ps_config_take_reloadable(&config, &from, stuck), 0);
    cr_assert_eq(ps_config_set(&from, PS_KEY_log_level, "debug", &origin, err), PSD_OK);
    cr_assert_eq(ps_config_set(&from, PS_KEY_limits_tables, "5", &origin, err), PSD_OK);
    cr_assert_eq(ps_config_set(&from, PS_KEY_limits_sessions, "99", &origin, err), PSD_OK);
    cr_assert_eq(ps_config_take_reloadable(&config, &from, stuck), 1);
    cr_assert_eq(stuck[0], PS_KEY_limits_sessions);
    cr_assert_eq(config.log.level, PS_LOG_DEBUG);
    cr_assert_eq(config.limits.tables, 5);
    cr_assert_eq(config.limits.sessions, 4096);
    ps_config_done(&from);
}
