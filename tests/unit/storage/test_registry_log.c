/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry/registry_log.h on a disk that works: what each call does, and
 * what it refuses. */
#include <sys/stat.h>

#include "registry_log_kit.h"
#include "support/temp_dir.h"

/* Closes and opens it; what is not flushed may be lost with the power. */
static void again(kit_t *self, bool loses_power)
{
    ps_registry_log_close(&self->log);
    if (loses_power) {
        sim_disk_restart(self->sim);
    }
    kit_must_open(self);
}

Test(registry_log, a_directory_without_one)
{
    kit_t kit;
    ps_registry_log_args_t args;

    kit_begin(&kit, 1, 4096);
    args = kit_args(&kit);
    cr_assert_eq(ps_registry_log_open(&args, &kit.log, NULL), PSD_OK);
    cr_assert_null(kit.log);
    cr_assert_eq(sim_disk_count(kit.sim), 0);
    kit_end(&kit);
}

Test(registry_log, is_made_empty_and_once)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    kit_t kit;
    ps_registry_log_args_t args;
    ps_id_t lineage = {{9}};

    kit_begin(&kit, 1, 4096);
    args = kit_args(&kit);
    cr_assert_eq(ps_registry_log_create(&args, &lineage, 0, NULL), PSD_INVALID);
    cr_assert(kit_create(&kit, 41));
    cr_assert_eq(ps_registry_log_first(kit.log), 41);
    cr_assert_eq(ps_registry_log_last(kit.log), 40);
    cr_assert_eq(ps_registry_log_flushed(kit.log), 40);
    cr_assert_eq(ps_registry_log_term(kit.log), 0);
    cr_assert_eq(ps_registry_log_vote(kit.log), 0);
    cr_assert_eq(sim_disk_count(kit.sim), 3);
    cr_assert_eq(ps_registry_log_create(&args, &lineage, 1, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err),
                     KIT_DIR " has files of a log; remove them to make another");
    again(&kit, true);
    cr_assert_eq(kit.now.lineage.bytes[0], 9);
    kit_end(&kit);
}

Test(registry_log, entries_last_in_many_segments)
{
    kit_t kit;

    kit_begin(&kit, 1, 700);
    cr_assert(kit_create(&kit, 1));
    cr_assert_eq(kit_set_term(&kit, 3, 77), PSD_OK);
    for (size_t i = 0; i < 200; i++) {
        cr_assert_eq(kit_append(&kit, 1 + i % 4), PSD_OK);
        cr_assert_eq(kit_flush(&kit), PSD_OK);
        cr_assert_eq(ps_registry_log_flushed(kit.log), kit.now.last);
    }
    cr_assert_gt(sim_disk_count(kit.sim), 50);
    again(&kit, true);
    cr_assert_eq(kit.now.last, 500);
    cr_assert_eq(ps_registry_log_torn_bytes(kit.log), 0);
    cr_assert_eq(ps_registry_log_bytes(kit.log) % 8, 0);
    cr_assert_eq(kit_append(&kit, 4), PSD_OK);
    again(&kit, false);
    cr_assert_eq(kit.now.last, 504);
    kit_end(&kit);
}

Test(registry_log, what_is_opened_is_flushed)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        kit_t kit;

        kit_begin(&kit, seed, 1 << 20);
        cr_assert(kit_create(&kit, 1));
        for (size_t i = 0; i < 10; i++) {
            cr_assert_eq(kit_append(&kit, 3), PSD_OK);
        }
        again(&kit, false);
        cr_assert_eq(kit.now.last, 30);
        again(&kit, true);
        cr_assert_eq(kit.now.last, 30);
        kit_end(&kit);
    }
}

static psd_status_t stop_at_5(void *context, const ps_registry_entry_t *entry, psd_error_t *err)
{
    uint64_t *seen = context;

    *seen = *seen * 100 + entry->index;
    return entry->index == 5 ? psd_error_set(err, PSD_FAILED, "enough") : PSD_OK;
}

