/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include "options.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "../common/program/inputs.h"
#include "../common/program/number.h"
#include "loss.h"

#define FEATURES_MAX 4294967294
#define EPOCHS 5
#define EPOCHS_MOST 100
#define TOLERANCE 1e-4
#define C_MIN 1e-9
#define C_MAX 1e9

#define AT(member) offsetof(lr_options_t, member)
static const ps_opt_t OPTIONS[] = {
    {.kind = PS_OPT_HEADING,
     .help = "Data (files, directories, patterns, plain, .gz or .zst; labels 0 "
             "1 -1 +1):"},
    PS_OPT_ROW("train", "FILE", PS_OPT_INPUTS, AT(train),
               "training data; each worker takes its share"),
    PS_OPT_ROW("test", "FILE", PS_OPT_INPUTS, AT(test),
               "test data; worker 0 measures it at the end"),
    PS_OPT_NUMBER("features", "N", PS_OPT_U32, AT(features), 1, FEATURES_MAX,
                  "greatest key allowed (default: as found in FILE)"),
    EX_LOAD_OPTIONS(lr_options_t, data),
    {.kind = PS_OPT_HEADING, .help = "Model:"},
    PS_OPT_ROW("table", "NAME", PS_OPT_TEXT, AT(table),
               "table of the weights, row = key (default lr); created if missing, else trained "
               "further: it must have the same updater and settings"),
    PS_OPT_ROW("loss", "logit|square|hinge|square-hinge", PS_OPT_CHOICE, AT(loss),
               "loss of a prediction w.x (default logit): log(1+exp(-y w.x)), (w.x-y)^2/2 for any "
               "labels, max(0, 1-y w.x), max(0, 1-y w.x)^2"),
    PS_OPT_ROW(
        "updater", "ftrl|adagrad|sgd", PS_OPT_CHOICE, AT(updater),
        "updater that makes the gradient steps (default ftrl; with --objective see --variant)"),
    PS_OPT_NUMBER("alpha", "F", PS_OPT_REAL, AT(alpha), 1e-9, 1e9,
                  "the step: ftrl 0.1, adagrad 0.2, sgd 0.01"),
    PS_OPT_NUMBER("beta", "F", PS_OPT_REAL, AT(beta), 0, 1e9,
                  "a greater value makes smaller first steps (default 1); for sgd only with "
                  "--schedule decay"),
    PS_OPT_ROW("schedule", "constant|decay", PS_OPT_CHOICE, AT(schedule),
               "step of sgd: alpha, or alpha / (beta + minibatches done) (default constant)"),
    PS_OPT_NUMBER("l1", "F", PS_OPT_REAL, AT(l1), 0, 1e9,
                  "penalty on |w| in every step (ftrl 1, else 0)"),
    PS_OPT_NUMBER("l2", "F", PS_OPT_REAL, AT(l2), 0, 1e9,
                  "penalty on w^2 / 2 in every step (ftrl 1, else 0)"),
    PS_OPT_ROW("objective", "l2:C", PS_OPT_TEXT, AT(objective),
               "minimises F = C sum loss + 1/2 |w|^2 until F has converged, and reports F"),
    PS_OPT_ROW(
        "variant", "updater|average|admm|lbfgs", PS_OPT_CHOICE, AT(variant),
        "method for --objective: L-BFGS with the gradient of all samples, an exact sum in every "
        "mode, and no step to choose (default lbfgs, except for hinge and when --updater, --alpha "
        "or --beta is given); minibatch steps by the table's updater, adagrad or sgd; or one model "
        "per worker, averaged or combined by ADMM once each epoch"),
    PS_OPT_NUMBER("tolerance", "F", PS_OPT_REAL, AT(tolerance), 0, 1,
                  "with --objective: stops when F changes relatively by less than this in two "
                  "epochs in a row (default 1e-4); an updater's steps become smaller when F stops "
                  "falling; 0: trains all epochs, with equal steps"),
    PS_OPT_NUMBER("rho", "F", PS_OPT_REAL, AT(rho), 1e-9, 1e9,
                  "penalty of admm: a greater value keeps the models closer (default 10); a "
                  "smaller one needs more passes"),
    PS_OPT_NUMBER(
        "local-passes", "N", PS_OPT_U32, AT(local_passes), 1, 1e6,
        "average and admm: passes over the worker's own samples in each epoch (default 5)"),
    PS_OPT_ROW("save", "FILE", PS_OPT_OUTPUT, AT(save), "writes the nonzero weights: key value"),
    PS_OPT_ROW("predict", "FILE", PS_OPT_INPUT, AT(predict),
               "reads such a model instead of training one"),
    PS_OPT_ROW("scores", "FILE", PS_OPT_OUTPUT_HERE, AT(scores),
               "writes the probability of each test example"),
    {.kind = PS_OPT_HEADING, .help = "Training:"},
    PS_OPT_NUMBER("epochs", "N", PS_OPT_U32, AT(epochs), 1, 1e6,
                  "passes over the data (default 5; with --objective at most 100)"),
    PS_OPT_NUMBER("minibatch", "N", PS_OPT_U32, AT(minibatch), 1, 1e9,
                  "examples of a worker in one step (default 100)"),
    PS_OPT_NUMBER("clock-every", "N", PS_OPT_U32, AT(clock_every), 1, 1e6,
                  "minibatches in one clock (default 1)"),
    PS_OPT_NUMBER("meet-every", "N", PS_OPT_U32, AT(meet_every), 0, 1e6,
                  "minibatches after which all workers synchronise at the end of an epoch, if "
                  "max-delay lets one be an epoch ahead, as in ASP (default 100, or a 20th of a "
                  "shorter training; 0: only at the end)"),
    PS_OPT_NUMBER("ahead", "N", PS_OPT_U32, AT(ahead), 0, LR_AHEAD_MAX,
                  "minibatches whose weights are pulled ahead, up to 16: no step waits for a pull, "
                  "and weights miss the N steps before theirs (default 0 with BSP, else 1)"),
    PS_OPT_ROW("seed", "N", PS_OPT_U64, AT(seed), "of the order of the examples (default 0)"),
    PS_OPT_NUMBER("report", "SECONDS", PS_OPT_REAL, AT(report_s), 0, 86400,
                  "between progress lines (default 1); 0: every epoch"),
    EX_JOB_OPTIONS(lr_options_t, job),
    PS_OPT_END,
};
#undef AT

