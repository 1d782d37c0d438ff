/* SPDX-License-Identifier: Apache-2.0 */
/* Relays at security.level encrypt: what they send cannot be read on its way, and only workers of
 * the plan get in, each as itself. */
#include "relay_pair.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "support/fail_alloc.h"
#include "support/tcp_proxy.h"
#include "transport/sockets/curve.h"

#define ROWS "these are rows that worker 0 has pulled, in text of 60 bytes"
#define COPIES 500 /* of that, in the rows of a partition */
#define RECORDED (1 << 20)
#define STRANGERS 8 /* of each kind */

/* ---- what goes over the link ---- */

/* The child sees its parent where the proxy is. */
static bool put_between(ps_relay_thread_t *child, const ps_relay_thread_t *parent,
                        tcp_proxy_t *proxy, ps_relay_member_t *through)
{
    const char *colon = strrchr(ps_socket_endpoint(parent->port, 0), ':');
    const char *key = strchr(members[0].relay, '#');
    uint16_t door =
        tcp_proxy_open_door(proxy, 0, "127.0.0.1", (uint16_t)strtoul(colon + 1, NULL, 10));

    CHECK(door > 0);
    memcpy(through, members, sizeof members);
    (void)snprintf(through[0].relay, sizeof through[0].relay, "tcp://127.0.0.1:%u%s", door,
                   key == NULL ? "" : key);
    child->facts.members = through;
    return true;
}

static bool send_deltas(ps_relay_thread_t *child, ps_relay_thread_t *parent, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + WAIT_MS;
    ps_relay_view_t view;
    ps_relay_deed_t deed;

    CHECK(lend(child, 4, err));
    CHECK(ps_relay_next(child->relay, &deed) && ps_ways_send(child, &deed));
    while (ps_relay_look(parent->relay, &view, 1) == 0 && ps_now_ms() < until_ms) {
        CHECK(turn(child, parent));
    }
    CHECK(ps_relay_look(parent->relay, &view, 1) == 1);
    return true;
}

static bool send_rows(ps_relay_thread_t *child, ps_relay_thread_t *parent)
{
    static char values[COPIES * (sizeof ROWS - 1)];
    const ps_down_key_t key = {.table = TABLE, .n_rows = 10, .clock = 3};
    const ps_message_t want = {
        .kind = PS_KIND_WANT,
        .want = {.request = 9, .table = TABLE, .n_rows = 10, .clock = 3, .wait_ms = WAIT_MS}};
    uint64_t until_ms = ps_now_ms() + WAIT_MS;
    ps_down_deed_t deed = {.kind = 0};
    ps_payload_t *rows = NULL;

    for (size_t i = 0; i < COPIES; i++) {
        memcpy(values + i * (sizeof ROWS - 1), ROWS, sizeof ROWS - 1);
    }
    rows = ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0},
                           (ps_bytes_t){(const uint8_t *)values, sizeof values});
    CHECK(rows != NULL);
    ps_relay_down_keep(parent->down, &key, rows);
    ps_payload_destroy(&rows);
    ps_relay_down_ask(child->down, child->now_ms, 0, 9, &key, WAIT_MS);
    CHECK(ps_ways_want(child, 0, &want));
    while (!ps_relay_down_next(child->down, &deed) && ps_now_ms() < until_ms) {
        CHECK(turn(child, parent));
    }
    CHECK(deed.kind == PS_DOWN_GIVE && ps_payload_size(deed.payload) == sizeof values);
    ps_payload_destroy(&deed.payload);
    return true;
}

static bool the_link_shows(tcp_proxy_t *proxy, bool encrypts)
{
    size_t n_deltas = tcp_proxy_find(proxy, TCP_WAY_IN, DELTAS, strlen(DELTAS));
    size_t n_rows = tcp_proxy_find(proxy, TCP_WAY_OUT, ROWS, strlen(ROWS));
    tcp_counts_t counts;

    tcp_proxy_counts(proxy, &counts);
    (void)printf("%s: deltas %zu times, rows %zu times\n", encrypts ? "encrypt" : "plain", n_deltas,
                 n_rows);
    CHECK(counts.bytes[TCP_WAY_IN] > strlen(DELTAS));
    CHECK(counts.bytes[TCP_WAY_OUT] > COPIES * strlen(ROWS));
    CHECK(encrypts ? n_deltas == 0 && n_rows == 0 : n_deltas == 1 && n_rows == COPIES);
    return true;
}

