/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end: a port that knows its callers. Threads of ZeroMQ and of our own,
 * so this is a plain program that also runs under TSan. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "support/check.h"
#include "support/fail_alloc.h"
#include "support/zmtp.h"
#include "transport/sockets/curve.h"
#include "transport/sockets/socket.h"
#include "transport/sockets/socket_inner.h"

#define PATIENCE_MS 60000
#define ADDRESS "inproc://zeromq.zap.01"

static const ps_bytes_t hello = {(const uint8_t *)"{\"hello\":1}", 11};

static ps_socket_args_t args_of(ps_context_t *context)
{
    return (ps_socket_args_t){.context = context,
                              .high_water = 100,
                              .frame_bytes = 1 << 20,
                              .assembly_bytes = 1 << 20,
                              .chunk_bytes = 4096,
                              .is_guarded = true};
}

/* The next text, with its sender; false: none came. */
static bool next_from(ps_socket_t *port, ps_asker_t *ret_caller)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};
    bool got = false;

    while (!got && ps_now_ms() < until_ms) {
        bool ready = false;
        uint64_t conn = 0;

        if (ps_socket_wait(&port, 1, PATIENCE_MS, &ready, NULL) != PSD_OK ||
            ps_socket_receive_from(port, &got, &conn, ret_caller, &text, NULL) != PSD_OK) {
            return false;
        }
    }
    return got;
}

static bool says_who(ps_context_t *context, ps_socket_t *port, size_t i, ps_asker_t *ret_caller,
                     psd_error_t *err)
{
    ps_socket_args_t args = args_of(context);
    ps_socket_t *link = NULL;

    args.linger_ms = 1000;
    CHECK_OK(ps_socket_connect(ps_socket_endpoint(port, i), &args, &link, err), err);
    CHECK_OK(ps_socket_send_text(link, 0, hello, err), err);
    CHECK(next_from(port, ret_caller));
    ps_socket_close(&link);
    return true;
}

static bool callers_are_known(psd_error_t *err)
{
    char dir[] = "/tmp/psd-zap-XXXXXX";
    char ipc[64];
    const char *endpoints[] = {"tcp://127.0.0.1:*", ipc};
    ps_context_t *context = NULL;
    ps_socket_t *port = NULL;
    ps_socket_args_t args;
    ps_asker_t caller;
    char text[PS_ASKER_TEXT_SIZE];

    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(ipc, sizeof ipc, "ipc://%s/s", dir);
    CHECK_OK(ps_context_new(1, &context, err), err);
    CHECK_OK(ps_context_guard(context, err), err);
    CHECK_OK(ps_context_guard(context, err), err); /* once is enough */
    args = args_of(context);
    CHECK_OK(ps_socket_bind(endpoints, 2, &args, &port, err), err);
    CHECK(says_who(context, port, 0, &caller, err));
    CHECK(!caller.has_uid && caller.key[0] == '\0' && strcmp(caller.address, "127.0.0.1") == 0);
    CHECK(strcmp(ps_asker_print(&caller, text), "127.0.0.1") == 0);
    CHECK(says_who(context, port, 1, &caller, err));
    CHECK(caller.has_uid && caller.uid == geteuid() && caller.key[0] == '\0' &&
          caller.address[0] == '\0');
    (void)snprintf(ipc, sizeof ipc, "uid %lu", (unsigned long)geteuid());
    CHECK(strcmp(ps_asker_print(&caller, text), ipc) == 0);
    CHECK(ps_socket_n_refused(port) == 0);
    ps_socket_close(&port);
    ps_context_destroy(&context);
    CHECK(rmdir(dir) == 0);
    return true;
}

