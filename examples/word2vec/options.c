/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include "options.h"

#include <inttypes.h>
#include <stddef.h>

#include "../common/program/inputs.h"
#include "../common/program/options.h"

#define AT(member) offsetof(wv_options_t, member)
static const ps_opt_t OPTIONS[] = {
    {.kind = PS_OPT_HEADING, .help = "Data (words between blanks, a line for a paragraph):"},
    PS_OPT_ROW("train", "FILE", PS_OPT_INPUT, AT(train),
               "text; worker i of n takes the i-th part of it"),
    PS_OPT_ROW("min-count", "N", PS_OPT_U64, AT(min_count),
               "drops words that occur less often (default 5)"),
    PS_OPT_NUMBER("sample", "F", PS_OPT_REAL, AT(sample), 0, 1,
                  "subsamples words with a greater share of the text (default 1e-3; 0: never)"),
    PS_OPT_ROW("save-words", "FILE", PS_OPT_OUTPUT_HERE, AT(save_words),
               "writes the vocabulary: word count"),
    {.kind = PS_OPT_HEADING, .help = "Model:"},
    PS_OPT_ROW(
        "model", "skip-gram|cbow", PS_OPT_CHOICE, AT(model),
        "predicts the words around a word, or (cbow) the word from them (default skip-gram)"),
    PS_OPT_NUMBER("size", "N", PS_OPT_U32, AT(size), 1, 10000, "numbers in a vector (default 100)"),
    PS_OPT_NUMBER("window", "N", PS_OPT_U32, AT(window), 1, 100,
                  "words on either side, at most (default 5)"),
    PS_OPT_NUMBER("negative", "N", PS_OPT_U32, AT(negative), 0, 100,
                  "negative samples for each pair (default 5; 0: none)"),
    PS_OPT_ROW("hs", "", PS_OPT_SWITCH, AT(hs),
               "hierarchical softmax; with --negative 0, only that"),
    PS_OPT_NUMBER("senses", "N", PS_OPT_U32, AT(senses), 1, 50,
                  "vectors of a frequent word, one for each meaning (with skip-gram; default 1)"),
    PS_OPT_NUMBER("sense-share", "F", PS_OPT_REAL, AT(sense_share), 0, 1,
                  "share of the most frequent words that have several (default 0.1)"),
    PS_OPT_ROW("save-senses", "FILE", PS_OPT_OUTPUT_HERE, AT(save_senses),
               "writes word, name and share of each of their senses"),
    PS_OPT_ROW(
        "table", "NAME", PS_OPT_TEXT, AT(table),
        "tables NAME.in, NAME.out, NAME.count, recreated without --resume (default word2vec)"),
    PS_OPT_ROW("resume", "", PS_OPT_SWITCH, AT(resume),
               "continues from the tables of an earlier run, with the same number of workers"),
    {.kind = PS_OPT_HEADING, .help = "Training:"},
    PS_OPT_NUMBER("epochs", "N", PS_OPT_U32, AT(epochs), 1, 1e6,
                  "passes over the text (default 5)"),
    PS_OPT_NUMBER("alpha", "F", PS_OPT_REAL, AT(alpha), 1e-9, 10,
                  "first learning rate, which falls with the words that all workers have read "
                  "(default 0.025, with cbow 0.05)"),
    PS_OPT_ROW("adagrad", "", PS_OPT_SWITCH, AT(adagrad),
               "a learning rate for each number of a vector, instead of the falling one"),
    PS_OPT_NUMBER("block", "N", PS_OPT_U32, AT(block), WV_BLOCK_LEAST, 1e8,
                  "words of a block, after which changes are pushed (default 1000; with several "
                  "workers at most a 40th of a worker's part, above 1000 a 400th)"),
    PS_OPT_NUMBER("trainers", "N", PS_OPT_U32, AT(trainers), 1, 256,
                  "threads of a worker (default 1)"),
    PS_OPT_ROW(
        "no-pipeline", "", PS_OPT_SWITCH, AT(no_pipeline),
        "pulls the vectors of a block when the block before is done, not while it is trained"),
    PS_OPT_ROW("seed", "N", PS_OPT_U64, AT(seed), "seed of all random numbers (default 1)"),
    PS_OPT_NUMBER("report", "SECONDS", PS_OPT_REAL, AT(report_s), 0, 86400,
                  "between progress lines (default 5)"),
    {.kind = PS_OPT_HEADING, .help = "Vectors:"},
    PS_OPT_ROW("save", "FILE", PS_OPT_OUTPUT, AT(save),
               "writes them as word2vec does: count and size, then a word a line"),
    PS_OPT_ROW("binary", "", PS_OPT_SWITCH, AT(binary), "... as floats, not as text"),
    PS_OPT_ROW("vectors", "FILE", PS_OPT_INPUT, AT(vectors),
               "reads such a file instead of training; psd is not needed"),
    PS_OPT_ROW("pairs", "FILE", PS_OPT_INPUT, AT(pairs),
               "lines of word, word, score between tabs: Spearman's rho of cosine and "
               "score"),
    PS_OPT_ROW("questions", "FILE", PS_OPT_INPUT, AT(questions),
               "lines of four words, a : b as c : d: prints the share of d found"),
    PS_OPT_ROW("near", "WORD", PS_OPT_TEXT, AT(near), "prints its nearest words"),
    EX_JOB_OPTIONS(wv_options_t, job),
    PS_OPT_END,
};
#undef AT

