/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry_db.h: files that are foreign, newer, cut or damaged. */
#include <fcntl.h>
#include <sys/stat.h>

#include "support/registry_db_test.h"

TestSuite(registry_db_damage, .init = make_temp, .fini = drop_temp);

/* What cannot be opened */

static void
write_file(const char *text, size_t at)
{
    int fd = open(file, O_WRONLY | O_CREAT, 0600);

    cr_assert_geq(fd, 0);
    cr_assert_eq(pwrite(fd, text, strlen(text), (off_t)at),
                 (ssize_t)strlen(text));
    cr_assert_eq(close(fd), 0);
}

Test(registry_db_damage, a_newer_schema_is_refused_by_both_versions)
{
    make_data();
    run_sql("PRAGMA user_version = 6");
    assert_open_fails(PSD_FOREIGN,
                      "its schema is version 6; psd 0.1.0 knows up to 5");
}

Test(registry_db_damage, somebody_elses_database_is_refused_and_not_touched)
{
    struct stat before;
    struct stat after;

    cr_assert_eq(mkdir(dir, 0700), 0);
    run_sql("CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)");
    cr_assert_eq(stat(file, &before), 0);
    assert_open_fails(PSD_FOREIGN, "is no registry of psd");
    cr_assert_eq(stat(file, &after), 0);
    cr_assert_eq(before.st_size, after.st_size);
    cr_assert_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    run_sql("PRAGMA application_id = 252006673");
    assert_open_fails(PSD_FOREIGN, "its application_id is 252006673");
}

Test(registry_db_damage, a_file_that_is_no_database_is_refused)
{
    cr_assert_eq(mkdir(dir, 0700), 0);
    write_file("cats and dogs and other animals", 0);
    assert_open_fails(PSD_FOREIGN, "is no registry of psd: not SQLite");
}

Test(registry_db_damage, a_damaged_file_is_refused)
{
    make_data();
    run_sql("PRAGMA journal_mode = DELETE");
    for (size_t at = 4096; at < 20 * 4096; at += 4096) {
        write_file("not a page of a b-tree any more", at);
    }
    assert_open_fails(PSD_DAMAGED, "registry.db");
}

Test(registry_db_damage, a_cut_file_is_refused)
{
    make_data();
    run_sql("PRAGMA journal_mode = DELETE");
    cr_assert_eq(truncate(file, 5 * 4096), 0);
    assert_open_fails(PSD_DAMAGED, "registry.db");
}

Test(registry_db_damage, a_missing_table_is_damage)
{
    make_data();
    run_sql("DROP TABLE job_tables");
    assert_open_fails(PSD_DAMAGED, "no such table: job_tables");
}

Test(registry_db_damage, a_row_that_refers_to_nothing_is_damage)
{
    make_data();
    run_sql("DELETE FROM shards WHERE shard = 1");
    assert_open_fails(PSD_DAMAGED, "foreign_key_check says \"copies\"");
}

Test(registry_db_damage, our_file_without_a_schema_is_damage)
{
    make_data();
    run_sql("PRAGMA user_version = 0");
    assert_open_fails(PSD_DAMAGED, "its schema is version 0");
}

/* Rows that are damaged: each case spoils one row of a good file. */