/* A peer that names itself in its greeting, up to its READY. -1: it does not get that far. */
static int greet(const char *endpoint)
{
    static const uint8_t ready[] = "\4\55\5READY\13Socket-Type\0\0\0\6DEALER\7User-Id\0\0\0\5uid:0";
    uint8_t greeting[ZMTP_GREETING_SIZE] = {0xFF};
    uint8_t theirs[ZMTP_GREETING_SIZE];
    int fd = zmtp_dial(endpoint, 0);

    greeting[9] = 0x7F;
    greeting[10] = 3;
    memcpy(greeting + 12, "NULL", 4);
    if (fd >= 0 && sizeof ready - 1 == 2 + 6 + 12 + 4 + 6 + 8 + 4 + 5 &&
        ready[1] + 2 == sizeof ready - 1 && zmtp_write(fd, greeting, sizeof greeting) &&
        zmtp_read(fd, theirs, sizeof theirs) && zmtp_write(fd, ready, sizeof ready - 1)) {
        return fd;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return -1;
}

/* What a peer says of itself in its greeting counts for nothing. */
static bool nobody_names_himself(psd_error_t *err)
{
    static const char *const endpoints[] = {"tcp://127.0.0.1:*"};
    uint8_t theirs[ZMTP_GREETING_SIZE];
    ps_context_t *context = NULL;
    ps_socket_t *port = NULL;
    ps_socket_args_t args;
    ps_asker_t caller;
    int fd = -1;

    CHECK_OK(ps_context_new(1, &context, err), err);
    CHECK_OK(ps_context_guard(context, err), err);
    args = args_of(context);
    CHECK_OK(ps_socket_bind(endpoints, 1, &args, &port, err), err);
    fd = greet(ps_socket_endpoint(port, 0));
    CHECK(fd >= 0);
    /* Its READY comes when the thread has answered; a message before that is none. */
    CHECK(zmtp_read(fd, theirs, 2) && theirs[1] < sizeof theirs &&
          zmtp_read(fd, theirs, theirs[1]));
    CHECK(zmtp_send(fd, 0, hello.data, hello.size));
    CHECK(next_from(port, &caller));
    CHECK(!caller.has_uid && caller.key[0] == '\0' && strcmp(caller.address, "127.0.0.1") == 0);
    (void)close(fd);
    ps_socket_close(&port);
    ps_context_destroy(&context);
    return true;
}

/* A port that is bound already: the peer gets no READY, and is cut off. */
static bool nobody_gets_in_without_it(psd_error_t *err)
{
    static const char *const endpoints[] = {"tcp://127.0.0.1:*"};
    ps_context_t *context = NULL;
    ps_socket_t *port = NULL;
    ps_socket_args_t args;
    char first = 0;
    int fd = -1;

    CHECK_OK(ps_context_new(1, &context, err), err);
    CHECK_OK(ps_context_guard(context, err), err);
    args = args_of(context);
    CHECK_OK(ps_socket_bind(endpoints, 1, &args, &port, err), err);
    ps_context_end_guard(context);
    fd = greet(ps_socket_endpoint(port, 0));
    CHECK(fd >= 0);
    CHECK(!zmtp_read(fd, &first, 1));
    (void)close(fd);
    ps_socket_close(&port);
    ps_context_destroy(&context);
    return true;
}

/* What ZeroMQ hands on, as a caller. */
static bool words_are_read(void)
{
    ps_asker_t caller;
    char text[PS_ASKER_TEXT_SIZE];

    CHECK(!ps_asker_read(NULL, "127.0.0.1", &caller));
    CHECK(!ps_asker_read("root", "127.0.0.1", &caller));
    CHECK(ps_asker_read("uid:1000", "localhost:1000:1000:7", &caller));
    CHECK(caller.has_uid && caller.uid == 1000 && caller.address[0] == '\0');
    /* Each user of another user namespace has this one. */
    CHECK(ps_asker_read("uid:65534", "localhost:65534:65534:7", &caller));
    CHECK(!caller.has_uid && caller.uid == 0 && caller.address[0] == '\0');
    CHECK(strcmp(ps_asker_print(&caller, text), "an unknown peer") == 0);
    return true;
}

static bool nothing_is_bound_without_it(psd_error_t *err)
{
    static const char *const endpoints[] = {"tcp://127.0.0.1:*"};
    ps_context_t *context = NULL;
    ps_socket_t *port = NULL;
    ps_socket_args_t args = args_of(NULL);
    void *taken = NULL;

    CHECK_ERROR(ps_socket_bind(endpoints, 1, &args, &port, err), PSD_IO, "no ZAP thread", err);
    CHECK_OK(ps_context_new(1, &context, err), err);
    args = args_of(context);
    CHECK_ERROR(ps_socket_bind(endpoints, 1, &args, &port, err), PSD_IO, "no ZAP thread", err);
    taken = zmq_socket(ps_context_zmq(context), ZMQ_REP);
    CHECK(zmq_bind(taken, ADDRESS) == 0);
    CHECK_ERROR(ps_context_guard(context, err), PSD_IO, "cannot start: bind " ADDRESS, err);
    CHECK_ERROR(ps_socket_bind(endpoints, 1, &args, &port, err), PSD_IO, "no ZAP thread", err);
    CHECK(port == NULL);
    (void)zmq_close(taken);
    ps_context_destroy(&context);
    return true;
}

/* Why a link with that pair is not let in at that endpoint; NONE: nothing has come of it. */
static ps_denial_t denial_at(ps_context_t *context, const char *endpoint, const ps_key_pair_t *keys,
                             psd_error_t *err)
{
    ps_socket_args_t args = args_of(context);
    ps_denial_t denial = PS_DENIAL_NONE;
    ps_socket_t *link = NULL;
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    args.keys = keys;
    args.is_watched = true;
    if (ps_socket_connect(endpoint, &args, &link, err) != PSD_OK) {
        return PS_DENIAL_NONE;
    }
    while (denial == PS_DENIAL_NONE && ps_now_ms() < until_ms) {
        bool ready = false;

        if (ps_socket_wait(&link, 1, 10, &ready, err) != PSD_OK) {
            break;
        }
        denial = ps_socket_denial(link);
    }
    ps_socket_drop(&link);
    return denial;
}

static bool keys_are_proven(psd_error_t *err)
{
    char dir[] = "/tmp/psd-zap-XXXXXX";
    char ipc[64];
    char named[PS_ENDPOINT_MAX + 1];
    const char *endpoints[] = {"tcp://127.0.0.1:*", ipc};
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t server = {.name = ""};
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t client = {.name = ""};
    ps_context_t *context = NULL;
    ps_socket_t *port = NULL;
    ps_socket_t *link = NULL;
    ps_socket_args_t args;
    ps_asker_t caller;

    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(ipc, sizeof ipc, "ipc://%s/s", dir);
    CHECK_OK(ps_key_pair_make("server", &server, err), err);
    CHECK_OK(ps_key_pair_make("client", &client, err), err);
    CHECK_OK(ps_context_new(1, &context, err), err);
    CHECK_OK(ps_context_guard(context, err), err);
    args = args_of(context);
    args.keys = &server;
    CHECK_OK(ps_socket_bind(endpoints, 2, &args, &port, err), err);
    CHECK_OK(ps_socket_bind_more(port, "tcp://127.0.0.1:*", err), err);
    for (size_t i = 0; i < 3; i += 2) { /* before the unix socket, and after */
        CHECK(ps_curve_join(ps_socket_endpoint(port, i), server.public_key, named));
        args.keys = &client;
        args.linger_ms = 1000;
        CHECK_OK(ps_socket_connect(named, &args, &link, err), err);
        CHECK_OK(ps_socket_send_text(link, 0, hello, err), err);
        CHECK(next_from(port, &caller));
        CHECK(!caller.has_uid && strcmp(caller.key, client.public_key) == 0 &&
              strcmp(caller.address, "127.0.0.1") == 0);
        ps_socket_close(&link);
    }
    CHECK(says_who(context, port, 1, &caller, err)); /* ipc, without a key */
    CHECK(caller.has_uid && caller.uid == geteuid());
    args.keys = NULL;
    CHECK_ERROR(ps_socket_connect(named, &args, &link, err), PSD_DENIED, "set PSD_KEY_FILE", err);
    args.keys = &client;
    CHECK_ERROR(ps_socket_connect(ps_socket_endpoint(port, 0), &args, &link, err), PSD_DENIED,
                "sends nothing in the clear", err);
    CHECK(denial_at(context, ps_socket_endpoint(port, 0), NULL, err) == PS_DENIAL_WANTS_KEY);
    CHECK(ps_curve_join(ps_socket_endpoint(port, 0), client.public_key, named));
    CHECK(denial_at(context, named, &client, err) == PS_DENIAL_SERVER);
    ps_socket_close(&port);
    args = args_of(context);
    CHECK_OK(ps_socket_bind(endpoints, 1, &args, &port, err), err);
    CHECK(ps_curve_join(ps_socket_endpoint(port, 0), server.public_key, named));
    CHECK(denial_at(context, named, &client, err) == PS_DENIAL_HAS_NONE);
    ps_socket_close(&port);
    ps_context_destroy(&context);
    CHECK(rmdir(dir) == 0);
    return true;
}

/* A link with that pair gets in, and its message says who it is. */
static bool gets_in(ps_context_t *context, ps_socket_t *port, const char *endpoint,
                    const ps_key_pair_t *keys, ps_socket_t **ret_link, psd_error_t *err)
{
    ps_socket_args_t args = args_of(context);
    ps_asker_t caller;

    args.keys = keys;
    CHECK_OK(ps_socket_connect(endpoint, &args, ret_link, err), err);
    CHECK_OK(ps_socket_send_text(*ret_link, 0, hello, err), err);
    CHECK(next_from(port, &caller));
    CHECK(strcmp(caller.key, keys->public_key) == 0);
    return true;
}

/* Those of the list get in; who is there already stays. */
static bool a_list_lets_in_its_keys_alone(psd_error_t *err)
{
    static const char *const endpoints[] = {"tcp://127.0.0.1:*"};
    ps_key_pair_t pairs[3];
    ps_public_key_t keys[3];
    char named[PS_ENDPOINT_MAX + 1];
    ps_context_t *context = NULL;
    ps_socket_t *port = NULL;
    ps_socket_t *links[2] = {NULL};
    ps_socket_args_t args;
    ps_asker_t caller;

    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(ps_key_pair_make("some", &pairs[i], err), err);
        memcpy(keys[i].text, pairs[i].public_key, sizeof keys[i].text);
    }
    CHECK_OK(ps_context_new(1, &context, err), err);
    CHECK_OK(ps_context_guard(context, err), err);
    CHECK_OK(ps_context_admit(context, NULL, 0, err), err);
    args = args_of(context);
    args.keys = &pairs[0];
    CHECK_OK(ps_socket_bind(endpoints, 1, &args, &port, err), err);
    CHECK(ps_curve_join(ps_socket_endpoint(port, 0), pairs[0].public_key, named));
    CHECK(denial_at(context, named, &pairs[1], err) == PS_DENIAL_KEY);
    CHECK_OK(ps_context_admit(context, keys, 2, err), err);
    CHECK(gets_in(context, port, named, &pairs[1], &links[0], err));
    CHECK(denial_at(context, named, &pairs[2], err) == PS_DENIAL_KEY);
    CHECK_OK(ps_context_admit(context, keys + 2, 1, err), err);
    CHECK(gets_in(context, port, named, &pairs[2], &links[1], err));
    CHECK(denial_at(context, named, &pairs[1], err) == PS_DENIAL_KEY);
    CHECK_OK(ps_socket_send_text(links[0], 0, hello, err), err);
    CHECK(next_from(port, &caller) && strcmp(caller.key, keys[1].text) == 0);
    fail_alloc_at(0);
    CHECK_ERROR(ps_context_admit(context, keys, 3, err), PSD_NOMEM, "no memory for a list", err);
    fail_alloc_off();
    CHECK(denial_at(context, named, &pairs[2], err) == PS_DENIAL_KEY);
    ps_socket_drop(&links[0]);
    ps_socket_drop(&links[1]);
    ps_socket_close(&port);
    ps_context_destroy(&context);
    return true;
}

