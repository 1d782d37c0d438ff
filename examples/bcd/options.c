/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include "options.h"

#include <stddef.h>
#include <string.h>

#include "../common/program/inputs.h"
#include "../common/program/number.h"

#define AT(member) offsetof(bcd_options_t, member)
static const ps_opt_t OPTIONS[] = {
    {.kind = PS_OPT_HEADING,
     .help = "Data (files, directories, patterns, plain, .gz or .zst; labels 0 "
             "1 -1 +1):"},
    PS_OPT_ROW("train", "FILE", PS_OPT_INPUTS, AT(train),
               "training data; each worker takes its share"),
    PS_OPT_ROW("test", "FILE", PS_OPT_INPUTS, AT(test),
               "test data; worker 0 measures it at the end"),
    EX_LOAD_OPTIONS(bcd_options_t, data),
    {.kind = PS_OPT_HEADING, .help = "Model:"},
    PS_OPT_ROW(
        "table", "NAME", PS_OPT_TEXT, AT(table),
        "table of the weights, row = key (default bcd); created if missing, else trained further"),
    PS_OPT_NUMBER("c", "F", PS_OPT_REAL, AT(c), 1e-9, 1e9,
                  "the objective is F = C sum log(1+exp(-y w.x)) + |w|_1 (default 1)"),
    PS_OPT_ROW("save", "FILE", PS_OPT_OUTPUT, AT(save), "writes the nonzero weights: key value"),
    PS_OPT_ROW("predict", "FILE", PS_OPT_INPUT, AT(predict),
               "reads such a model instead of training one"),
    PS_OPT_ROW("scores", "FILE", PS_OPT_OUTPUT_HERE, AT(scores),
               "writes the probability of each test example"),
    {.kind = PS_OPT_HEADING, .help = "Training:"},
    PS_OPT_NUMBER("eta", "F", PS_OPT_REAL, AT(eta), 1e-6, 1,
                  "fraction of each step that is made (default 1); smaller where F does not fall"),
    PS_OPT_NUMBER("block-ratio", "F", PS_OPT_REAL, AT(block_ratio), 1e-6, 1e6,
                  "blocks of a group of features, for each entry that a sample has in it "
                  "(default 4)"),
    PS_OPT_ROW("order", "random|fixed", PS_OPT_CHOICE, AT(order),
               "of the blocks in a pass (default random)"),
    PS_OPT_ROW("prior", "GROUP,...", PS_OPT_TEXT, AT(prior),
               "groups of features that are trained first, each alone"),
    PS_OPT_NUMBER("prior-passes", "N", PS_OPT_U32, AT(prior_passes), 1, 1e6,
                  "passes over them, without delay (default 5)"),
    PS_OPT_NUMBER("delay", "N", PS_OPT_U32, AT(delay), 0, BCD_DELAY_MAX,
                  "blocks in flight: a step misses the N before it and waits for none (default 0)"),
    PS_OPT_NUMBER("passes", "N", PS_OPT_U32, AT(passes), 1, 1e5,
                  "over all features, at most (default 1000)"),
    PS_OPT_NUMBER("epsilon", "F", PS_OPT_REAL, AT(epsilon), 0, 1,
                  "relative change of F that ends the training: once makes all weights active "
                  "again, twice in a row stops (default 1e-5)"),
    PS_OPT_NUMBER("delta-init", "F", PS_OPT_REAL, AT(delta_init), 1e-6, 1e6,
                  "greatest step of a weight at first (default 1)"),
    PS_OPT_NUMBER("delta-max", "F", PS_OPT_REAL, AT(delta_max), 1e-6, 1e6, "and ever (default 5)"),
    PS_OPT_ROW("kkt", "yes|no", PS_OPT_CHOICE, AT(kkt),
               "skips weights that are zero and will stay zero (default yes)"),
    PS_OPT_NUMBER("kkt-ratio", "F", PS_OPT_REAL, AT(kkt_ratio), 0, 1e9,
                  "a greater value skips fewer weights (default 10)"),
    PS_OPT_ROW("seed", "N", PS_OPT_U64, AT(seed), "of the order (default 0)"),
    {.kind = PS_OPT_HEADING, .help = "Job:"},
    EX_BSP_OPTIONS(bcd_options_t, job),
    PS_OPT_END,
};
#undef AT

static const ex_command_t COMMAND = {
    "psd-bcd - logistic regression with an L1 penalty, by delayed block "
    "proximal\ngradient, on a psd parameter server\n"
    "\n"
    "Examples:\n"
    "  psd-bcd --train a.libsvm --test b.libsvm\n"
    "      one worker, against the psd on tcp://127.0.0.1:7171\n"
    "  pscli run -n 4 -- psd-bcd --train a.libsvm --delay 2 --save model.txt\n"
    "      four workers, each with two more blocks in flight\n"
    "  psd-bcd --predict model.txt --test b.libsvm --scores p.txt\n"
    "      uses a saved model; needs no psd\n",
    OPTIONS,
};

static psd_status_t read_prior(bcd_options_t *self, psd_error_t *err)
{
    for (const char *text = self->prior; text != NULL;) {
        char word[24] = "";
        size_t length = strcspn(text, ",");

        if (self->n_prior == BCD_PRIOR_MAX || length >= sizeof(word)) {
            return psd_error_set(err, PSD_USAGE,
                                 "--prior \"%s\" is not a list of at most %d "
                                 "groups",
                                 self->prior, BCD_PRIOR_MAX);
        }
        memcpy(word, text, length);
        if (!ex_number_i64(word, &self->prior_groups[self->n_prior++])) {
            return psd_error_set(err, PSD_USAGE,
                                 "--prior \"%s\": \"%s\" is not a group; groups are whole numbers",
                                 self->prior, word);
        }
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    return PSD_OK;
}

static psd_status_t check_paths(const bcd_options_t *self, psd_error_t *err)
{
    psd_status_t rc = ex_options_check_table(self->table, "", err);

    if (rc != PSD_OK) {
        return rc;
    }
    return ex_options_check_files(self->train, self->test, self->save, self->predict, self->scores,
                                  err);
}

psd_status_t bcd_options_read(bcd_options_t *self, int argc, char **argv, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *self = (bcd_options_t){
        .table = "bcd",
        .c = 1,
        .eta = 1,
        .block_ratio = 4,
        .passes = 1000,
        .epsilon = 1e-5,
        .delta_init = 1,
        .delta_max = 5,
        .kkt_ratio = 10,
        .prior_passes = 5,
        .data = EX_LOAD_DEFAULTS,
        .job = EX_JOB_DEFAULTS,
    };
    self->job.max_delay = 0; /* the number of blocks in flight is the delay */
    rc = ex_options_read(&COMMAND, self, argc, argv, &self->help, err);
    if (rc != PSD_OK || self->help) {
        return rc;
    }
    rc = check_paths(self, err);
    if (rc == PSD_OK) {
        rc = read_prior(self, err);
    }
    return rc == PSD_OK ? ex_inputs_check(&COMMAND, self, err) : rc;
}

void bcd_help(void)
{
    ex_options_help(&COMMAND);
}
