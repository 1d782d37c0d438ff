/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: a table of options, read strictly. */
#include "options.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "libsvm.h"
#include "number.h"

#define REPLICAS_MAX 5 /* that a table may have */

/* One option: where it goes and what it may be. Numbers outside of low .. high
 * are refused; whole ones are u32. */
typedef enum kind {
    KIND_FLAG,
    KIND_TEXT,
    KIND_U32,
    KIND_I32,
    KIND_U64,
    KIND_REAL,
    KIND_UPDATER,
    KIND_ACK,
    KIND_OBJECTIVE,
    KIND_SECONDS
} kind_t;

typedef struct option {
    const char *name; /* without the dashes */
    kind_t kind;
    size_t offset; /* in lr_options_t */
    double low;
    double high;
} option_t;

#define AT(member) offsetof(lr_options_t, member)
static const option_t OPTIONS[] = {
    {"help", KIND_FLAG, AT(help), 0, 0},
    {"train", KIND_TEXT, AT(train), 0, 0},
    {"test", KIND_TEXT, AT(test), 0, 0},
    {"table", KIND_TEXT, AT(table), 0, 0},
    {"save", KIND_TEXT, AT(save), 0, 0},
    {"predict", KIND_TEXT, AT(predict), 0, 0},
    {"scores", KIND_TEXT, AT(scores), 0, 0},
    {"features", KIND_U32, AT(features), 1, LR_INDEX_MAX},
    {"updater", KIND_UPDATER, AT(updater), 0, 0},
    {"alpha", KIND_REAL, AT(alpha), 1e-9, 1e9},
    {"beta", KIND_REAL, AT(beta), 0, 1e9},
    {"l1", KIND_REAL, AT(l1), 0, 1e9},
    {"l2", KIND_REAL, AT(l2), 0, 1e9},
    {"objective", KIND_OBJECTIVE, AT(objective_c), 1e-9, 1e9},
    {"epochs", KIND_U32, AT(epochs), 1, 1000000},
    {"minibatch", KIND_U32, AT(minibatch), 1, 1000000000},
    {"clock-every", KIND_U32, AT(clock_every), 1, 1000000},
    {"meet-every", KIND_U32, AT(meet_every), 0, 1000000},
    {"ahead", KIND_U32, AT(ahead), 0, LR_AHEAD_MAX},
    {"max-delay", KIND_I32, AT(max_delay), -1, 1000000},
    {"replicas", KIND_U32, AT(replicas), 1, REPLICAS_MAX},
    {"ack", KIND_ACK, AT(ack), 0, 0},
    {"seed", KIND_U64, AT(seed), 0, 0},
    {"report", KIND_REAL, AT(report_s), 0, 86400},
    {"timeout", KIND_SECONDS, AT(timeout_ms), 1, 86400},
};
#undef AT

/* What the updaters use when nothing is said, NAN where they have no such
 * setting. */
typedef struct updater_defaults {
    const char *name;
    double alpha;
    double beta;
    double l1;
    double l2;
} updater_defaults_t;

static const updater_defaults_t UPDATERS[] = {
    [LR_SGD] = {"sgd", 0.01, NAN, 0, 0},
    [LR_ADAGRAD] = {"adagrad", 0.2, 1, 0, 0},
    [LR_FTRL] = {"ftrl", 0.1, 1, 1, 1},
};
#define N_UPDATERS (sizeof(UPDATERS) / sizeof(UPDATERS[0]))

const char *
lr_updater_name(lr_updater_t updater)
{
    return UPDATERS[updater].name;
}

/* Writes a value of any type to its place in the options. */
#define SET(self, option, type, value) \
    memcpy((char *)(self) + (option)->offset, &(type){(value)}, sizeof(type))

static psd_status_t
refuse(const option_t *option,
       const char *text,
       const char *what,
       psd_error_t *err)
{
    return psd_error_set(err, PSD_USAGE,
                         "--%s \"%s\" is not %s from %.10g to %.10g",
                         option->name, text, what, option->low, option->high);
}

static bool
is_within(const option_t *option, double value)
{
    return value >= option->low && value <= option->high;
}

