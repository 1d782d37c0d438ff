/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/agent/node_message.h: what is no message is refused by name; places of
 * a table. golden_node_message.c has the bytes. */
#include "protocol/agent/node_message.h"

#include "base/cursor.h"
#include "support/fail_alloc.h"
#include "support/node_message_sample.h"
#include "wire/messages/formats.h"

static psd_status_t decode(const ps_buffer_t *bytes, size_t size, psd_error_t *err)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};

    return ps_node_message_decode((ps_bytes_t){bytes->data, size}, &message, err);
}

static void encode(ps_node_message_t *message, ps_buffer_t *bytes)
{
    bytes->size = 0;
    cr_assert(ps_node_message_encode(message, bytes));
}

static void assert_refused(const ps_buffer_t *bytes, psd_status_t status, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(decode(bytes, bytes->size, err), status);
    cr_assert_not_null(strstr(psd_error_text(err), text), "it says: %s", psd_error_text(err));
}

Test(node_message, that_is_cut_off_is_refused)
{
    for (size_t i = 0; i < N_SAMPLE_MESSAGES; i++) {
        PSD_AUTO(ps_node_message_done)
        ps_node_message_t message = node_message_sample(SAMPLE_MESSAGES[i]);
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

        encode(&message, &bytes);
        for (size_t size = 0; size < bytes.size; size++) {
            cr_assert_eq(decode(&bytes, size, err), PSD_PROTO, "%s of %zu bytes",
                         ps_node_message_name(message.kind), size);
            psd_error_clear(err);
        }
        cr_assert(ps_buffer_u8(&bytes, 0));
        assert_refused(&bytes, PSD_PROTO, "1 bytes are left");
    }
}

Test(node_message, of_another_format_or_kind_is_refused_by_name)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = node_message_sample(PS_NODE_BEAT);
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    char text[80];

    encode(&message, &bytes);
    cr_assert(ps_node_message_is((ps_bytes_t){bytes.data, bytes.size}));
    cr_assert_not(ps_node_message_is((ps_bytes_t){(const uint8_t *)"{\"v\":1}", 7}));
    bytes.data[4]++;
    (void)snprintf(text, sizeof text, "format is %d, this psd's is %d", PS_NODE_FORMAT + 1,
                   PS_NODE_FORMAT);
    assert_refused(&bytes, PSD_VERSION, text);
    bytes.data[4]--;
    bytes.data[6] = 99;
    assert_refused(&bytes, PSD_PROTO, "kind is 99, 0");
    bytes.data[0] = '{';
    (void)snprintf(text, sizeof text, "it is JSON, of a psd of format 3 or less, this psd's is %d",
                   PS_NODE_FORMAT);
    assert_refused(&bytes, PSD_VERSION, text);
    bytes.data[0] = '?';
    assert_refused(&bytes, PSD_PROTO, "it begins with other bytes");
    cr_assert_str_eq(ps_node_message_name(99), "?");
}

Test(node_message, whose_values_do_not_fit_is_refused_by_name)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t table = node_message_sample(PS_NODE_TABLE);
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

    table.places[1].partition = 0;
    encode(&table, &bytes);
    assert_refused(&bytes, PSD_PROTO, "place 1 is of partition 0");
    table.n_places = 1;
    encode(&table, &bytes);
    assert_refused(&bytes, PSD_PROTO, "1 places for 2 partitions");
    table.places[0].copies.n = 0;
    table.kind = PS_NODE_PLACES;
    encode(&table, &bytes);
    assert_refused(&bytes, PSD_INVALID, "copies");
    table.kind = PS_NODE_ANNOUNCE;
    table.lost[0].last = 97;
    encode(&table, &bytes);
    assert_refused(&bytes, PSD_INVALID, "lost partitions 98 to 97 are no range");
    table.kind = PS_NODE_BEAT;
    table.epoch = UINT64_MAX;
    encode(&table, &bytes);
    assert_refused(&bytes, PSD_INVALID, "allowed: below 2^63");
    table.kind = PS_NODE_DROP;
    table.table.id = 0;
    encode(&table, &bytes);
    assert_refused(&bytes, PSD_PROTO, "table is 0");
    table.kind = PS_NODE_FENCE;
    table.fence.epoch = 0;
    encode(&table, &bytes);
    assert_refused(&bytes, PSD_INVALID, "epoch is 0");
    table.kind = PS_NODE_JOB;
    table.job.workers[1].worker = 0;
    encode(&table, &bytes);
    assert_refused(&bytes, PSD_PROTO, "a job's worker is 0; allowed: ascending");
    table.kind = PS_NODE_ANSWER;
    table.serial = 0;
    encode(&table, &bytes);
    assert_refused(&bytes, PSD_PROTO, "serial is 0");
    table.incarnation = UINT64_MAX;
    encode(&table, &bytes);
    assert_refused(&bytes, PSD_PROTO, "incarnation is 18446744073709551615");
}

/* What changed since, and nothing else, comes to another table. */
Test(node_message, places_of_a_table_are_those_that_changed)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t sample = node_message_sample(PS_NODE_TABLE);
    PSD_AUTO(ps_node_message_done) ps_node_message_t moved = {.kind = PS_NODE_PLACES};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint64_t changed[] = {4, 6};
    ps_copies_t copies[2] = {sample_copies(), sample.places[1].copies};
    ps_route_t routes[2] = {{.partition = 0}, {.partition = 1}};
    ps_table_t from = {
        .spec = {.n_partitions = 2}, .copies = copies, .routes = routes, .changed = changed};
    ps_copies_t got_copies[2] = {{0}};
    ps_route_t got_routes[2] = {{0}};
    ps_table_t to = {.spec = {.n_partitions = 2}, .copies = got_copies, .routes = got_routes};

    cr_assert(ps_places_gather(&from, 6, &moved));
    cr_assert_eq(moved.n_places, 0);
    ps_free(moved.places);
    cr_assert(ps_places_gather(&from, 4, &moved));
    cr_assert_eq(moved.n_places, 1);
    cr_assert_eq(moved.places[0].partition, 1);
    cr_assert_eq(ps_places_put(&moved, &to, err), PSD_OK);
    cr_assert_eq(got_copies[0].n, 0);
    cr_assert_eq(got_copies[1].epoch, 82);
    cr_assert_eq(got_routes[1].incarnation, 8);
    moved.places[0].partition = 2;
    cr_assert_eq(ps_places_put(&moved, &to, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "partition 2 of table ; allowed: 0..1");
}

static psd_status_t read_again(void *fixture)
{
    const ps_buffer_t *bytes = fixture;

    return decode(bytes, bytes->size, NULL);
}

Test(node_message, is_refused_without_memory)
{
    static const ps_node_message_kind_t kinds[] = {PS_NODE_ANNOUNCE, PS_NODE_ANSWER, PS_NODE_TABLE};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        PSD_AUTO(ps_node_message_done) ps_node_message_t message = node_message_sample(kinds[i]);
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

        encode(&message, &bytes);
        cr_assert_null(fail_alloc_sweep(read_again, &bytes));
    }
}
