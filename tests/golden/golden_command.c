/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one command of every kind, command_<word>.hex: encoding the
 * sample gives the file, decoding the file and encoding that gives it again. A
 * difference is a new PS_COMMAND_VERSION. A new kind gets its file with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_command
 *
 * Shape: '#' starts a comment; the rest is bytes in hex.
 */
#include <stdlib.h>

#include "support/command_sample.h"

#define BYTES_MAX 1024
#define PATH_SIZE 4096

static FILE *open_file(ps_command_kind_t kind, const char *mode)
{
    const char *dir = getenv("PSD_GOLDEN_DIR");
    char path[PATH_SIZE];
    FILE *file = NULL;

    cr_assert_not_null(dir, "PSD_GOLDEN_DIR is not set");
    (void)snprintf(path, sizeof path, "%s/command_%s.hex", dir, ps_command_name(kind));
    file = fopen(path, mode);
    cr_assert_not_null(file, "cannot open %s", path);
    return file;
}

static void write_file(ps_command_kind_t kind, const ps_buffer_t *bytes)
{
    FILE *file = open_file(kind, "w");

    (void)fprintf(file, "# %s", ps_command_name(kind));
    for (size_t at = 0; at < bytes->size; at++) {
        (void)fprintf(file, "%s%02x", at % 16 == 0 ? "\n" : " ", (unsigned)bytes->data[at]);
    }
    (void)fprintf(file, "\n");
    cr_assert_eq(fclose(file), 0);
}

static size_t read_file(ps_command_kind_t kind, uint8_t bytes[BYTES_MAX])
{
    FILE *file = open_file(kind, "r");
    char line[256];
    size_t size = 0;

    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = line;
        unsigned byte = 0;
        int length = 0;

        while (line[0] != '#' && sscanf(at, " %2x%n", &byte, &length) == 1) {
            cr_assert_lt(size, BYTES_MAX);
            bytes[size++] = (uint8_t)byte;
            at += length;
        }
    }
    cr_assert_eq(fclose(file), 0);
    return size;
}

Test(golden_command, every_kind)
{
    for (size_t i = 0; i < N_SAMPLE_COMMANDS; i++) {
        ps_command_kind_t kind = SAMPLE_COMMANDS[i];
        PSD_AUTO(ps_command_done) ps_command_t sample = command_sample(kind);
        PSD_AUTO(ps_command_done) ps_command_t got = {0};
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
        PSD_AUTO(ps_buffer_done) ps_buffer_t again = {0};
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        uint8_t golden[BYTES_MAX];
        size_t size = 0;

        cr_assert(ps_command_encode(&sample, &bytes));
        if (getenv("PSD_GOLDEN_WRITE") != NULL) {
            write_file(kind, &bytes);
        }
        size = read_file(kind, golden);
        cr_assert_eq(size, bytes.size, "%s is of another size", ps_command_name(kind));
        cr_assert_arr_eq(golden, bytes.data, size, "%s has other bytes", ps_command_name(kind));
        cr_assert_eq(ps_command_decode((ps_bytes_t){golden, size}, &got, err), PSD_OK, "%s: %s",
                     ps_command_name(kind), psd_error_text(err));
        cr_assert_eq(got.kind, kind);
        cr_assert(ps_command_encode(&got, &again));
        cr_assert_eq(again.size, size);
        cr_assert_arr_eq(again.data, golden, size);
    }
}

/* Words and order of what lies there: the test above would not see a field that
 * is read into another one and written from it. */
Test(golden_command, fields_come_where_they_belong)
{
    PSD_AUTO(ps_command_done) ps_command_t node = {0};
    PSD_AUTO(ps_command_done) ps_command_t job = {0};
    uint8_t golden[BYTES_MAX];
    size_t size = read_file(PS_COMMAND_NODE, golden);

    cr_assert_eq(ps_command_decode((ps_bytes_t){golden, size}, &node, NULL), PSD_OK);
    cr_assert_eq(node.unix_ms, 1700000000000);
    cr_assert_eq(node.epoch, 42);
    cr_assert_str_eq(node.text, "what happened");
    cr_assert_str_eq(node.node.name, "n1");
    cr_assert_eq(node.node.incarnation, UINT64_C(0x8000000000000007));
    cr_assert(node.node.draining);
    cr_assert_eq(node.node.n_shards, 2);
    cr_assert_str_eq(node.node.shards[1].ipc, "ipc:///run/psd/1");
    cr_assert_eq(node.n_changes, 2);
    cr_assert(node.changes[0].rows_lost);
    cr_assert_eq(node.changes[0].copies.n, 2);
    cr_assert_eq(node.changes[0].copies.at[1].state, PS_COPY_CATCHING_UP);
    cr_assert(node.changes[0].copies.at[1].dropped);
    cr_assert_eq(node.changes[1].prefer, 9);
    size = read_file(PS_COMMAND_JOB, golden);
    cr_assert_eq(ps_command_decode((ps_bytes_t){golden, size}, &job, NULL), PSD_OK);
    cr_assert_eq(job.job.max_delay, -1);
    cr_assert_str_eq(job.job.lost_table, "w");
    cr_assert_eq(job.job.workers[0].start, 17);
    cr_assert_eq(job.job.workers[1].state, PS_WORKER_LOST);
    cr_assert_eq(job.resumed[0].n_epochs, 21);
    cr_assert_eq(job.resumed[0].done[1], 9);
}