static const ex_command_t COMMAND = {
    "psd-lr - sparse logistic regression on a psd parameter server\n"
    "\n"
    "Examples:\n"
    "  psd-lr --train a.libsvm --test b.libsvm\n"
    "      one worker, FTRL, against the psd on tcp://127.0.0.1:7171\n"
    "  pscli run -n 4 -- psd-lr --train a.libsvm --test b.libsvm "
    "--max-delay 2\n"
    "      four workers, none more than 2 clocks ahead\n"
    "  psd-lr --train a.libsvm --objective l2:1 --save model.txt\n"
    "      the optimum of sum log(1+exp(-y w.x)) + 1/2 |w|^2; stops by itself\n"
    "  psd-lr --predict model.txt --test b.libsvm --scores p.txt\n"
    "      uses a saved model; needs no psd\n",
    OPTIONS,
};

/* The updaters' defaults, NAN where they have no such setting. */
typedef struct updater_defaults {
    const char *name;
    double alpha;
    double beta;
    double l1;
    double l2;
} updater_defaults_t;

static const updater_defaults_t UPDATERS[] = {
    [LR_FTRL] = {"ftrl", 0.1, 1, 1, 1},
    [LR_ADAGRAD] = {"adagrad", 0.2, 1, 0, 0},
    [LR_SGD] = {"sgd", 0.01, NAN, 0, 0},
};

const char *lr_updater_name(uint32_t updater)
{
    return UPDATERS[updater].name;
}

static psd_status_t read_objective(lr_options_t *self, psd_error_t *err)
{
    const char *text = self->objective;
    double c = 0;

    if (strncmp(text, "l2:", 3) != 0 || !ex_number_f64(text + 3, &c) || c < C_MIN || c > C_MAX) {
        return psd_error_set(err, PSD_USAGE,
                             "--objective \"%s\" is not l2:C with a number C "
                             "from %.10g to %.10g",
                             text, C_MIN, C_MAX);
    }
    self->objective_c = c;
    return PSD_OK;
}

static void set_default(double *value, double preset)
{
    if (isnan(*value)) {
        *value = preset;
    }
}

/* The kind and the length of the training. */
static psd_status_t settle_variant(lr_options_t *self, psd_error_t *err)
{
    bool has_objective = self->objective != NULL;
    bool has_steps = self->updater != EX_NOT_CHOSEN || !isnan(self->alpha) || !isnan(self->beta) ||
                     self->schedule != 0;

    if (self->variant == EX_NOT_CHOSEN) {
        self->variant =
            has_objective && !has_steps && self->loss != LR_HINGE ? LR_LBFGS : LR_UPDATER;
    }
    if (!isnan(self->tolerance) && !has_objective) {
        return psd_error_set(err, PSD_USAGE, "--tolerance needs --objective l2:C");
    }
    set_default(&self->tolerance, TOLERANCE);
    if (self->epochs == 0) {
        self->epochs = has_objective ? EPOCHS_MOST : EPOCHS;
    }
    return PSD_OK;
}

