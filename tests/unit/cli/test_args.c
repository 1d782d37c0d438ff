/* SPDX-License-Identifier: Apache-2.0 */
/* cli/options/commands.h: the command line. */
#include "cli/options/commands.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

#define PARSE(self, err, ...) parse(self, err, (const char *[]){"pscli", __VA_ARGS__, NULL})

static psd_status_t parse(ps_args_t *self, psd_error_t *err, const char *const *argv)
{
    int argc = 0;

    while (argv[argc] != NULL) {
        argc++;
    }
    ps_args_done(self);
    psd_error_clear(err);
    return ps_args_parse(self, argc, (char *const *)argv, err);
}

static void assert_refused(const char *const *argv, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_args_done) ps_args_t args = {0};

    cr_assert_eq(parse(&args, err, argv), PSD_USAGE, "%s", text);
    cr_assert_str_eq(psd_error_text(err), text);
}

#define REFUSED(text, ...) assert_refused((const char *[]){"pscli", __VA_ARGS__, NULL}, text)

/* Whatever the environment of the test run is. */
static void clear_environment(void)
{
    char name[PS_ENV_NAME_SIZE];

    for (size_t i = 0; ps_opts_global[i].name != NULL; i++) {
        ps_opt_env_name(&ps_opts_global[i], PS_ARGS_ENV, name);
        (void)unsetenv(name);
    }
    (void)unsetenv("PSD_ENDPOINT");
}

TestSuite(args, .init = clear_environment);

Test(args, options_stand_anywhere_in_every_form)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_args_done) ps_args_t args = {0};

    cr_assert_eq(PARSE(&args, err, "-o", "json", "table", "--yes", "create", "w", "--rows=7",
                       "--cols", "3", "--timeout=250ms"),
                 PSD_OK, "%s", psd_error_text(err));
    cr_assert_str_eq(args.cmd->noun, "table");
    cr_assert_str_eq(args.cmd->verb, "create");
    cr_assert_eq(args.n_words, 1);
    cr_assert_str_eq(args.words[0], "w");
    cr_assert_str_eq(ps_args_text(&args, "output"), "json");
    cr_assert(ps_args_on(&args, "yes"));
    cr_assert_not(ps_args_on(&args, "quiet"));
    cr_assert_eq(ps_args_u64(&args, "rows"), 7);
    cr_assert_eq(ps_args_u64(&args, "cols"), 3);
    cr_assert_eq(ps_args_ms(&args, "timeout"), 250);
    cr_assert_eq(PARSE(&args, err, "run", "-n4", "-ojson", "a"), PSD_OK);
    cr_assert_eq(ps_args_u64(&args, "workers"), 4);
    cr_assert_str_eq(ps_args_text(&args, "output"), "json");
}

Test(args, defaults_come_from_the_table)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_args_done) ps_args_t args = {0};

    cr_assert_eq(PARSE(&args, err, "table", "create", "w"), PSD_OK);
    cr_assert_str_eq(ps_args_text(&args, "endpoint"), "tcp://127.0.0.1:7171");
    cr_assert_eq(ps_args_ms(&args, "timeout"), 10000);
    cr_assert_str_eq(ps_args_text(&args, "type"), "f32");
    cr_assert_not(ps_args_given(&args, "type"));
    cr_assert_null(ps_args_text(&args, "rows"));
    cr_assert_eq(ps_args_u64(&args, "rows"), 0);
}

Test(args, a_program_keeps_its_own_options)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_args_done) ps_args_t args = {0};

    cr_assert_eq(
        PARSE(&args, err, "run", "-n", "2", "--max-delay", "-1", "prog", "-n", "9", "--", "--help"),
        PSD_OK);
    cr_assert_eq(ps_args_u64(&args, "workers"), 2);
    cr_assert_eq(ps_args_i64(&args, "max-delay"), -1);
    cr_assert_eq(args.n_words, 5);
    cr_assert_str_eq(args.words[0], "prog");
    cr_assert_str_eq(args.words[1], "-n");
    cr_assert_not(args.help);
    cr_assert_eq(PARSE(&args, err, "run", "--", "--prog"), PSD_OK);
    cr_assert_str_eq(args.words[0], "--prog");
}

