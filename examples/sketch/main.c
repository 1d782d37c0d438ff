/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd-sketch - counts words of a stream in a count-min sketch on psd
 *
 * What     Each worker inserts its share of the lines; then worker 0 queries
 *          the requested words, or counts the file exactly and prints the
 *          sketch's error.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/program/inputs.h"
#include "../common/program/options.h"
#include "../common/program/program.h"
#include "sketch.h"

#define BLANKS " \t\r\n"

typedef struct options {
    bool help;
    const char *insert;
    const char *query;
    const char *check;
    const char *table;
    uint32_t bits;
    uint32_t batch;
    ex_job_options_t job;
} options_t;

#define AT(member) offsetof(options_t, member)
static const ps_opt_t OPTIONS[] = {
    {.kind = PS_OPT_HEADING, .help = "Words, with blanks between them:"},
    PS_OPT_ROW("insert", "FILE", PS_OPT_INPUT, AT(insert),
               "counts its words; worker i of n takes the lines whose number mod n is i"),
    PS_OPT_ROW("query", "FILE", PS_OPT_INPUT, AT(query),
               "prints each of its words and its approximate count"),
    PS_OPT_ROW("check", "FILE", PS_OPT_INPUT, AT(check),
               "counts its words exactly and reports the error of the sketch; the sketch must have "
               "no other words"),
    {.kind = PS_OPT_HEADING, .help = "Sketch:"},
    PS_OPT_ROW("table", "NAME", PS_OPT_TEXT, AT(table),
               "table of the cells (default sketch); created if missing, else counted further"),
    PS_OPT_NUMBER("bits", "N", PS_OPT_U32, AT(bits), 6, 30,
                  "2^N cells in each of the four stretches (default 20)"),
    PS_OPT_NUMBER("batch", "N", PS_OPT_U32, AT(batch), 1, 1e6, "words in a push (default 10000)"),
    EX_JOB_OPTIONS(options_t, job),
    PS_OPT_END,
};
#undef AT

static const ex_command_t COMMAND = {
    "psd-sketch - counts words of a stream in a count-min sketch on psd\n"
    "\n"
    "Examples:\n"
    "  pscli run -n 4 -- psd-sketch --insert text.txt\n"
    "      four workers count the words of a file\n"
    "  psd-sketch --query words.txt\n"
    "      approximate counts of these words\n",
    OPTIONS,
};

/* The words of one share of a file, one after the other. */
typedef struct words {
    const char *path; /* borrowed */
    FILE *file;
    char *line; /* owned */
    size_t room;
    uint64_t number; /* of the line that is read next */
    char *rest;      /* of the present line; NULL: none */
    uint32_t part, n_parts;
} words_t;

static psd_status_t words_open(words_t *self, const char *path, uint32_t part, uint32_t n_parts,
                               psd_error_t *err)
{
    char reason[128];
    int first = EOF;

    *self = (words_t){.path = path, .part = part, .n_parts = n_parts};
    self->file = fopen(path, "re");
    if (self->file != NULL) {
        first = getc(self->file); /* a directory fails here */
    }
    if (self->file == NULL || ferror(self->file) != 0) {
        return psd_error_set(err, PSD_IO, "%s: %s", path, strerror_r(errno, reason, sizeof reason));
    }
    if (first != EOF) {
        (void)ungetc(first, self->file);
    }
    return PSD_OK;
}

static void words_close(words_t *self)
{
    if (self->file != NULL) {
        (void)fclose(self->file);
    }
    free(self->line);
    memset(self, 0, sizeof *self);
}

/* The next word; NULL: the end. */
static const char *words_next(words_t *self)
{
    for (;;) {
        const char *word = self->rest == NULL ? NULL : strtok_r(NULL, BLANKS, &self->rest);

        if (word != NULL) {
            return word;
        }
        do {
            if (getline(&self->line, &self->room, self->file) < 0) {
                return NULL;
            }
        } while (self->number++ % self->n_parts != self->part);
        word = strtok_r(self->line, BLANKS, &self->rest);
        if (word != NULL) {
            return word;
        }
    }
}

/* After the last word. Errors: PSD_IO it is not the file's end. */
static psd_status_t words_check(const words_t *self, psd_error_t *err)
{
    return ferror(self->file) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_IO, "%s: cannot be read further", self->path);
}

/* All words of a file as hashes. */
typedef struct hashes {
    uint64_t *at; /* owned */
    size_t n, room;
} hashes_t;

static psd_status_t hashes_add(hashes_t *self, const char *word, psd_error_t *err)
{
    if (self->n == self->room) {
        size_t room = self->room * 2 + 1024;
        uint64_t *at = realloc(self->at, room * sizeof *at);

        if (at == NULL) {
            return psd_error_set(err, PSD_NOMEM, "%zu words", room);
        }
        self->at = at;
        self->room = room;
    }
    self->at[self->n++] = sketch_hash(word, strlen(word));
    return PSD_OK;
}

static psd_status_t insert(sketch_t *sketch, words_t *words, psd_error_t *err)
{
    const char *word = NULL;
    uint64_t n = 0;
    double start_s = ex_now_s();
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && (word = words_next(words)) != NULL) {
        rc = sketch_insert(sketch, sketch_hash(word, strlen(word)), err);
        n++;
        if (n % 1000000 == 0) {
            printf("%7.1f s  %" PRIu64 " words\n", ex_now_s() - start_s, n);
        }
    }
    if (rc == PSD_OK) {
        rc = words_check(words, err);
    }
    if (rc == PSD_OK) {
        rc = sketch_flush(sketch, err);
    }
    if (rc == PSD_OK) {
        printf("%7.1f s  %" PRIu64 " words, all inserted\n", ex_now_s() - start_s, n);
    }
    return rc;
}

