/* SPDX-License-Identifier: Apache-2.0 */
/* Two relays meet over tcp, bundles go from one to the other, and a stranger gets nowhere. Their
 * turns are taken here, so one thread is enough. */
#include "relay_pair.h"

#define STRANGERS 48 /* of each kind; more than have a place */

static bool a_bundle_goes_to_the_other_one(ps_relay_thread_t *child, ps_relay_thread_t *parent,
                                           psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + WAIT_MS;
    ps_relay_view_t view;
    ps_relay_deed_t deed;

    CHECK(lend(child, 4, err));
    CHECK(ps_relay_next(child->relay, &deed));
    CHECK(deed.kind == PS_RELAY_SEND && deed.to == 0);
    CHECK(ps_ways_send(child, &deed));
    while ((ps_relay_look(parent->relay, &view, 1) == 0 || child->ways[0].owes_ms != 0) &&
           ps_now_ms() < until_ms) {
        CHECK(turn(child, parent));
    }
    CHECK(ps_relay_look(parent->relay, &view, 1) == 1);
    CHECK(view.key.clock == 4 && view.n_lots == 1 && view.waits_for == 0);
    CHECK(child->ways[0].owes_ms == 0); /* it said that it took it */
    return true;
}

/* The child asks before the parent has them, and again for others, which it does not get. */
static bool rows_come_from_the_other_one(ps_relay_thread_t *child, ps_relay_thread_t *parent)
{
    static uint8_t values[200000];
    const ps_down_key_t key = {.table = TABLE, .n_rows = 10, .clock = 3};
    const ps_down_key_t before = {.table = TABLE, .n_rows = 10, .clock = 2};
    ps_message_t want = {.kind = PS_KIND_WANT,
                         .want = {.table = TABLE, .n_rows = 10, .wait_ms = WAIT_MS}};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *rows =
        ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0}, (ps_bytes_t){values, sizeof values});
    uint64_t until_ms = ps_now_ms() + WAIT_MS;
    ps_down_deed_t deed = {.kind = 0};

    CHECK(rows != NULL);
    ps_relay_down_keep(parent->down, &before, NULL); /* so it expects those of the next clock */
    for (uint64_t i = 0; i < 2; i++) {
        ps_down_key_t wanted = key;

        wanted.clock = want.want.clock = key.clock - i; /* then of the clock before */
        want.want.request = 70 + i;
        ps_relay_down_ask(child->down, child->now_ms, 0, 70 + i, &wanted, WAIT_MS);
        CHECK(ps_ways_want(child, 0, &want));
        CHECK(!ps_ways_want(child, 1, &want));
        for (int k = 0; i == 0 && k < 3; k++) {
            CHECK(turn(child, parent));
        }
        ps_relay_down_keep(parent->down, &key, rows);
        while (!ps_relay_down_next(child->down, &deed) && ps_now_ms() < until_ms) {
            CHECK(turn(child, parent));
        }
        CHECK(deed.kind == PS_DOWN_GIVE && deed.request == 70 + i);
        CHECK(ps_payload_size(deed.payload) == (i == 0 ? sizeof values : 0));
        ps_payload_destroy(&deed.payload);
        deed.kind = 0;
    }
    return true;
}

/* It knows all but the key, and sends as if it had proved it. */
static bool pose(ps_socket_t *socket, uint8_t i, psd_error_t *err)
{
    const ps_meet_self_t self = {.key = {{9}}, .job = 2, .worker = 1, .joins = 1};
    const ps_message_t bundle = {
        .kind = PS_KIND_BUNDLE,
        .bundle = {.request = 1, .table = TABLE, .job = 2, .worker = 1, .plan = 7, .n_from = 1}};
    const ps_id_t nonce = {{i, 1}};
    ps_message_t ask;

    ps_meet_ask(&self, &nonce, &ask);
    CHECK_OK(ps_socket_send(socket, 0, &ask, NULL, err), err);
    ask.meet.step = PS_MEET_PROOF;
    ask.meet.proof = self.key;
    CHECK_OK(ps_socket_send(socket, 0, &ask, NULL, err), err);
    CHECK_OK(ps_socket_send(socket, 0, &bundle, NULL, err), err);
    ps_socket_flush(socket);
    return true;
}

/* Each asks over a connection of its own, and holds a place until others want it. */
static bool ask_only(ps_socket_t *socket, uint8_t i, psd_error_t *err)
{
    const ps_meet_self_t self = {.key = {{9}}, .job = 2, .worker = 1, .joins = 1};
    const ps_id_t nonce = {{i, 2}};
    ps_message_t ask;

    ps_meet_ask(&self, &nonce, &ask);
    CHECK_OK(ps_socket_send(socket, 0, &ask, NULL, err), err);
    ps_socket_flush(socket);
    return true;
}

