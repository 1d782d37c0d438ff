/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include "options.h"

#include <math.h>
#include <stddef.h>

#include "../common/program/inputs.h"
#include "../common/program/program.h"

#define AT(member) offsetof(mf_options_t, member)
static const ps_opt_t OPTIONS[] = {
    {.kind = PS_OPT_HEADING,
     .help = "Data (CSV: user,item,rating, with or without a line of names and "
             "more columns; plain, .gz or .zst):"},
    PS_OPT_ROW("train", "FILE", PS_OPT_INPUTS, AT(train),
               "ratings; each worker reads all and trains on its part"),
    PS_OPT_NUMBER("test-every", "N", PS_OPT_U32, AT(test_every), 0, 1e6,
                  "holds out and measures every N-th rating (default 10; 0: none)"),
    {.kind = PS_OPT_HEADING, .help = "Model:"},
    PS_OPT_NUMBER("factors", "K", PS_OPT_U32, AT(factors), 1, 256,
                  "factors of each user and item, besides a bias (default 16; als 8)"),
    PS_OPT_ROW("table", "NAME", PS_OPT_TEXT, AT(table),
               "NAME.users and NAME.items (default mf); created if missing, else trained further, "
               "also after a restore of a checkpoint"),
    PS_OPT_ROW("save", "FILE", PS_OPT_OUTPUT, AT(save), "writes the model"),
    PS_OPT_ROW("predict", "FILE", PS_OPT_INPUT, AT(predict),
               "reads such a model instead of training one"),
    PS_OPT_ROW("test", "FILE", PS_OPT_INPUTS, AT(test), "with --predict: ratings to measure"),
    PS_OPT_ROW("scores", "FILE", PS_OPT_OUTPUT_HERE, AT(scores),
               "with --predict: writes the prediction for each"),
    {.kind = PS_OPT_HEADING, .help = "Training:"},
    PS_OPT_ROW("method", "sgd|als", PS_OPT_CHOICE, AT(method),
               "gradient steps (default), or least squares for users and items in turn"),
    PS_OPT_NUMBER("epochs", "N", PS_OPT_U32, AT(epochs), 1, 1e6,
                  "passes over the ratings (default 30; als 15)"),
    PS_OPT_NUMBER("blocks", "N", PS_OPT_U32, AT(blocks), 1, 1e6,
                  "sgd: parts of an epoch, each a clock (default 20)"),
    PS_OPT_NUMBER("step", "F", PS_OPT_REAL, AT(step), 1e-9, 1, "sgd: learning rate (default 0.01)"),
    PS_OPT_NUMBER("decay", "F", PS_OPT_REAL, AT(decay), 0, 1e3,
                  "sgd: the step of epoch e is step / (1 + decay e) (default 0.05)"),
    PS_OPT_NUMBER("lambda", "F", PS_OPT_REAL, AT(lambda), 0, 1e6,
                  "penalty on squares, for each rating (sgd 0.05, als 0.17)"),
    PS_OPT_ROW("seed", "N", PS_OPT_U64, AT(seed),
               "of the first factors and of the order of the ratings (default 0)"),
    EX_JOB_OPTIONS(mf_options_t, job),
    PS_OPT_END,
};
#undef AT

static const ex_command_t COMMAND = {
    "psd-mf - matrix factorisation on a psd parameter server\n"
    "\n"
    "Examples:\n"
    "  psd-mf --train ratings.csv.gz\n"
    "      one worker, gradient steps, psd on tcp://127.0.0.1:7171\n"
    "  pscli run -n 4 -- psd-mf --train ratings.csv.gz --method als --save "
    "mf.txt\n"
    "      four workers, least squares\n"
    "  psd-mf --predict mf.txt --test new.csv --scores scores.txt\n"
    "      uses a saved model; needs no psd\n",
    OPTIONS,
};

static psd_status_t check(const mf_options_t *self, psd_error_t *err)
{
    if (self->predict == NULL && self->train == NULL) {
        return psd_error_set(err, PSD_USAGE, "--train FILE is missing");
    }
    if ((self->predict == NULL) != (self->test == NULL)) {
        return psd_error_set(err, PSD_USAGE, "--predict and --test need each other");
    }
    if (self->scores != NULL && self->predict == NULL) {
        return psd_error_set(err, PSD_USAGE, "--scores needs --predict FILE");
    }
    if (self->test_every == 1) {
        return psd_error_set(err, PSD_USAGE, "--test-every 1 leaves no ratings to train");
    }
    return ex_options_check_table(self->table, ".users", err);
}

psd_status_t mf_options_read(mf_options_t *self, int argc, char **argv, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    bool als = false;

    *self = (mf_options_t){
        .table = "mf",
        .blocks = 20,
        .test_every = 10,
        .step = 0.01,
        .decay = 0.05,
        .lambda = NAN,
        .job = EX_JOB_DEFAULTS,
    };
    rc = ex_options_read(&COMMAND, self, argc, argv, &self->help, err);
    als = self->method == MF_ALS;
    if (self->factors == 0) {
        self->factors = als ? 8 : 16;
    }
    if (self->epochs == 0) {
        self->epochs = als ? 15 : 30;
    }
    if (isnan(self->lambda)) {
        self->lambda = als ? 0.17 : 0.05;
    }
    if (rc != PSD_OK || self->help) {
        return rc;
    }
    rc = check(self, err);
    return rc == PSD_OK ? ex_inputs_check(&COMMAND, self, err) : rc;
}

void mf_help(void)
{
    ex_options_help(&COMMAND);
}