static bool an_endpoint_names_a_key(psd_error_t *err)
{
    static const char *const BAD[] = {"tcp://h:1#", "tcp://h:1#12", "tcp://h:1#x", "tcp://h:1##0"};
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t pair = {.name = ""};
    char address[PS_ENDPOINT_MAX + 1];
    char key[PS_KEY_SIZE + 1];
    char named[PS_ENDPOINT_MAX + 1];
    char longest[PS_ENDPOINT_MAX + 1];

    CHECK_OK(ps_key_pair_make("server", &pair, err), err);
    CHECK(ps_curve_join("tcp://h:1", pair.public_key, named));
    CHECK(strlen(named) == strlen("tcp://h:1#") + 64);
    CHECK_OK(ps_curve_split(named, address, key, err), err);
    CHECK(strcmp(address, "tcp://h:1") == 0 && strcmp(key, pair.public_key) == 0);
    CHECK_OK(ps_curve_split("tcp://h:1", address, key, err), err);
    CHECK(strcmp(address, "tcp://h:1") == 0 && key[0] == '\0');
    CHECK_OK(ps_curve_split("ipc:///a#b", address, key, err), err);
    CHECK(strcmp(address, "ipc:///a#b") == 0 && key[0] == '\0');
    CHECK(ps_curve_join("ipc:///a", pair.public_key, named) && strcmp(named, "ipc:///a") == 0);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        CHECK_ERROR(ps_curve_split(BAD[i], address, key, err), PSD_INVALID,
                    "what follows '#' is no key", err);
    }
    memset(longest, 'h', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memcpy(longest, "tcp://", 6);
    CHECK(!ps_curve_join(longest, pair.public_key, named));
    return true;
}