static const ex_command_t COMMAND = {
    "psd-word2vec - vectors of words, trained on a psd parameter server\n"
    "\n"
    "Examples:\n"
    "  psd-word2vec --train corpus.txt --save vectors.txt\n"
    "      one worker, skip-gram, against the psd on tcp://127.0.0.1:7171\n"
    "  pscli run -n 4 -- psd-word2vec --train corpus.txt --max-delay 2 "
    "--save vectors.txt\n"
    "      four workers, none more than two blocks ahead of another\n"
    "  psd-word2vec --vectors vectors.txt --near king",
    OPTIONS,
};

static psd_status_t check(const wv_options_t *self, psd_error_t *err)
{
    if ((self->train == NULL) == (self->vectors == NULL)) {
        return psd_error_set(err, PSD_USAGE,
                             "%s; allowed: one of --train FILE and --vectors "
                             "FILE",
                             self->train == NULL ? "none is given" : "both are given");
    }
    if (self->negative == 0 && !self->hs) {
        return psd_error_set(err, PSD_USAGE,
                             "--negative 0 without --hs; allowed: at least one of them");
    }
    if (self->senses > 1 && self->model != WV_SKIP_GRAM) {
        return psd_error_set(err, PSD_USAGE,
                             "--senses %" PRIu32 " with --model cbow; allowed: with skip-gram",
                             self->senses);
    }
    return ex_options_check_table(self->table, ".tree.sums", err);
}

psd_status_t wv_options_read(wv_options_t *self, int argc, char **argv, bool *ret_help,
                             psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *self = (wv_options_t){.size = 100,
                           .window = 5,
                           .negative = 5,
                           .sample = 1e-3,
                           .min_count = 5,
                           .senses = 1,
                           .sense_share = 0.1,
                           .epochs = 5,
                           .block = 1000,
                           .trainers = 1,
                           .table = "word2vec",
                           .seed = 1,
                           .report_s = 5,
                           .job = EX_JOB_DEFAULTS};
    rc = ex_options_read(&COMMAND, self, argc, argv, ret_help, err);
    if (rc != PSD_OK || *ret_help) {
        if (rc == PSD_OK) {
            ex_options_help(&COMMAND);
        }
        return rc;
    }
    if (self->alpha == 0) {
        self->alpha = self->model == WV_CBOW ? 0.05 : 0.025;
    }
    rc = check(self, err);
    return rc == PSD_OK ? ex_inputs_check(&COMMAND, self, err) : rc;
}
