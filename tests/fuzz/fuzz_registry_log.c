/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the records of a registry's log, and as the slots of its state.
 * Checksums are put right where the first byte says so, which no chance would
 * find. What opens has entries that are encoded to the same bytes, and can be
 * worked with.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "storage/registry/registry_log_format.h"
#include "support/sim_disk.h"

#define DIR "d"
#define SEGMENT DIR "/entries-00000000000000000001"
#define FRONT 1 /* bytes of the input that say what the others are */

/* Bits of the first byte. */
enum { PUT_RECORDS_RIGHT = 1, PUT_STATE_RIGHT = 2, STATE_FIRST = 4, STATE_SECOND = 8 };

static const ps_registry_owner_t OWNER = {{{1}}, 7};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static ps_registry_log_args_t args_of(sim_disk_t *sim)
{
    return (ps_registry_log_args_t){.disk = sim_disk_face(sim),
                                    .dir = DIR,
                                    .cluster = OWNER.cluster,
                                    .member = OWNER.member,
                                    .segment_bytes = 300};
}

static void put(sim_disk_t *sim, const char *path, uint64_t at, ps_bytes_t bytes)
{
    ps_disk_t *disk = sim_disk_face(sim);
    ps_disk_file_t *file = NULL;

    check(disk->open(disk, path, PS_DISK_KEEP, &file, NULL) == PSD_OK);
    check(disk->write(disk, file, at, &bytes, 1, NULL) == PSD_OK);
    check(disk->flush(disk, file, NULL) == PSD_OK);
    disk->close(disk, &file);
}

static uint64_t seed_of(void)
{
    uint8_t head[PS_REGISTRY_SEGMENT_HEAD];

    return ps_registry_segment_write(&OWNER, 1, head);
}

/* Fields as they are, with the size, the magic and the sum that they need. */
static void put_records_right(uint8_t *bytes, size_t size)
{
    while (size >= PS_REGISTRY_RECORD_HEAD) {
        size_t room = size - PS_REGISTRY_RECORD_HEAD;
        size_t n = ps_load_u32(bytes + 40) % 64;
        ps_registry_record_t record = {
            .entry = {.index = ps_load_u64(bytes + 16),
                      .term = ps_load_u64(bytes + 24),
                      .kind = (ps_registry_entry_kind_t)(ps_load_u32(bytes + 44) % 5)},
            .flushed = ps_load_u64(bytes + 32)};
        uint8_t entry[64];

        n = n <= room / 8 * 8 ? n : 0;
        memcpy(entry, bytes + PS_REGISTRY_RECORD_HEAD, n);
        record.entry.bytes = (ps_bytes_t){entry, n};
        ps_registry_record_write(&record, seed_of(), bytes);
        bytes += ps_registry_record_size(n);
        size -= ps_registry_record_size(n);
    }
}

static void put_state(sim_disk_t *sim, uint64_t slot, bool put_right, ps_bytes_t bytes)
{
    const uint8_t *at = bytes.data;
    uint8_t state[PS_REGISTRY_STATE_SLOT];
    ps_registry_state_t fields = {.sequence = ps_load_u64(at + 8),
                                  .term = ps_load_u64(at + 56),
                                  .vote = ps_load_u64(at + 64),
                                  .generation = ps_load_u64(at + 72),
                                  .first = ps_load_u64(at + 80),
                                  .flushed = ps_load_u64(at + 88),
                                  .cut_from = ps_load_u64(at + 96),
                                  .is_begun = at[104] % 2 == 1};

    memcpy(state, at, sizeof state);
    if (put_right) {
        ps_registry_state_write(&fields, &OWNER, state);
    }
    put(sim, DIR "/" PS_REGISTRY_STATE_NAME, slot * PS_REGISTRY_SLOT_AT,
        (ps_bytes_t){state, sizeof state});
}

/* A log without entries becomes what the input says. */
static void make(sim_disk_t *sim, const uint8_t *data, size_t size)
{
    ps_registry_log_args_t args = args_of(sim);
    ps_id_t lineage = {{3}};
    ps_registry_log_t *log = NULL;
    uint8_t *rest = NULL;
    uint8_t how = data[0];

    check(ps_registry_log_create(&args, &lineage, 1, NULL) == PSD_OK);
    check(ps_registry_log_open(&args, &log, NULL) == PSD_OK);
    check(ps_registry_log_set_term(log, 1000, 7, NULL) == PSD_OK);
    ps_registry_log_close(&log);
    data += FRONT;
    size -= FRONT;
    for (uint64_t slot = 0; slot < 2; slot++) {
        if ((how & (slot == 0 ? STATE_FIRST : STATE_SECOND)) != 0 &&
            size >= PS_REGISTRY_STATE_SLOT) {
            put_state(sim, slot, (how & PUT_STATE_RIGHT) != 0,
                      (ps_bytes_t){data, PS_REGISTRY_STATE_SLOT});
            data += PS_REGISTRY_STATE_SLOT;
            size -= PS_REGISTRY_STATE_SLOT;
        }
    }
    rest = ps_alloc_raw(size, 1);
    check(rest != NULL);
    if (size > 0) {
        memcpy(rest, data, size);
    }
    if ((how & PUT_RECORDS_RIGHT) != 0) {
        put_records_right(rest, size);
    }
    put(sim, SEGMENT, PS_REGISTRY_SEGMENT_HEAD, (ps_bytes_t){rest, size});
    ps_free(rest);
}

