/* SPDX-License-Identifier: Apache-2.0 */
/* pscli check: verdicts for scripts, Nagios and Prometheus. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/watch/check.h"
#include "cli/watch/watch.h"
#include "transport/threads/clock.h"

#define N_CHECKS 4
#define NOT_OK_EXIT 1

typedef psd_status_t (*measure_t)(ps_cli_t *cli, ps_check_t *check, psd_error_t *err);

static psd_status_t measure_health(ps_cli_t *cli, ps_check_t *check, psd_error_t *err);
static psd_status_t measure_lag(ps_cli_t *cli, ps_check_t *check, psd_error_t *err);
static psd_status_t measure_clocks(ps_cli_t *cli, ps_check_t *check, psd_error_t *err);
static psd_status_t measure_backup(ps_cli_t *cli, ps_check_t *check, psd_error_t *err);

/* The checks that there are; a cluster without checkpoints is not ill, so that the age of
 * the newest one is asked for by name. */
static const struct {
    ps_check_t is;
    measure_t measure;
    const char *none; /* what is so where there was nothing to measure */
    bool by_name_only;
} CHECKS[N_CHECKS] = {
    {{.name = "health", .unit = "", .warn = 1, .crit = 1}, measure_health, "", false},
    {{.name = "lag", .unit = "s", .warn = 1, .crit = 10}, measure_lag, "there is no table", false},
    {{.name = "clocks", .unit = "s", .warn = 60, .crit = 300},
     measure_clocks,
     "no job runs",
     false},
    {{.name = "backup", .unit = "s", .warn = 86400, .crit = 172800}, measure_backup, "", true}};

static const ps_column_t COLUMNS[] = {
    {"CHECK", "check", PS_UNIT_NONE, false}, {"STATUS", "status", PS_UNIT_NONE, false},
    {"VALUE", "value", PS_UNIT_NONE, true},  {"UNIT", "unit", PS_UNIT_NONE, true},
    {"WARN", "warn", PS_UNIT_NONE, true},    {"CRIT", "crit", PS_UNIT_NONE, true},
    {"WHAT", "text", PS_UNIT_NONE, false},   {NULL, NULL, PS_UNIT_NONE, false}};

/* ---- measuring ---- */

static psd_status_t measure_health(ps_cli_t *cli, ps_check_t *check, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *status = NULL;
    psd_status_t rc = ps_cli_request(cli, "cluster_status", NULL, NULL, &status, err);

    if (rc == PSD_OK) {
        ps_check_health(check, status);
    }
    return rc;
}

static psd_status_t measure_lag(ps_cli_t *cli, ps_check_t *check, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *list = NULL;
    psd_status_t rc = ps_cli_request(cli, "table_list", NULL, NULL, &list, err);
    const json_t *tables = ps_json_at(list, "tables");

    for (size_t i = 0; rc == PSD_OK && i < json_array_size(tables); i++) {
        PSD_AUTO(ps_json_unref) json_t *table = NULL;
        const char *name = ps_json_text(json_array_get(tables, i), "name");

        rc = ps_cli_request(cli, "table_inspect", "name", name, &table, err);
        if (rc == PSD_OK) {
            ps_check_lag(check, table);
        } else if (rc == PSD_NO_TABLE) { /* dropped since */
            psd_error_clear(err);
            rc = PSD_OK;
        }
    }
    return rc;
}

static psd_status_t measure_clocks(ps_cli_t *cli, ps_check_t *check, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *list = NULL;
    psd_status_t rc = ps_cli_request(cli, "job_list", NULL, NULL, &list, err);
    const json_t *jobs = ps_json_at(list, "jobs");

    for (size_t i = 0; rc == PSD_OK && i < json_array_size(jobs); i++) {
        PSD_AUTO(ps_json_unref) json_t *clocks = NULL;
        const char *name = ps_json_text(json_array_get(jobs, i), "name");

        if (strcmp(ps_json_text(json_array_get(jobs, i), "state"), "running") != 0) {
            continue;
        }
        rc = ps_cli_request(cli, "clock_inspect", "job", name, &clocks, err);
        if (rc == PSD_OK) {
            ps_check_clocks(check, name, clocks);
        } else if (rc == PSD_NO_JOB) { /* forgotten since */
            psd_error_clear(err);
            rc = PSD_OK;
        }
    }
    return rc;
}

