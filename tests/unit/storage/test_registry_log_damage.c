/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry/registry_log.h over damaged files: every byte is noticed, or
 * does not matter; what is flushed is never cut off as torn. */
#include "registry_log_kit.h"
#include "storage/registry/registry_log_format.h"
#include "support/fail_alloc.h"

#define FIRST KIT_DIR "/entries-00000000000000000001"
#define LAST KIT_DIR "/entries-00000000000000000007"
#define TERM KIT_DIR "/term"
#define NOTE KIT_DIR "/flushed"
#define SLOT_AT 4096 /* of the second one in TERM and NOTE */

static const char *const files[] = {FIRST, KIT_DIR "/entries-00000000000000000004", LAST, TERM,
                                    NOTE};
#define N_FILES (sizeof files / sizeof *files)

static void reopen(kit_t *self, uint64_t segment_bytes)
{
    ps_registry_log_close(&self->log);
    self->segment_bytes = segment_bytes;
    kit_must_open(self);
}

/* Entries 1 .. 9 in three segments, each flushed by itself; closed. Only the
 * note says that the last one is flushed. */
static void make_nine(kit_t *self)
{
    kit_begin(self, 1, 1 << 20);
    cr_assert(kit_create(self, 1));
    cr_assert_eq(kit_set_term(self, 1, 77), PSD_OK);
    for (size_t i = 0; i < 9; i++) {
        if (i == 3 || i == 6) {
            reopen(self, 1);
        }
        cr_assert_eq(kit_append(self, 1), PSD_OK);
        cr_assert_eq(kit_flush(self), PSD_OK);
        if (i == 3 || i == 6) {
            reopen(self, 1 << 20);
        }
    }
    ps_registry_log_close(&self->log);
    cr_assert_eq(sim_disk_count(self->sim), N_FILES);
}

/* It is refused, and nothing was changed; or it is as it was. */
static psd_status_t open_damaged(kit_t *self, const char *path, uint64_t offset)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint64_t ops = sim_disk_ops(self->sim);
    uint64_t last = self->now.last;
    psd_status_t rc = kit_open(self, err);

    if (rc == PSD_OK) {
        cr_assert_eq(self->now.last, last, "%s: byte %" PRIu64 ": %" PRIu64 " entries", path,
                     offset, self->now.last);
        cr_assert_eq(ps_registry_log_torn_bytes(self->log), 0);
    } else {
        cr_assert(rc == PSD_DAMAGED || rc == PSD_FOREIGN);
        cr_assert(strstr(psd_error_text(err), KIT_DIR "/") != NULL, "%s", psd_error_text(err));
        cr_assert_eq(sim_disk_ops(self->sim), ops, "%s: byte %" PRIu64 ": changed", path, offset);
    }
    return rc;
}

Test(registry_log_damage, every_byte_is_noticed_or_harmless)
{
    static const uint8_t masks[] = {0x01, 0x80, 0xff};
    kit_t kit;

    make_nine(&kit);
    for (size_t file = 0; file < N_FILES; file++) {
        for (uint64_t at = 0; at < sim_disk_content(kit.sim, files[file]).size; at++) {
            for (size_t i = 0; i < sizeof masks; i++) {
                psd_status_t rc = PSD_OK;

                sim_disk_flip(kit.sim, files[file], at, masks[i]);
                rc = open_damaged(&kit, files[file], at);
                /* One of two slots is not needed, and is written again. */
                cr_assert_eq(rc == PSD_OK, file >= 3, "%s: byte %" PRIu64, files[file], at);
                if (rc != PSD_OK || (at >= 120 && at < SLOT_AT)) {
                    sim_disk_flip(kit.sim, files[file], at, masks[i]);
                }
                if (rc == PSD_OK) {
                    ps_registry_log_close(&kit.log);
                }
            }
        }
    }
    kit_end(&kit);
}

