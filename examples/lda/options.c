/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include "options.h"

#include <stddef.h>

#include "../common/program/inputs.h"

#define AT(member) offsetof(lda_options_t, member)
static const ps_opt_t OPTIONS[] = {
    {.kind = PS_OPT_HEADING,
     .help = "Data (bags of words: libsvm, lda-c, uci ...; labels are "
             "not used; plain, .gz or .zst):"},
    PS_OPT_ROW("train", "FILE", PS_OPT_INPUTS, AT(train),
               "documents; each worker reads all and keeps its part"),
    PS_OPT_ROW("format", "NAME", PS_OPT_TEXT, AT(format),
               "format of --train and --test, as pscli data detect names it (default: detected)"),
    PS_OPT_NUMBER("test-every", "N", PS_OPT_U32, AT(test_every), 0, 1e6,
                  "holds out every N-th document and measures it at the end (default 5; 0: none; "
                  "with --infer 0: all are measured)"),
    {.kind = PS_OPT_HEADING, .help = "Model:"},
    PS_OPT_NUMBER("topics", "K", PS_OPT_U32, AT(n_topics), 2, 1048576, "(default 100)"),
    PS_OPT_NUMBER("alpha", "F", PS_OPT_REAL, AT(alpha), 1e-6, 1e3,
                  "prior of each topic in a document (default 0.1)"),
    PS_OPT_NUMBER("beta", "F", PS_OPT_REAL, AT(beta), 1e-6, 1e3,
                  "prior of each word in a topic (default 0.01)"),
    PS_OPT_ROW(
        "table", "NAME", PS_OPT_TEXT, AT(table),
        "tables NAME.words, NAME.topics and NAME.clocks (default lda); recreated at each start"),
    PS_OPT_ROW("save", "FILE", PS_OPT_OUTPUT, AT(save), "writes the model"),
    PS_OPT_ROW("warm", "FILE", PS_OPT_TEXT, AT(warm),
               "a saved model whose words give the first topics; --save may overwrite it"),
    {.kind = PS_OPT_HEADING, .help = "Training:"},
    PS_OPT_NUMBER("sweeps", "N", PS_OPT_U32, AT(sweeps), 0, 1e9, "over all tokens (default 100)"),
    PS_OPT_NUMBER("mh-steps", "N", PS_OPT_U32, AT(n_steps), 1, 1000,
                  "proposals for each token: N of its word and N of its document (default 2)"),
    PS_OPT_NUMBER("blocks", "N", PS_OPT_U32, AT(blocks), 1, 65536,
                  "parts of all documents, each sampled in one clock by its worker "
                  "(default: one for each worker)"),
    PS_OPT_ROW("slice-bytes", "N", PS_OPT_U64, AT(slice_bytes),
               "memory for counts of words; when they need more, a block is sampled by ranges of "
               "words, one by one (default 0: no limit)"),
    PS_OPT_ROW("state", "DIR", PS_OPT_TEXT, AT(state),
               "keeps blocks there, not in memory; a restarted job continues from them"),
    PS_OPT_NUMBER("eval-every", "N", PS_OPT_U32, AT(eval_every), 0, 1e9,
                  "sweeps between measurements (default 10; 0: at the end)"),
    PS_OPT_ROW("seed", "N", PS_OPT_U64, AT(seed), "(default 0)"),
    {.kind = PS_OPT_HEADING, .help = "A saved model (needs no psd):"},
    PS_OPT_ROW("infer", "FILE", PS_OPT_INPUT, AT(infer), "reads a model instead of training one"),
    PS_OPT_ROW("test", "FILE", PS_OPT_INPUTS, AT(test),
               "with --infer: documents to measure: every other token gives the topics that "
               "predict the rest"),
    PS_OPT_ROW("document-topics", "FILE", PS_OPT_OUTPUT_HERE, AT(document_topics),
               "with --test: writes each document's topics, of all its tokens: a line "
               "topic:share ..."),
    PS_OPT_NUMBER("infer-sweeps", "N", PS_OPT_U32, AT(burn), 2, 1e6,
                  "sweeps over each measured document; the second half counts (default 100)"),
    PS_OPT_NUMBER("top", "N", PS_OPT_U32, AT(top), 1, 1e6,
                  "with --infer: prints each topic's N most frequent words"),
    PS_OPT_ROW("names", "FILE", PS_OPT_INPUT, AT(names),
               "with --top: a word a line, the first one of the lowest id"),
    EX_JOB_OPTIONS(lda_options_t, job),
    PS_OPT_END,
};
#undef AT

static const ex_command_t COMMAND = {
    "psd-lda - topics of documents, by LightLDA on a psd parameter server\n"
    "\n"
    "Examples:\n"
    "  psd-lda --train docs.gz --topics 50 --sweeps 200 --save model.txt\n"
    "      one worker, psd on tcp://127.0.0.1:7171\n"
    "  pscli run -n 4 -- psd-lda --train docs.gz --blocks 16 --state dir\n"
    "      four workers; the same command continues after a kill\n"
    "  psd-lda --infer model.txt --test new.gz --document-topics out.txt\n"
    "  psd-lda --infer model.txt --top 10 --names vocabulary.txt\n",
    OPTIONS,
};

static psd_status_t check(const lda_options_t *self, psd_error_t *err)
{
    if ((self->train == NULL) == (self->infer == NULL)) {
        return psd_error_set(err, PSD_USAGE, "one of --train FILE and --infer FILE is needed");
    }
    if (self->infer == NULL && (self->test != NULL || self->top > 0 || self->names != NULL ||
                                self->document_topics != NULL)) {
        return psd_error_set(err, PSD_USAGE,
                             "--test, --document-topics, --top and --names need --infer FILE");
    }
    if (self->infer != NULL && self->test == NULL && self->top == 0) {
        return psd_error_set(err, PSD_USAGE, "--infer needs --test FILE or --top N");
    }
    if (self->document_topics != NULL && self->test == NULL) {
        return psd_error_set(err, PSD_USAGE, "--document-topics needs --test FILE");
    }
    if (self->names != NULL && self->top == 0) {
        return psd_error_set(err, PSD_USAGE, "--names needs --top N");
    }
    return self->train != NULL && self->test_every == 1
               ? psd_error_set(err, PSD_USAGE, "--test-every 1 leaves no documents to train")
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