static bool a_recording_shows_nothing_with_keys(bool encrypts, psd_error_t *err)
{
    ps_relay_thread_t parent = {.n_forks = 0};
    ps_relay_thread_t child = {.n_forks = 0};
    ps_relay_member_t through[2];
    tcp_proxy_t *proxy = tcp_proxy_new("127.0.0.1");
    bool ok = proxy != NULL && tcp_proxy_record(proxy, RECORDED) &&
              open_relay(&parent, 0, encrypts, err) && open_relay(&child, 1, encrypts, err) &&
              put_between(&child, &parent, proxy, through) && meet(&child, &parent) &&
              send_deltas(&child, &parent, err) && send_rows(&child, &parent) &&
              the_link_shows(proxy, encrypts);

    close_relay(&child);
    close_relay(&parent);
    tcp_proxy_destroy(&proxy);
    return ok;
}

/* ---- who gets in ---- */

static const ps_id_t strange = {{1}}; /* the nonce of strangers */

/* One of them was heard. */
static bool is_heard(const ps_relay_thread_t *parent)
{
    for (size_t i = 0; i < parent->n_callers; i++) {
        if (memcmp(&parent->callers[i].asked.asked, &strange, sizeof strange) == 0) {
            return true;
        }
    }
    return false;
}

/* A connection that says all that a worker 1 would say. keys NULL: without any. */
static bool knock(ps_context_t *context, const ps_key_pair_t *keys, const char *endpoint,
                  ps_socket_t **ret_socket, psd_error_t *err)
{
    const ps_socket_args_t args = {.context = context,
                                   .high_water = 64,
                                   .frame_bytes = 1 << 16,
                                   .assembly_bytes = 1 << 16,
                                   .chunk_bytes = 1 << 16,
                                   .is_watched = true,
                                   .keys = keys};
    const ps_meet_self_t self = {.key = plan.key, .job = 2, .worker = 1, .joins = members[1].joins};
    const ps_message_t bundle = {
        .kind = PS_KIND_BUNDLE,
        .bundle = {.request = 1, .table = TABLE, .job = 2, .worker = 1, .plan = 7, .n_from = 1}};
    ps_message_t ask;

    CHECK_OK(ps_socket_connect(endpoint, &args, ret_socket, err), err);
    ps_meet_ask(&self, &strange, &ask);
    CHECK_OK(ps_socket_send(*ret_socket, 0, &ask, NULL, err), err);
    CHECK_OK(ps_socket_send(*ret_socket, 0, &bundle, NULL, err), err);
    ps_socket_flush(*ret_socket);
    return true;
}

/* Each ends with that denial, and nothing that it says is heard. */
static bool are_denied(ps_relay_thread_t *parent, const ps_key_pair_t *keys, const char *endpoint,
                       ps_denial_t denial, psd_error_t *err)
{
    ps_socket_t *sockets[STRANGERS + 1] = {NULL};
    bool ready[STRANGERS + 1];
    uint64_t until_ms = ps_now_ms() + WAIT_MS;
    ps_context_t *context = NULL;
    size_t n = 0;

    CHECK_OK(ps_context_new(1, &context, err), err);
    for (size_t i = 0; i < STRANGERS; i++) {
        CHECK(knock(context, keys, endpoint, &sockets[i], err));
    }
    sockets[STRANGERS] = parent->port;
    while (n < STRANGERS && ps_now_ms() < until_ms) {
        CHECK_OK(ps_socket_wait(sockets, STRANGERS + 1, 5, ready, err), err);
        ps_callers_receive(parent);
        ps_socket_flush(parent->port);
        CHECK(!is_heard(parent));
        n = 0;
        for (size_t i = 0; i < STRANGERS; i++) {
            n += ps_socket_denial(sockets[i]) == denial ? 1 : 0;
        }
    }
    CHECK(n == STRANGERS);
    CHECK(ps_socket_n_unfinished(parent->port) == 0);
    for (size_t i = 0; i < STRANGERS; i++) {
        ps_socket_drop(&sockets[i]);
    }
    ps_context_destroy(&context);
    return true;
}