Test(registry_log_damage, every_length_is_noticed_or_harmless)
{
    for (size_t file = 0; file < N_FILES; file++) {
        for (uint64_t size = 0;; size++) {
            psd_status_t rc = PSD_OK;
            kit_t kit;

            make_nine(&kit);
            if (size >= sim_disk_content(kit.sim, files[file]).size) {
                kit_end(&kit);
                break;
            }
            sim_disk_cut(kit.sim, files[file], size);
            rc = open_damaged(&kit, files[file], size);
            cr_assert(file >= 3 || rc == PSD_DAMAGED, "%s: %" PRIu64 " bytes", files[file], size);
            kit_end(&kit);
            size += file >= 3 && size > 200 && size < SLOT_AT - 8 ? 500 : 0;
        }
    }
}

Test(registry_log_damage, every_missing_file_is_noticed)
{
    for (size_t file = 0; file < N_FILES; file++) {
        kit_t kit;

        make_nine(&kit);
        sim_disk_drop(kit.sim, files[file]);
        cr_assert_eq(open_damaged(&kit, files[file], 0), PSD_DAMAGED);
        kit_end(&kit);
    }
}

/* After a change both slots say the same: any byte may be wrong. */
Test(registry_log_damage, one_slot_of_the_state_is_enough)
{
    for (uint64_t at = 0; at < 240; at++) {
        kit_t kit;

        make_nine(&kit);
        kit_must_open(&kit);
        cr_assert_eq(kit_set_term(&kit, 2, 77), PSD_OK);
        cr_assert_eq(kit_set_term(&kit, 3, 78), PSD_OK);
        ps_registry_log_close(&kit.log);
        sim_disk_flip(kit.sim, TERM, at < 120 ? at : SLOT_AT + at - 120, 0x20);
        cr_assert_eq(open_damaged(&kit, TERM, at), PSD_OK);
        cr_assert_eq(kit.now.vote, 78);
        kit_end(&kit);
    }
}

/* Both slots of a note, which no crash damages. */
Test(registry_log_damage, both_slots_are_needed)
{
    for (size_t file = 3; file < N_FILES; file++) {
        kit_t kit;

        make_nine(&kit);
        sim_disk_flip(kit.sim, files[file], 8, 1);
        sim_disk_flip(kit.sim, files[file], SLOT_AT + 8, 1);
        cr_assert_eq(open_damaged(&kit, files[file], 8), PSD_DAMAGED);
        kit_end(&kit);
    }
}

/* ---- texts ---- */

/* Is the text of a refusal. */
static void assert_text(kit_t *self, psd_status_t rc, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(kit_open(self, err), rc);
    cr_assert_str_eq(psd_error_text(err), text);
}

Test(registry_log_damage, file_byte_and_entry_are_named)
{
    kit_t kit;

    make_nine(&kit);
    sim_disk_flip(kit.sim, FIRST, 48 + 48, 1);
    assert_text(&kit, PSD_DAMAGED,
                FIRST ": byte 48: entry 1: the checksum of 96 bytes does not match");
    sim_disk_flip(kit.sim, FIRST, 48 + 48, 1);
    sim_disk_flip(kit.sim, LAST, 0, 1);
    assert_text(&kit, PSD_DAMAGED, LAST ": byte 0: magic is 0x67527371; allowed: 0x67527370");
    sim_disk_flip(kit.sim, LAST, 0, 1);
    sim_disk_drop(kit.sim, files[1]);
    assert_text(&kit, PSD_DAMAGED,
                KIT_DIR "/entries-00000000000000000004: byte 0: the file is missing, or the one "
                        "before it ends too early; the next one begins with entry 7");
    sim_disk_drop(kit.sim, LAST);
    assert_text(&kit, PSD_DAMAGED,
                FIRST ": byte 408: the file ends before entry 4; entries up to 9 were flushed");
    sim_disk_drop(kit.sim, FIRST);
    assert_text(&kit, PSD_DAMAGED,
                FIRST ": byte 0: the file ends before entry 1; entries up to 9 were flushed");
    sim_disk_drop(kit.sim, TERM);
    assert_text(&kit, PSD_DAMAGED, TERM ": byte 0: the file is missing beside 0 segments");
    kit_end(&kit);
}

