/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a file of samples is read, in CPU time of one core, from the page
 * cache: MB/s of the file as it lies there, and entries/s; the median of five
 * rounds behind one that is not counted.
 *
 *     reading FORMAT FILE [CACHE]
 *
 * FORMAT may be auto; CACHE: a directory for a parse cache, or beside, which
 * the first round makes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "psd_data.h"

#define ROUNDS 5
#define BATCH 1000

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct round {
    double s;
    uint64_t bytes, samples, entries, bad;
} round_t;

static psd_status_t read_once(const char *path, const psd_reader_options_t *options,
                              round_t *ret_round, psd_error_t *err)
{
    psd_samples_t *batch = psd_samples_new();
    psd_reader_t *reader = NULL;
    round_t round = {.s = cpu_s()};
    psd_status_t rc = psd_reader_open(&path, 1, options, &reader, err);

    while (rc == PSD_OK) {
        rc = psd_reader_next(reader, BATCH, batch, err);
        if (rc != PSD_OK || psd_samples_count(batch) == 0) {
            break;
        }
        round.entries += psd_samples_entry_count(batch);
    }
    if (rc == PSD_OK) {
        round.s = cpu_s() - round.s;
        (void)psd_reader_bytes(reader, &round.bytes);
        round.samples = psd_reader_sample_count(reader);
        round.bad = psd_reader_bad_count(reader);
        *ret_round = round;
    }
    psd_reader_close(&reader);
    psd_samples_destroy(&batch);
    return rc;
}

static int by_time(const void *a, const void *b)
{
    double left = ((const round_t *)a)->s;
    double right = ((const round_t *)b)->s;

    return left < right ? -1 : left > right;
}

static psd_status_t set_options(psd_reader_options_t *options, char **argv, psd_error_t *err)
{
    psd_status_t rc = psd_reader_options_set_format(options, argv[1], err);

    return rc == PSD_OK ? psd_reader_options_set_cache(options, argv[3], err) : rc;
}

int main(int argc, char **argv)
{
    psd_reader_options_t *options = psd_reader_options_new();
    psd_error_t *err = psd_error_new();
    round_t rounds[ROUNDS + 1];
    psd_status_t rc = PSD_OK;

    if (argc < 3 || argc > 4 || options == NULL || err == NULL) {
        fprintf(stderr, "usage: reading FORMAT FILE [CACHE]\n");
        return 2;
    }
    rc = set_options(options, argv, err);
    for (int i = 0; rc == PSD_OK && i <= ROUNDS; i++) {
        rc = read_once(argv[2], options, &rounds[i], err);
    }
    if (rc == PSD_OK) {
        qsort(rounds + 1, ROUNDS, sizeof *rounds, by_time);
        const round_t *middle = &rounds[1 + ROUNDS / 2];

        printf("%s: %.0f MB/s, %.1f M entries/s, %.3f s (first %.3f); %lu "
               "samples, %lu bad\n",
               argv[2], (double)middle->bytes / middle->s / 1e6,
               (double)middle->entries / middle->s / 1e6, middle->s, rounds[0].s,
               (unsigned long)middle->samples, (unsigned long)middle->bad);
    } else {
        fprintf(stderr, "%s\n", psd_error_text(err));
    }
    psd_reader_options_destroy(&options);
    psd_error_destroy(&err);
    return rc == PSD_OK ? 0 : 1;
}
