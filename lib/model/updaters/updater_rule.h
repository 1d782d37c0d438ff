/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_updater_rule - the list of updaters and their parameters
 *
 * What     The list of model/tables/updaters.def as data. Used to parse and
 *          print text, to make documents and to check specs.
 */
#ifndef PS_MODEL_UPDATER_RULE_H
#define PS_MODEL_UPDATER_RULE_H

#include "model/tables/table.h"

#define PS_RULE_PARAMETERS_MAX 5
#define PS_UPDATER_WORKERS_MAX 255 /* backups of dcasgd */

/* The allowed numbers of a parameter, always finite and in the table's type. */
typedef enum ps_bound {
    PS_BOUND_POSITIVE = 1,
    PS_BOUND_NOT_NEGATIVE = 2,
    PS_BOUND_FRACTION = 3, /* 0 <= x < 1 */
    PS_BOUND_WORKERS = 4   /* whole, 1 .. PS_UPDATER_WORKERS_MAX */
} ps_bound_t;

typedef struct ps_rule_parameter {
    const char *name;
    size_t offset;   /* of its double in ps_updater_spec_t */
    double fallback; /* the default */
    ps_bound_t bound;
} ps_rule_parameter_t;

typedef struct ps_updater_rule {
    const char *name;
    ps_updater_kind_t kind;
    bool takes_integers; /* else f32 and f64 only */
    bool begins_at_zero; /* first values must be zero */
    uint32_t n_states;   /* arrays; dcasgd: 0, one a worker */
    ps_rule_parameter_t parameters[PS_RULE_PARAMETERS_MAX + 1]; /* the last one
                                                    has no name */
} ps_updater_rule_t;

/* The i-th rule; NULL after the last one. */
const ps_updater_rule_t *ps_updater_rule_at(size_t i);
/* NULL: no such rule. */
const ps_updater_rule_t *ps_updater_rule_of(ps_updater_kind_t kind);
/* The rule named by the first `length` bytes of text; NULL: none. */
const ps_updater_rule_t *ps_updater_rule_find(const char *text, size_t length);

/* The value of a rule's parameter in a spec of that rule. */
double ps_rule_parameter_get(const ps_rule_parameter_t *self, const ps_updater_spec_t *spec);
void ps_rule_parameter_set(const ps_rule_parameter_t *self, ps_updater_spec_t *spec, double value);
/* A spec of the rule with every parameter at its fallback. */
ps_updater_spec_t ps_updater_rule_spec(const ps_updater_rule_t *self);

/* "add, assign, min, …, or plugin:NAME": the allowed values in messages. */
extern const char ps_rules_text[];

/* The part of ps_table_spec_check for the updater: its rule, its parameters,
 * whether it takes the table's type and row format.
 * Errors: PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_updater_spec_check(const ps_table_spec_t *table, psd_error_t *err);
#endif