Test(registry_log, a_walk_begins_and_ends_where_it_is_told)
{
    kit_t kit;
    uint64_t seen = 0;

    kit_begin(&kit, 1, 300);
    cr_assert(kit_create(&kit, 1));
    for (size_t i = 0; i < 6; i++) {
        cr_assert_eq(kit_append(&kit, 2), PSD_OK);
    }
    cr_assert_eq(ps_registry_log_read(kit.log, 3, stop_at_5, &seen, NULL), PSD_FAILED);
    cr_assert_eq(seen, 30405);
    seen = 0;
    cr_assert_eq(ps_registry_log_read(kit.log, 12, stop_at_5, &seen, NULL), PSD_OK);
    cr_assert_eq(seen, 12);
    cr_assert_eq(ps_registry_log_read(kit.log, 13, stop_at_5, &seen, NULL), PSD_OK);
    cr_assert_eq(seen, 12);
    kit_end(&kit);
}

Test(registry_log, refuses_entries_that_do_not_follow)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    static const uint8_t byte[1];
    kit_t kit;
    static const struct {
        ps_registry_entry_t entry;
        const char *why;
    } cases[] = {
        {{4, 2, PS_REGISTRY_COMMAND, {NULL, 0}}, "entry 4 cannot follow entry 2"},
        {{2, 2, PS_REGISTRY_COMMAND, {NULL, 0}}, "entry 2 cannot follow entry 2"},
        {{3, 1, PS_REGISTRY_COMMAND, {NULL, 0}}, "entry 3: term is 1; allowed: 2 to 5"},
        {{3, 6, PS_REGISTRY_COMMAND, {NULL, 0}}, "entry 3: term is 6; allowed: 2 to 5"},
        {{3, 2, (ps_registry_entry_kind_t)4, {NULL, 0}}, "entry 3: kind is 4"},
        {{3, 2, PS_REGISTRY_BARRIER, {byte, PS_REGISTRY_ENTRY_MAX + 1}},
         "entry 3 has 67108865 bytes; allowed: at most 67108864"},
    };

    kit_begin(&kit, 1, 4096);
    cr_assert(kit_create(&kit, 1));
    cr_assert_eq(kit_set_term(&kit, 2, 0), PSD_OK);
    cr_assert_eq(kit_append(&kit, 2), PSD_OK);
    cr_assert_eq(kit_set_term(&kit, 5, 0), PSD_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        psd_error_clear(err);
        cr_assert_eq(ps_registry_log_append(kit.log, &cases[i].entry, 1, err), PSD_INVALID);
        cr_assert_str_eq(psd_error_text(err), cases[i].why);
    }
    cr_assert_eq(ps_registry_log_append(kit.log, NULL, 0, NULL), PSD_OK);
    cr_assert_eq(kit_append(&kit, 1), PSD_OK);
    again(&kit, false);
    cr_assert_eq(kit.now.last, 3);
    kit_end(&kit);
}

Test(registry_log, term_and_vote_only_go_on)
{
    kit_t kit;

    kit_begin(&kit, 1, 4096);
    cr_assert(kit_create(&kit, 1));
    cr_assert_eq(kit_set_term(&kit, 4, 0), PSD_OK);
    cr_assert_eq(kit_set_term(&kit, 4, 77), PSD_OK);
    cr_assert_eq(kit_set_term(&kit, 4, 77), PSD_OK);
    cr_assert_eq(kit_set_term(&kit, 4, 78), PSD_INVALID);
    cr_assert_eq(kit_set_term(&kit, 4, 0), PSD_INVALID);
    cr_assert_eq(kit_set_term(&kit, 3, 77), PSD_INVALID);
    cr_assert_eq(kit_set_term(&kit, (UINT64_C(1) << 62) + 1, 77), PSD_INVALID);
    kit_forget(&kit);
    again(&kit, true);
    cr_assert_eq(kit.now.vote, 77);
    cr_assert_eq(kit_set_term(&kit, 5, 78), PSD_OK);
    cr_assert_eq(kit_set_lineage(&kit, 200), PSD_OK);
    cr_assert_eq(kit_set_lineage(&kit, 200), PSD_OK);
    again(&kit, true);
    cr_assert_eq(kit.now.term, 5);
    cr_assert_eq(kit.now.lineage.bytes[3], 200);
    kit_end(&kit);
}

/* A log of 12 entries in segments that begin with 1, 3, 5, 7, 9 and 11. */
static void make_twelve(kit_t *self, uint64_t seed)
{
    kit_begin(self, seed, 49);
    cr_assert(kit_create(self, 1));
    cr_assert_eq(kit_set_term(self, 1, 0), PSD_OK);
    for (size_t i = 0; i < 6; i++) {
        cr_assert_eq(kit_append(self, 2), PSD_OK);
    }
    cr_assert_eq(kit_flush(self), PSD_OK);
    cr_assert_eq(sim_disk_count(self->sim), 2 + 6);
}

