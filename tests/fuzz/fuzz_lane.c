/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's end of a lane, whose client writes what the input says. The
 * input is a list of deeds, each a byte and its arguments: records that are
 * right as records, whatever message they hold; bytes that are none; counters;
 * bytes of the arena, also behind what the server has taken. Payloads are kept
 * for a while, read, and answered in their room.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cursor.h"
#include "transport/lane/lane.h"
#include "transport/lane/lane_record.h"

#define KEPT 4          /* payloads that are held at a time */
#define TAKE_AT_ONCE 16 /* messages behind each deed */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ps_lane_sizes_t SIZES = {
    .request_bytes = PS_LANE_RING_MIN, .reply_bytes = PS_LANE_RING_MIN, .arena_bytes = 1 << 16};
static const ps_lane_args_t ARGS = {.high_water = 8, .assembly_bytes = 1 << 18};

typedef struct world {
    ps_lane_t *server;
    ps_lane_share_t *share; /* the client's mapping */
    uint64_t at;            /* where the client writes next */
    ps_payload_t *kept[KEPT];
    size_t next_kept;
    uint64_t sum; /* of everything that was read */
    ps_cursor_t input;
} world_t;

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void open_world(world_t *self)
{
    ps_lane_share_t *share = NULL;
    int pair[2];
    int fd = -1;

    check(ps_lane_share_new(&SIZES, &share, &fd, NULL) == PSD_OK);
    check(ps_lane_share_adopt(fd, &SIZES, &self->share, NULL) == PSD_OK);
    check(close(fd) == 0);
    check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    check(close(pair[1]) == 0);
    check(ps_lane_new(share, pair[0], true, &ARGS, &self->server, NULL) == PSD_OK);
}

static void close_world(world_t *self)
{
    ps_lane_destroy(&self->server);
    for (size_t i = 0; i < KEPT; i++) {
        ps_payload_destroy(&self->kept[i]);
    }
    ps_lane_share_drop(&self->share);
}

/* ---- the client ---------------------------------------------------------- */

static void write_bytes(world_t *self, const void *bytes, size_t size)
{
    uint64_t place = self->at % SIZES.request_bytes;

    check(size <= SIZES.request_bytes);
    if (size > 0) {
        memcpy(self->share->requests + place, bytes, size);
    }
    self->at += size;
}

static void write_input(world_t *self, size_t size)
{
    ps_bytes_t bytes = {NULL, 0};

    if (size > self->input.rest.size) {
        size = self->input.rest.size;
    }
    bytes = ps_cursor_take(&self->input, size);
    write_bytes(self, bytes.data, bytes.size);
}

static void publish(world_t *self)
{
    atomic_store(&self->share->counters->request_tail, self->at);
}

/* A record of the size that it says. */
static void write_record(world_t *self, ps_lane_record_kind_t kind)
{
    size_t size = ps_cursor_u16(&self->input) % 4000;
    uint64_t from = self->at;
    uint64_t word = 0;

    if (size > self->input.rest.size) {
        size = self->input.rest.size;
    }
    word = ps_record_word((uint32_t)(PS_LANE_RECORD_HEAD + size), 0, kind);
    write_bytes(self, &word, sizeof word);
    write_input(self, size);
    self->at = from + ps_record_room(PS_LANE_RECORD_HEAD + size);
    publish(self);
}

/* A MESSAGE whose sizes agree with what is inline. */
static void write_message(world_t *self)
{
    uint16_t header = ps_cursor_u8(&self->input);
    uint64_t keys = ps_cursor_u16(&self->input) % 3000;
    uint64_t index = ps_cursor_u16(&self->input) % 3000;
    uint64_t values = ps_cursor_u16(&self->input);
    uint64_t values_at = ps_cursor_u32(&self->input);
    uint64_t room_at = ps_cursor_u16(&self->input) * UINT64_C(64);
    uint64_t room = ps_cursor_u16(&self->input);
    uint64_t parts = self->server->parts.size;
    uint64_t from = self->at;
    bool is_inline = values_at == UINT32_MAX;
    uint64_t rest = 0;
    uint64_t words[PS_LANE_RECORD_WORDS];

    values %= is_inline ? 3000 : UINT64_MAX;
    keys = keys + index < parts ? parts : keys;
    rest = header + keys + index - parts + (is_inline ? values : 0);
    words[0] =
        ps_record_word((uint32_t)(PS_LANE_RECORD_FULL_HEAD + rest), header, PS_LANE_RECORD_MESSAGE);
    words[1] = keys;
    words[2] = index;
    words[3] = parts;
    words[4] = is_inline ? PS_LANE_RECORD_INLINE_VALUES : values_at;
    words[5] = values;
    words[6] = room_at;
    words[7] = room;
    if (rest > SIZES.request_bytes / 2) {
        return;
    }
    write_bytes(self, words, sizeof words);
    write_input(self, (size_t)rest);
    self->at = from + ps_record_room(PS_LANE_RECORD_FULL_HEAD + rest);
    publish(self);
}

