/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one command of every kind, command_<word>.hex: encoding the
 * sample gives the file, decoding the file and encoding that gives it again. A
 * difference is a new PS_COMMAND_VERSION. A new kind gets its file with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_command
 */
#include "support/command_sample.h"
#include "support/golden_file.h"

#define NAME_SIZE 64

static const char *file_of(ps_command_kind_t kind, char ret_name[NAME_SIZE])
{
    (void)snprintf(ret_name, NAME_SIZE, "command_%s", ps_command_name(kind));
    return ret_name;
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
        char name[NAME_SIZE];
        uint8_t golden[GOLDEN_BYTES_MAX];
        ps_bytes_t read = {0};

        cr_assert(ps_command_encode(&sample, &bytes));
        read = golden_file_check(file_of(kind, name), ps_command_name(kind),
                                 (ps_bytes_t){bytes.data, bytes.size}, golden);
        cr_assert_eq(ps_command_decode(read, &got, err), PSD_OK, "%s: %s", ps_command_name(kind),
                     psd_error_text(err));
        cr_assert_eq(got.kind, kind);
        cr_assert(ps_command_encode(&got, &again));
        cr_assert_eq(again.size, read.size);
        cr_assert_arr_eq(again.data, golden, read.size);
    }
}

/* Logs have tables that an older psd wrote: these combine each, have the rest as ever, and are
 * written as they were. Nobody writes that file again. */
Test(golden_command, a_table_of_an_older_psd)
{
    PSD_AUTO(ps_command_done) ps_command_t old = {0};
    PSD_AUTO(ps_command_done) ps_command_t now = command_sample(PS_COMMAND_TABLE);
    PSD_AUTO(ps_buffer_done) ps_buffer_t as_old = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t as_now = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t again = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint8_t golden[GOLDEN_BYTES_MAX];
    size_t size = golden_file_read("old_command_table", golden);

    cr_assert_eq(ps_command_decode((ps_bytes_t){golden, size}, &old, err), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_eq(old.table.spec.combine, PS_COMBINE_EACH);
    cr_assert(ps_command_encode(&old, &as_old));
    cr_assert_eq(as_old.size, size);
    cr_assert_arr_eq(as_old.data, golden, size);
    old.table.spec.combine = now.table.spec.combine;
    cr_assert(ps_command_encode(&old, &as_now));
    cr_assert(ps_command_encode(&now, &again));
    cr_assert_eq(as_now.size, again.size);
    cr_assert_arr_eq(as_now.data, again.data, again.size);
}

/* Logs have principals that an older psd wrote, and those with one key are still written so. Nobody
 * writes that file again. */
Test(golden_command, a_principal_with_one_key)
{
    PSD_AUTO(ps_command_done) ps_command_t old = {0};
    PSD_AUTO(ps_command_done) ps_command_t now = command_sample(PS_COMMAND_PRINCIPAL);
    PSD_AUTO(ps_buffer_done) ps_buffer_t as_old = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t as_now = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint8_t golden[GOLDEN_BYTES_MAX];
    size_t size = golden_file_read("old_command_principal", golden);

    cr_assert_eq(ps_command_decode((ps_bytes_t){golden, size}, &old, err), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_str_eq(old.principals[0].old_key, "");
    cr_assert_eq(old.principals[0].old_until_unix_ms, 0);
    cr_assert_eq(old.principals[0].n_rules, 2);
    cr_assert(ps_command_encode(&old, &as_old));
    cr_assert_eq(as_old.size, size);
    cr_assert_arr_eq(as_old.data, golden, size);
    ps_principal_end_old_key(&now.principals[0]);
    cr_assert(ps_command_encode(&now, &as_now));
    cr_assert_eq(as_now.size, size);
    cr_assert_arr_eq(as_now.data, golden, size);
}

/* Words and order of what lies there: the test above would not see a field that
 * is read into another one and written from it. */
Test(golden_command, fields_come_where_they_belong)
{
    PSD_AUTO(ps_command_done) ps_command_t node = {0};
    PSD_AUTO(ps_command_done) ps_command_t job = {0};
    char name[NAME_SIZE];
    uint8_t golden[GOLDEN_BYTES_MAX];
    size_t size = golden_file_read(file_of(PS_COMMAND_NODE, name), golden);

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
    size = golden_file_read(file_of(PS_COMMAND_JOB, name), golden);
    cr_assert_eq(ps_command_decode((ps_bytes_t){golden, size}, &job, NULL), PSD_OK);
    cr_assert_eq(job.job.max_delay, -1);
    cr_assert_str_eq(job.job.lost_table, "w");
    cr_assert_eq(job.job.workers[0].start, 17);
    cr_assert_eq(job.job.workers[1].state, PS_WORKER_LOST);
    cr_assert_eq(job.resumed[0].n_epochs, 21);
    cr_assert_eq(job.resumed[0].done[1], 9);
}
