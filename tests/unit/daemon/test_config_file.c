/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/config/config.h: files; each kind of bad input, with its text and line. */
#include "daemon/config_file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/fail_alloc.h"
#include "support/temp_dir.h"

static ps_config_t config;
static psd_error_t *err;

static void open_config(void)
{
    err = psd_error_new();
    cr_assert_eq(ps_config_init(&config, err), PSD_OK);
}

static void close_config(void)
{
    ps_config_done(&config);
    psd_error_destroy(&err);
}

TestSuite(config_file, .init = open_config, .fini = close_config);

static psd_status_t parse(const char *text)
{
    psd_error_clear(err);
    return ps_config_parse(&config, "f.yaml",
                           (ps_bytes_t){.data = (const uint8_t *)text, .size = strlen(text)}, err);
}

#define ASSERT_BAD(text, expected)                         \
    do {                                                   \
        cr_assert_eq(parse(text), PSD_CONFIG, "%s", text); \
        cr_assert_str_eq(psd_error_text(err), expected);   \
    } while (0)

/* ---- what is taken ---- */

Test(config_file, values_come_with_their_lines)
{
    cr_assert_eq(parse("# a comment\n"
                       "shards: 3\n"
                       "limits:\n"
                       "  credit_requests: '9'\n"
                       "\n"
                       "  chunk_bytes: 64k\n"
                       "listen:\n"
                       "  endpoints:\n"
                       "    - tcp://127.0.0.1:0\n"
                       "    - ipc://x\n"
                       "security: {allow_plaintext: true}\n"),
                 PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(config.shards, 3);
    cr_assert_eq(config.limits.credit_requests, 9);
    cr_assert_eq(config.limits.chunk_bytes, 65536);
    cr_assert_eq(config.listen.endpoints.n_items, 2);
    cr_assert_str_eq(config.listen.endpoints.items[1], "ipc://x");
    cr_assert(config.security.allow_plaintext);
    cr_assert_eq(config.origins[PS_KEY_shards].line, 2);
    cr_assert_eq(config.origins[PS_KEY_limits_chunk_bytes].line, 6);
    cr_assert_eq(config.origins[PS_KEY_listen_endpoints].line, 8);
    cr_assert_eq(config.origins[PS_KEY_limits_tables].source, PS_SOURCE_DEFAULT);
}

Test(config_file, nothing_is_a_configuration_too)
{
    cr_assert_eq(parse(""), PSD_OK);
    cr_assert_eq(parse("# only words\n"), PSD_OK);
    cr_assert_eq(parse("---\n"), PSD_OK);
    cr_assert_eq(parse("{}\n"), PSD_OK);
}

/* A file without a byte has no buffer either; libyaml aborted psd over it, also
 * a running one that was told to reload. */
Test(config_file, a_file_without_a_byte_is_a_configuration_too)
{
    psd_error_clear(err);
    cr_assert_eq(ps_config_parse(&config, "f.yaml", (ps_bytes_t){0}, err), PSD_OK, "%s",
                 psd_error_text(err));
}

Test(config_file, a_section_without_keys_is_taken)
{
    cr_assert_eq(parse("limits:\n  # credit_requests: 9\nshards: 2\n"), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_eq(config.shards, 2);
    cr_assert_eq(parse("limits: {}\n"), PSD_OK, "%s", psd_error_text(err));
}

Test(config_file, a_nested_value_fills_every_kind_of_key)
{
    cr_assert_eq(parse("data_dir: /d\n"
                       "node: {name: n}\n"
                       "cluster: {name: c}\n"
                       "listen: {advertise: h}\n"
                       "log: {level: error}\n"),
                 PSD_OK, "%s", psd_error_text(err));
    cr_assert_str_eq(config.data_dir, "/d");
    cr_assert_str_eq(config.node.name, "n");
    cr_assert_str_eq(config.cluster.name, "c");
    cr_assert_str_eq(config.listen.advertise, "h");
}

/* ---- keys ---- */

Test(config_file, an_unknown_key_gets_a_suggestion)
{
    ASSERT_BAD("limits:\n  chunk_bites: 5\n", "f.yaml:2: unknown key \"chunk_bites\"; did you mean "
                                              "limits.chunk_bytes?");
    ASSERT_BAD("\n\nshard: 5\n", "f.yaml:3: unknown key \"shard\"; did you mean shards?");
    ASSERT_BAD("limit:\n  chunk_bytes: 5\n",
               "f.yaml:1: unknown key \"limit\"; did you mean limits?");
}

Test(config_file, an_unknown_key_without_a_neighbour_gets_the_list)
{
    ASSERT_BAD("log:\n  colours: 5\n",
               "f.yaml:2: unknown key \"colours\" in log; allowed: level, slow_ms");
    ASSERT_BAD(
        "replication: 5\n",
        "f.yaml:1: unknown key \"replication\"; allowed: data_dir, "
        "runtime_dir, shards, node, cluster, registry, copies, listen, http, log, audit, disk, "
        "limits, lane, "
        "tables, checkpoint, updaters, workers, security");
}

Test(config_file, a_key_of_another_section_is_unknown)
{
    ASSERT_BAD("log:\n  shards: 5\n",
               "f.yaml:2: unknown key \"shards\" in log; allowed: level, slow_ms");
}

Test(config_file, a_key_twice_is_refused)
{
    ASSERT_BAD("shards: 1\nlog:\n  level: info\nshards: 2\n",
               "f.yaml:4: shards is set a second time; the first is in line 1");
    ASSERT_BAD("log:\n  level: info\n  level: warn\n",
               "f.yaml:3: log.level is set a second time; the first is in line "
               "2");
    ASSERT_BAD("log:\n  level: info\nlog:\n  level: warn\n",
               "f.yaml:3: section log is there a second time; the first is in "
               "line 1");
}

Test(config_file, a_key_is_a_word)
{
    ASSERT_BAD("[a]: 5\n", "f.yaml:1: a key is a list; allowed: a word");
    ASSERT_BAD("log:\n  {a: 1}: 5\n", "f.yaml:2: a key is a mapping; allowed: a word");
}

/* ---- kinds ---- */

Test(config_file, a_list_or_mapping_is_no_number)
{
    ASSERT_BAD("shards: [1, 2]\n", "f.yaml:1: shards is a list; allowed: a single value");
    ASSERT_BAD("limits:\n  tables: {a: 1}\n",
               "f.yaml:2: limits.tables is a mapping; allowed: a single value");
}

Test(config_file, a_key_without_a_value_is_refused)
{
    ASSERT_BAD("shards:\n", "f.yaml:1: shards is empty; allowed: a single value");
}

Test(config_file, a_value_is_no_section)
{
    ASSERT_BAD("limits: 5\n", "f.yaml:1: limits is a single value; allowed: a mapping of "
                              "keys");
    ASSERT_BAD("a\n", "f.yaml:1: the file is a single value; allowed: a "
                      "mapping of keys");
    ASSERT_BAD("- a\n", "f.yaml:1: the file is a list; allowed: a mapping of keys");
}

Test(config_file, a_list_is_a_list_of_words)
{
    ASSERT_BAD("listen:\n  endpoints: tcp://127.0.0.1:1\n",
               "f.yaml:2: listen.endpoints is a single value; allowed: a list, "
               "as [tcp://127.0.0.1:0]");
    ASSERT_BAD("listen:\n  endpoints: [[a]]\n",
               "f.yaml:2: listen.endpoints is a list of other things; allowed: "
               "1 .. 16 of tcp://HOST:PORT and ipc://PATH");
    cr_assert_eq(parse("listen: {endpoints: []}\n"), PSD_CONFIG);
    cr_assert_eq(parse("listen: {endpoints: ['a,b']}\n"), PSD_CONFIG);
}

Test(config_file, aliases_are_refused)
{
    ASSERT_BAD("shards: &a 3\nlimits:\n  tables: *a\n",
               "f.yaml:3: limits.tables is an alias; allowed: a single value");
}

/* ---- values ---- */

Test(config_file, a_value_out_of_bounds_is_told_with_its_line)
{
    ASSERT_BAD("# words\nshards: 257\n", "f.yaml:2: shards is \"257\"; allowed: 1 .. 256 threads");
    ASSERT_BAD("limits:\n  chunk_bytes: 1MB\n  credit_requests: 0\n",
               "f.yaml:3: limits.credit_requests is \"0\"; allowed: 1 .. 65536 "
               "requests");
    ASSERT_BAD("limits:\n  chunk_bytes: 12 parsecs\n",
               "f.yaml:2: limits.chunk_bytes is \"12 parsecs\"; allowed: 4096 "
               ".. 67108864 bytes, or as 64k, 16MiB, 1G");
    ASSERT_BAD("workers:\n\n  heartbeat_ms: 1.5\n",
               "f.yaml:3: workers.heartbeat_ms is \"1.5\"; allowed: 20 .. 60000 "
               "ms");
    ASSERT_BAD("security:\n  allow_plaintext: on\n",
               "f.yaml:2: security.allow_plaintext is \"on\"; allowed: true | "
               "false");
    ASSERT_BAD("listen:\n  endpoints:\n    - tcp://nowhere\n",
               "f.yaml:2: listen.endpoints is \"tcp://nowhere\"; allowed: 1 .. "
               "16 of tcp://HOST:PORT and ipc://PATH");
}

Test(config_file, a_long_value_is_cut_in_the_error)
{
    char text[3000];

    (void)snprintf(text, sizeof text, "shards: x%02500d\n", 7);
    cr_assert_eq(parse(text), PSD_CONFIG);
    cr_assert_lt(strlen(psd_error_text(err)), 400);
}

/* ---- no YAML ---- */

Test(config_file, what_is_no_yaml_is_told_with_its_line)
{
    ASSERT_BAD("shards: 1\nlog: {level: info\n",
               "f.yaml:3: not YAML: did not find expected ',' or '}'");
    ASSERT_BAD("shards: b: c\n", "f.yaml:1: not YAML: mapping values are not "
                                 "allowed in this context");
    ASSERT_BAD("\tshards: 1\n", "f.yaml:1: not YAML: found character that "
                                "cannot start any token");
    cr_assert_eq(parse("\xff\xfe\xfd"), PSD_CONFIG);
}

Test(config_file, one_document_is_enough)
{
    ASSERT_BAD("shards: 1\n---\nshards: 2\n", "f.yaml:2: a second document; allowed: one");
}

Test(config_file, a_file_that_is_not_there_is_named)
{
    cr_assert_eq(ps_config_load(&config, "no/such.yaml", err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), "no/such.yaml: cannot be opened: No "
                                          "such file or directory");
}

Test(config_file, a_directory_is_no_file)
{
    cr_assert_eq(ps_config_load(&config, ".", err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err), ".: cannot be read: Is a directory");
}

Test(config_file, a_huge_file_is_refused)
{
    temp_dir_t dir = {0};
    char path[PATH_MAX + 16];
    FILE *file = NULL;

    cr_assert(temp_dir_make(&dir));
    (void)snprintf(path, sizeof path, "%s/big", dir.path);
    file = fopen(path, "w");
    cr_assert_neq(file, NULL);
    for (int i = 0; i < 70000; i++) {
        cr_assert_geq(fputs("# fifteen bytes\n", file), 0);
    }
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(ps_config_load(&config, path, err), PSD_CONFIG);
    cr_assert_neq(strstr(psd_error_text(err), "larger than 1048576 bytes"), NULL);
    temp_dir_drop(&dir);
}

/* ---- the reference ---- */

/* True when the reference has the bounds of the key in the comment above it. */
static bool is_explained(const char *reference, const ps_key_t *key)
{
    ps_buffer_t allowed = {0};
    char line[128];
    const char *section = reference;
    const char *at = NULL;
    bool found = false;

    (void)snprintf(line, sizeof line, "\n%s:", key->section);
    section = key->section[0] == '\0' ? reference : strstr(reference, line);
    cr_assert_neq(section, NULL, "%s", key->path);
    (void)snprintf(line, sizeof line, "%s%s:", key->section[0] == '\0' ? "\n" : "\n  ",
                   key->member);
    at = strstr(section, line);
    if (at == NULL) {
        (void)snprintf(line, sizeof line, "%s#%s:", key->section[0] == '\0' ? "\n" : "\n  ",
                       key->member);
        at = strstr(section, line);
    }
    cr_assert_neq(at, NULL, "%s", key->path);
    cr_assert(ps_key_allowed(key, &allowed));
    /* Units are explained once, at the top. */
    if (strstr((char *)allowed.data, ", or as") != NULL) {
        *strstr((char *)allowed.data, ", or as") = '\0';
    }
    /* The comment above: the last "Allowed: " in front of the key. */
    for (const char *word = section; word < at; word++) {
        if (strncmp(word, "Allowed: ", 9) == 0) {
            /* A line break in the middle is a space. */
            const char *have = word + 9;
            const char *want = (const char *)allowed.data;

            while (*want != '\0' && have < at) {
                if (*have == '\n') {
                    have += strspn(have, "\n #") - 1;
                    if (*want != ' ') {
                        break;
                    }
                } else if (*have != *want) {
                    break;
                }
                have++;
                want++;
            }
            found = *want == '\0';
        }
    }
    ps_buffer_done(&allowed);
    return found;
}

Test(config_file, the_reference_has_every_key_with_its_default_and_bounds)
{
    ps_config_t defaults;
    static char reference[65536];
    FILE *file = fopen(PSD_REFERENCE, "r");

    cr_assert_neq(file, NULL, "%s", PSD_REFERENCE);
    cr_assert_gt(fread(reference, 1, sizeof reference - 1, file), 0);
    cr_assert_eq(fclose(file), 0);

    cr_assert_eq(ps_config_init(&defaults, err), PSD_OK);
    cr_assert_eq(ps_config_load(&config, PSD_REFERENCE, err), PSD_OK, "%s", psd_error_text(err));
    for (int i = 0; i < PS_KEY_COUNT; i++) {
        const ps_key_t *key = ps_config_key((ps_key_id_t)i);
        ps_buffer_t a = {0};
        ps_buffer_t b = {0};

        cr_assert(ps_config_value_print(&config, key->id, &a));
        cr_assert(ps_config_value_print(&defaults, key->id, &b));
        cr_assert_eq(a.size, b.size, "%s", key->path);
        cr_assert(a.size == 0 || memcmp(a.data, b.data, a.size) == 0, "%s", key->path);
        cr_assert(is_explained(reference, key), "%s", key->path);
        ps_buffer_done(&a);
        ps_buffer_done(&b);
    }
    ps_config_done(&defaults);
}

/* A carriage return in a quoted value once came out raw in the error. */
Test(config_file, control_characters_of_a_value_are_not_repeated)
{
    ASSERT_BAD("shards: \"a\\r\\e[1mb\"\n",
               "f.yaml:1: shards is \"a??[1mb\"; allowed: 1 .. 256 threads");
}

/* ---- memory ---- */

static psd_status_t load_print_and_drop(void *fixture)
{
    static const char TEXT[] = "shards: 3\n"
                               "node: {name: n}\n"
                               "listen: {endpoints: [ipc://a, ipc://b]}\n";
    ps_config_t mine = {0};
    ps_buffer_t printed = {0};
    psd_status_t rc = ps_config_init(&mine, NULL);

    (void)fixture;
    if (rc == PSD_OK) {
        rc = ps_config_parse(&mine, "f.yaml",
                             (ps_bytes_t){.data = (const uint8_t *)TEXT, .size = sizeof TEXT - 1},
                             NULL);
    }
    if (rc == PSD_OK && !ps_config_print(&mine, &printed)) {
        rc = PSD_NOMEM;
    }
    ps_buffer_done(&printed);
    ps_config_done(&mine);
    return rc;
}

Test(config_file, without_memory_nothing_is_left_behind)
{
    cr_assert_null(fail_alloc_sweep(load_print_and_drop, NULL));
}