static psd_status_t
set_whole(lr_options_t *self,
          const option_t *option,
          const char *text,
          psd_error_t *err)
{
    int64_t value = 0;

    if (option->kind == KIND_U64) {
        uint64_t any = 0;

        if (!lr_number_u64(text, &any)) {
            return psd_error_set(err, PSD_USAGE,
                                 "--%s \"%s\" is not a whole number from 0 to "
                                 "%" PRIu64,
                                 option->name, text, UINT64_MAX);
        }
        SET(self, option, uint64_t, any);
        return PSD_OK;
    }
    if (!lr_number_i64(text, &value) || !is_within(option, (double)value)) {
        return refuse(option, text, "a whole number", err);
    }
    if (option->kind == KIND_I32) {
        SET(self, option, int32_t, (int32_t)value);
    } else {
        SET(self, option, uint32_t, (uint32_t)value);
    }
    return PSD_OK;
}

static psd_status_t
set_real(lr_options_t *self,
         const option_t *option,
         const char *text,
         psd_error_t *err)
{
    double value = 0;

    if (!lr_number_f64(text, &value) || !is_within(option, value)) {
        return refuse(option, text, "a number", err);
    }
    if (option->kind == KIND_SECONDS) {
        SET(self, option, uint32_t, (uint32_t)(value * 1000));
    } else {
        SET(self, option, double, value);
    }
    return PSD_OK;
}

static psd_status_t
set_updater(lr_options_t *self, const char *text, psd_error_t *err)
{
    for (size_t i = 0; i < N_UPDATERS; i++) {
        if (strcmp(text, UPDATERS[i].name) == 0) {
            self->updater = (lr_updater_t)i;
            self->updater_given = true;
            return PSD_OK;
        }
    }
    return psd_error_set(err, PSD_USAGE,
                         "--updater \"%s\" is not one of sgd, adagrad, ftrl",
                         text);
}

static psd_status_t
set_ack(lr_options_t *self, const char *text, psd_error_t *err)
{
    if (strcmp(text, "memory") != 0 && strcmp(text, "replica") != 0 &&
        strcmp(text, "disk") != 0) {
        return psd_error_set(err, PSD_USAGE,
                             "--ack \"%s\" is not one of memory, replica, disk",
                             text);
    }
    self->ack = text;
    return PSD_OK;
}

static psd_status_t
set_objective(lr_options_t *self,
              const option_t *option,
              const char *text,
              psd_error_t *err)
{
    double c = 0;

    if (strncmp(text, "l2:", 3) != 0 || !lr_number_f64(text + 3, &c) ||
        !is_within(option, c)) {
        return psd_error_set(err, PSD_USAGE,
                             "--objective \"%s\" is not l2:C with a number C "
                             "from %.10g to %.10g",
                             text, option->low, option->high);
    }
    self->objective = true;
    self->objective_c = c;
    return PSD_OK;
}

static psd_status_t
set(lr_options_t *self,
    const option_t *option,
    const char *text,
    psd_error_t *err)
{
    switch (option->kind) {
    case KIND_U32:
    case KIND_I32:
    case KIND_U64:
        return set_whole(self, option, text, err);
    case KIND_REAL:
    case KIND_SECONDS:
        return set_real(self, option, text, err);
    case KIND_UPDATER:
        return set_updater(self, text, err);
    case KIND_ACK:
        return set_ack(self, text, err);
    case KIND_OBJECTIVE:
        return set_objective(self, option, text, err);
    case KIND_TEXT:
        if (*text == '\0') {
            return psd_error_set(err, PSD_USAGE, "--%s must not be empty",
                                 option->name);
        }
        SET(self, option, const char *, text);
        return PSD_OK;
    case KIND_FLAG:
        break;
    }
    SET(self, option, bool, true);
    return PSD_OK;
}

/* The option whose name is the first `length` bytes of a text; NULL. */
static const option_t *
find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(OPTIONS) / sizeof(OPTIONS[0]); i++) {
        if (strlen(OPTIONS[i].name) == length &&
            memcmp(OPTIONS[i].name, name, length) == 0) {
            return &OPTIONS[i];
        }
    }
    return NULL;
}

