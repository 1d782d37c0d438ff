/* SPDX-License-Identifier: Apache-2.0 */
#include "outer_hand.h"

#include <math.h>
#include <stdlib.h>

#include "support/check.h"

#define NEAR 1e-12

const char *outer_endpoint;
const uint64_t outer_rows[OUTER_ROWS] = {0, 1, 2, 3, 4, 5};

void outer_hand_init(outer_hand_t *self, const outer_rule_t *rule, int workers)
{
    *self = (outer_hand_t){.every = strtoul(rule->every, NULL, 10),
                           .fragments = strtoul(rule->fragments, NULL, 10),
                           .overlap = strtoul(rule->overlap, NULL, 10),
                           .alpha = rule->alpha,
                           .momentum = rule->momentum,
                           .workers = workers};
    for (int i = 0; i < OUTER_CELLS; i++) {
        self->table[i] = OUTER_START;
        for (int w = 0; w < OUTER_WORKERS_MAX; w++) {
            self->x[w][i] = OUTER_START;
        }
    }
}

void outer_hand_add(outer_hand_t *self, int worker, int cell, double delta)
{
    self->x[worker][cell] += delta;
    self->drift[worker][cell] += delta;
}

/* The outer step of one cell; all workers have ended the clock. */
static void send_cell(outer_hand_t *self, int i)
{
    double g = 0;
    int n = 0;

    for (int w = 0; w < self->workers; w++) {
        g -= self->drift[w][i]; /* 0 of one that is away */
        self->drift[w][i] = 0;
        n += self->away[w] ? 0 : 1;
    }
    g /= n;
    self->s[i] = self->momentum * self->s[i] + g;
    self->table[i] -= self->alpha == 0 ? g : self->alpha * (g + self->momentum * self->s[i]);
}

static bool is_turn(const outer_hand_t *self, int i, uint64_t turn)
{
    return (uint64_t)(i / OUTER_COLS) % self->fragments == turn % self->fragments;
}

static void fetch(outer_hand_t *self)
{
    for (int i = 0; i < OUTER_CELLS; i++) {
        for (int w = 0; is_turn(self, i, self->turn - 1) && w < self->workers; w++) {
            self->x[w][i] = self->table[i] + self->drift[w][i];
        }
    }
    self->fetches = false;
}

void outer_hand_end_clock(outer_hand_t *self)
{
    uint64_t inner = ++self->inner % self->every;

    if (inner == 0) {
        for (int i = 0; i < OUTER_CELLS; i++) {
            if (is_turn(self, i, self->turn)) {
                send_cell(self, i);
            }
        }
        self->turn++;
        self->fetches = true;
    }
    if (self->fetches && inner == self->overlap) {
        fetch(self);
    }
}

/* A cell that no worker has changed since stays. */
void outer_hand_finish(outer_hand_t *self)
{
    for (int i = 0; i < OUTER_CELLS; i++) {
        bool is_changed = false;

        for (int w = 0; w < self->workers; w++) {
            is_changed = is_changed || self->drift[w][i] != 0;
        }
        if (is_changed) {
            send_cell(self, i);
        }
    }
}

void outer_hand_lose(outer_hand_t *self, int worker)
{
    self->away[worker] = true;
    for (int i = 0; i < OUTER_CELLS; i++) {
        self->drift[worker][i] = 0;
    }
}

void outer_hand_join(outer_hand_t *self, int worker)
{
    self->away[worker] = false;
    for (int i = 0; i < OUTER_CELLS; i++) {
        self->x[worker][i] = self->table[i];
    }
}

bool outer_hand_check_table(const outer_hand_t *self, const char *name)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    double values[OUTER_CELLS];

    CHECK_OK(psd_connect(outer_endpoint, NULL, &client, err), err);
    CHECK_OK(psd_table_open(client, name, &table, err), err);
    CHECK_OK(psd_pull(table, outer_rows, OUTER_ROWS, values, OUTER_CELLS, err), err);
    for (int i = 0; i < OUTER_CELLS; i++) {
        CHECK(fabs(values[i] - self->table[i]) < NEAR);
        CHECK(fabs(values[i] - OUTER_START) > 0.01);
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

bool outer_set(psd_train_t *train, const char *const (*pairs)[2], size_t n_pairs, psd_error_t *err)
{
    CHECK_OK(psd_train_set(train, "endpoint", outer_endpoint, err), err);
    for (size_t i = 0; i < n_pairs; i++) {
        CHECK_OK(psd_train_set(train, pairs[i][0], pairs[i][1], err), err);
    }
    return true;
}

bool outer_set_rule(psd_train_t *train, const outer_rule_t *rule, psd_error_t *err)
{
    const char *const pairs[][2] = {{"max-delay", "0"},
                                    {"outer-every", rule->every},
                                    {"outer-fragments", rule->fragments},
                                    {"outer-overlap", rule->overlap}};

    return outer_set(train, pairs, sizeof pairs / sizeof *pairs, err);
}

bool outer_make_table(psd_train_t *train, const char *name, const outer_rule_t *rule,
                      psd_error_t *err)
{
    char updater[64] = "add";
    const char *const pairs[][2] = {{"rows", "6"},        {"cols", "2"},
                                    {"type", "f64"},      {"init", "constant:1"},
                                    {"updater", updater}, {"combine", "clock-mean"}};
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 0;

    if (rule->alpha > 0) {
        (void)snprintf(updater, sizeof updater, "nesterov:alpha=%g,momentum=%g", rule->alpha,
                       rule->momentum);
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_OK(psd_spec_set(spec, pairs[i][0], pairs[i][1], err), err);
    }
    CHECK_OK(psd_train_table(train, name, spec, &table, err), err);
    psd_spec_destroy(&spec);
    return true;
}
