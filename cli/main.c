/* SPDX-License-Identifier: Apache-2.0 */
/* pscli: reads the command line, runs the command, reports the result. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/options/help.h"
#include "cli/output/yaml.h"
#include "transport/discovery/discovery.h"

#define OPTION_NAMES_MAX 200

/* The options' variables, of all commands; NULL at the end. */
static void list_option_names(char names[OPTION_NAMES_MAX][PS_ENV_NAME_SIZE],
                              const char *ret_list[OPTION_NAMES_MAX + 1])
{
    const ps_cmd_t *cmd = NULL;
    const ps_opt_t *opt = ps_opts_global;
    size_t n = 0;

    for (size_t i = 0; opt != NULL; i++) {
        for (; opt->name != NULL && n < OPTION_NAMES_MAX; opt++) {
            ps_opt_env_name(opt, PS_ARGS_ENV, names[n]);
            ret_list[n] = names[n];
            n++;
        }
        while ((cmd = ps_cmd_at(i)) != NULL && cmd->options == NULL) {
            i++;
        }
        opt = cmd == NULL ? NULL : cmd->options;
    }
    ret_list[n] = NULL;
}

/* A key of psd.yaml as psd reads it in the environment: "PSD_SHARDS" of "shards". */
static bool is_key_of_psd(const char *name)
{
#define ROOT(path, ...) path,
#define KEY(path, ...) path,
    static const char *const PATHS[] = {
#include "server/config/config_keys.def"
    };

    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        const char *at = name + strlen("PSD_");
        const char *path = PATHS[i];

        while (*path != '\0' && *at == (*path == '.' ? '_' : toupper((unsigned char)*path))) {
            path++;
            at++;
        }
        if (*path == '\0' && *at == '\0') {
            return true;
        }
    }
    return false;
}

/* Without this, pscli would silently ignore a misspelt variable. */
static void warn_of_near(const ps_out_t *out, const char *prefix, const char *const *known)
{
    char name[PS_ENV_NAME_SIZE];

    for (size_t at = 0; ps_env_next(environ, &at, prefix, name);) {
        const char *near = ps_text_suggest(name, known);

        if (near != NULL && strcmp(near, name) != 0 &&
            (strncmp(name, "PSD_", strlen("PSD_")) != 0 || !is_key_of_psd(name))) {
            ps_say(out, "warning: no option has the variable %s; did you mean %s?", name, near);
        }
    }
}

/* Only near misses: other programs also use these prefixes, and many
 * variables are keys of psd. */
static void warn_of_environment(const ps_out_t *out)
{
    char names[OPTION_NAMES_MAX][PS_ENV_NAME_SIZE];
    const char *list[OPTION_NAMES_MAX + 1];

    list_option_names(names, list);
    warn_of_near(out, PS_ARGS_ENV, list);
    warn_of_near(out, "PSD_", ps_env_names);
}

/* Reads the command line and the settings. Errors: as ps_args_parse. */
static psd_status_t start(ps_cli_t *self, int argc, char *const *argv, psd_error_t *err)
{
    const char *format = ps_args_find_format(argc, argv);
    const char *no_color = getenv("NO_COLOR");

    *self = (ps_cli_t){.out = {.out = stdout, .err = stderr}};
    /* Errors in the command line use the format that the line names. */
    if (format != NULL) {
        (void)ps_format_parse(format, &self->out.format);
    }
    psd_status_t rc = ps_args_parse(&self->args, argc, argv, err);

    if (rc != PSD_OK) {
        return rc;
    }
    (void)ps_format_parse(ps_args_text(&self->args, "output"), &self->out.format);
    self->out.quiet = ps_args_on(&self->args, "quiet");
    self->out.verbose = ps_args_on(&self->args, "verbose");
    self->out.no_headers = ps_args_on(&self->args, "no-headers");
    self->out.columns = ps_args_text(&self->args, "columns");
    self->out.sort = ps_args_text(&self->args, "sort");
    self->out.text = ps_args_text(&self->args, "template");
    self->out.wrong = self->wrong;
    self->out.big_as_text = ps_args_on(&self->args, "big-as-text");
    self->out.color = isatty(STDOUT_FILENO) && !ps_args_on(&self->args, "no-color") &&
                      (no_color == NULL || no_color[0] == '\0');
    warn_of_environment(&self->out);
    self->endpoint = ps_args_text(&self->args, "endpoint");
    if (!ps_args_given(&self->args, "endpoint")) {
        ps_discovery_nearest(self->nearest);
        self->endpoint = self->nearest;
    }
    self->timeout_ms = (uint32_t)ps_args_ms(&self->args, "timeout");
    return PSD_OK;
}

