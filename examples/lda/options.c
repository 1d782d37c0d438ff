/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include "options.h"

#include <stddef.h>

#include "../common/inputs.h"

#define AT(member) offsetof(lda_options_t, member)
static const ex_option_t OPTIONS[] = {
    {.kind = EX_HEADING,
     .help = "Data (bags of words: libsvm, lda-c, uci ...; labels are "
             "not used; plain, .gz or .zst):"},
    {"train", "FILE", EX_INPUTS, AT(train), 0, 0,
     "documents; each worker reads all and keeps its part"},
    {"format", "NAME", EX_TEXT, AT(format), 0, 0,
     "of --train and --test, as pscli data detect calls it (default: looks)"},
    {"test-every", "N", EX_U32, AT(test_every), 0, 1e6,
     "every N-th document is not learnt but measured at the end (default 5; "
     "0: none; with --infer 0: all are measured)"},
    {.kind = EX_HEADING, .help = "Model:"},
    {"topics", "K", EX_U32, AT(n_topics), 2, 1048576, "(default 100)"},
    {"alpha", "F", EX_REAL, AT(alpha), 1e-6, 1e3,
     "prior of each topic in a document (default 0.1)"},
    {"beta", "F", EX_REAL, AT(beta), 1e-6, 1e3, "prior of each word in a topic (default 0.01)"},
    {"table", "NAME", EX_TEXT, AT(table), 0, 0,
     "NAME.words, NAME.topics and NAME.clocks (default lda); made anew"},
    {"save", "FILE", EX_OUTPUT, AT(save), 0, 0, "writes the model"},
    {"warm", "FILE", EX_TEXT, AT(warm), 0, 0,
     "a saved model, by whose words the first topics are drawn; --save may "
     "write over it"},
    {.kind = EX_HEADING, .help = "Training:"},
    {"sweeps", "N", EX_U32, AT(sweeps), 0, 1e9, "over all tokens (default 100)"},
    {"mh-steps", "N", EX_U32, AT(n_steps), 1, 1000,
     "for each token: a proposal of its word and one of its document each "
     "(default 2)"},
    {"blocks", "N", EX_U32, AT(blocks), 1, 65536,
     "parts of all documents, each sampled in one clock by its worker "
     "(default: one for each worker)"},
    {"slice-bytes", "N", EX_U64, AT(slice_bytes), 0, 0,
     "memory for counts of words; where they need more, a block is sampled by "
     "ranges of words, one after the other (default 0: without bound)"},
    {"state", "DIR", EX_TEXT, AT(state), 0, 0,
     "blocks are kept there, not in memory; a job that is started again goes "
     "on from them"},
    {"eval-every", "N", EX_U32, AT(eval_every), 0, 1e9,
     "sweeps from one measuring to the next (default 10; 0: at the end)"},
    {"seed", "N", EX_U64, AT(seed), 0, 0, "(default 0)"},
    {.kind = EX_HEADING, .help = "A saved model (needs no psd):"},
    {"infer", "FILE", EX_INPUT, AT(infer), 0, 0, "reads a model instead of training one"},
    {"test", "FILE", EX_INPUTS, AT(test), 0, 0,
     "with --infer: documents that are measured: every other token gives the "
     "topics by which the rest is predicted"},
    {"document-topics", "FILE", EX_OUTPUT_HERE, AT(document_topics), 0, 0,
     "with --test: writes each document's topics, of all its tokens: a line "
     "topic:share ..."},
    {"infer-sweeps", "N", EX_U32, AT(burn), 2, 1e6,
     "over each document that is measured; the second half counts (default "
     "100)"},
    {"top", "N", EX_U32, AT(top), 1, 1e6,
     "with --infer: prints each topic's N most frequent words"},
    {"names", "FILE", EX_INPUT, AT(names), 0, 0,
     "with --top: a word a line, the first one of the lowest id"},
    EX_JOB_OPTIONS(lda_options_t, job),
};
#undef AT

static const ex_command_t COMMAND = {
    "psd-lda - topics of documents, by LightLDA on a psd parameter server\n"
    "\n"
    "Examples:\n"
    "  psd-lda --train docs.gz --topics 50 --sweeps 200 --save model.txt\n"
    "      one worker, psd on tcp://127.0.0.1:7171\n"
    "  pscli run -n 4 -- psd-lda --train docs.gz --blocks 16 --state dir\n"
    "      four workers; the same again goes on where it was killed\n"
    "  psd-lda --infer model.txt --test new.gz --document-topics out.txt\n"
    "  psd-lda --infer model.txt --top 10 --names vocabulary.txt\n",
    OPTIONS,
    EX_COUNT(OPTIONS),
};

static psd_status_t check(const lda_options_t *self, psd_error_t *err)
{
    if ((self->train == NULL) == (self->infer == NULL)) {
        return psd_error_set(err, PSD_USAGE, "one of --train FILE and --infer FILE is wanted");
    }
    if (self->infer == NULL && (self->test != NULL || self->top > 0 || self->names != NULL ||
                                self->document_topics != NULL)) {
        return psd_error_set(err, PSD_USAGE,
                             "--test, --document-topics, --top and --names "
                             "want --infer FILE");
    }
    if (self->infer != NULL && self->test == NULL && self->top == 0) {
        return psd_error_set(err, PSD_USAGE, "--infer wants --test FILE or --top N");
    }
    if (self->document_topics != NULL && self->test == NULL) {
        return psd_error_set(err, PSD_USAGE, "--document-topics wants --test FILE");
    }
    if (self->names != NULL && self->top == 0) {
        return psd_error_set(err, PSD_USAGE, "--names wants --top N");
    }
    return self->train != NULL && self->test_every == 1
               ? psd_error_set(err, PSD_USAGE, "--test-every 1 leaves nothing to learn")
               : PSD_OK;
}

psd_status_t lda_options_read(lda_options_t *self, int argc, char **argv, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *self = (lda_options_t){
        .test_every = EX_NOT_CHOSEN,
        .n_topics = 100,
        .alpha = 0.1,
        .beta = 0.01,
        .table = "lda",
        .sweeps = 100,
        .n_steps = 2,
        .eval_every = 10,
        .burn = 100,
        .job = EX_JOB_DEFAULTS,
    };
    rc = ex_options_read(&COMMAND, self, argc, argv, &self->help, err);
    if (self->test_every == EX_NOT_CHOSEN) {
        self->test_every = self->infer == NULL ? 5 : 0;
    }
    if (rc != PSD_OK || self->help) {
        return rc;
    }
    rc = check(self, err);
    return rc == PSD_OK ? ex_inputs_check(&COMMAND, self, err) : rc;
}

void lda_help(void)
{
    ex_options_help(&COMMAND);
}