Test(registry_log, each_start_has_a_higher_number)
{
    kit_t kit;
    uint64_t last = 0;

    kit_begin(&kit, 1, 4096);
    cr_assert(kit_create(&kit, 1));
    for (uint64_t term = 1; term <= 4; term++) {
        uint64_t life = 0;

        cr_assert_eq(ps_registry_log_count_start(kit.log, &life, NULL), PSD_OK);
        cr_assert_gt(life, last);
        last = life;
        cr_assert_eq(kit_set_term(&kit, term, 0), PSD_OK);
        kit_forget(&kit);
        again(&kit, true);
        cr_assert_eq(ps_registry_log_member(kit.log), 77);
    }
    kit_end(&kit);
}

Test(registry_log, a_tail_that_was_cut_never_comes_back)
{
    for (uint64_t from = 1; from <= 13; from++) {
        kit_t kit;

        make_twelve(&kit, from);
        cr_assert_eq(kit_set_term(&kit, 2, 0), PSD_OK);
        cr_assert_eq(kit_cut_tail(&kit, from), PSD_OK);
        cr_assert_eq(kit.now.last, from - 1);
        cr_assert_eq(ps_registry_log_flushed(kit.log), from - 1);
        again(&kit, true);
        cr_assert_eq(kit.now.last, from - 1);
        for (size_t i = 0; i < 5; i++) {
            cr_assert_eq(kit_append(&kit, 3), PSD_OK);
            again(&kit, true);
        }
        cr_assert_eq(kit_cut_tail(&kit, from), PSD_OK);
        again(&kit, true);
        kit_end(&kit);
    }
}

/* After a cut entries may have the term of the last one that stayed. */
Test(registry_log, a_cut_takes_the_terms_with_it)
{
    ps_registry_entry_t entry = {.index = 3, .term = 1, .kind = PS_REGISTRY_COMMAND};
    kit_t kit;

    make_twelve(&kit, 1);
    cr_assert_eq(kit_cut_tail(&kit, 3), PSD_OK);
    cr_assert_eq(kit_set_term(&kit, 7, 0), PSD_OK);
    cr_assert_eq(kit_append(&kit, 2), PSD_OK);
    cr_assert_eq(kit_cut_tail(&kit, 3), PSD_OK);
    entry.term = 0;
    cr_assert_eq(ps_registry_log_append(kit.log, &entry, 1, NULL), PSD_INVALID);
    entry.term = 1;
    cr_assert_eq(ps_registry_log_append(kit.log, &entry, 1, NULL), PSD_OK);
    kit_end(&kit);
}

Test(registry_log, a_head_is_cut_in_whole_segments)
{
    static const uint64_t firsts[] = {1, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 11, 11};

    for (uint64_t before = 0; before < sizeof firsts / sizeof *firsts; before++) {
        kit_t kit;

        make_twelve(&kit, before);
        cr_assert_eq(kit_cut_head(&kit, before), PSD_OK);
        cr_assert_eq(ps_registry_log_first(kit.log), firsts[before]);
        cr_assert_eq(sim_disk_count(kit.sim), 2 + 6 - firsts[before] / 2);
        again(&kit, true);
        cr_assert_eq(kit.now.first, firsts[before]);
        cr_assert_eq(kit.now.last, 12);
        cr_assert_eq(kit_cut_tail(&kit, firsts[before]), PSD_OK);
        cr_assert_eq(kit_append(&kit, 3), PSD_OK);
        again(&kit, false);
        if (firsts[before] > 1) {
            cr_assert_eq(ps_registry_log_cut_tail(kit.log, firsts[before] - 1, NULL), PSD_INVALID);
        }
        kit_end(&kit);
    }
}

Test(registry_log, a_reset_forgets_all_but_term_and_vote)
{
    static const uint64_t nexts[] = {1, 5, 6, 12, 13, 14, 1000};

    for (size_t i = 0; i < sizeof nexts / sizeof *nexts; i++) {
        kit_t kit;

        make_twelve(&kit, i);
        cr_assert_eq(kit_set_term(&kit, 9, 77), PSD_OK);
        cr_assert_eq(ps_registry_log_reset(kit.log, 0, NULL), PSD_INVALID);
        cr_assert_eq(kit_reset(&kit, nexts[i]), PSD_OK);
        cr_assert_eq(ps_registry_log_flushed(kit.log), nexts[i] - 1);
        cr_assert_eq(sim_disk_count(kit.sim), 3);
        again(&kit, true);
        cr_assert_eq(kit.now.first, nexts[i]);
        cr_assert_eq(kit.now.last, nexts[i] - 1);
        cr_assert_eq(kit.now.vote, 77);
        cr_assert_eq(kit_append(&kit, 4), PSD_OK);
        again(&kit, false);
        kit_end(&kit);
    }
}