static psd_status_t measure_backup(ps_cli_t *cli, ps_check_t *check, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *list = NULL;
    psd_status_t rc = ps_cli_request(cli, "checkpoint_list", NULL, NULL, &list, err);

    if (rc == PSD_OK) {
        ps_check_backup(check, list, ps_unix_ms());
    }
    return rc;
}

/* ---- showing ---- */

static json_t *document(const ps_check_t *checks, size_t n, ps_verdict_t worst)
{
    json_t *items = json_array();

    for (size_t i = 0; i < n; i++) {
        (void)json_array_append_new(
            items, json_pack("{s:s,s:s,s:f,s:s,s:f,s:f,s:s}", "check", checks[i].name, "status",
                             ps_verdict_word(checks[i].verdict), "value", checks[i].value, "unit",
                             checks[i].unit, "warn", checks[i].warn, "crit", checks[i].crit, "text",
                             checks[i].text));
    }
    return json_pack("{s:s,s:o}", "status", ps_verdict_word(worst), "checks", items);
}

/* A line as plug-ins of Nagios, Icinga and Zabbix print it: what is worst, then figures. */
static void show_nagios(const ps_cli_t *cli, const ps_check_t *checks, size_t n,
                        const ps_check_t *worst)
{
    ps_print(cli->out.out, "PSD %s - %s: %s |", ps_verdict_title(worst->verdict), worst->name,
             worst->text);
    for (size_t i = 0; i < n; i++) {
        if (checks[i].verdict != PS_VERDICT_UNKNOWN) {
            ps_print(cli->out.out, " %s=%g%s;%g;%g;0", checks[i].name, checks[i].value,
                     checks[i].unit, checks[i].warn, checks[i].crit);
        }
    }
    ps_print(cli->out.out, "\n");
}

/* For the text-file collector of node_exporter. */
static void show_prometheus(const ps_cli_t *cli, const ps_check_t *checks, size_t n)
{
    ps_print(cli->out.out, "# HELP psd_check_status 0 ok, 1 warning, 2 critical, 3 unknown.\n"
                           "# TYPE psd_check_status gauge\n");
    for (size_t i = 0; i < n; i++) {
        ps_print(cli->out.out, "psd_check_status{check=\"%s\"} %d\n", checks[i].name,
                 (int)checks[i].verdict);
    }
    ps_print(cli->out.out, "# HELP psd_check_value What was measured: seconds, for health the "
                           "number of problems.\n# TYPE psd_check_value gauge\n");
    for (size_t i = 0; i < n; i++) {
        if (checks[i].verdict != PS_VERDICT_UNKNOWN) {
            ps_print(cli->out.out, "psd_check_value{check=\"%s\"} %g\n", checks[i].name,
                     checks[i].value);
        }
    }
}

/* What is known to be wrong comes before what could not be asked. */
static int weight_of(const ps_check_t *check)
{
    static const int weights[] = {[PS_VERDICT_OK] = 0,
                                  [PS_VERDICT_UNKNOWN] = 1,
                                  [PS_VERDICT_WARNING] = 2,
                                  [PS_VERDICT_CRITICAL] = 3};

    return weights[check->verdict];
}

static psd_status_t show(ps_cli_t *cli, const ps_check_t *checks, size_t n, psd_error_t *err)
{
    const char *format = ps_args_text(&cli->args, "format");
    const ps_check_t *worst = &checks[0];

    for (size_t i = 1; i < n; i++) {
        worst = weight_of(&checks[i]) > weight_of(worst) ? &checks[i] : worst;
    }
    if (strcmp(format, "nagios") == 0) {
        show_nagios(cli, checks, n, worst);
        cli->exit_code = (int)worst->verdict;
    } else if (strcmp(format, "prometheus") == 0) {
        show_prometheus(cli, checks, n);
        cli->exit_code = worst->verdict == PS_VERDICT_OK ? 0 : NOT_OK_EXIT;
    } else {
        PSD_AUTO(ps_json_unref) json_t *doc = document(checks, n, worst->verdict);

        if (doc == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for the checks");
        }
        ps_out_list(&cli->out, doc, "checks", COLUMNS);
        cli->exit_code = worst->verdict == PS_VERDICT_OK ? 0 : NOT_OK_EXIT;
    }
    return PSD_OK;
}