static void put(kit_t *self, const char *path, uint64_t at, ps_bytes_t bytes)
{
    ps_disk_t *disk = sim_disk_face(self->sim);
    ps_disk_file_t *file = NULL;

    cr_assert_eq(disk->open(disk, path, PS_DISK_KEEP, &file, NULL), PSD_OK);
    cr_assert_eq(disk->write(disk, file, at, &bytes, 1, NULL), PSD_OK);
    cr_assert_eq(disk->flush(disk, file, NULL), PSD_OK);
    disk->close(disk, &file);
}

/* Records with the right checksum, which another program has written. */
Test(registry_log_damage, whole_records_must_fit)
{
    static const struct {
        ps_registry_record_t record;
        psd_status_t rc;
        const char *why;
    } cases[] = {
        {{{11, 1, PS_REGISTRY_COMMAND, {NULL, 0}}, 9}, PSD_DAMAGED, "index is 11"},
        {{{10, 0, PS_REGISTRY_COMMAND, {NULL, 0}}, 9}, PSD_DAMAGED, "term is 0; allowed: 1 to 1"},
        {{{10, 2, PS_REGISTRY_COMMAND, {NULL, 0}}, 9}, PSD_DAMAGED, "term is 2; allowed: 1 to 1"},
        {{{10, 1, PS_REGISTRY_COMMAND, {NULL, 0}}, 10},
         PSD_DAMAGED,
         "it says that 10 was flushed before it"},
        {{{10, 1, (ps_registry_entry_kind_t)4, {NULL, 0}}, 9},
         PSD_FOREIGN,
         "kind is 4; this psd understands 1 to 3"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ps_registry_owner_t owner = {KIT_CLUSTER, 77};
        uint8_t head[PS_REGISTRY_SEGMENT_HEAD];
        uint8_t bytes[PS_REGISTRY_RECORD_HEAD];
        char text[256];
        kit_t kit;

        make_nine(&kit);
        ps_registry_record_write(&cases[i].record, ps_registry_segment_write(&owner, 7, head),
                                 bytes);
        (void)snprintf(text, sizeof text, LAST ": byte %zu: entry 10: %s",
                       sim_disk_content(kit.sim, LAST).size, cases[i].why);
        put(&kit, LAST, sim_disk_content(kit.sim, LAST).size, (ps_bytes_t){bytes, sizeof bytes});
        assert_text(&kit, cases[i].rc, text);
        kit_end(&kit);
    }
}

/* Writes a state of the nine entries over the first slot. */
static void put_state(kit_t *self, ps_registry_state_t state)
{
    const ps_registry_owner_t owner = {KIT_CLUSTER, 77};
    uint8_t bytes[PS_REGISTRY_STATE_SLOT];

    state.first = 1;
    state.flushed = 9;
    state.is_begun = true;
    ps_registry_state_write(&state, &owner, bytes);
    put(self, TERM, 0, (ps_bytes_t){bytes, sizeof bytes});
}

/* A state with the right checksum whose counts are beyond what may be. */
Test(registry_log_damage, counts_of_a_state_are_bounded)
{
    static const struct {
        ps_registry_state_t state;
        psd_status_t rc;
    } cases[] = {
        {{.sequence = PS_REGISTRY_COUNT_MAX, .term = 1, .generation = 1}, PSD_OK},
        {{.sequence = PS_REGISTRY_COUNT_MAX + 1, .term = 1, .generation = 1}, PSD_DAMAGED},
        {{.sequence = 100, .term = PS_REGISTRY_COUNT_MAX, .generation = 1}, PSD_OK},
        {{.sequence = 100, .term = UINT64_MAX, .generation = 1}, PSD_DAMAGED},
        {{.sequence = 100, .term = 1, .generation = PS_REGISTRY_COUNT_MAX}, PSD_OK},
        {{.sequence = 100, .term = 1, .generation = UINT64_MAX}, PSD_DAMAGED},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ps_registry_log_args_t args;
        kit_t kit;

        make_nine(&kit);
        args = kit_args(&kit);
        put_state(&kit, cases[i].state);
        cr_assert_eq(ps_registry_log_open(&args, &kit.log, NULL), cases[i].rc, "case %zu", i);
        kit_end(&kit);
    }
}

/* A count that went back to 0 would be older than the one in the other slot: such a change is
 * refused, and the log is found as it was. */
Test(registry_log_damage, counts_do_not_begin_again)
{
    static const ps_registry_state_t states[] = {
        {.sequence = PS_REGISTRY_COUNT_MAX, .term = 1, .generation = 1},
        {.sequence = 100, .term = 1, .generation = PS_REGISTRY_COUNT_MAX},
    };

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        ps_registry_log_args_t args;
        kit_t kit;

        make_nine(&kit);
        args = kit_args(&kit);
        put_state(&kit, states[i]);
        cr_assert_eq(ps_registry_log_open(&args, &kit.log, NULL), PSD_OK);
        cr_assert_eq(ps_registry_log_cut_tail(kit.log, 5, NULL), PSD_LIMIT);
        ps_registry_log_close(&kit.log);
        cr_assert_eq(ps_registry_log_open(&args, &kit.log, NULL), PSD_OK);
        cr_assert_eq(ps_registry_log_last(kit.log), 9);
        kit_end(&kit);
    }
}