Test(registry_log, another_ones_files_are_refused_by_name)
{
    static const struct {
        uint8_t cluster;
        uint64_t member;
        const char *why;
    } cases[] = {
        {5, 77,
         KIT_DIR "/term is of cluster 01020304-0000-0000-0000-000000000000; this one is "
                 "05020304-0000-0000-0000-000000000000"},
        {1, 78,
         KIT_DIR "/term is of member 000000000000004d of the registry; this one is "
                 "000000000000004e"},
    };
    kit_t kit;

    make_twelve(&kit, 1);
    ps_registry_log_close(&kit.log);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        ps_registry_log_args_t args = kit_args(&kit);
        uint64_t ops = sim_disk_ops(kit.sim);

        args.cluster.bytes[0] = cases[i].cluster;
        args.member = cases[i].member;
        cr_assert_eq(ps_registry_log_open(&args, &kit.log, err), PSD_FOREIGN);
        cr_assert_str_eq(psd_error_text(err), cases[i].why);
        cr_assert_eq(sim_disk_ops(kit.sim), ops);
    }
    kit_must_open(&kit);
    kit_end(&kit);
}

/* ---- no room ---- */

Test(registry_log, goes_on_when_there_is_room_again)
{
    for (uint64_t room = 0; room < 2600; room += 13) {
        kit_t kit;
        size_t n = 0;

        kit_begin(&kit, room + 1, 400);
        cr_assert(kit_create(&kit, 1));
        cr_assert_eq(kit_append(&kit, 2), PSD_OK);
        cr_assert_eq(kit_flush(&kit), PSD_OK);
        sim_disk_set_capacity(kit.sim, sim_disk_bytes(kit.sim) + room);
        while (kit_append(&kit, 1 + n % 4) == PSD_OK) {
            n++;
        }
        kit_forget(&kit);
        for (size_t i = 0; i < 3; i++) {
            psd_status_t rc = kit_append(&kit, 4);

            /* Smaller ones may still fit. */
            cr_assert(rc == PSD_LIMIT || rc == PSD_OK);
            kit_forget(&kit);
            cr_assert(!ps_registry_log_is_broken(kit.log));
            cr_assert_eq(ps_registry_log_last(kit.log), kit.now.last);
            cr_assert_eq(kit_set_term(&kit, i + 1, 0), PSD_OK);
            cr_assert_eq(kit_flush(&kit), PSD_OK);
        }
        if (room % 2 == 0) {
            again(&kit, true);
        }
        sim_disk_set_capacity(kit.sim, UINT64_MAX);
        cr_assert_eq(kit_append(&kit, 4), PSD_OK);
        cr_assert_eq(kit_flush(&kit), PSD_OK);
        again(&kit, true);
        kit_end(&kit);
    }
}

static psd_status_t (*flush_names)(ps_disk_t *, const char *, psd_error_t *);

/* A directory that cannot grow; once. */
static psd_status_t no_room(ps_disk_t *disk, const char *dir, psd_error_t *err)
{
    (void)dir;
    disk->flush_dir = flush_names;
    return psd_error_set(err, PSD_LIMIT, "no room for a name");
}

/* The segment has its name already: it is removed, or the one before, which a
 * cut makes the last again, would grow past it. */
Test(registry_log, a_segment_that_was_not_made_leaves_nothing)
{
    kit_t kit;
    ps_disk_t *disk = NULL;

    make_twelve(&kit, 1);
    disk = sim_disk_face(kit.sim);
    flush_names = disk->flush_dir;
    disk->flush_dir = no_room;
    cr_assert_eq(kit_append(&kit, 2), PSD_LIMIT);
    kit_forget(&kit);
    cr_assert(!ps_registry_log_is_broken(kit.log));
    cr_assert_eq(sim_disk_count(kit.sim), 2 + 6);
    cr_assert_eq(kit_cut_tail(&kit, 12), PSD_OK);
    kit.segment_bytes = 1 << 20;
    again(&kit, false);
    cr_assert_eq(kit_append(&kit, 4), PSD_OK);
    cr_assert_eq(kit_flush(&kit), PSD_OK);
    again(&kit, true);
    cr_assert_eq(kit.now.last, 15);
    kit_end(&kit);
}