static bool strangers_get_no_connection(ps_relay_thread_t *parent, psd_error_t *err)
{
    char address[PS_ENDPOINT_MAX + 1];
    char another[PS_ENDPOINT_MAX + 1];
    char key[PS_KEY_SIZE + 1];
    ps_key_pair_t stranger;

    CHECK_OK(ps_curve_split(members[0].relay, address, key, err), err);
    CHECK_OK(ps_key_pair_make("stranger", &stranger, err), err);
    CHECK(ps_curve_join(address, stranger.public_key, another));
    CHECK(are_denied(parent, NULL, address, PS_DENIAL_WANTS_KEY, err));
    CHECK(are_denied(parent, &stranger, another, PS_DENIAL_SERVER, err));
    /* As a worker of another job, who has the address: */
    CHECK(are_denied(parent, &stranger, members[0].relay, PS_DENIAL_KEY, err));
    CHECK(count_proved(parent, 1) == 1);
    ps_key_pair_done(&stranger);
    return true;
}

/* The first answer that comes. */
static bool hear_answer(ps_relay_thread_t *parent, ps_socket_t *socket, ps_msg_meet_t *ret_answer,
                        psd_error_t *err)
{
    ps_socket_t *sockets[] = {socket, parent->port};
    uint64_t until_ms = ps_now_ms() + WAIT_MS;
    bool ready[2];
    bool got = false;

    while (!got && ps_now_ms() < until_ms) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        ps_message_t message;
        ps_room_t room;
        uint64_t conn = 0;

        CHECK_OK(ps_socket_wait(sockets, 2, 5, ready, err), err);
        ps_callers_receive(parent);
        ps_socket_flush(parent->port);
        CHECK_OK(ps_socket_receive(socket, &got, &conn, &message, &payload, &room, err), err);
        CHECK(!got || message.kind == PS_KIND_MEET);
        *ret_answer = message.meet;
    }
    CHECK(got);
    return true;
}

/* Worker 2 of the plan says that it is worker 1, which is not answered; then who it is. */
static bool a_worker_is_only_itself(ps_relay_thread_t *parent, psd_error_t *err)
{
    const ps_meet_self_t self = {.key = plan.key, .job = 2, .worker = 2, .joins = 1};
    const ps_id_t nonce = {{2}};
    uint32_t to[3] = {PS_OVERLAY_NODES, 0, 0};
    ps_relay_member_t three[3] = {members[0], members[1], {.worker = 2, .joins = 1, .members = 1}};
    ps_relay_facts_t facts = plan;
    ps_context_t *context = NULL;
    ps_socket_t *socket = NULL;
    ps_msg_meet_t answer;
    ps_key_pair_t keys;
    ps_message_t message;

    CHECK_OK(ps_key_pair_make("two", &keys, err), err);
    CHECK(ps_curve_join("tcp://127.0.0.1:1", keys.public_key, three[2].relay));
    facts.members = three;
    facts.parents = to;
    facts.n_members = 3;
    parent->facts = facts;
    ps_relay_admit(parent, &parent->facts);
    ps_callers_plan(parent);
    CHECK_OK(ps_context_new(1, &context, err), err);
    CHECK(knock(context, &keys, members[0].relay, &socket, err));
    ps_meet_ask(&self, &nonce, &message);
    CHECK_OK(ps_socket_send(socket, 0, &message, NULL, err), err);
    ps_socket_flush(socket);
    CHECK(hear_answer(parent, socket, &answer, err));
    CHECK_OK(ps_meet_prove(&self, &nonce, 0, 1, &answer, &message, err), err);
    CHECK(count_proved(parent, 1) == 1 && !is_heard(parent));
    CHECK(parent->callers[parent->n_callers - 1].asked.worker == 2);
    ps_socket_drop(&socket);
    ps_context_destroy(&context);
    ps_key_pair_done(&keys);
    parent->facts = plan;
    ps_relay_admit(parent, &parent->facts);
    ps_callers_plan(parent);
    CHECK(parent->callers[parent->n_callers - 1].asked.worker == 1);
    return true;
}

/* It has a new key, with which it gets in when the plan has it, and the old one is worth nothing.
 */