/* Whatever of a handshake is under way. */
static bool it_ends_with_connections_open(psd_error_t *err)
{
    static const char *const endpoints[] = {"tcp://127.0.0.1:*"};

    for (int i = 0; i < 20; i++) {
        ps_context_t *context = NULL;
        ps_socket_t *port = NULL;
        ps_socket_t *link = NULL;
        ps_socket_args_t args;

        CHECK_OK(ps_context_new(1, &context, err), err);
        CHECK_OK(ps_context_guard(context, err), err);
        args = args_of(context);
        CHECK_OK(ps_socket_bind(endpoints, 1, &args, &port, err), err);
        CHECK_OK(ps_socket_connect(ps_socket_endpoint(port, 0), &args, &link, err), err);
        CHECK_OK(ps_socket_send_text(link, 0, hello, err), err);
        ps_socket_close(&port);
        ps_socket_close(&link);
        ps_context_destroy(&context);
    }
    return true;
}

int main(void)
{
    psd_error_t *err = psd_error_new();
    bool good = true;

    RUN(callers_are_known(err));
    RUN(words_are_read());
    RUN(nobody_names_himself(err));
    RUN(nobody_gets_in_without_it(err));
    RUN(nothing_is_bound_without_it(err));
    RUN(keys_are_proven(err));
    RUN(a_list_lets_in_its_keys_alone(err));
    RUN(an_endpoint_names_a_key(err));
    RUN(it_ends_with_connections_open(err));
    psd_error_destroy(&err);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
