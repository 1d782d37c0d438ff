/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_check - a measurement of the cluster against two thresholds
 *
 * What     Each check takes what the control port answers and keeps the worst that it
 *          has seen: call it once for every answer. No input or output.
 * Units    Seconds, but for health: problems.
 * Owner    The caller; embedded, nothing is freed.
 */
#ifndef PS_CLI_CHECK_H
#define PS_CLI_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#define PS_CHECK_TEXT_SIZE 320

/* The numbers are the exit codes of monitoring plug-ins. */
typedef enum ps_verdict {
    PS_VERDICT_OK = 0,
    PS_VERDICT_WARNING = 1,
    PS_VERDICT_CRITICAL = 2,
    PS_VERDICT_UNKNOWN = 3
} ps_verdict_t;

typedef struct ps_check {
    const char *name; /* "health" …; static */
    const char *unit; /* "s", or "" for a number of things; static */
    double warn;      /* from this value on it is a warning … */
    double crit;      /* … and critical */
    double value;     /* the worst so far */
    ps_verdict_t verdict;
    char text[PS_CHECK_TEXT_SIZE]; /* what is so, and where */
} ps_check_t;

/* "ok", "warning", "critical", "unknown"; and the same in capitals. */
const char *ps_verdict_word(ps_verdict_t verdict);
const char *ps_verdict_title(ps_verdict_t verdict);

/* An answer to cluster_status: problems are critical, warnings a warning. */
void ps_check_health(ps_check_t *self, const json_t *status);
/* An answer to table_inspect: the copy that is furthest from its primary. */
void ps_check_lag(ps_check_t *self, const json_t *table);
/* An answer to clock_inspect of that job: the worker that waits longest. */
void ps_check_clocks(ps_check_t *self, const char *job, const json_t *clocks);
/* An answer to checkpoint_list: the age of the newest one; none is critical. */
void ps_check_backup(ps_check_t *self, const json_t *list, uint64_t unix_ms);
#endif
