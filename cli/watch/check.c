/* SPDX-License-Identifier: Apache-2.0 */
/* Measures, compares, and says where the worst is. */
#include "cli/watch/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/output/json_text.h"
#include "cli/run/cli.h"

static const char *const WORDS[] = {"ok", "warning", "critical", "unknown"};
static const char *const TITLES[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

const char *ps_verdict_word(ps_verdict_t verdict)
{
    return WORDS[verdict];
}

const char *ps_verdict_title(ps_verdict_t verdict)
{
    return TITLES[verdict];
}

static ps_verdict_t judge(const ps_check_t *self, double value)
{
    return value >= self->crit   ? PS_VERDICT_CRITICAL
           : value >= self->warn ? PS_VERDICT_WARNING
                                 : PS_VERDICT_OK;
}

/* True when that is worse than all before, or the first; the text is to be set then. */
static bool is_worse(ps_check_t *self, double value)
{
    if (self->text[0] != '\0' && value <= self->value) {
        return false;
    }
    self->value = value;
    self->verdict = judge(self, value);
    return true;
}

void ps_check_health(ps_check_t *self, const json_t *status)
{
    const json_t *problems = ps_json_at(status, "problems");
    const json_t *warnings = ps_json_at(status, "warnings");
    size_t n = json_array_size(problems);
    const json_t *first = json_array_get(n > 0 ? problems : warnings, 0);
    const char *text = json_is_string(first) ? json_string_value(first) : NULL;

    self->value = (double)n;
    if (n > 0 || !json_is_true(ps_json_at(status, "cluster.healthy"))) {
        self->verdict = PS_VERDICT_CRITICAL;
    } else {
        self->verdict = json_array_size(warnings) > 0 ? PS_VERDICT_WARNING : PS_VERDICT_OK;
    }
    if (self->verdict == PS_VERDICT_OK) {
        (void)snprintf(self->text, sizeof self->text, "healthy, %zu nodes, %" PRIu64 " tables",
                       json_array_size(ps_json_at(status, "nodes")), ps_json_u64(status, "tables"));
        return;
    }
    (void)snprintf(self->text, sizeof self->text, "%s%s",
                   text != NULL    ? text
                   : first != NULL ? ps_json_text(first, "text")
                                   : "not healthy",
                   json_array_size(n > 0 ? problems : warnings) > 1 ? " (and more)" : "");
}

void ps_check_lag(ps_check_t *self, const json_t *table)
{
    const char *name = ps_json_text(table, "table.name");
    const json_t *partitions = ps_json_at(table, "table.partitions");

    if (self->text[0] == '\0') {
        (void)snprintf(self->text, sizeof self->text, "no copy lags");
    }
    for (size_t i = 0; i < json_array_size(partitions); i++) {
        const json_t *partition = json_array_get(partitions, i);
        const json_t *copies = ps_json_at(partition, "copies");

        for (size_t c = 0; c < json_array_size(copies); c++) {
            const json_t *copy = json_array_get(copies, c);
            double lag_s = json_number_value(ps_json_at(copy, "lag_s"));
            char lag[PS_NUMBER_SIZE];

            if (!is_worse(self, lag_s)) {
                continue;
            }
            ps_seconds_format(lag_s, lag);
            (void)snprintf(self->text, sizeof self->text,
                           "the copy on %s of partition %" PRIu64 " of table %s lags %s",
                           ps_json_text(copy, "place"), ps_json_u64(partition, "id"), name, lag);
        }
    }
}

void ps_check_clocks(ps_check_t *self, const char *job, const json_t *clocks)
{
    const json_t *workers = ps_json_at(clocks, "workers");

    if (self->text[0] == '\0') {
        (void)snprintf(self->text, sizeof self->text, "no worker waits");
    }
    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);
        double waiting_s = json_number_value(ps_json_at(worker, "waiting_s"));
        char waits[PS_NUMBER_SIZE];

        if (!is_worse(self, waiting_s)) {
            continue;
        }
        ps_seconds_format(waiting_s, waits);
        (void)snprintf(self->text, sizeof self->text,
                       "worker %" PRIu64 " of job %s has waited %s at clock %" PRIu64,
                       ps_json_u64(worker, "worker"), job, waits, ps_json_u64(worker, "clock"));
    }
}

void ps_check_backup(ps_check_t *self, const json_t *list, uint64_t unix_ms)
{
    const json_t *all = ps_json_at(list, "checkpoints");
    const char *name = "";
    uint64_t newest_ms = 0;
    char age[PS_NUMBER_SIZE];

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *one = json_array_get(all, i);
        uint64_t created_ms = ps_json_u64(one, "created_unix_ms");

        if (strcmp(ps_json_text(one, "state"), "whole") == 0 && created_ms > newest_ms) {
            newest_ms = created_ms;
            name = ps_json_text(one, "name");
        }
    }
    if (newest_ms == 0) {
        self->verdict = PS_VERDICT_CRITICAL;
        (void)snprintf(self->text, sizeof self->text, "there is no whole checkpoint");
        return;
    }
    self->value = unix_ms > newest_ms ? (double)(unix_ms - newest_ms) / 1000.0 : 0;
    self->verdict = judge(self, self->value);
    ps_seconds_format(self->value, age);
    (void)snprintf(self->text, sizeof self->text, "the newest checkpoint, %s, is %s old", name,
                   age);
}