Test(args, the_environment_is_behind_the_flag)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_args_done) ps_args_t args = {0};

    (void)setenv("PSCLI_ROW_FORMAT", "sparse", 1);
    (void)setenv("PSCLI_YES", "on", 1);
    (void)setenv("PSCLI_QUIET", "0", 1);
    (void)setenv("PSCLI_OUTPUT", "csv", 1);
    (void)setenv("PSCLI_ENDPOINT", "", 1);
    cr_assert_eq(PARSE(&args, err, "table", "create", "w", "-o", "tsv"), PSD_OK);
    cr_assert_str_eq(ps_args_text(&args, "row-format"), "sparse");
    cr_assert_str_eq(ps_args_text(&args, "output"), "tsv");
    cr_assert_str_eq(ps_args_text(&args, "endpoint"), "tcp://127.0.0.1:7171");
    cr_assert(ps_args_on(&args, "yes"));
    cr_assert_not(ps_args_on(&args, "quiet"));
    (void)setenv("PSCLI_QUIET", "maybe", 1);
    REFUSED("PSCLI_QUIET is \"maybe\"; allowed: true, false", "table", "list");
    (void)unsetenv("PSCLI_ROW_FORMAT");
}

Test(args, the_endpoint_of_programs_is_behind_all_others)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_args_done) ps_args_t args = {0};
    PSD_AUTO(ps_args_done) ps_args_t named = {0};

    (void)setenv("PSD_ENDPOINT", "tcp://10.0.0.9:7", 1);
    cr_assert_eq(PARSE(&args, err, "table", "list"), PSD_OK);
    cr_assert_str_eq(ps_args_text(&args, "endpoint"), "tcp://10.0.0.9:7");
    (void)setenv("PSCLI_ENDPOINT", "tcp://10.0.0.8:7", 1);
    cr_assert_eq(PARSE(&named, err, "table", "list"), PSD_OK);
    cr_assert_str_eq(ps_args_text(&named, "endpoint"), "tcp://10.0.0.8:7");
}

Test(args, the_context_is_behind_the_environment)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_args_done) ps_args_t args = {0};
    char directory[] = "/tmp/psd-args-XXXXXX";
    FILE *file = NULL;

    cr_assert_not_null(mkdtemp(directory));
    (void)setenv("XDG_CONFIG_HOME", directory, 1);
    cr_assert_eq(chdir(directory), 0);
    cr_assert_eq(mkdir("pscli", 0700), 0);
    cr_assert_eq(mkdir("pscli/contexts", 0700), 0);
    file = fopen("pscli/contexts/lab", "w");
    cr_assert_not_null(file);
    (void)fprintf(file, "# lab\n\n endpoint = tcp://lab:1 \ntimeout=3s\n"
                        "output=csv\nyes=true\n");
    (void)fclose(file);
    (void)setenv("PSCLI_TIMEOUT", "4s", 1);
    (void)setenv("PSD_ENDPOINT", "tcp://10.0.0.9:7", 1);
    cr_assert_eq(PARSE(&args, err, "--context", "lab", "table", "list", "-o", "name"), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_str_eq(ps_args_text(&args, "endpoint"), "tcp://lab:1");
    cr_assert_eq(ps_args_ms(&args, "timeout"), 4000);
    cr_assert_str_eq(ps_args_text(&args, "output"), "name");
    cr_assert(ps_args_on(&args, "yes"));

    file = fopen("pscli/contexts/lab", "a");
    (void)fprintf(file, "rows=3\n");
    (void)fclose(file);
    cr_assert_eq(PARSE(&args, err, "--context", "lab", "table", "list"), PSD_USAGE);
    cr_assert_not_null(strstr(psd_error_text(err), "/pscli/contexts/lab:7: rows: unknown key"));
    cr_assert_eq(PARSE(&args, err, "--context", "none", "table", "list"), PSD_USAGE);
    cr_assert_eq(PARSE(&args, err, "--context", "../lab", "table", "list"), PSD_USAGE);
    cr_assert_eq(unlink("pscli/contexts/lab"), 0);
    cr_assert_eq(rmdir("pscli/contexts"), 0);
    cr_assert_eq(rmdir("pscli"), 0);
    cr_assert_eq(rmdir(directory), 0);
}

