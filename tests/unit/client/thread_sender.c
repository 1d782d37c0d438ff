/* SPDX-License-Identifier: Apache-2.0 */
/* What a call leaves unsent goes though no call follows; nothing of it is
 * touched by both threads. A plain program that also runs under TSan. */
#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "base/alloc.h"
#include "client/requests/pump.h"
#include "support/check.h"

#define PATIENCE_S 10
#define ROUNDS 2000
#define FEW 1
#define MANY 10 /* requests under way */

/* ---- the thread ---- */

typedef struct work {
    sem_t done;
    unsigned n_seen; /* changed by both threads, in turns */
    unsigned n_sent;
} work_t;

static void do_work(void *owner)
{
    work_t *self = owner;

    self->n_seen++;
    self->n_sent++;
    (void)sem_post(&self->done);
}

static bool is_done_in_time(work_t *work)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    while (sem_timedwait(&work->done, &until) != 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

static bool what_is_lent_is_done_once(psd_error_t *err)
{
    work_t work = {.n_seen = 0};
    ps_sender_t *sender = NULL;

    CHECK(sem_init(&work.done, 0, 0) == 0);
    CHECK_OK(ps_sender_start(do_work, &work, &sender, err), err);
    for (unsigned i = 1; i <= 3; i++) {
        ps_sender_lend(sender);
        CHECK(is_done_in_time(&work));
        ps_sender_take_back(sender);
        CHECK(work.n_sent == i);
    }
    ps_sender_stop(&sender);
    CHECK(sender == NULL && work.n_sent == 3);
    CHECK(sem_destroy(&work.done) == 0);
    return true;
}

static bool both_take_turns(psd_error_t *err)
{
    work_t work = {.n_seen = 0};
    ps_sender_t *sender = NULL;

    CHECK(sem_init(&work.done, 0, 0) == 0);
    CHECK_OK(ps_sender_start(do_work, &work, &sender, err), err);
    for (unsigned i = 0; i < ROUNDS; i++) {
        ps_sender_lend(sender);
        ps_sender_take_back(sender);
        work.n_seen++;
    }
    ps_sender_lend(sender);
    ps_sender_stop(&sender); /* takes it back by itself */
    CHECK(work.n_seen == ROUNDS + work.n_sent);
    CHECK(sem_destroy(&work.done) == 0);
    return true;
}

/* ---- a client that leaves messages ---- */

typedef struct ends {
    psd_client_t client;
    ps_socket_t *port;
    psd_error_t *err;
} ends_t;

static bool open_ends(ends_t *self)
{
    const char *const endpoints[] = {"tcp://127.0.0.1:*"};
    ps_socket_args_t args = {
        .high_water = 1000, .frame_bytes = 1 << 20, .assembly_bytes = 1 << 20, .chunk_bytes = 4096};

    ps_client_init(&self->client);
    CHECK_OK(ps_context_new(1, &self->client.context, self->err), self->err);
    args.context = self->client.context;
    CHECK_OK(ps_socket_bind(endpoints, 1, &args, &self->port, self->err), self->err);
    self->client.links = ps_alloc(1, sizeof *self->client.links);
    CHECK(self->client.links != NULL);
    self->client.n_links = 1;
    CHECK_OK(ps_socket_connect(ps_socket_endpoint(self->port, 0), &args,
                               &self->client.links[0].socket, self->err),
             self->err);
    return true;
}

static void close_ends(ends_t *self)
{
    ps_links_close(&self->client);
    ps_socket_close(&self->port);
    ps_outbox_done(&self->client.outbox);
    ps_outbox_done(&self->client.batch);
    ps_context_destroy(&self->client.context);
}

/* Starts one request beside n others, and returns as a call does. */
static bool start(ends_t *self, uint64_t request, size_t n_under_way)
{
    ps_effect_t *effect = ps_outbox_add(&self->client.outbox, PS_EFFECT_SEND);

    CHECK(effect != NULL);
    effect->message = (ps_message_t){.kind = PS_KIND_MARK,
                                     .mark = {.request = request, .table = 1, .seq = request}};
    self->client.n_under_way = n_under_way;
    ps_perform_start(&self->client);
    return true;
}

/* The request arrives, while the client is left alone. */
static bool arrives(ends_t *self, uint64_t request)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_S * UINT64_C(1000);
    bool got = false;

    while (!got) {
        ps_payload_t *payload = NULL;
        ps_message_t message;
        ps_room_t room = {NULL, 0};
        uint64_t conn = 0;
        uint64_t now_ms = ps_now_ms();
        bool ready = false;

        CHECK(now_ms < until_ms);
        CHECK_OK(ps_socket_wait(&self->port, 1, until_ms - now_ms, &ready, self->err), self->err);
        CHECK_OK(ps_socket_receive(self->port, &got, &conn, &message, &payload, &room, self->err),
                 self->err);
        CHECK(!got ||
              (message.kind == PS_KIND_MARK && payload == NULL && message.mark.request == request));
    }
    return true;
}

static bool one_of_few_goes_at_once(ends_t *self)
{
    CHECK(start(self, 1, FEW));
    CHECK(self->client.sender == NULL);
    CHECK(ps_socket_n_collected(self->client.links[0].socket) == 0);
    return arrives(self, 1);
}

static bool one_of_many_goes_without_a_further_call(ends_t *self)
{
    CHECK(start(self, 2, MANY));
    CHECK(self->client.sender != NULL);
    CHECK(arrives(self, 2));
    CHECK(start(self, 3, MANY)); /* the thread may sleep by now, or not */
    return arrives(self, 3);
}

static bool what_was_left_goes_with_the_next_turn(ends_t *self)
{
    for (uint64_t i = 4; i < 4 + MANY; i++) {
        CHECK(start(self, i, MANY));
    }
    ps_perform(&self->client);
    CHECK(ps_socket_n_collected(self->client.links[0].socket) == 0);
    for (uint64_t i = 4; i < 4 + MANY; i++) {
        CHECK(arrives(self, i));
    }
    return true;
}

static bool without_a_thread_all_goes_at_once(ends_t *self)
{
    ps_sender_stop(&self->client.sender);
    self->client.no_sender = true;
    CHECK(start(self, 100, MANY));
    CHECK(ps_socket_n_collected(self->client.links[0].socket) == 0);
    return arrives(self, 100);
}

int main(void)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ends_t ends = {.err = err};
    bool ok = what_is_lent_is_done_once(err) && both_take_turns(err) && open_ends(&ends) &&
              one_of_few_goes_at_once(&ends) && one_of_many_goes_without_a_further_call(&ends) &&
              what_was_left_goes_with_the_next_turn(&ends) &&
              without_a_thread_all_goes_at_once(&ends);

    close_ends(&ends);
    return ok ? 0 : 1;
}
