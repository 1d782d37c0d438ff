/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include "options.h"

#include <inttypes.h>
#include <stddef.h>

#include "../common/inputs.h"
#include "../common/options.h"

#define AT(member) offsetof(wv_options_t, member)
static const ex_option_t OPTIONS[] = {
    {.kind = EX_HEADING, .help = "Data (words between blanks, a line for a paragraph):"},
    {"train", "FILE", EX_INPUT, AT(train), 0, 0, "worker i of n takes the i-th part of it"},
    {"min-count", "N", EX_U64, AT(min_count), 0, 0,
     "words that are seen less often are left out (default 5)"},
    {"sample", "F", EX_REAL, AT(sample), 0, 1,
     "words that are a greater share of the text are left out now and then "
     "(default 1e-3; 0: never)"},
    {"save-words", "FILE", EX_OUTPUT_HERE, AT(save_words), 0, 0,
     "writes the vocabulary: word count"},
    {.kind = EX_HEADING, .help = "Model:"},
    {"model", "skip-gram|cbow", EX_CHOICE, AT(model), 0, 0,
     "what is learnt from a word: those around it, or it from them (default "
     "skip-gram)"},
    {"size", "N", EX_U32, AT(size), 1, 10000, "numbers in a vector (default 100)"},
    {"window", "N", EX_U32, AT(window), 1, 100, "words on either side, at most (default 5)"},
    {"negative", "N", EX_U32, AT(negative), 0, 100,
     "words drawn against each pair (default 5; 0: none)"},
    {"hs", "", EX_FLAG, AT(hs), 0, 0, "hierarchical softmax; with --negative 0, only that"},
    {"senses", "N", EX_U32, AT(senses), 1, 50,
     "vectors of a frequent word, each for what it means somewhere else (with "
     "skip-gram; default 1)"},
    {"sense-share", "F", EX_REAL, AT(sense_share), 0, 1,
     "share of the words, the most frequent ones, that have several (default "
     "0.1)"},
    {"save-senses", "FILE", EX_OUTPUT_HERE, AT(save_senses), 0, 0,
     "writes word, name and share of each of their senses"},
    {"table", "NAME", EX_TEXT, AT(table), 0, 0,
     "tables are NAME.in, NAME.out, NAME.count, made anew (default word2vec)"},
    {"resume", "", EX_FLAG, AT(resume), 0, 0,
     "goes on behind what the tables have learnt, as many workers as then"},
    {.kind = EX_HEADING, .help = "Training:"},
    {"epochs", "N", EX_U32, AT(epochs), 1, 1e6, "passes over the text (default 5)"},
    {"alpha", "F", EX_REAL, AT(alpha), 1e-9, 10,
     "the first step, which falls with the words that all workers have read "
     "(default 0.025, with cbow 0.05)"},
    {"adagrad", "", EX_FLAG, AT(adagrad), 0, 0,
     "a step of its own for each number, that does not fall otherwise"},
    {"block", "N", EX_U32, AT(block), WV_BLOCK_LEAST, 1e8,
     "words of a block, after which changes are sent (default 1000; with "
     "several workers a 20th of a worker's part, at most)"},
    {"trainers", "N", EX_U32, AT(trainers), 1, 256, "threads of a worker (default 1)"},
    {"no-pipeline", "", EX_FLAG, AT(no_pipeline), 0, 0,
     "vectors of a block are pulled when the one before is done, not while it "
     "is worked on"},
    {"seed", "N", EX_U64, AT(seed), 0, 0, "of all that is drawn (default 1)"},
    {"report", "SECONDS", EX_REAL, AT(report_s), 0, 86400, "between progress lines (default 5)"},
    {.kind = EX_HEADING, .help = "Vectors:"},
    {"save", "FILE", EX_OUTPUT, AT(save), 0, 0,
     "writes them as word2vec does: count and size, then a word a line"},
    {"binary", "", EX_FLAG, AT(binary), 0, 0, "... as floats, not as text"},
    {"vectors", "FILE", EX_INPUT, AT(vectors), 0, 0,
     "reads such a file instead of training; psd is not needed"},
    {"pairs", "FILE", EX_INPUT, AT(pairs), 0, 0,
     "lines of word, word, score between tabs: Spearman's rho of cosine and "
     "score"},
    {"questions", "FILE", EX_INPUT, AT(questions), 0, 0,
     "lines of four words, a : b as c : d: share of d found"},
    {"near", "WORD", EX_TEXT, AT(near), 0, 0, "prints what is near to it"},
    EX_JOB_OPTIONS(wv_options_t, job),
};
#undef AT

static const ex_command_t COMMAND = {
    "psd-word2vec - vectors of words, learnt on a psd parameter server\n"
    "\n"
    "Examples:\n"
    "  psd-word2vec --train corpus.txt --save vectors.txt\n"
    "      one worker, skip-gram, against the psd on tcp://127.0.0.1:7171\n"
    "  pscli run -n 4 -- psd-word2vec --train corpus.txt --max-delay 2 "
    "--save vectors.txt\n"
    "      four workers, none more than two blocks ahead of another\n"
    "  psd-word2vec --vectors vectors.txt --near king",
    OPTIONS, EX_COUNT(OPTIONS)};

static psd_status_t check(const wv_options_t *self, psd_error_t *err)
{
    if ((self->train == NULL) == (self->vectors == NULL)) {
        return psd_error_set(err, PSD_USAGE,
                             "%s; allowed: one of --train FILE and --vectors "
                             "FILE",
                             self->train == NULL ? "there is nothing to do" : "both are there");
    }
    if (self->negative == 0 && !self->hs) {
        return psd_error_set(err, PSD_USAGE,
                             "--negative 0 without --hs; allowed: one of them "
                             "at least, as nothing is learnt else");
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