static psd_status_t query(sketch_t *sketch, const char *path, psd_error_t *err)
{
    words_t words;
    const char *word = NULL;
    psd_status_t rc = words_open(&words, path, 0, 1, err);

    while (rc == PSD_OK && (word = words_next(&words)) != NULL) {
        uint64_t hash = sketch_hash(word, strlen(word));
        int64_t count = 0;

        rc = sketch_query(sketch, &hash, 1, &count, err);
        if (rc == PSD_OK) {
            printf("%s %" PRId64 "\n", word, count);
        }
    }
    if (rc == PSD_OK) {
        rc = words_check(&words, err);
    }
    words_close(&words);
    return rc;
}

/* Compares the sketch's estimate of every word with its count. */
static psd_status_t compare(sketch_t *sketch, const hashes_t *all, psd_error_t *err)
{
    psd_localizer_t *exact = NULL;
    int64_t *counts = NULL;
    uint64_t total = 0;
    size_t n = 0;
    size_t under = 0;
    size_t beyond = 0;
    double bound = 0;
    double off = 0;
    psd_status_t rc = psd_localizer_new(1, &exact, err);

    if (rc == PSD_OK) {
        rc = psd_localizer_run(exact, all->at, all->n, err);
    }
    if (rc == PSD_OK) {
        n = psd_localizer_count(exact);
        counts = calloc(n + 1, sizeof *counts);
        rc = counts == NULL ? psd_error_set(err, PSD_NOMEM, "%zu words", n)
                            : sketch_query(sketch, psd_localizer_keys(exact), n, counts, err);
    }
    if (rc == PSD_OK) {
        rc = sketch_total(sketch, &total, err);
    }
    bound = M_E * (double)total / (double)sketch->width;
    for (size_t i = 0; rc == PSD_OK && counts != NULL && i < n; i++) {
        int64_t more = counts[i] - (int64_t)psd_localizer_counts(exact)[i];

        under += more < 0;
        beyond += (double)more > bound;
        off += (double)more;
    }
    if (rc == PSD_OK) {
        printf("%zu different words of %" PRIu64 ": %zu counted too low, mean "
               "error %.3f, %zu beyond e N / width = %.1f (%.2f %%; 1.83 %% "
               "allowed)\n",
               n, total, under, n > 0 ? off / (double)n : 0, beyond, bound,
               n > 0 ? 100 * (double)beyond / (double)n : 0);
    }
    if (rc == PSD_OK && total != all->n) {
        printf("the table counts %" PRIu64
               " words, the file has %zu: other inserted words count as errors\n",
               total, all->n);
    }
    free(counts);
    psd_localizer_destroy(&exact);
    return rc;
}

static psd_status_t check(sketch_t *sketch, const char *path, psd_error_t *err)
{
    hashes_t all = {0};
    words_t words;
    const char *word = NULL;
    psd_status_t rc = words_open(&words, path, 0, 1, err);

    while (rc == PSD_OK && (word = words_next(&words)) != NULL) {
        rc = hashes_add(&all, word, err);
    }
    if (rc == PSD_OK) {
        rc = words_check(&words, err);
    }
    words_close(&words);
    if (rc == PSD_OK) {
        rc = compare(sketch, &all, err);
    }
    free(all.at);
    return rc;
}

/* Inserts, meets the others, asks. */
static psd_status_t work(const options_t *options, ex_job_t *job, psd_error_t *err)
{
    sketch_t sketch = {0};
    words_t words = {0};
    psd_status_t rc = PSD_OK;

    if (options->insert != NULL) { /* it may fail before any table is made */
        rc = words_open(&words, options->insert, job->worker, job->n_workers, err);
        if (rc == PSD_OK) {
            rc = ex_job_look_for(job, options->table, err);
        }
    }
    if (rc == PSD_OK) {
        rc = ex_job_barrier(job, err);
    }
    if (rc == PSD_OK) {
        rc = sketch_open(&sketch, job, options->table, UINT64_C(1) << options->bits, options->batch,
                         options->insert != NULL, err);
    }
    if (rc == PSD_OK) {
        ex_job_tell_old(job);
    }

    if (rc == PSD_OK && options->insert != NULL) {
        rc = insert(&sketch, &words, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_meet(job, err);
    }
    if (rc == PSD_OK && ex_job_is_first(job) && options->query != NULL) {
        rc = query(&sketch, options->query, err);
    }
    if (rc == PSD_OK && ex_job_is_first(job) && options->check != NULL) {
        rc = check(&sketch, options->check, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_leave(job, err);
    }
    words_close(&words);
    sketch_done(&sketch);
    return rc;
}

static psd_status_t run(int argc, char **argv, psd_error_t *err)
{
    options_t options = {.table = "sketch", .bits = 20, .batch = 10000, .job = EX_JOB_DEFAULTS};
    ex_job_t job = {0};
    psd_status_t rc = ex_options_read(&COMMAND, &options, argc, argv, &options.help, err);

    if (rc == PSD_OK && options.help) {
        ex_options_help(&COMMAND);
        return PSD_OK;
    }
    if (rc == PSD_OK && options.insert == NULL && options.query == NULL && options.check == NULL) {
        rc = psd_error_set(err, PSD_USAGE, "--insert, --query or --check FILE is missing");
    }
    if (rc == PSD_OK) {
        rc = ex_inputs_check(&COMMAND, &options, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_open(&job, &options.job, err);
    }
    if (rc == PSD_OK) {
        rc = work(&options, &job, err);
        ex_job_close(&job);
    }
    return rc;
}

int main(int argc, char **argv)
{
    return ex_program("psd-sketch", run, argc, argv);
}