/* ---- torn ends ---- */

/* The length of a file after each of its entries. */
static uint64_t size_of(kit_t *self, const char *path)
{
    return sim_disk_content(self->sim, path).size;
}

/* Appended and never flushed, in one of which a byte is wrong: it and what
 * follows is cut off. */
Test(registry_log_damage, a_torn_end_is_cut_off)
{
    uint64_t end = 0;
    uint64_t size = 0;

    for (uint64_t at = 0; at == 0 || at < size; at++) {
        uint64_t last = 0;
        kit_t kit;

        make_nine(&kit);
        kit_must_open(&kit);
        end = size_of(&kit, LAST);
        cr_assert_eq(kit_append(&kit, 3), PSD_OK);
        ps_registry_log_close(&kit.log);
        size = size_of(&kit, LAST);
        at = at < end ? end : at;
        sim_disk_flip(kit.sim, LAST, at, 0x10);
        last = kit.now.last;
        kit_must_open(&kit);
        cr_assert(kit.now.last >= 9 && kit.now.last < last);
        cr_assert_gt(ps_registry_log_torn_bytes(kit.log), 0);
        cr_assert_eq(kit_append(&kit, 2), PSD_OK);
        ps_registry_log_close(&kit.log);
        kit_must_open(&kit);
        cr_assert_eq(ps_registry_log_torn_bytes(kit.log), 0);
        kit_end(&kit);
    }
}

/* Entries 1 .. 6, a flush after each, and a loss of power that leaves the note
 * as it was at first. ret_ends: where each record ends. */
static void make_old_note(kit_t *self, uint64_t ret_ends[7])
{
    uint8_t note[SLOT_AT + 32];

    kit_begin(self, 1, 1 << 20);
    cr_assert(kit_create(self, 1));
    cr_assert_eq(kit_set_term(self, 1, 77), PSD_OK);
    cr_assert_eq(size_of(self, NOTE), sizeof note);
    memcpy(note, sim_disk_content(self->sim, NOTE).data, sizeof note);
    ret_ends[0] = size_of(self, FIRST);
    for (size_t i = 1; i <= 6; i++) {
        cr_assert_eq(kit_append(self, 1), PSD_OK);
        cr_assert_eq(kit_flush(self), PSD_OK);
        ret_ends[i] = size_of(self, FIRST);
    }
    put(self, NOTE, 0, (ps_bytes_t){note, sizeof note});
    sim_disk_restart(self->sim);
}