/* Names of columns are checked when the list is there: too late for what was changed. */
static psd_status_t check_shape(const ps_cli_t *self, psd_error_t *err)
{
    static const char *const OPTIONS[] = {"columns", "sort", "no-headers"};
    const bool shows = (self->args.cmd->flags & PS_CMD_WATCH) != 0;

    for (size_t i = 0; i < sizeof OPTIONS / sizeof OPTIONS[0]; i++) {
        if (!shows && ps_args_given(&self->args, OPTIONS[i])) {
            return psd_error_set(err, PSD_USAGE, "--%s is for commands that only show", OPTIONS[i]);
        }
    }
    if (self->out.format >= PS_FORMAT_YAML && !shows) {
        return psd_error_set(err, PSD_USAGE, "-o %s is for commands that only show",
                             ps_args_text(&self->args, "output"));
    }
    if ((self->out.format == PS_FORMAT_TEMPLATE) != ps_args_given(&self->args, "template")) {
        return psd_error_set(err, PSD_USAGE, "-o template and --template TEXT need each other");
    }
    if (self->out.format == PS_FORMAT_TEMPLATE && !ps_template_is_valid(self->out.text)) {
        return psd_error_set(err, PSD_USAGE,
                             "--template: each \"{\" wants a member and a \"}\" after it");
    }
    if (ps_format_is_json(self->out.format) && ps_args_given(&self->args, "columns")) {
        return psd_error_set(err, PSD_USAGE,
                             "--columns: json has all members; allowed: table, wide, csv, tsv");
    }
    return PSD_OK;
}

/* Waits between two showings; a signal ends the program by itself. */
static void sleep_ms(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&left, &left) != 0) {
    }
}

/* Runs the command, again and again when --watch says so. */
static psd_status_t run_command(ps_cli_t *self, psd_error_t *err)
{
    const ps_cmd_t *cmd = self->args.cmd;
    bool watch = ps_args_given(&self->args, "watch") && (cmd->flags & PS_CMD_WATCH) != 0;
    bool clear = watch && isatty(STDOUT_FILENO) && self->out.format <= PS_FORMAT_WIDE;

    do {
        if (clear) {
            ps_print(self->out.out, "\033[H\033[2J");
        }
        psd_status_t rc = cmd->run(self, err);

        if (rc == PSD_OK) {
            rc = ps_out_finish(&self->out, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        if (watch) {
            sleep_ms(ps_args_ms(&self->args, "watch"));
        }
    } while (watch);
    return PSD_OK;
}

static psd_status_t run(ps_cli_t *cli, int argc, char *const *argv, psd_error_t *err)
{
    psd_status_t rc = start(cli, argc, argv, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (cli->args.help) {
        ps_help_write(cli->out.out, cli->args.noun, cli->args.cmd);
        return ps_out_finish(&cli->out, err);
    }
    if (cli->args.version) {
        psd_status_t shown = ps_cmd_version(cli, err);

        return shown != PSD_OK ? shown : ps_out_finish(&cli->out, err);
    }
    rc = check_shape(cli, err);
    return rc == PSD_OK ? run_command(cli, err) : rc;
}

int main(int argc, char **argv)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_cli_done) ps_cli_t cli = {0};
    psd_status_t rc = run(&cli, argc, argv, err);
    int exit_code = psd_status_exit(rc);

    if (rc != PSD_OK) {
        ps_out_error(&cli.out, rc,
                     psd_error_text(err)[0] != '\0' ? psd_error_text(err) : psd_status_text(rc),
                     cli.details);
        (void)fflush(cli.out.out);
    } else if (cli.exit_code != 0) {
        exit_code = cli.exit_code;
    }
    return exit_code;
}
