/* SPDX-License-Identifier: Apache-2.0 */
/* storage/snapshot/checkpoint_chain.h: checkpoints that need others, and which files of
 * them. */
#include "storage/snapshot/checkpoint_chain.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

static char dir[] = "/tmp/psd-chain-XXXXXX";

static void make_dir(void)
{
    cr_assert_not_null(mkdtemp(dir));
}

static void remove_dir(void)
{
    static const char *const NAMES[] = {"a", "b", "c"};

    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        psd_status_t rc = ps_checkpoint_drop(ps_disk_real(), dir, NAMES[i], NULL);

        cr_expect(rc == PSD_OK || rc == PSD_NO_CHECKPOINT);
    }
    cr_expect_eq(rmdir(dir), 0);
}

TestSuite(chain, .init = make_dir, .fini = remove_dir);

/* Writes a checkpoint whose manifest has these files; parent NULL: none. */
static void make(const char *name, const char *parent, const char *files)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    PSD_AUTO(ps_doc_destroy) ps_doc_t *before = NULL;
    ps_doc_t *since = NULL;
    uint64_t sum = 0;

    cr_assert(ps_buffer_print(&text, "{\"format\":2,\"files\":[%s]}", files));
    cr_assert_eq(ps_doc_parse((ps_bytes_t){text.data, text.size}, &manifest, NULL), PSD_OK);
    if (parent != NULL) {
        cr_assert_eq(ps_checkpoint_read(ps_disk_real(), dir, parent, &before, &sum, NULL), PSD_OK);
        since = ps_doc_add_object(manifest, "since");
        cr_assert(ps_doc_set_text(since, "name", parent) && ps_doc_set_u64(since, "sum", sum));
    }
    cr_assert_eq(ps_checkpoint_begin(ps_disk_real(), dir, name, NULL), PSD_OK);
    cr_assert_eq(ps_checkpoint_write(ps_disk_real(), dir, name, manifest, NULL), PSD_OK);
}

#define FILE_OF(table, partition, lsn, version, since)                 \
    "{\"table\":" #table ",\"partition\":" #partition ",\"lsn\":" #lsn \
    ",\"lsn_epoch\":4,\"version\":" #version ",\"since\":" #since ",\"sum\":1,\"bytes\":9}"

/* "dir/lsn" of each file that is to be read, in order. */
static psd_status_t files_of(const char *name, uint64_t table, ps_buffer_t *ret, psd_error_t *err)
{
    PSD_AUTO(ps_chain_done) ps_chain_t chain = {.n = 0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *words = ps_doc_new();
    const ps_doc_t *files = NULL;
    psd_status_t rc = ps_chain_read(&chain, ps_disk_real(), dir, name, err);

    if (rc == PSD_OK) {
        rc = ps_chain_files(&chain, table, words, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(words, "files", 100, &files, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(files); i++) {
        const ps_doc_t *file = NULL;
        uint64_t link = 0;
        uint64_t lsn = 0;

        cr_assert_eq(ps_doc_at_object(files, i, &file, NULL), PSD_OK);
        cr_assert_eq(ps_doc_get_u64(file, "dir", 0, 99, &link, NULL), PSD_OK);
        cr_assert_eq(ps_doc_get_u64(file, "lsn", 0, 99, &lsn, NULL), PSD_OK);
        cr_assert(ps_buffer_print(ret, "%d/%d ", (int)link, (int)lsn));
    }
    return rc;
}

static void expect_files(const char *name, uint64_t table, const char *want)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t got = {0};

    cr_assert_eq(files_of(name, table, &got, NULL), PSD_OK);
    cr_expect_str_eq((const char *)got.data, want);
}

static void expect_refused(const char *name, psd_status_t status, const char *text)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t got = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_expect_eq(files_of(name, 0, &got, err), status);
    cr_expect_not_null(strstr(psd_error_text(err), text), "%s", psd_error_text(err));
}

static void make_three(void)
{
    make("a", NULL, FILE_OF(1, 0, 10, 5, 0) "," FILE_OF(1, 1, 11, 6, 0));
    make("b", "a", FILE_OF(1, 1, 21, 8, 6) "," FILE_OF(1, 0, 20, 7, 0) "," FILE_OF(2, 0, 22, 3, 0));
    make("c", "b", FILE_OF(1, 0, 30, 9, 7) "," FILE_OF(1, 1, 31, 8, 8));
}

static psd_status_t take(void *context, const char *name, psd_error_t *err)
{
    (void)err;
    if (strcmp(name, "a") == 0) {
        *(bool *)context = true;
    }
    return PSD_OK;
}

/* Whoever runs psd may have all checkpoints on another disk. */
Test(chain, the_directory_of_all_may_be_a_link)
{
    char link[64];
    bool found = false;

    (void)snprintf(link, sizeof link, "%s/link", dir);
    cr_assert_eq(symlink(".", link), 0);
    cr_assert_eq(ps_checkpoint_begin(ps_disk_real(), link, "a", NULL), PSD_OK);
    cr_assert_eq(unlink(link), 0);
    make("a", NULL, FILE_OF(1, 0, 1, 0, 0));
    cr_assert_eq(symlink(".", link), 0);
    cr_expect_eq(ps_checkpoint_list(ps_disk_real(), link, take, &found, NULL), PSD_OK);
    cr_expect(found);
    cr_expect_eq(ps_checkpoint_drop(ps_disk_real(), link, "a", NULL), PSD_OK);
    cr_assert_eq(unlink(link), 0);
}

Test(chain, files_from_the_last_one_with_all_rows_on)
{
    make_three();
    expect_files("a", 0, "0/10 0/11 ");
    expect_files("b", 1, "1/11 0/21 0/20 ");
    expect_files("b", 2, "0/22 ");
    expect_files("c", 0, "1/20 0/30 2/11 1/21 0/31 ");
}

Test(chain, what_a_child_begins_behind)
{
    PSD_AUTO(ps_chain_done) ps_chain_t chain = {.n = 0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *words = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    make_three();
    cr_assert_eq(ps_chain_read(&chain, ps_disk_real(), dir, "b", NULL), PSD_OK);
    cr_assert_eq(ps_chain_since(&chain, 1, 3, words, NULL), PSD_OK);
    cr_assert(ps_doc_print(words, &text) && ps_buffer_append(&text, "", 1));
    cr_expect_str_eq((const char *)text.data, "{\"since\":[7,20,4,8,21,4,0,0,0]}");
}

Test(chain, a_parent_that_is_missing_or_another_one_is_named)
{
    make_three();
    cr_assert_eq(ps_checkpoint_drop(ps_disk_real(), dir, "a", NULL), PSD_OK);
    expect_refused("c", PSD_NO_CHECKPOINT, "\"b\" was made since \"a\": checkpoint \"a\" does not");
    make("a", NULL, FILE_OF(1, 0, 10, 5, 0));
    expect_refused("c", PSD_DAMAGED, "\"b\" was made since another \"a\"");
}

Test(chain, a_file_that_does_not_go_on_from_its_parents_is_refused)
{
    make("a", NULL, FILE_OF(1, 0, 10, 5, 0));
    make("b", "a", FILE_OF(1, 0, 20, 9, 6)); /* not 5 */
    expect_refused("b", PSD_DAMAGED, "partition 0 of table 1");
    make("c", "a", FILE_OF(1, 1, 20, 9, 5)); /* a has no partition 1 */
    expect_refused("c", PSD_DAMAGED, "partition 1 of table 1");
}