Test(registry_log_damage, later_entries_tell_what_was_flushed)
{
    for (size_t entry = 1; entry <= 6; entry++) {
        uint64_t ends[7];
        kit_t kit;

        make_old_note(&kit, ends);
        ps_registry_log_close(&kit.log);
        sim_disk_flip(kit.sim, FIRST, ends[entry - 1] + (entry % 2) * 20, 0x40);
        if (entry < 6) {
            cr_assert_eq(open_damaged(&kit, FIRST, 0), PSD_DAMAGED);
        } else { /* nothing tells of the last one */
            kit.now.flushed = 5;
            kit_must_open(&kit);
            cr_assert_eq(kit.now.last, 5);
            cr_assert_eq(ps_registry_log_torn_bytes(kit.log), ends[6] - ends[5]);
        }
        kit_end(&kit);
    }
}

Test(registry_log_damage, the_state_tells_what_was_flushed)
{
    uint64_t ends[7];
    kit_t kit;

    make_old_note(&kit, ends);
    cr_assert_eq(kit_set_term(&kit, 2, 0), PSD_OK);
    ps_registry_log_close(&kit.log);
    sim_disk_flip(kit.sim, FIRST, ends[5], 0x40);
    cr_assert_eq(open_damaged(&kit, FIRST, 0), PSD_DAMAGED);
    kit_end(&kit);
}

/* An old copy of the state, as a backup of one file would be. */
Test(registry_log_damage, a_state_of_before_is_noticed)
{
    uint8_t state[SLOT_AT + 120];
    kit_t kit;

    make_nine(&kit);
    memcpy(state, sim_disk_content(kit.sim, TERM).data, sizeof state);
    kit_must_open(&kit);
    cr_assert_eq(kit_cut_tail(&kit, 8), PSD_OK);
    ps_registry_log_close(&kit.log);
    put(&kit, TERM, 0, (ps_bytes_t){state, sizeof state});
    assert_text(&kit, PSD_DAMAGED,
                TERM ": byte 72: the log was cut or reset 1 times; " NOTE " says 2");
    kit_end(&kit);
}

/* ---- no memory ---- */

static psd_status_t open_again(void *fixture)
{
    kit_t *kit = fixture;
    psd_status_t rc = kit_open(kit, NULL);

    ps_registry_log_close(&kit->log);
    return rc;
}

static psd_status_t all_of_it(void *fixture)
{
    kit_t kit;
    psd_status_t rc = PSD_NOMEM;

    (void)fixture;
    kit_begin(&kit, 1, 100);
    if (kit_create(&kit, 1)) {
        rc = kit_append(&kit, 3);
    }
    for (size_t i = 0; rc == PSD_OK && i < 4; i++) {
        rc = kit_append(&kit, 3);
    }
    if (rc == PSD_OK) {
        rc = kit_cut_tail(&kit, 8);
    }
    if (rc == PSD_OK) {
        rc = kit_cut_head(&kit, 4);
    }
    if (rc == PSD_OK) {
        rc = kit_reset(&kit, 20);
    }
    kit_end(&kit);
    return rc;
}

Test(registry_log_damage, no_memory_is_survived)
{
    kit_t kit;

    cr_assert_null(fail_alloc_sweep(all_of_it, NULL));
    make_nine(&kit);
    cr_assert_null(fail_alloc_sweep(open_again, &kit));
    kit_end(&kit);
}

/* An append without memory is no failure of the disk. */
Test(registry_log_damage, an_append_without_memory_can_be_repeated)
{
    for (size_t at = 0; at < 12; at++) {
        kit_t kit;
        psd_status_t rc = PSD_OK;

        make_nine(&kit);
        kit.segment_bytes = 1;
        kit_must_open(&kit);
        fail_alloc_at(at);
        rc = kit_append(&kit, 2);
        cr_assert_eq(rc, fail_alloc_happened() ? PSD_NOMEM : PSD_OK);
        fail_alloc_off();
        kit_forget(&kit);
        cr_assert(!ps_registry_log_is_broken(kit.log));
        cr_assert_eq(kit_append(&kit, 2), PSD_OK);
        cr_assert_eq(kit_flush(&kit), PSD_OK);
        ps_registry_log_close(&kit.log);
        sim_disk_restart(kit.sim);
        kit_must_open(&kit);
        kit_end(&kit);
    }
}