/* The records of the first segment are what their entries are encoded to. */
static void encode_again(sim_disk_t *sim)
{
    ps_bytes_t file = sim_disk_content(sim, SEGMENT);
    size_t at = PS_REGISTRY_SEGMENT_HEAD;

    while (at < file.size) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
        ps_registry_record_t record;
        size_t size = 0;

        check(ps_registry_record_read((ps_bytes_t){file.data + at, file.size - at}, seed_of(),
                                      &record, &size, NULL) == PSD_OK);
        check(ps_buffer_reserve(&bytes, size));
        ps_registry_record_write(&record, seed_of(), bytes.data);
        check(memcmp(bytes.data, file.data + at, size) == 0);
        at += size;
    }
}

static psd_status_t count(void *context, const ps_registry_entry_t *entry, psd_error_t *err)
{
    uint64_t *n = context;

    (void)err;
    check(entry->bytes.size <= PS_REGISTRY_ENTRY_MAX);
    *n += 1;
    return PSD_OK;
}

/* PSD_LIMIT: its counts can grow no more. */
static bool has_room(psd_status_t rc)
{
    check(rc == PSD_OK || rc == PSD_LIMIT);
    return rc == PSD_OK;
}

/* What changes it; it ends as one without entries, from 5 on. */
static bool change(ps_registry_log_t *log, uint64_t last)
{
    return has_room(ps_registry_log_cut_tail(log, last + 1, NULL)) &&
           has_room(ps_registry_log_cut_head(log, last + 1, NULL)) &&
           has_room(ps_registry_log_reset(log, 5, NULL));
}

/* It works, and is found again as it is. */
static void work(sim_disk_t *sim, ps_registry_log_t **log_p)
{
    ps_registry_log_args_t args = args_of(sim);
    ps_registry_log_t *log = *log_p;
    uint64_t first = ps_registry_log_first(log);
    uint64_t last = ps_registry_log_last(log);
    uint64_t n = 0;
    bool is_reset = false;
    ps_registry_entry_t entry = {
        .index = last + 1, .term = ps_registry_log_term(log), .kind = PS_REGISTRY_BARRIER};

    check(ps_registry_log_flushed(log) == last);
    check(ps_registry_log_read(log, 0, count, &n, NULL) == PSD_OK);
    check(n == last + 1 - first);
    check(ps_registry_log_append(log, &entry, 1, NULL) == PSD_OK);
    check(ps_registry_log_flush(log, NULL) == PSD_OK);
    ps_registry_log_close(log_p);
    check(ps_registry_log_open(&args, log_p, NULL) == PSD_OK);
    log = *log_p;
    check(ps_registry_log_first(log) == first && ps_registry_log_last(log) == last + 1);
    is_reset = change(log, last);
    ps_registry_log_close(log_p);
    if (has_room(ps_registry_log_open(&args, log_p, NULL)) && is_reset) {
        check(ps_registry_log_first(*log_p) == 5 && ps_registry_log_last(*log_p) == 4);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sim_disk_t *sim = NULL;
    psd_error_t *err = NULL;
    ps_registry_log_t *log = NULL;
    ps_registry_log_args_t args;
    psd_status_t rc = PSD_OK;

    if (size < FRONT) {
        return 0;
    }
    sim = sim_disk_new(1);
    err = psd_error_new();
    args = args_of(sim);
    make(sim, data, size);
    rc = ps_registry_log_open(&args, &log, err);
    check(rc == PSD_OK || rc == PSD_DAMAGED || rc == PSD_FOREIGN || rc == PSD_LIMIT);
    check((rc == PSD_OK) == (psd_error_text(err)[0] == '\0'));
    if (rc == PSD_OK) {
        if (sim_disk_has(sim, SEGMENT)) {
            encode_again(sim);
        }
        work(sim, &log);
    }
    ps_registry_log_close(&log);
    psd_error_destroy(&err);
    sim_disk_destroy(&sim);
    return 0;
}
