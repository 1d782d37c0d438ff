/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker for tests of checkpoints: joins the job that its environment names,
 * takes slices of a work queue, adds 1 to the row of each, and finishes a clock
 * behind every one, and where none is free for a moment.
 *
 *     slice_worker TABLE SLICES EPOCHS [GATE]
 *
 * With GATE, the name of a file, it takes no slice behind half of the epochs
 * until that file is there, and finishes clocks meanwhile: the job does not end
 * before a test is done with it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <psd.h>

#define WAIT_MS 60000
#define NEXT_MS 50 /* others may be held until this one finishes its clock */

/* The next slice; epoch 0 behind the last one, slice UINT32_MAX: none is free.
 */
static psd_status_t take(psd_work_t *queue, uint64_t *ret_epoch, uint32_t *ret, psd_error_t *err)
{
    psd_status_t rc = psd_work_next(queue, NEXT_MS, ret_epoch, ret, err);

    if (rc != PSD_DEADLINE) {
        return rc;
    }
    psd_error_clear(err);
    *ret_epoch = 1;
    *ret = UINT32_MAX;
    return PSD_OK;
}

static psd_status_t count(psd_table_t *table, psd_work_t *queue, uint64_t epoch, uint32_t slice,
                          psd_error_t *err)
{
    const int64_t one = 1;
    uint64_t row = slice;
    psd_status_t rc = psd_push(table, &row, 1, &one, 1, err);

    return rc == PSD_OK ? psd_work_done(queue, epoch, slice, WAIT_MS, err) : rc;
}

static bool is_held(const char *gate, uint64_t reached, uint64_t n_epochs)
{
    return gate != NULL && reached > n_epochs / 2 && access(gate, F_OK) != 0;
}

static void pause_a_moment(void)
{
    const struct timespec moment = {.tv_nsec = 5000000L};

    (void)nanosleep(&moment, NULL);
}

static psd_status_t work(psd_client_t *client, char **argv, psd_error_t *err)
{
    psd_table_t *table = NULL;
    psd_work_t *queue = NULL;
    uint64_t n_epochs = strtoull(argv[3], NULL, 10);
    uint64_t reached = 0;
    uint64_t epoch = 1;
    uint32_t slice = 0;
    psd_status_t rc = psd_join(client, NULL, -1, 0, PSD_DELAY_ENV, err);

    if (rc == PSD_OK) {
        rc = psd_table_open(client, argv[1], &table, err);
    }
    if (rc == PSD_OK) {
        rc = psd_work_open(client, "input", (uint32_t)strtoul(argv[2], NULL, 10), n_epochs, &queue,
                           err);
    }
    while (rc == PSD_OK && epoch != 0) {
        if (is_held(argv[4], reached, n_epochs)) {
            slice = UINT32_MAX;
            pause_a_moment();
        } else {
            rc = take(queue, &epoch, &slice, err);
        }
        if (epoch > reached) {
            reached = epoch;
        }
        if (rc == PSD_OK && epoch != 0 && slice != UINT32_MAX) {
            rc = count(table, queue, epoch, slice, err);
        }
        if (rc == PSD_OK && epoch != 0) {
            rc = psd_clock(client, err);
        }
    }
    if (rc == PSD_OK) {
        rc = psd_leave(client, WAIT_MS, err);
    }
    psd_work_close(&queue);
    psd_table_close(&table);
    return rc;
}

int main(int argc, char **argv)
{
    psd_client_t *client = NULL;
    psd_options_t *options = psd_options_new();
    psd_error_t *err = psd_error_new();
    psd_status_t rc = PSD_OK;

    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: slice_worker TABLE SLICES EPOCHS [GATE]\n");
        return 2;
    }
    psd_options_set_timeout_ms(options, WAIT_MS);
    rc = psd_connect(NULL, options, &client, err);
    if (rc == PSD_OK) {
        rc = work(client, argv, err);
    }
    if (rc != PSD_OK) {
        fprintf(stderr, "%s\n", psd_error_text(err));
    }
    psd_close(&client);
    psd_options_destroy(&options);
    psd_error_destroy(&err);
    return psd_status_exit(rc);
}