/* How many answers have come; each must be one to MEET. */
static bool hear_answers(ps_socket_t *const *sockets, size_t n, size_t *n_answers, psd_error_t *err)
{
    for (size_t i = 0; i < n; i++) {
        ps_payload_t *payload = NULL;
        ps_message_t message;
        ps_room_t room;
        uint64_t conn = 0;
        bool got = false;

        CHECK_OK(ps_socket_receive(sockets[i], &got, &conn, &message, &payload, &room, err), err);
        CHECK(!got || message.kind == PS_KIND_MEET); /* and never RELAYED */
        *n_answers += got ? 1 : 0;
        ps_payload_destroy(&payload);
    }
    return true;
}

static bool strangers_get_nowhere(ps_relay_thread_t *parent, psd_error_t *err)
{
    static ps_socket_t *sockets[2 * STRANGERS + 1];
    static bool ready[2 * STRANGERS + 1];
    const ps_socket_args_t args = {.context = parent->context,
                                   .high_water = 64,
                                   .frame_bytes = 1 << 16,
                                   .assembly_bytes = 1 << 16,
                                   .chunk_bytes = 1 << 16};
    const size_t n = 2 * STRANGERS;
    uint64_t until_ms = ps_now_ms() + WAIT_MS;
    uint64_t worker = 0;
    size_t n_answers = 0;
    size_t most = 0;

    for (size_t i = 0; i < parent->n_callers; i++) {
        worker = parent->callers[i].is_proved ? parent->callers[i].conn : worker;
    }
    for (size_t i = 0; i < n; i++) {
        CHECK_OK(ps_socket_connect(members[0].relay, &args, &sockets[i], err), err);
        CHECK(i < STRANGERS ? ask_only(sockets[i], (uint8_t)i, err)
                            : pose(sockets[i], (uint8_t)i, err));
    }
    sockets[n] = parent->port;
    while (n_answers < n && ps_now_ms() < until_ms) {
        CHECK_OK(ps_socket_wait(sockets, n + 1, 5, ready, err), err);
        ps_callers_receive(parent);
        ps_socket_flush(parent->port);
        most = parent->n_callers > most ? parent->n_callers : most;
        CHECK(parent->n_callers <= 1 + PS_RELAY_STRANGERS_MAX);
        CHECK(hear_answers(sockets, n, &n_answers, err));
    }
    CHECK(n_answers == n);
    CHECK(most >= PS_RELAY_STRANGERS_MAX); /* with the worker; one may just have been refused */
    CHECK(count_proved(parent, 1) == 1);   /* the worker that was there is there … */
    for (size_t i = 0; i < parent->n_callers; i++) {
        CHECK(!parent->callers[i].is_proved || parent->callers[i].conn == worker); /* … alone */
    }
    for (size_t i = 0; i < n; i++) {
        ps_socket_drop(&sockets[i]);
    }
    return true;
}

/* What it had comes back, or goes to the nodes. */
static bool a_relay_that_is_gone_is_noticed(ps_relay_thread_t *child, ps_relay_thread_t *parent,
                                            psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + WAIT_MS;
    ps_relay_deed_t deed = {.kind = 0};
    bool is_back = false;

    CHECK(lend(child, 5, err));
    CHECK(ps_relay_next(child->relay, &deed));
    CHECK(deed.kind == PS_RELAY_SEND && deed.to == 0 && ps_ways_send(child, &deed));
    ps_socket_drop(&parent->port);
    while (!is_back && ps_now_ms() < until_ms) {
        ps_socket_t *socket = child->ways[0].socket;
        bool ready = false;

        if (socket != NULL) {
            CHECK_OK(ps_socket_wait(&socket, 1, 5, &ready, err), err);
        }
        child->now_ms = ps_now_ms();
        ps_ways_receive(child);
        is_back = !child->ways[0].is_ready;
    }
    CHECK(is_back);
    CHECK(ps_relay_next(child->relay, &deed));
    CHECK(deed.kind == PS_RELAY_SEND && deed.to == PS_OVERLAY_NODES && deed.key.clock == 5);
    CHECK(ps_relay_next(child->relay, &deed)); /* the one that was taken */
    CHECK(deed.kind == PS_RELAY_TELL && deed.news == PS_RELAY_RETURNED && deed.number == 4);
    CHECK(!ps_ways_send(child, &deed));
    return true;
}

/* With keys strangers are another matter: thread_relay_keys.c. */
static bool relays_meet(bool encrypts, psd_error_t *err)
{
    ps_relay_thread_t parent = {.n_forks = 0};
    ps_relay_thread_t child = {.n_forks = 0};
    bool ok = open_relay(&parent, 0, encrypts, err) && open_relay(&child, 1, encrypts, err) &&
              meet(&child, &parent) && a_bundle_goes_to_the_other_one(&child, &parent, err) &&
              rows_come_from_the_other_one(&child, &parent) &&
              (encrypts || strangers_get_nowhere(&parent, err)) &&
              a_relay_that_is_gone_is_noticed(&child, &parent, err);

    close_relay(&child);
    close_relay(&parent);
    return ok;
}

int main(void)
{
    psd_error_t *err = psd_error_new();
    bool ok = relays_meet(false, err) && relays_meet(true, err);

    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
