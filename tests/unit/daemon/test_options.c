/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/options.h: the command line, and which source wins. */
#include "daemon/options.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/temp_dir.h"

static psd_error_t *err;
static ps_opts_t options;

static void open_options(void)
{
    setenv("XDG_STATE_HOME", "/state", 1);
    err = psd_error_new();
}

static void close_options(void)
{
    ps_opts_done(&options);
    psd_error_destroy(&err);
}

TestSuite(options, .init = open_options, .fini = close_options);

/* The words behind "psd", and NULL. */
static psd_status_t parse(const char *const *words)
{
    int n = 0;

    while (words[n] != NULL) {
        n++;
    }
    ps_opts_done(&options);
    psd_error_clear(err);
    return ps_options_parse(n, (char *const *)words, &options, err);
}

#define PARSE(...) parse((const char *const[]){"psd", __VA_ARGS__, NULL})

Test(options, flags_take_their_value_either_way)
{
    cr_assert_eq(PARSE("--shards", "3", "--data-dir=/d", "--config", "f", "--listen", "a",
                       "--listen=b", "--name", "n", "--check-config"),
                 PSD_OK);
    cr_assert_str_eq(ps_opts_text(&options, "shards"), "3");
    cr_assert_str_eq(ps_opts_text(&options, "data-dir"), "/d");
    cr_assert_str_eq(ps_opts_text(&options, "name"), "n");
    cr_assert_str_eq(ps_opts_text(&options, "config"), "f");
    cr_assert_str_eq(ps_opts_text(&options, "listen"), "a,b");
    cr_assert(ps_opts_on(&options, "check-config"));
    cr_assert(!ps_opts_on(&options, "print-config"));
    cr_assert(!ps_opts_on(&options, "accept-loss"));
    cr_assert_eq(PARSE("--accept-loss"), PSD_OK);
    cr_assert(ps_opts_on(&options, "accept-loss"));
}

Test(options, an_unknown_option_gets_a_suggestion)
{
    cr_assert_eq(PARSE("--shrads", "3"), PSD_USAGE);
    cr_assert_str_eq(psd_error_text(err), "unknown option \"--shrads\"; did you mean --shards?");
    cr_assert_eq(PARSE("--frobnicate"), PSD_USAGE);
    cr_assert_str_eq(psd_error_text(err), "unknown option \"--frobnicate\"");
}

Test(options, other_words_are_refused)
{
    cr_assert_eq(PARSE("start"), PSD_USAGE);
    cr_assert_str_eq(psd_error_text(err), "\"start\" is not an option; allowed: options only");
}

Test(options, a_missing_value_is_named)
{
    cr_assert_eq(PARSE("--shards"), PSD_USAGE);
    cr_assert_str_eq(psd_error_text(err), "--shards needs a value: N");
}

Test(options, a_switch_takes_no_value)
{
    cr_assert_eq(PARSE("--version=1"), PSD_USAGE);
    cr_assert_str_eq(psd_error_text(err), "--version takes no value");
}

Test(options, listen_has_a_limit)
{
    ps_config_t config;

    cr_assert_eq(PARSE("--listen=ipc:///a", "--listen=ipc:///a", "--listen=ipc:///a",
                       "--listen=ipc:///a", "--listen=ipc:///a", "--listen=ipc:///a",
                       "--listen=ipc:///a", "--listen=ipc:///a", "--listen=ipc:///a",
                       "--listen=ipc:///a", "--listen=ipc:///a", "--listen=ipc:///a",
                       "--listen=ipc:///a", "--listen=ipc:///a", "--listen=ipc:///a",
                       "--listen=ipc:///a", "--listen=ipc:///a"),
                 PSD_OK);
    cr_assert_eq(ps_options_config(&options, &config, err), PSD_CONFIG);
    cr_assert_not_null(strstr(psd_error_text(err), "allowed: 1 .. 16 of tcp://HOST:PORT"));
}

Test(options, the_help_begins_with_examples)
{
    cr_assert_eq(strncmp(ps_options_help(), "examples:\n", 10), 0);
}

Test(options, flag_wins_over_environment_over_file_over_default)
{
    temp_dir_t dir = {0};
    char path[PATH_MAX + 16];
    FILE *file = NULL;
    ps_config_t config;

    cr_assert(temp_dir_make(&dir));
    (void)snprintf(path, sizeof path, "%s/f.yaml", dir.path);
    file = fopen(path, "w");
    cr_assert_neq(file, NULL);
    cr_assert_geq(fputs("shards: 5\nlimits:\n  tables: 5\n  jobs: 5\n", file), 0);
    cr_assert_eq(fclose(file), 0);
    setenv("PSD_LIMITS_TABLES", "6", 1);
    setenv("PSD_SHARDS", "6", 1);

    cr_assert_eq(PARSE("--config", path, "--shards", "7"), PSD_OK);
    cr_assert_eq(ps_options_config(&options, &config, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(config.shards, 7);
    cr_assert_eq(config.limits.tables, 6);
    cr_assert_eq(config.limits.jobs, 5);
    cr_assert_eq(config.limits.high_water, 1000);
    ps_config_done(&config);

    setenv("PSD_CONFIG", path, 1);
    cr_assert_eq(PARSE("--shards", "8"), PSD_OK);
    cr_assert_eq(ps_options_config(&options, &config, err), PSD_OK);
    cr_assert_eq(config.limits.jobs, 5);
    ps_config_done(&config);
    temp_dir_drop(&dir);
}

Test(options, a_wrong_flag_value_names_the_flag)
{
    ps_config_t config;

    cr_assert_eq(PARSE("--shards", "none"), PSD_OK);
    cr_assert_eq(ps_options_config(&options, &config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err),
                     "--shards: shards is \"none\"; allowed: 1 .. 256 threads");
    cr_assert_eq(PARSE("--listen", "tcp://127.0.0.1:99999"), PSD_OK);
    cr_assert_eq(ps_options_config(&options, &config, err), PSD_CONFIG);
    cr_assert_str_eq(psd_error_text(err),
                     "--listen: listen.endpoints is \"tcp://127.0.0.1:99999\"; "
                     "allowed: 1 .. 16 of tcp://HOST:PORT and ipc://PATH");
}