static void write_counter(world_t *self)
{
    ps_lane_counters_t *counters = self->share->counters;
    uint8_t which = ps_cursor_u8(&self->input);
    uint64_t value = ps_cursor_u64(&self->input);

    if (which % 4 == 0) {
        atomic_store(&counters->request_tail, value);
    } else if (which % 4 == 1) {
        atomic_store(&counters->reply_head, value);
    } else if (which % 4 == 2) {
        atomic_store(&counters->request_head, value);
    } else {
        atomic_store(&counters->client_waits, value);
        atomic_store(&counters->request_passed, value);
    }
}

static void write_arena(world_t *self)
{
    size_t at = ps_cursor_u16(&self->input);
    size_t size = ps_cursor_u8(&self->input);
    ps_bytes_t bytes = {NULL, 0};

    if (size > SIZES.arena_bytes - at) {
        size = (size_t)SIZES.arena_bytes - at;
    }
    if (size > self->input.rest.size) {
        size = self->input.rest.size;
    }
    bytes = ps_cursor_take(&self->input, size);
    if (size > 0) {
        memcpy(self->share->arena + at, bytes.data, size);
    }
}

/* ---- the server ---------------------------------------------------------- */

static void read_payload(world_t *self, const ps_payload_t *payload)
{
    for (size_t i = 0; i < payload->keys.size; i++) {
        self->sum += payload->keys.data[i];
    }
    for (size_t i = 0; i < payload->index.size; i++) {
        self->sum += payload->index.data[i];
    }
    for (size_t i = 0; i < payload->n_spans; i++) {
        for (size_t j = 0; j < payload->spans[i].size; j++) {
            self->sum += payload->spans[i].data[j];
        }
    }
}

/* An answer in the room, if it is asked for and there is some. */
static void answer(world_t *self, const ps_message_t *asked, ps_room_t room)
{
    ps_message_t message = {.kind = PS_KIND_VALUES};
    ps_payload_t *payload = NULL;
    uint64_t n = room.size / 4;
    psd_status_t rc = PSD_OK;

    if (asked->kind != PS_KIND_PULL) {
        return;
    }
    memset(room.data == NULL ? (uint8_t *)&message.values : room.data, 0, room.size);
    message.values = (ps_msg_values_t){.request = asked->pull.request,
                                       .type = PS_TYPE_F32,
                                       .rows = PS_ROWS_RANGE,
                                       .n_rows = n,
                                       .n_cols = 1,
                                       .n_done = n,
                                       .n_values = n};
    payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                             (ps_bytes_t){room.data, (size_t)(4 * n)}, NULL, NULL);
    check(payload != NULL);
    rc = ps_lane_send(self->server, &message, payload, false, NULL);
    check(rc == PSD_OK || rc == PSD_BUSY);
    ps_payload_destroy(&payload);
}

static void serve(world_t *self)
{
    for (int i = 0; i < TAKE_AT_ONCE; i++) {
        ps_message_t message;
        ps_payload_t *payload = NULL;
        ps_room_t room = {NULL, 0};
        bool got = false;
        psd_status_t rc = ps_lane_receive(self->server, &got, &message, &payload, &room, NULL);

        check(rc == PSD_OK || !got);
        check(got || payload == NULL);
        check(got || room.size == 0);
        if (rc == PSD_OK && !got) {
            break;
        }
        if (payload != NULL) {
            read_payload(self, payload);
        }
        if (got) {
            answer(self, &message, room);
        }
        ps_payload_destroy(&self->kept[self->next_kept % KEPT]);
        self->kept[self->next_kept++ % KEPT] = payload;
    }
    ps_lane_flush(self->server);
    for (size_t i = 0; i < KEPT; i++) {
        if (self->kept[i] != NULL) {
            read_payload(self, self->kept[i]);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    world_t self = {.input = ps_cursor_over((ps_bytes_t){data, size})};

    open_world(&self);
    while (!self.input.failed && self.input.rest.size > 0) {
        switch (ps_cursor_u8(&self.input) % 6) {
        case 0:
            write_record(&self, PS_LANE_RECORD_INLINE);
            break;
        case 1:
            write_message(&self);
            break;
        case 2:
            write_record(&self, PS_LANE_RECORD_PART);
            break;
        case 3:
            write_input(&self, ps_cursor_u16(&self.input));
            publish(&self);
            break;
        case 4:
            write_counter(&self);
            break;
        default:
            write_arena(&self);
            break;
        }
        serve(&self);
    }
    close_world(&self);
    return 0;
}