Test(args, what_is_wrong_is_named_with_a_suggestion)
{
    REFUSED("no command given", NULL);
    REFUSED("unknown command \"xtable\"; did you mean \"table\"?", "xtable");
    REFUSED("unknown command \"xyzzy\"", "xyzzy");
    REFUSED("unknown command \"crate\"; did you mean \"table create\"?", "table", "crate");
    REFUSED("\"table\" needs a verb; see \"pscli table --help\"", "table");
    REFUSED("unknown option \"--ouput\"; did you mean --output?", "table", "list", "--ouput=json");
    REFUSED("unknown option \"--rows\" before the command", "--rows", "1", "table");
    REFUSED("unknown option \"-z\"", "table", "list", "-z");
    REFUSED("--rows needs a value: N", "table", "create", "w", "--rows");
    REFUSED("--yes takes no value", "table", "list", "--yes=1");
    REFUSED("--rows is \"0\"; allowed: 1 to 1099511627776, also like 1e9, 64M, "
            "1.5G",
            "table", "create", "w", "--rows", "0");
    REFUSED("--type is \"f23\"; did you mean \"f32\"? allowed: i32, i64, f32, "
            "f64",
            "table", "create", "w", "--type", "f23");
    REFUSED("--type is \"double\"; allowed: i32, i64, f32, f64", "table", "create", "w", "--type",
            "double");
    REFUSED("--timeout is \"soon\"; allowed: 1ms to 86400s, like 250ms, 10s, "
            "5m",
            "table", "list", "--timeout", "soon");
    REFUSED("--max-delay is \"1.5\"; allowed: a whole number of 32 bits", "run", "--max-delay",
            "1.5", "a");
    REFUSED("--endpoint is empty", "table", "list", "--endpoint", "");
    REFUSED("too few arguments: pscli table drop NAME...", "table", "drop");
    REFUSED("unexpected argument \"b\": pscli table inspect NAME", "table", "inspect", "a", "b");
    REFUSED("\"push\" has no --watch", "push", "w", "1=1", "--watch", "1s");
    REFUSED("\"bench push\" has no --dry-run", "bench", "push", "--dry-run");
}

Test(args, a_verb_may_be_two_words)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_args_done) ps_args_t args = {0};

    cr_assert_eq(PARSE(&args, err, "cluster", "registry", "list", "-o", "json"), PSD_OK);
    cr_assert_str_eq(args.cmd->verb, "registry list");
    cr_assert_eq(args.n_words, 0);
    REFUSED("\"cluster registry\" needs a verb; see \"pscli cluster --help\"", "cluster",
            "registry");
    REFUSED("unknown command \"registry lst\"; did you mean \"cluster registry list\"?", "cluster",
            "registry", "lst");
}

Test(args, help_needs_neither_verb_nor_words)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_args_done) ps_args_t args = {0};

    cr_assert_eq(PARSE(&args, err, "table", "--help"), PSD_OK);
    cr_assert(args.help);
    cr_assert_null(args.cmd);
    cr_assert_str_eq(args.noun->name, "table");
    cr_assert_eq(PARSE(&args, err, "--help"), PSD_OK);
    cr_assert_eq(PARSE(&args, err, "table", "drop", "--help"), PSD_OK);
    cr_assert_eq(PARSE(&args, err, "--version"), PSD_OK);
    cr_assert(args.version);
}

Test(args, the_format_of_errors_is_found_first)
{
    char *line[] = {(char *)"pscli", (char *)"xtable", (char *)"-o", (char *)"json"};
    char *joined[] = {(char *)"pscli", (char *)"--output=csv", (char *)"-x"};
    char *program[] = {(char *)"pscli", (char *)"run", (char *)"--", (char *)"-ojson"};

    cr_assert_str_eq(ps_args_find_format(4, line), "json");
    cr_assert_str_eq(ps_args_find_format(3, joined), "csv");
    cr_assert_null(ps_args_find_format(4, program));
    (void)setenv("PSCLI_OUTPUT", "tsv", 1);
    cr_assert_str_eq(ps_args_find_format(4, program), "tsv");
}
