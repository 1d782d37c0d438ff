/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include "options.h"

#include <stddef.h>
#include <string.h>

#include "../common/inputs.h"
#include "../common/number.h"

#define AT(member) offsetof(bcd_options_t, member)
static const ex_option_t OPTIONS[] = {
    {.kind = EX_HEADING,
     .help = "Data (files, directories, patterns, plain, .gz or .zst; labels 0 "
             "1 -1 +1):"},
    {"train", "FILE", EX_INPUTS, AT(train), 0, 0, "of which each worker takes its share"},
    {"test", "FILE", EX_INPUTS, AT(test), 0, 0, "measured at the end, by worker 0"},
    EX_LOAD_OPTIONS(bcd_options_t, data),
    {.kind = EX_HEADING, .help = "Model:"},
    {"table", "NAME", EX_TEXT, AT(table), 0, 0,
     "of the weights, row = key (default bcd); made when it is not there, else "
     "trained further"},
    {"c", "F", EX_REAL, AT(c), 1e-9, 1e9,
     "the objective is F = C sum log(1+exp(-y w.x)) + |w|_1 (default 1)"},
    {"save", "FILE", EX_OUTPUT, AT(save), 0, 0, "writes the weights that are not zero: key value"},
    {"predict", "FILE", EX_INPUT, AT(predict), 0, 0, "reads such a model instead of training one"},
    {"scores", "FILE", EX_OUTPUT_HERE, AT(scores), 0, 0,
     "writes the probability of each test example"},
    {.kind = EX_HEADING, .help = "Training:"},
    {"eta", "F", EX_REAL, AT(eta), 1e-6, 1,
     "part of each step that is made (default 1); less, where F does not fall"},
    {"block-ratio", "F", EX_REAL, AT(block_ratio), 1e-6, 1e6,
     "blocks of a group of features, for each entry that a sample has in it "
     "(default 4)"},
    {"order", "random|fixed", EX_CHOICE, AT(order), 0, 0,
     "of the blocks in a pass (default random)"},
    {"prior", "GROUP,...", EX_TEXT, AT(prior), 0, 0,
     "groups of features that are trained alone and first"},
    {"prior-passes", "N", EX_U32, AT(prior_passes), 1, 1e6,
     "passes over them, without delay (default 5)"},
    {"delay", "N", EX_U32, AT(delay), 0, BCD_DELAY_MAX,
     "blocks under way: a step misses the N before it, and nothing is waited "
     "for (default 0)"},
    {"passes", "N", EX_U32, AT(passes), 1, 1e5, "over all features, at most (default 1000)"},
    {"epsilon", "F", EX_REAL, AT(epsilon), 0, 1,
     "F that changes by less, relatively, ends the training: once makes all "
     "weights active again, twice in a row stops (default 1e-5)"},
    {"delta-init", "F", EX_REAL, AT(delta_init), 1e-6, 1e6,
     "greatest step of a weight at first (default 1)"},
    {"delta-max", "F", EX_REAL, AT(delta_max), 1e-6, 1e6, "and ever (default 5)"},
    {"kkt", "yes|no", EX_CHOICE, AT(kkt), 0, 0,
     "weights that are zero and will stay so are skipped (default yes)"},
    {"kkt-ratio", "F", EX_REAL, AT(kkt_ratio), 0, 1e9,
     "the greater, the fewer are skipped (default 10)"},
    {"seed", "N", EX_U64, AT(seed), 0, 0, "of the order (default 0)"},
    {.kind = EX_HEADING, .help = "Job:"},
    EX_BSP_OPTIONS(bcd_options_t, job),
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
    "      four workers, of which each has two further blocks under way\n"
    "  psd-bcd --predict model.txt --test b.libsvm --scores p.txt\n"
    "      uses a saved model; needs no psd\n",
    OPTIONS,
    EX_COUNT(OPTIONS),
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
                                 "--prior \"%s\": \"%s\" is no group; groups "
                                 "are whole numbers",
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
    self->job.max_delay = 0; /* the delay is in how many blocks are under way */
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
