/* SPDX-License-Identifier: Apache-2.0 */
/* A journal's thread that finds no memory: it says so, tries again where
 * nothing is lost by that, and the log has no gap in any case. And the file of a
 * table, which follows what the table combines. */
#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "server/shards/shard_journal.h"
#include "protocol/shard/shard_recover.h"
#include "protocol/shard/shard_state.h"
#include "support/check.h"
#include "support/fail_alloc.h"
#include "support/temp_dir.h"

#define TABLE 7
#define RECORDS 6
#define WAIT_MS 60000

typedef struct kit {
    temp_dir_t dir;
    char log[PATH_MAX];
    ps_shard_t *shard;
    ps_journal_thread_t *thread;
    psd_error_t *err;
} kit_t;

static bool open_kit(kit_t *self)
{
    const ps_shard_args_t shard = {.incarnation = 9,
                                   .credit_requests = 8,
                                   .credit_bytes = 1 << 20,
                                   .chunk_bytes = 1 << 20,
                                   .slice_bytes = 1 << 20,
                                   .held_bytes = 1 << 20,
                                   .keys_bytes = 1 << 20,
                                   .sessions_max = 8,
                                   .disk = true};
    const ps_journal_args_t args = {.disk = ps_disk_real(),
                                    .dir = self->log,
                                    .cluster = {{1, 2}},
                                    .node = "n1",
                                    .n_shards = 1,
                                    .segment_bytes = 1 << 16};
    ps_journal_t *journal = NULL;
    ps_journal_found_t found;

    CHECK_OK(ps_shard_new(&shard, &self->shard, self->err), self->err);
    CHECK_OK(ps_journal_open(&args, &journal, self->err), self->err);
    CHECK_OK(ps_journal_recover(journal, self->shard, NULL, NULL, &found, self->err), self->err);
    CHECK_OK(ps_journal_thread_start(&journal, &args, NULL, &self->thread, self->err), self->err);
    return true;
}

static void close_kit(kit_t *self)
{
    ps_journal_thread_stop(&self->thread);
    ps_shard_destroy(&self->shard);
}

static ps_table_spec_t spec_of(ps_combine_t combine)
{
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    (void)snprintf(spec.name, sizeof spec.name, "w");
    spec.n_rows = 4;
    spec.n_partitions = 1;
    spec.n_col_slices = 1;
    spec.ack = PS_ACK_DISK;
    spec.combine = combine;
    return spec;
}

static bool put_table(kit_t *self)
{
    const ps_table_spec_t spec = spec_of(PS_COMBINE_EACH);

    CHECK_OK(ps_journal_thread_put_table(self->thread, TABLE, &spec, self->err), self->err);
    return true;
}

static void give_records(kit_t *self)
{
    for (uint64_t lsn = 1; lsn <= RECORDS; lsn++) {
        const ps_record_t record = {
            .kind = PS_RECORD_EPOCH, .table = TABLE, .lsn = lsn, .epoch = 1};

        ps_journal_thread_record(self->thread, &record, NULL);
    }
}

/* Until all is told as flushed, or there is trouble that stays. */
static bool wait_for_end(kit_t *self, bool *ret_is_whole)
{
    ps_journal_news_t news = {0};
    struct pollfd fd = {.fd = ps_journal_thread_fd(self->thread), .events = POLLIN};
    bool is_cut = false;

    *ret_is_whole = false;
    while (!*ret_is_whole && !is_cut) {
        CHECK(poll(&fd, 1, WAIT_MS) == 1);
        if (!ps_journal_thread_take(self->thread, &news)) {
            continue;
        }
        for (size_t i = 0; i < news.n_positions; i++) {
            *ret_is_whole |= news.positions[i].lsn == RECORDS;
        }
        is_cut = strstr(news.trouble, "restart psd") != NULL;
    }
    CHECK(!*ret_is_whole || news.trouble[0] == '\0');
    ps_journal_news_done(&news);
    return true;
}

/* Allocation `at` fails. *ret_happened false: there are fewer. */
static bool lacks_memory(kit_t *self, size_t at, bool *ret_happened, bool *ret_is_whole)
{
    uint64_t lsn = 0;

    CHECK(temp_dir_make(&self->dir));
    (void)snprintf(self->log, sizeof self->log, "%.3000s/log-0", self->dir.path);
    CHECK(open_kit(self) && put_table(self));
    fail_alloc_at(at);
    give_records(self);
    CHECK(wait_for_end(self, ret_is_whole));
    *ret_happened = fail_alloc_happened();
    fail_alloc_off();
    CHECK(*ret_is_whole || *ret_happened);
    close_kit(self);
    CHECK(open_kit(self));
    lsn = ps_shard_recover_lsn(self->shard, TABLE, 0);
    CHECK(*ret_is_whole ? lsn == RECORDS : lsn < RECORDS);
    close_kit(self);
    temp_dir_drop(&self->dir);
    return true;
}

/* As the registry tells it, with the map of that epoch. */
static bool tell_table(kit_t *self, ps_combine_t combine, uint64_t epoch)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    const ps_table_spec_t spec = spec_of(combine);
    const ps_route_t route = {.epoch = epoch, .incarnation = 9};
    const ps_event_t event = {
        .kind = PS_EVENT_TABLE, .table = TABLE, .spec = &spec, .routes = &route, .n_routes = 1};

    CHECK_OK(ps_shard_journal_table(self->thread, self->shard, &event, self->err), self->err);
    CHECK_OK(ps_shard_step(self->shard, &event, &outbox, self->err), self->err);
    return true;
}

static bool restart(kit_t *self, ps_combine_t expected)
{
    const ps_local_table_t *table = NULL;

    close_kit(self);
    CHECK(open_kit(self));
    table = ps_map_get(&self->shard->step.tables, TABLE);
    CHECK(table != NULL && table->spec.combine == expected);
    return true;
}

/* A start has what was set last; an older word of the map does not take it back. */
static bool keeps_combine(kit_t *self)
{
    CHECK(temp_dir_make(&self->dir));
    (void)snprintf(self->log, sizeof self->log, "%.3000s/log-0", self->dir.path);
    CHECK(open_kit(self));
    CHECK(tell_table(self, PS_COMBINE_EACH, 4) && restart(self, PS_COMBINE_EACH));
    CHECK(tell_table(self, PS_COMBINE_EACH, 4) && tell_table(self, PS_COMBINE_CLOCK_SUM, 4));
    CHECK(restart(self, PS_COMBINE_CLOCK_SUM));
    CHECK(tell_table(self, PS_COMBINE_CLOCK_MEAN, 5) && tell_table(self, PS_COMBINE_EACH, 4));
    CHECK(restart(self, PS_COMBINE_CLOCK_MEAN));
    close_kit(self);
    temp_dir_drop(&self->dir);
    return true;
}

int main(void)
{
    kit_t kit = {.err = psd_error_new()};
    bool happened = true;
    bool is_whole = false;
    bool good = keeps_combine(&kit);
    int n_whole = 0;
    int n_cut = 0;

    for (size_t at = 0; good && happened; at++) {
        good = lacks_memory(&kit, at, &happened, &is_whole);
        n_whole += happened && is_whole ? 1 : 0;
        n_cut += is_whole ? 0 : 1;
    }
    psd_error_destroy(&kit.err);
    (void)printf("%d tried again, %d cut\n", n_whole, n_cut);
    return good && n_whole > 0 && n_cut > 0 ? 0 : 1;
}