static const char *const damaged_rows[][2] = {
    {"UPDATE cluster SET name = 'a b'", "name of the cluster"},
    {"UPDATE cluster SET name = printf('%0100d', 1)", "row id=1, name=0000"},
    {"UPDATE cluster SET uuid = x'00'", "uuid is not of its type"},
    {"UPDATE cluster SET uuid = zeroblob(16)", "UUID is 0"},
    {"UPDATE cluster SET epoch = -1", "epoch"},
    {"UPDATE cluster SET epoch = 0", "epoch"},
    {"UPDATE cluster SET sessions = -1", "sessions are out of range"},
    {"UPDATE cluster SET last_table = -1", "last_table is not of its"},
    {"UPDATE cluster SET last_job = 4294967296", "last_job is not of its"},
    {"DELETE FROM cluster", "there is no cluster yet"},
    {"UPDATE nodes SET name = ''", "name of the node"},
    {"UPDATE nodes SET incarnation = 0", "incarnation of node n0 is 0"},
    {"UPDATE nodes SET control = printf('%0300d', 1)", "control is not"},
    {"DELETE FROM copies; DELETE FROM shards", "0 shards"},
    {"DELETE FROM copies; DELETE FROM shards WHERE shard = 0",
     "table shards: number 0 of node n0 is 1"},
    {"UPDATE shards SET tcp = ''", "shard 0 of node n0 has no endpoint"},
    {"UPDATE shards SET ipc = printf('%0300d', 1)", "ipc is not of"},
    {"UPDATE tables SET name = '-w'", "name of the table"},
    {"UPDATE tables SET rows_lost = 2", "rows_lost is not of"},
    {"UPDATE tables SET n_rows = 0", "table tables, row id=1, name=w"},
    {"UPDATE tables SET n_rows = -1", "table w"},
    {"UPDATE tables SET n_cols = 0", "table w"},
    {"UPDATE tables SET n_cols = -1", "n_cols is not of"},
    {"UPDATE tables SET type = 'f16'", "f16"},
    {"UPDATE tables SET row_format = 'x'", "\"x\""},
    {"UPDATE tables SET keys = 'x'", "\"x\""},
    {"UPDATE tables SET updater = 'sgd:alpha=0'", "alpha"},
    {"UPDATE tables SET updater = printf('%01000d', 1)", "updater"},
    {"UPDATE tables SET init = 'uniform:1'", "first value"},
    {"UPDATE tables SET n_partitions = 5", "missing or not one of 5"},
    {"UPDATE tables SET n_partitions = 3", "missing or not one of 3"},
    {"UPDATE tables SET n_partitions = 1000000000", "one of 1000000000"},
    {"UPDATE tables SET n_col_slices = 0", "table w"},
    {"UPDATE tables SET partition_by = 'list:9,8,7'", "8"},
    {"UPDATE tables SET partition_by = 'list:1'", "table w"},
    {"UPDATE tables SET replicas = 0", "replicas"},
    {"UPDATE tables SET ack = 'default'", "default"},
    {"UPDATE tables SET allow_nonfinite = 7", "allow_nonfinite is not"},
    {"UPDATE tables SET versions = 7", "versions is not"},
    {"UPDATE tables SET filter = 'f17'", "filter is \"f17\""},
    {"DELETE FROM copies WHERE partition = 2; "
     "DELETE FROM partitions WHERE partition = 2",
     "row table_id=1, partition=2: missing"},
    {"UPDATE copies SET partition = 9 WHERE partition = 2; "
     "UPDATE partitions SET partition = 9 WHERE partition = 2",
     "row table_id=1, partition=2: missing"},
    {"DELETE FROM copies; DELETE FROM partitions", "partition=0: missing"},
    {"UPDATE partitions SET epoch = 99", "of epoch 99"},
    {"UPDATE partitions SET epoch = 0", "of epoch 0"},
    {"UPDATE partitions SET fenced = 2", "fenced is not of"},
    {"UPDATE partitions SET fenced = 1", "copy 0 of 1, fenced, is primary"},
    {"DELETE FROM copies WHERE partition = 2",
     "partition 2 of table w: there are 0 copies"},
    {"UPDATE copies SET place = 1 WHERE partition = 2",
     "row table_id=1, partition=2, place=1: out of order"},
    {"UPDATE copies SET place = -1", "place is not of"},
    {"UPDATE copies SET state = 'in_sync'", "copy 0 of 1 is in_sync"},
    {"UPDATE copies SET state = 'dead'", "copy 0 of 1 is ?"},
    {"UPDATE copies SET leaving = 2", "leaving is not of"},
    {"INSERT INTO copies VALUES(1, 0, 1, 1, 1, 'in_sync', 0)",
     "copies 0 and 1 are on one node"},
    {"UPDATE nodes SET state = 'gone'", "state is \"gone\""},
    {"UPDATE nodes SET weight = 1025", "weight of node n0 is 1025"},
    {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0)", "0 workers"},
    {"INSERT INTO jobs VALUES(-1, 'j', 0, 1, 0, 1, 1, 0)", "id is not of"},
    {"INSERT INTO jobs VALUES(1, 'j', 3000000000, 1, 0, 1, 1, 0)",
     "max_delay is not of"},
    {"INSERT INTO jobs VALUES(1, '', 0, 1, 0, 1, 1, 0); "
     "INSERT INTO workers VALUES(1, 0, 'running', 1, 1, 0)",
     "name of the job"},
    {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0); "
     "INSERT INTO workers VALUES(1, 0, 'asleep', 1, 1, 0)",
     "worker 0 of job j has state 0"},
    {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0); "
     "INSERT INTO workers VALUES(1, 5000, 'running', 1, 1, 0)",
     "out of order or range"},
    {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0); "
     "INSERT INTO workers VALUES(1, 0, 'running', 257, 1, 0)",
     "257 members"},
    {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0); "
     "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n "
     "WHERE i < 6000) INSERT INTO workers SELECT 1, i, 'running', 1, 1, 0 "
     "FROM n",
     "4097 workers"},
};

Test(registry_db_damage, every_row_is_checked)
{
    for (size_t i = 0; i < sizeof damaged_rows / sizeof *damaged_rows; i++) {
        (void)snprintf(dir, sizeof dir, "%s/data%u", temp.path, (unsigned)i);
        (void)snprintf(file, sizeof file, "%s/registry.db", dir);
        make_data();
        assert_load_fails(damaged_rows[i][0], damaged_rows[i][1]);
    }
}
