/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include "options.h"

#include <stddef.h>

#include "../common/program/inputs.h"

#define AT(member) offsetof(fm_options_t, member)
static const ps_opt_t OPTIONS[] = {
    {.kind = PS_OPT_HEADING,
     .help = "Data (files, directories, patterns, plain, .gz or .zst; labels 0 "
             "1 -1 +1):"},
    PS_OPT_ROW("train", "FILE", PS_OPT_INPUTS, AT(train),
               "training data; each worker takes its share"),
    PS_OPT_ROW("valid", "FILE", PS_OPT_INPUTS, AT(valid),
               "validation data, measured after each epoch by all workers; training stops when the "
               "loss does not improve, and the model is that of the best epoch"),
    PS_OPT_ROW("test", "FILE", PS_OPT_INPUTS, AT(test),
               "test data; worker 0 measures it at the end"),
    EX_LOAD_OPTIONS(fm_options_t, data),
    {.kind = PS_OPT_HEADING, .help = "Model:"},
    PS_OPT_ROW("table", "NAME", PS_OPT_TEXT, AT(table),
               "NAME, NAME.counts and NAME.factors (default fm); created if missing, else trained "
               "further, also after a restore of a checkpoint"),
    PS_OPT_NUMBER("dim", "N", PS_OPT_U32, AT(dim), 1, FM_DIM_MAX,
                  "numbers in an embedding (default 8)"),
    PS_OPT_NUMBER("embed-after", "N", PS_OPT_U32, AT(embed_after), 0, 4e9,
                  "a feature gets an embedding when it was in N samples and its weight is not 0 "
                  "(default 10)"),
    PS_OPT_NUMBER("init", "F", PS_OPT_REAL, AT(init), 1e-9, 1e3,
                  "first embeddings lie within F of 0 (default 0.01)"),
    PS_OPT_ROW("save", "FILE", PS_OPT_OUTPUT, AT(save), "writes the model"),
    PS_OPT_ROW("predict", "FILE", PS_OPT_INPUT, AT(predict),
               "reads such a model instead of training one"),
    PS_OPT_ROW("scores", "FILE", PS_OPT_OUTPUT_HERE, AT(scores),
               "writes the probability of each test sample"),
    {.kind = PS_OPT_HEADING, .help = "Weights (FTRL) and embeddings (AdaGrad):"},
    PS_OPT_NUMBER("alpha", "F", PS_OPT_REAL, AT(alpha), 1e-9, 1e9,
                  "the step of weights (default 0.05)"),
    PS_OPT_NUMBER("beta", "F", PS_OPT_REAL, AT(beta), 0, 1e9,
                  "a greater value makes smaller first steps (default 1)"),
    PS_OPT_NUMBER("l1", "F", PS_OPT_REAL, AT(l1), 0, 1e9,
                  "penalty on |w|, which keeps weights at 0 (default 1)"),
    PS_OPT_NUMBER("l2", "F", PS_OPT_REAL, AT(l2), 0, 1e9, "penalty on w^2 / 2 (default 1)"),
    PS_OPT_NUMBER("factor-alpha", "F", PS_OPT_REAL, AT(factor_alpha), 1e-9, 1e9,
                  "the step of embeddings (default 0.01)"),
    PS_OPT_NUMBER("factor-beta", "F", PS_OPT_REAL, AT(factor_beta), 0, 1e9,
                  "a greater value makes smaller first steps (default 1)"),
    PS_OPT_NUMBER("factor-l2", "F", PS_OPT_REAL, AT(factor_l2), 0, 1e9,
                  "penalty on |v|^2 / 2 in each minibatch that has the feature: frequent features "
                  "get more penalty (default 0.01)"),
    {.kind = PS_OPT_HEADING, .help = "Training:"},
    PS_OPT_NUMBER("epochs", "N", PS_OPT_U32, AT(epochs), 1, 1e6,
                  "passes over the data (default 20)"),
    PS_OPT_NUMBER("patience", "N", PS_OPT_U32, AT(patience), 1, 1e6,
                  "with --valid: stops after N epochs without improvement (default 2)"),
    PS_OPT_NUMBER("minibatch", "N", PS_OPT_U32, AT(minibatch), 1, 1e9,
                  "samples of a worker in one step, which is a clock (default 100)"),
    PS_OPT_ROW("seed", "N", PS_OPT_U64, AT(seed),
               "of the order of the samples and of the first embeddings (default 0)"),
    PS_OPT_NUMBER("report", "SECONDS", PS_OPT_REAL, AT(report_s), 0, 86400,
                  "between progress lines (default 1); 0: every epoch"),
    EX_JOB_OPTIONS(fm_options_t, job),
    PS_OPT_END,
};
#undef AT

static const ex_command_t COMMAND = {
    "psd-fm - factorisation machine on a psd parameter server\n"
    "\n"
    "Examples:\n"
    "  psd-fm --train a.libsvm --test b.libsvm\n"
    "      one worker, against the psd on tcp://127.0.0.1:7171\n"
    "  pscli run -n 4 -- psd-fm --train a.libsvm --valid v.libsvm --save "
    "fm.txt\n"
    "      four workers; stops when the loss on v.libsvm does not improve\n"
    "  psd-fm --predict fm.txt --test b.libsvm --scores p.txt\n"
    "      uses a saved model; needs no psd\n",
    OPTIONS,
};

static psd_status_t check(const fm_options_t *self, psd_error_t *err)
{
    psd_status_t rc = ex_options_check_table(self->table, ".factors", err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (self->predict != NULL && self->valid != NULL) {
        return psd_error_set(err, PSD_USAGE, "--valid needs --train FILE");
    }
    return ex_options_check_files(self->train, self->test, self->save, self->predict, self->scores,
                                  err);
}

psd_status_t fm_options_read(fm_options_t *self, int argc, char **argv, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *self = (fm_options_t){
        .table = "fm",
        .dim = 8,
        .embed_after = 10,
        .init = 0.01,
        .alpha = 0.05,
        .beta = 1,
        .l1 = 1,
        .l2 = 1,
        .factor_alpha = 0.01,
        .factor_beta = 1,
        .factor_l2 = 0.01,
        .epochs = 20,
        .patience = 2,
        .minibatch = 100,
        .report_s = 1,
        .data = EX_LOAD_DEFAULTS,
        .job = EX_JOB_DEFAULTS,
    };
    rc = ex_options_read(&COMMAND, self, argc, argv, &self->help, err);
    if (rc != PSD_OK || self->help) {
        return rc;
    }
    rc = check(self, err);
    return rc == PSD_OK ? ex_inputs_check(&COMMAND, self, err) : rc;
}

void fm_help(void)
{
    ex_options_help(&COMMAND);
}