/* ---- the command ---- */

static psd_status_t set_thresholds(const ps_cli_t *cli, ps_check_t *check, psd_error_t *err)
{
    if (!ps_args_given(&cli->args, "warn") && !ps_args_given(&cli->args, "crit")) {
        return PSD_OK;
    }
    if (check->unit[0] == '\0') {
        return psd_error_set(err, PSD_USAGE,
                             "--warn and --crit are durations; \"health\" has no threshold");
    }
    if (ps_args_given(&cli->args, "warn")) {
        check->warn = (double)ps_args_ms(&cli->args, "warn") / 1000.0;
    }
    if (ps_args_given(&cli->args, "crit")) {
        check->crit = (double)ps_args_ms(&cli->args, "crit") / 1000.0;
    }
    return check->warn <= check->crit
               ? PSD_OK
               : psd_error_set(err, PSD_USAGE, "--warn %g s must not be above --crit %g s",
                               check->warn, check->crit);
}

/* Which checks to make. */
static psd_status_t choose(const ps_cli_t *cli, bool ret_chosen[N_CHECKS], psd_error_t *err)
{
    for (size_t i = 0; i < N_CHECKS; i++) {
        ret_chosen[i] = cli->args.n_words == 0
                            ? !CHECKS[i].by_name_only
                            : strcmp(ps_cli_word(cli, 0), CHECKS[i].is.name) == 0;
        if (ret_chosen[i] && cli->args.n_words > 0) {
            return PSD_OK;
        }
    }
    if (cli->args.n_words > 0) {
        return psd_error_set(err, PSD_USAGE,
                             "unknown check \"%s\"; allowed: health, lag, clocks, backup",
                             ps_cli_word(cli, 0));
    }
    return ps_args_given(&cli->args, "warn") || ps_args_given(&cli->args, "crit")
               ? psd_error_set(err, PSD_USAGE, "--warn and --crit need the name of one check")
               : PSD_OK;
}

/* The n-th check, which is made or, after `unknown`, could not be. */
static psd_status_t make(ps_cli_t *cli, size_t i, size_t n, ps_check_t *check,
                         const ps_check_t *unknown, psd_error_t *err)
{
    const bool is_text = strcmp(ps_args_text(&cli->args, "format"), "text") == 0;
    psd_status_t rc = PSD_OK;

    *check = CHECKS[i].is;
    rc = set_thresholds(cli, check, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (unknown == NULL) {
        rc = CHECKS[i].measure(cli, check, err);
        if (rc == PSD_OK && check->text[0] == '\0') {
            (void)snprintf(check->text, sizeof check->text, "%s", CHECKS[i].none);
        }
        if (rc == PSD_OK || (is_text && n == 0)) {
            return rc;
        }
    }
    /* Monitoring wants a verdict, not an error, and people what was measured before. */
    check->verdict = PS_VERDICT_UNKNOWN;
    (void)snprintf(check->text, sizeof check->text, "%s",
                   unknown == NULL ? psd_error_text(err) : unknown->text);
    psd_error_clear(err);
    return PSD_OK;
}

psd_status_t ps_cmd_check(ps_cli_t *cli, psd_error_t *err)
{
    bool chosen[N_CHECKS] = {false};
    ps_check_t checks[N_CHECKS];
    const ps_check_t *unknown = NULL;
    size_t n = 0;
    psd_status_t rc = choose(cli, chosen, err);

    for (size_t i = 0; rc == PSD_OK && i < N_CHECKS; i++) {
        if (chosen[i]) {
            rc = make(cli, i, n, &checks[n], unknown, err);
            unknown = checks[n].verdict == PS_VERDICT_UNKNOWN ? &checks[n] : NULL;
            n++;
        }
    }
    return rc == PSD_OK ? show(cli, checks, n, err) : rc;
}