static psd_status_t check_variant(lr_options_t *self, psd_error_t *err)
{
    if (self->variant == LR_UPDATER) {
        return PSD_OK;
    }
    if (self->variant == LR_LBFGS) {
        if (self->objective == NULL || self->loss == LR_HINGE || self->updater_given ||
            self->schedule != 0) {
            return psd_error_set(err, PSD_USAGE,
                                 "--variant lbfgs needs --objective l2:C, a --loss other than "
                                 "hinge, and no --updater or --schedule");
        }
        return PSD_OK;
    }
    if (self->objective == NULL || self->loss != LR_LOGIT || self->updater_given ||
        self->schedule != 0) {
        return psd_error_set(
            err, PSD_USAGE,
            "--variant needs --objective l2:C with --loss logit, and no --updater or --schedule");
    }
    return PSD_OK;
}

/* Fills in defaults, and refuses options without meaning for the updater. */
static psd_status_t settle_updater(lr_options_t *self, psd_error_t *err)
{
    const updater_defaults_t *defaults = NULL;

    self->updater_given = self->updater != EX_NOT_CHOSEN;
    if (!self->updater_given) {
        self->updater = self->objective != NULL ? LR_ADAGRAD : LR_FTRL;
    }
    defaults = &UPDATERS[self->updater];
    if (self->schedule != 0 && (self->updater != LR_SGD || self->l1 > 0 || self->l2 > 0)) {
        return psd_error_set(err, PSD_USAGE,
                             "--schedule needs --updater sgd without --l1 and --l2: it scales "
                             "gradients, not penalties");
    }
    if (!isnan(self->beta) && isnan(defaults->beta) && self->schedule == 0) {
        return psd_error_set(err, PSD_USAGE, "--beta has no meaning with --updater %s",
                             defaults->name);
    }
    set_default(&self->alpha, defaults->alpha);
    set_default(&self->beta, self->schedule != 0 ? 1 : defaults->beta);
    set_default(&self->l1, defaults->l1);
    set_default(&self->l2, defaults->l2);
    if (self->objective == NULL) {
        return PSD_OK;
    }
    if (self->updater == LR_FTRL) {
        return psd_error_set(
            err, PSD_USAGE,
            "--objective needs --updater sgd or adagrad, not ftrl, which has its own penalty");
    }
    if (self->l1 > 0 || self->l2 > 0) {
        return psd_error_set(err, PSD_USAGE,
                             "--objective has its own penalty; --l1 and --l2 "
                             "must then be 0");
    }
    return read_objective(self, err);
}

static psd_status_t check_paths(const lr_options_t *self, psd_error_t *err)
{
    psd_status_t rc = ex_options_check_table(self->table, "", err);

    if (rc != PSD_OK) {
        return rc;
    }
    return ex_options_check_files(self->train, self->test, self->save, self->predict, self->scores,
                                  err);
}

psd_status_t lr_options_read(lr_options_t *self, int argc, char **argv, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *self = (lr_options_t){
        .table = "lr",
        .updater = EX_NOT_CHOSEN,
        .alpha = NAN,
        .beta = NAN,
        .l1 = NAN,
        .l2 = NAN,
        .variant = EX_NOT_CHOSEN,
        .tolerance = NAN,
        .rho = 10,
        .local_passes = 5,
        .minibatch = 100,
        .clock_every = 1,
        .meet_every = LR_MEET_AUTO,
        .ahead = LR_AHEAD_AUTO,
        .report_s = 1,
        .data = EX_LOAD_DEFAULTS,
        .job = EX_JOB_DEFAULTS,
    };
    rc = ex_options_read(&COMMAND, self, argc, argv, &self->help, err);
    if (rc != PSD_OK || self->help) {
        return rc;
    }
    rc = check_paths(self, err);
    if (rc == PSD_OK) {
        rc = settle_variant(self, err);
    }
    if (rc == PSD_OK) {
        rc = settle_updater(self, err);
    }
    if (rc == PSD_OK) {
        rc = check_variant(self, err);
    }
    return rc == PSD_OK ? ex_inputs_check(&COMMAND, self, err) : rc;
}

void lr_help(void)
{
    ex_options_help(&COMMAND);
}