static bool a_worker_comes_again(ps_relay_thread_t *child, ps_relay_thread_t *parent,
                                 psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + WAIT_MS;
    ps_denial_t denial = PS_DENIAL_NONE;
    ps_key_pair_t old = child->keys;

    close_relay(child);
    members[1].joins = 2;
    CHECK(open_relay(child, 1, true, err));
    CHECK(strcmp(old.public_key, child->keys.public_key) != 0);
    child->self.joins = 2;
    ps_ways_plan(child);
    while (denial != PS_DENIAL_KEY && ps_now_ms() < until_ms) {
        CHECK(turn(child, parent));
        denial = child->ways[0].socket == NULL ? PS_DENIAL_NONE
                                               : ps_socket_denial(child->ways[0].socket);
    }
    CHECK(denial == PS_DENIAL_KEY);
    ps_callers_plan(parent);
    CHECK(parent->n_callers == 0);
    CHECK(meet(child, parent));
    CHECK(are_denied(parent, &old, members[0].relay, PS_DENIAL_KEY, err));
    CHECK(send_deltas(child, parent, err));
    ps_key_pair_done(&old);
    members[1].joins = 1;
    return true;
}

static bool only_workers_of_the_plan_get_in(psd_error_t *err)
{
    ps_relay_thread_t parent = {.n_forks = 0};
    ps_relay_thread_t child = {.n_forks = 0};
    bool ok = open_relay(&parent, 0, true, err) && open_relay(&child, 1, true, err) &&
              meet(&child, &parent) && strangers_get_no_connection(&parent, err) &&
              a_worker_is_only_itself(&parent, err) && a_worker_comes_again(&child, &parent, err);

    close_relay(&child);
    close_relay(&parent);
    return ok;
}

/* ---- one that cannot encrypt ---- */

static atomic_int n_lines;

static void count_line(void *user, ps_log_level_t level, const char *line)
{
    (void)user;
    (void)level;
    if (strstr(line, "overlay_off") != NULL && strstr(line, "ZAP") != NULL) {
        (void)atomic_fetch_add(&n_lines, 1);
    }
}

static psd_status_t no_courier(const char *endpoint, const psd_options_t *options,
                               psd_client_t **ret_client, psd_error_t *err)
{
    (void)endpoint;
    (void)options;
    (void)ret_client;
    (void)err;
    return PSD_OK;
}

static void end_no_courier(psd_client_t **client_p)
{
    (void)client_p;
}

/* With each allocation that can fail: there is no relay, or one with a key. */
static bool never_one_in_the_clear(psd_error_t *err)
{
    static const ps_relay_calls_t calls = {.connect = no_courier, .close = end_no_courier};
    const ps_relay_wish_t wish = {.listen = "tcp://127.0.0.1:*", .encrypts = true};
    ps_log_sink_t sink = {.take = count_line, .level = PS_LOG_WARN};
    psd_options_t *options = psd_options_new();
    bool fails = true;
    int n_without = 0;

    CHECK(options != NULL);
    ps_log_use(&sink);
    for (size_t at = 0; fails; at++) {
        ps_relay_thread_t *relay = NULL;
        psd_status_t rc = PSD_OK;

        fail_alloc_at(at);
        rc = ps_relay_thread_open("tcp://127.0.0.1:1", options, &calls, &wish, &relay, err);
        fails = fail_alloc_happened();
        fail_alloc_off();
        psd_error_clear(err);
        CHECK(rc == PSD_OK || relay == NULL);
        CHECK(fails || relay != NULL);
        CHECK(relay == NULL || strchr(ps_desk_relay(ps_relay_thread_desk(relay)), '#') != NULL);
        n_without += rc == PSD_OK && relay == NULL ? 1 : 0;
        ps_relay_thread_stop(&relay, 0);
    }
    ps_log_use(NULL);
    psd_options_destroy(&options);
    CHECK(n_without > 0 && atomic_load(&n_lines) == n_without); /* each says so once */
    return true;
}

int main(void)
{
    psd_error_t *err = psd_error_new();
    bool good = true;

    RUN(a_recording_shows_nothing_with_keys(false, err));
    RUN(a_recording_shows_nothing_with_keys(true, err));
    RUN(only_workers_of_the_plan_get_in(err));
    RUN(never_one_in_the_clear(err));
    psd_error_destroy(&err);
    return good ? 0 : 1;
}