Test(registry_log, cuts_work_on_a_full_disk)
{
    for (uint64_t from = 1; from <= 12; from++) {
        kit_t kit;

        make_twelve(&kit, from);
        sim_disk_set_capacity(kit.sim, sim_disk_bytes(kit.sim));
        cr_assert_eq(kit_append(&kit, 4), PSD_LIMIT);
        kit_forget(&kit);
        cr_assert_eq(kit_cut_head(&kit, from), PSD_OK);
        cr_assert_eq(kit_cut_tail(&kit, from), PSD_OK);
        again(&kit, true);
        kit_end(&kit);
    }
}

/* ---- failures ---- */

Test(registry_log, a_broken_one_refuses_until_it_is_opened)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    kit_t kit;

    make_twelve(&kit, 1);
    cr_assert_eq(kit_append(&kit, 1), PSD_OK);
    sim_disk_plan(kit.sim, sim_disk_ops(kit.sim), 1, SIM_DISK_FAIL);
    cr_assert_eq(kit_flush(&kit), PSD_IO);
    cr_assert(ps_registry_log_is_broken(kit.log));
    cr_assert_eq(ps_registry_log_flush(kit.log, err), PSD_IO);
    cr_assert_str_eq(psd_error_text(err),
                     KIT_DIR ": an earlier write or flush failed; the log must be opened again");
    cr_assert_eq(ps_registry_log_append(kit.log, NULL, 0, NULL), PSD_IO);
    cr_assert_eq(ps_registry_log_set_term(kit.log, 50, 0, NULL), PSD_IO);
    cr_assert_eq(ps_registry_log_set_lineage(kit.log, &KIT_CLUSTER, NULL), PSD_IO);
    cr_assert_eq(ps_registry_log_cut_tail(kit.log, 2, NULL), PSD_IO);
    cr_assert_eq(ps_registry_log_cut_head(kit.log, 9, NULL), PSD_IO);
    cr_assert_eq(ps_registry_log_reset(kit.log, 9, NULL), PSD_IO);
    again(&kit, false);
    cr_assert_eq(kit.now.last, 13);
    cr_assert_eq(kit_append(&kit, 1), PSD_OK);
    kit_end(&kit);
}

/* ---- the system's disk ---- */

static psd_status_t look_at(void *context, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    const kit_t *kit = context;
    struct stat status;

    cr_assert_eq(ps_disk_path(&path, err, kit->real_dir, "%s", name), PSD_OK);
    cr_assert_eq(stat((const char *)path.data, &status), 0);
    cr_assert_eq(status.st_mode & 07777, 0600, "%s", name);
    return PSD_OK;
}

Test(registry_log, works_on_the_systems_disk)
{
    char dir[PATH_MAX + 16];
    temp_dir_t temp;
    kit_t kit;

    cr_assert(temp_dir_make(&temp));
    (void)snprintf(dir, sizeof dir, "%s/registry-log", temp.path);
    kit_begin(&kit, 1, 1000);
    kit.real_dir = dir;
    cr_assert(kit_create(&kit, 1));
    for (uint64_t life = 1; life < 4; life++) {
        cr_assert_eq(kit_set_term(&kit, life, 77), PSD_OK);
        for (size_t i = 0; i < 15; i++) {
            cr_assert_eq(kit_append(&kit, 4), PSD_OK);
            cr_assert_eq(kit_flush(&kit), PSD_OK);
        }
        cr_assert_eq(kit_cut_tail(&kit, kit.now.last - 7), PSD_OK);
        again(&kit, false);
    }
    cr_assert_eq(ps_disk_real()->list(ps_disk_real(), dir, look_at, &kit, NULL), PSD_OK);
    /* Segments are not those of the virtual disk. */
    cr_assert_eq(ps_registry_log_cut_head(kit.log, 100, NULL), PSD_OK);
    cr_assert(ps_registry_log_first(kit.log) > 60 && ps_registry_log_first(kit.log) <= 100);
    kit.now.first = ps_registry_log_first(kit.log);
    kit.next = kit.now;
    again(&kit, false);
    cr_assert_eq(kit_reset(&kit, 200), PSD_OK);
    again(&kit, false);
    kit_end(&kit);
    temp_dir_drop(&temp);
}