/* Reads argv[*at] and its value, and moves *at behind them. */
static psd_status_t
read_one(lr_options_t *self, int argc, char **argv, int *at, psd_error_t *err)
{
    const char *text = argv[(*at)++];
    const char *equals = strchr(text, '=');
    const option_t *option = NULL;
    size_t length = equals == NULL ? strlen(text) : (size_t)(equals - text);

    if (strcmp(text, "-h") == 0) {
        self->help = true;
        return PSD_OK;
    }
    if (strncmp(text, "--", 2) != 0) {
        return psd_error_set(err, PSD_USAGE,
                             "\"%s\" is no option; all arguments are options",
                             text);
    }
    option = find(text + 2, length - 2);
    if (option == NULL) {
        return psd_error_set(err, PSD_USAGE,
                             "unknown option \"%.*s\"; --help lists them",
                             (int)length, text);
    }
    if (option->kind == KIND_FLAG) {
        if (equals != NULL) {
            return psd_error_set(err, PSD_USAGE, "--%s takes no value",
                                 option->name);
        }
        return set(self, option, "", err);
    }
    if (equals != NULL) {
        return set(self, option, equals + 1, err);
    }
    if (*at == argc) {
        return psd_error_set(err, PSD_USAGE, "--%s wants a value",
                             option->name);
    }
    return set(self, option, argv[(*at)++], err);
}

static void
set_default(double *value, double preset)
{
    if (isnan(*value)) {
        *value = preset;
    }
}

/* Fills what was not said, and refuses what has no meaning for the updater. */
static psd_status_t
settle_updater(lr_options_t *self, psd_error_t *err)
{
    const updater_defaults_t *defaults = NULL;

    if (!self->updater_given && self->objective) {
        self->updater = LR_ADAGRAD;
    }
    defaults = &UPDATERS[self->updater];
    if (!isnan(self->beta) && isnan(defaults->beta)) {
        return psd_error_set(err, PSD_USAGE,
                             "--beta has no meaning with --updater %s",
                             defaults->name);
    }
    set_default(&self->alpha, defaults->alpha);
    set_default(&self->beta, defaults->beta);
    set_default(&self->l1, defaults->l1);
    set_default(&self->l2, defaults->l2);
    if (!self->objective) {
        return PSD_OK;
    }
    if (self->updater == LR_FTRL) {
        return psd_error_set(err, PSD_USAGE,
                             "--objective wants --updater sgd or adagrad, not "
                             "ftrl, which has its own penalty");
    }
    if (self->l1 > 0 || self->l2 > 0) {
        return psd_error_set(err, PSD_USAGE,
                             "--objective has its own penalty; --l1 and --l2 "
                             "must then be 0");
    }
    return PSD_OK;
}

static psd_status_t
check_paths(const lr_options_t *self, psd_error_t *err)
{
    /* Room for ".counts" in the 63 characters of a table's name. */
    if (strlen(self->table) > 56) {
        return psd_error_set(err, PSD_USAGE,
                             "--table \"%.60s\" is longer than 56 characters",
                             self->table);
    }
    if (self->scores != NULL && self->test == NULL) {
        return psd_error_set(err, PSD_USAGE, "--scores wants --test FILE");
    }
    if (self->predict == NULL && self->train == NULL) {
        return psd_error_set(err, PSD_USAGE,
                             "--train FILE is missing; --help shows examples");
    }
    if (self->predict != NULL && self->test == NULL) {
        return psd_error_set(err, PSD_USAGE, "--predict wants --test FILE");
    }
    if (self->predict != NULL && (self->train != NULL || self->save != NULL)) {
        return psd_error_set(err, PSD_USAGE,
                             "--predict uses a model and trains none: it goes "
                             "without --train and --save");
    }
    return PSD_OK;
}

psd_status_t
lr_options_read(lr_options_t *self, int argc, char **argv, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *self = (lr_options_t){
        .table = "lr",
        .updater = LR_FTRL,
        .alpha = NAN,
        .beta = NAN,
        .l1 = NAN,
        .l2 = NAN,
        .epochs = 5,
        .minibatch = 100,
        .clock_every = 1,
        .meet_every = 1,
        .ahead = LR_AHEAD_AUTO,
        .max_delay = PSD_DELAY_ENV,
        .replicas = 1,
        .report_s = 1,
        .timeout_ms = 30000,
    };
    for (int at = 1; at < argc;) {
        rc = read_one(self, argc, argv, &at, err);
        if (rc != PSD_OK || self->help) {
            return rc;
        }
    }
    if (self->ack == NULL) {
        self->ack = self->replicas > 1 ? "replica" : "memory";
    }
    rc = check_paths(self, err);
    return rc == PSD_OK ? settle_updater(self, err) : rc;
}
