/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's marks, and its signs of life. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "client/job/job.h"
#include "client_kit.h"

#define OWN 1   /* the fixture's worker */
#define OTHER 2 /* one that goes on */
#define BEATS_IN_A_ROW 40
#define BEATS_MAX 4000

/* Where heartbeats come to. */
static ps_socket_t *open_port(void)
{
    const char *any = "tcp://127.0.0.1:*";
    const ps_socket_args_t args = {
        .high_water = 100, .frame_bytes = PS_DOC_BYTES_MAX, .chunk_bytes = PS_DOC_BYTES_MAX};
    ps_socket_t *port = NULL;

    cr_assert_eq(ps_socket_bind(&any, 1, &args, &port, NULL), PSD_OK);
    return port;
}

static ps_beat_t *start_beat(const ps_socket_t *port, uint32_t worker)
{
    ps_finder_t finder;
    const ps_beat_args_t args = {.finder = &finder,
                                 .session = 1,
                                 .job = "j",
                                 .job_id = 1,
                                 .worker = worker,
                                 .joins = 1,
                                 .heartbeat_ms = 1};
    ps_beat_t *beat = NULL;

    cr_assert_eq(ps_finder_init(&finder, ps_socket_endpoint(port, 0), NULL), PSD_OK);
    cr_assert_eq(ps_beat_start(&args, &beat, NULL), PSD_OK);
    return beat;
}

/* The text of the next heartbeat. */
static uint64_t receive_beat(ps_socket_t *port, ps_buffer_t *ret_text)
{
    uint64_t conn = 0;
    bool got = false;

    while (!got) {
        bool ready = false;

        cr_assert_eq(ps_socket_wait(&port, 1, UINT64_MAX, &ready, NULL), PSD_OK);
        cr_assert_eq(ps_socket_receive_text(port, &got, &conn, ret_text, NULL), PSD_OK);
    }
    return conn;
}

/* Whose is the next heartbeat. */
static uint64_t next_beat(ps_socket_t *port)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    uint64_t worker = 0;

    (void)receive_beat(port, &text);
    cr_assert_eq(ps_doc_parse((ps_bytes_t){text.data, text.size}, &doc, NULL), PSD_OK);
    cr_assert_eq(ps_doc_get_u64(doc, "worker", 0, OTHER, &worker, NULL), PSD_OK);
    return worker;
}

/* Others wait for its marks, which never come: it must not pass for alive. */
Test(membership, a_broken_client_says_no_more_that_its_worker_lives)
{
    ps_membership_t membership = {.version = 0};
    ps_socket_t *port = open_port();
    ps_beat_t *other = NULL;
    fixture_t f;
    int in_a_row = 0;

    set_up(&f);
    f.client.worker.beat = start_beat(port, OWN);
    f.client.membership = &membership;
    ps_membership_look(&f.client);
    while (next_beat(port) != OWN) {
    }
    ps_client_break(&f.client, PSD_ROWS_LOST, "for a test");
    ps_membership_look(&f.client);
    other = start_beat(port, OTHER);
    for (int i = 0; i < BEATS_MAX && in_a_row < BEATS_IN_A_ROW; i++) {
        in_a_row = next_beat(port) == OTHER ? in_a_row + 1 : 0;
    }
    cr_assert_eq(in_a_row, BEATS_IN_A_ROW, "both go on");
    ps_beat_release(&other);
    ps_beat_release(&f.client.worker.beat);
    ps_socket_close(&port);
    f.client.membership = NULL;
    tear_down(&f);
}

/* Answers the next heartbeats: the job's tables are of that version. */
static void answer_beats(ps_socket_t *port, uint64_t version, int n)
{
    for (int i = 0; i < n; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};
        uint64_t conn = receive_beat(port, &text);
        char answer[160];
        int size = snprintf(answer, sizeof answer,
                            "{\"v\":1,\"id\":1,\"status\":\"OK\",\"state\":\"running\","
                            "\"version\":%" PRIu64 "}",
                            version);

        (void)!ps_socket_send_text(
            port, conn, (ps_bytes_t){.data = (const uint8_t *)answer, .size = (size_t)size}, NULL);
    }
}

/* Waits for news of that version at each member, and takes it. */
static void await_news(ps_socket_t *port, ps_beat_t *beat, uint64_t version, unsigned seen[2])
{
    for (uint32_t member = 0; member < 2; member++) {
        struct pollfd item = {.fd = ps_beat_watch(beat, member), .events = POLLIN};
        unsigned before = seen[member];

        while (poll(&item, 1, 0) != 1) {
            answer_beats(port, version, 1);
        }
        while (seen[member] == before) {
            ps_beat_take_news(beat, member, &seen[member]);
        }
        cr_assert_eq(poll(&item, 1, 0), 0);
        cr_assert_eq(ps_beat_version(beat), version);
    }
}

Test(membership, news_of_the_job_wake_each_member_once)
{
    ps_socket_t *port = open_port();
    ps_beat_t *beat = start_beat(port, OWN);
    struct pollfd item = {.fd = ps_beat_watch(beat, 0), .events = POLLIN};
    unsigned seen[2] = {0, 0};

    cr_assert_geq(item.fd, 0);
    cr_assert_eq(ps_beat_watch(beat, 0), item.fd);
    cr_assert_neq(ps_beat_watch(beat, 1), item.fd);
    await_news(port, beat, 7, seen);
    answer_beats(port, 7, BEATS_IN_A_ROW); /* these are none */
    cr_assert_eq(poll(&item, 1, 0), 0);
    await_news(port, beat, 8, seen);
    ps_beat_release(&beat);
    ps_socket_close(&port);
}

/* A mark to the fixture's table ends so. */
static void end_mark(fixture_t *f, psd_status_t status)
{
    ps_cut_t nothing = {.partition = 0};
    ps_slice_request_t *mark = ps_slice_request_new(&f->client, PS_REQUEST_MARK, &nothing);

    cr_assert_not_null(mark);
    mark->queue = &f->table->queues[0];
    ps_slice_request_end(&f->client, mark, status, NULL);
    ps_perform(&f->client);
}

Test(membership, a_table_that_is_gone_gets_no_further_marks)
{
    fixture_t f;

    set_up(&f);
    f.table->in_job = true;
    end_mark(&f, PSD_OK);
    end_mark(&f, PSD_DEADLINE);
    end_mark(&f, PSD_WORKER_LOST);
    cr_assert(f.table->in_job);
    end_mark(&f, PSD_NO_TABLE);
    cr_assert_not(f.table->in_job);
    tear_down(&f);
}

Test(membership, the_end_of_one_table_is_not_that_of_another)
{
    fixture_t f;
    ps_known_table_t *other = NULL;

    set_up(&f);
    cr_assert_eq(ps_known_table_add(&f.client, 2, "v", 1, &other, NULL), PSD_OK);
    f.table->in_job = true;
    other->in_job = true;
    end_mark(&f, PSD_NO_TABLE);
    cr_assert_not(f.table->in_job);
    cr_assert(other->in_job);
    ps_free(other->queues);
    ps_free(other);
    tear_down(&f);
}
