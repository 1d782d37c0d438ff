/* SPDX-License-Identifier: Apache-2.0 */
/* Outer steps by hand, for the tests of trainings that take them: all workers
 * and the table, as what each adds and sends makes them. False, and a text to
 * stderr: something is not as it should be. */
#ifndef PS_TESTS_OUTER_HAND_H
#define PS_TESTS_OUTER_HAND_H

#include <psd_train.h>
#include <stdbool.h>

#define OUTER_WORKERS_MAX 4
#define OUTER_ROWS 6
#define OUTER_COLS 2
#define OUTER_CELLS (OUTER_ROWS * OUTER_COLS)
#define OUTER_START 1.0 /* all cells */
#define OUTER_CALL_MS 60000

extern const char *outer_endpoint; /* of all that follow */
extern const uint64_t outer_rows[OUTER_ROWS];

/* What is set. The updater is nesterov with alpha and momentum; alpha 0: add. */
typedef struct outer_rule {
    const char *every, *fragments, *overlap;
    double alpha, momentum;
} outer_rule_t;

typedef struct outer_hand {
    uint64_t every, fragments, overlap;
    double alpha, momentum;
    int workers;
    bool away[OUTER_WORKERS_MAX];
    uint64_t inner; /* clocks of the training */
    uint64_t turn;  /* of the next outer step */
    bool fetches;   /* rows of the last outer step, after the overlap */
    double table[OUTER_CELLS];
    double s[OUTER_CELLS]; /* of nesterov */
    double x[OUTER_WORKERS_MAX][OUTER_CELLS];
    double drift[OUTER_WORKERS_MAX][OUTER_CELLS]; /* what a worker added since it was sent */
} outer_hand_t;

void outer_hand_init(outer_hand_t *self, const outer_rule_t *rule, int workers);
void outer_hand_add(outer_hand_t *self, int worker, int cell, double delta);
/* All workers that are there have ended a clock of the training. */
void outer_hand_end_clock(outer_hand_t *self);
/* They have ended the training. */
void outer_hand_finish(outer_hand_t *self);
/* Between two outer steps. */
void outer_hand_lose(outer_hand_t *self, int worker);
void outer_hand_join(outer_hand_t *self, int worker);
/* The table of that name is that. */
bool outer_hand_check_table(const outer_hand_t *self, const char *name);

bool outer_set(psd_train_t *train, const char *const (*pairs)[2], size_t n_pairs, psd_error_t *err);
/* The rule's three options. */
bool outer_set_rule(psd_train_t *train, const outer_rule_t *rule, psd_error_t *err);
/* With f64 and clock-mean. */
bool outer_make_table(psd_train_t *train, const char *name, const outer_rule_t *rule,
                      psd_error_t *err);
#endif
