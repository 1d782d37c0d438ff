/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one message of every kind, message_<kind>.hex: encoding the
 * sample gives the file, decoding the file gives the sample. A difference is a
 * new version of the protocol, not a reason to write the files anew. A new
 * kind gets its file with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_message
 *
 * Shape: '#' starts a comment; "frame" starts a frame; the rest is bytes in
 * hex.
 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/message_sample.h"
#include "support/parcel.h"
#include "wire/messages/route.h"

#define PATH_SIZE 4096
#define BYTES_MAX 1024 /* of all frames of a file */

typedef struct golden {
    uint8_t bytes[BYTES_MAX];
    size_t size;
    ps_bytes_t frames[PS_FRAMES_MAX];
    size_t n_frames;
} golden_t;

static FILE *open_file(ps_kind_t kind, const char *variant, const char *mode)
{
    const char *dir = getenv("PSD_GOLDEN_DIR");
    char path[PATH_SIZE];
    char name[32];
    FILE *file = NULL;
    size_t i = 0;

    cr_assert_not_null(dir, "PSD_GOLDEN_DIR is not set");
    for (const char *at = ps_kind_name(kind); *at != '\0'; at++) {
        name[i++] = (char)tolower((unsigned char)*at);
    }
    name[i] = '\0';
    (void)snprintf(path, sizeof path, "%s/message_%s%s.hex", dir, name, variant);
    file = fopen(path, mode);
    cr_assert_not_null(file, "cannot open %s", path);
    return file;
}

static void write_file(ps_kind_t kind, const char *variant, const parcel_t *parcel)
{
    FILE *file = open_file(kind, variant, "w");

    (void)fprintf(file, "# %s\n", ps_kind_name(kind));
    for (size_t f = 0; f < parcel->n_frames; f++) {
        (void)fprintf(file, "frame");
        for (size_t i = 0; i < parcel->frames[f].size; i++) {
            (void)fprintf(file, "%s%02x", i % 16 == 0 ? "\n" : " ",
                          (unsigned)parcel->frames[f].data[i]);
        }
        (void)fprintf(file, "\n");
    }
    cr_assert_eq(fclose(file), 0);
}

static void read_line(golden_t *self, const char *line)
{
    const char *at = line;
    unsigned byte = 0;
    int length = 0;

    if (line[0] == '#') {
        return;
    }
    if (strncmp(line, "frame", 5) == 0) {
        cr_assert_lt(self->n_frames, PS_FRAMES_MAX);
        self->frames[self->n_frames++].data = self->bytes + self->size;
        return;
    }
    while (sscanf(at, " %2x%n", &byte, &length) == 1) {
        cr_assert(self->n_frames > 0 && self->size < BYTES_MAX);
        self->bytes[self->size++] = (uint8_t)byte;
        self->frames[self->n_frames - 1].size++;
        at += length;
    }
}

static void read_file(ps_kind_t kind, const char *variant, golden_t *ret)
{
    FILE *file = open_file(kind, variant, "r");
    char line[256];

    memset(ret, 0, sizeof *ret);
    while (fgets(line, sizeof line, file) != NULL) {
        read_line(ret, line);
    }
    cr_assert_eq(fclose(file), 0);
}

/* flags are added to the sample's. */
static void check_with(ps_kind_t kind, const char *variant, size_t n_frames, uint8_t flags)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_message_t message;
    ps_message_t got;
    ps_body_t body = {0};
    ps_body_t got_body = {0};
    golden_t golden;

    message_sample(kind, &message, &body);
    message.flags |= flags;
    message.times = (ps_times_t){.queue_us = 0x5152,
                                 .gate_us = 0x5354,
                                 .work_us = 0x5556,
                                 .copies_us = 0x5758,
                                 .flush_us = UINT64_C(0x595A5B5C5D5E5F60)};
    parcel_pack(&parcel, &message, &body, n_frames);
    if (getenv("PSD_GOLDEN_WRITE") != NULL) {
        write_file(kind, variant, &parcel);
    }
    read_file(kind, variant, &golden);
    cr_assert_eq(golden.n_frames, parcel.n_frames, "%s%s has other frames", ps_kind_name(kind),
                 variant);
    for (size_t f = 0; f < parcel.n_frames; f++) {
        cr_assert(parcel_same_bytes(golden.frames[f], parcel.frames[f]),
                  "frame %zu of %s%s has other bytes", f, ps_kind_name(kind), variant);
    }
    cr_assert_eq(ps_message_decode(golden.frames, golden.n_frames, &got, &got_body, err), PSD_OK,
                 "%s", psd_error_text(err));
    cr_assert(parcel_same_message(&got, &message));
    cr_assert(parcel_same_body(&got_body, &body));
}

static void check(ps_kind_t kind, const char *variant, size_t n_frames)
{
    check_with(kind, variant, n_frames, 0);
}

Test(golden_message, times_follow_the_fields_of_an_answer)
{
    check_with(PS_KIND_PUSH, "_times", 4, PS_FLAG_TIMES);
    check_with(PS_KIND_PULL, "_times", 4, PS_FLAG_TIMES);
    check_with(PS_KIND_ACK, "_times", 1, PS_FLAG_TIMES);
    check_with(PS_KIND_VALUES, "_times", 1, PS_FLAG_TIMES);
}

Test(golden_message, every_kind_in_one_frame)
{
    for (size_t i = 0; i < N_SAMPLE_KINDS; i++) {
        check(SAMPLE_KINDS[i], "", 1);
    }
}

Test(golden_message, body_in_frames_of_its_own)
{
    check(PS_KIND_PUSH, "_frames", 4);
    check(PS_KIND_PULL, "_frames", 4);
    check(PS_KIND_VALUES, "_frames", 4);
    check(PS_KIND_MOVED, "_frames", 2);
    check(PS_KIND_CHUNK, "_frames", 2);
    check(PS_KIND_APPEND, "_frames", 2);
    check(PS_KIND_BUNDLE, "_frames", 2);
    check(PS_KIND_ROWS_ON, "_frames", 2);
}

Test(golden_message, routes_of_moved)
{
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};
    ps_message_t message;
    ps_body_t body = {0};
    golden_t golden;

    read_file(PS_KIND_MOVED, "", &golden);
    cr_assert_eq(ps_message_decode(golden.frames, golden.n_frames, &message, &body, NULL), PSD_OK);
    cr_assert_eq(ps_routes_decode(body.keys, message.moved.n_routes, &routes, NULL), PSD_OK);
    cr_assert_eq(routes[0].partition, 0x05060708);
    cr_assert_eq(routes[0].epoch, 1);
    cr_assert_eq(routes[0].incarnation, UINT64_C(0x8000000000000002));
    cr_assert_eq(routes[0].shard, 3);
    cr_assert_str_eq(routes[0].tcp, "tcp://h:1");
    cr_assert_str_eq(routes[0].ipc, "");
    cr_assert(ps_route_encode(&routes[0], &buffer));
    cr_assert(parcel_same_bytes((ps_bytes_t){buffer.data, buffer.size}, body.keys));
}
