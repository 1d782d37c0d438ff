/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that speak nonsense: random bytes, lengths of 2 GiB, frames that are no
 * messages, documents that are no requests. Each gets one clear error or is cut
 * off, the daemon goes on serving, and its memory does not grow. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/zmtp.h"

#define REPLY_SIZE (1 << 20)
#define WARM_UP 3      /* rounds before memory is looked at */
#define ROUNDS 12      /* rounds while it must not grow */
#define BLIND 40       /* connections of random bytes a round and port */
#define GROWTH_KB 8192 /* what allocators may keep for themselves */

static char reply[REPLY_SIZE];
static uint8_t noise[1 << 16];

/* xorshift: the same noise in every run. */
static uint64_t next_noise(void)
{
    static uint64_t state = 88172645463325252U;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void fill_noise(void)
{
    for (size_t i = 0; i < sizeof noise; i++) {
        noise[i] = (uint8_t)next_noise();
    }
}

/* The daemon cuts the connection off; what it says before is read away. */
static bool is_cut_off(int fd)
{
    char byte = 0;

    for (;;) {
        ssize_t n = recv(fd, &byte, 1, 0);

        if (n <= 0) {
            return n == 0 || errno == ECONNRESET;
        }
    }
}

/* ---- below the messages ---- */

static bool send_noise(const char *endpoint, size_t size)
{
    int fd = zmtp_dial(endpoint, 0);

    CHECK(fd >= 0);
    /* It may be cut off in the middle: that is what shall happen. */
    (void)zmtp_write(fd, noise + next_noise() % 1000, size);
    (void)close(fd);
    return true;
}

/* A frame that says it has 2 GiB is refused by its length alone. */
static bool announce_2_gib(const char *endpoint)
{
    static const uint64_t SIZES[] = {UINT64_C(2) << 30, (UINT64_C(64) << 20) + 1, UINT64_MAX,
                                     UINT64_C(1) << 62};

    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        int fd = zmtp_connect(endpoint);

        CHECK(fd >= 0);
        CHECK(zmtp_write_head(fd, 0, SIZES[i]));
        (void)zmtp_write(fd, noise, 4096);
        CHECK(is_cut_off(fd));
        (void)close(fd);
    }
    return true;
}

/* A peer that chose its own routing id is not spoken to. */
static bool choose_an_id(const char *endpoint)
{
    static const char HELLO[] = "{\"v\":1,\"id\":1,\"op\":\"hello\",\"versions\":[1,1],"
                                "\"client\":\"00000000-0000-4000-a000-000000000001\"}";
    int fd = zmtp_dial(endpoint, 0);
    struct pollfd item = {.fd = fd, .events = POLLIN};

    CHECK(fd >= 0 && zmtp_shake(fd, "another"));
    CHECK(zmtp_send(fd, 0, HELLO, sizeof HELLO - 1));
    CHECK(poll(&item, 1, 50) == 0 || is_cut_off(fd));
    (void)close(fd);
    return true;
}

/* ---- control ---- */

typedef struct bad_request {
    const char *text;
    const char *answer; /* part of it */
} bad_request_t;

static const bad_request_t BAD[] = {
    {"", "PROTO"},
    {"{", "PROTO"},
    {"[]", "allowed: an object"},
    {"null", "PROTO"},
    {"\xff\xfe", "PROTO"},
    {"{} x", "PROTO"},
    {"{\"v\":1}", "id is missing"},
    {"{\"v\":1,\"id\":-1,\"op\":\"hello\"}", "id"},
    {"{\"v\":1,\"id\":1.5,\"op\":\"hello\"}", "id"},
    {"{\"v\":2,\"id\":1,\"op\":\"hello\"}", "VERSION"},
    {"{\"v\":1,\"id\":1}", "op is missing"},
    {"{\"v\":1,\"id\":1,\"op\":7}", "op"},
    {"{\"v\":1,\"id\":1,\"op\":\"helo\"}", "did you mean \\\"hello\\\"?"},
    {"{\"v\":1,\"id\":1,\"op\":\"table_list\"}", "session is missing"},
    {"{\"v\":1,\"id\":1,\"op\":\"table_list\",\"session\":99999}", "NO_SESSION"},
    {"{\"v\":1,\"id\":1,\"op\":\"table_list\",\"session\":0}", "NO_SESSION"},
    {"{\"v\":1,\"id\":1,\"op\":\"hello\"}", "versions is missing"},
    {"{\"v\":1,\"id\":1,\"op\":\"hello\",\"versions\":[1]}", "versions"},
    {"{\"v\":1,\"id\":1,\"op\":\"hello\",\"versions\":[7,9]}", "VERSION"},
    {"{\"v\":1,\"id\":1,\"op\":\"hello\",\"versions\":[1,1],\"client\":\"x\"}", "client"},
    {"{\"v\":1,\"id\":1,\"op\":\"hello\",\"versions\":[1,1],\"client\":"
     "\"00000000-0000-0000-0000-000000000000\"}",
     "all zeroes"},
    {"{\"v\":1,\"id\":1,\"op\":\"hello\",\"versions\":[1,1],\"client\":"
     "\"00000000-0000-4000-a000-000000000001\",\"cluster\":"
     "\"00000000-0000-4000-a000-000000000009\"}",
     "CLUSTER"},
    {"{\"v\":1,\"v\":1}", "PROTO"},
};

/* Those that want a session: OP and what follows it. */
static const bad_request_t BAD_OPS[] = {
    {"\"table_create\"", "spec is missing"},
    {"\"table_create\",\"spec\":7", "spec"},
    {"\"table_create\",\"spec\":{}", "name is missing"},
    {"\"table_create\",\"spec\":{\"name\":\"a b\",\"rows\":1}", "a b"},
    {"\"table_create\",\"spec\":{\"name\":\"t\",\"rows\":0}", "rows"},
    {"\"table_create\",\"spec\":{\"name\":\"t\",\"rows\":1,\"cols\":0}", "cols"},
    {"\"table_create\",\"spec\":{\"name\":\"t\",\"rows\":1,\"type\":\"f16\"}", "f16"},
    {"\"table_create\",\"spec\":{\"name\":\"t\",\"rows\":1,\"n_partitions\":"
     "99999}",
     "99999"},
    {"\"table_create\",\"spec\":{\"name\":\"t\",\"rows\":1,\"replicas\":9}", "replica"},
    {"\"table_create\",\"spec\":{\"name\":\"t\",\"rows\":1,\"type\":\"i32\","
     "\"updater\":{\"name\":\"ftrl\"}}",
     "ftrl"},
    {"\"table_open\"", "name is missing"},
    {"\"table_open\",\"name\":\"none\"", "NO_TABLE"},
    {"\"table_drop\",\"name\":\"none\"", "NO_TABLE"},
    {"\"table_inspect\",\"name\":[]", "name"},
    {"\"job_join\",\"job\":\"a b\",\"worker\":0", "a b"},
    {"\"job_join\",\"job\":\"j\",\"worker\":4096", "worker is 4096"},
    {"\"job_join\",\"job\":\"j\",\"worker\":0,\"workers\":0", "workers is 0"},
    {"\"job_join\",\"job\":\"j\",\"worker\":0,\"attach\":true", "NO_JOB"},
    {"\"heartbeat\",\"job\":\"none\",\"worker\":0", "NO_JOB"},
    {"\"barrier\",\"job\":\"none\",\"worker\":0", "NO_JOB"},
    {"\"why\",\"job\":7", "job 7 does not exist"},
    {"\"node_inspect\",\"name\":\"none\"", "NO_NODE"},
    {"\"cluster_events\",\"limit\":0", "limit is 0"},
};

static bool refuses_requests(const char *endpoint, unsigned client)
{
    int fd = zmtp_connect(endpoint);
    unsigned long long session = 0;
    char request[600];
    const char *at = NULL;

    CHECK(fd >= 0);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        CHECK(zmtp_ask(fd, BAD[i].text, reply, sizeof reply));
        if (strstr(reply, BAD[i].answer) == NULL ||
            strstr(reply, "\"error\":{\"code\":\"E") == NULL) {
            (void)fprintf(stderr, "%s: %.500s\n", BAD[i].text, reply);
            return false;
        }
    }
    (void)snprintf(request, sizeof request,
                   "{\"v\":1,\"id\":1,\"op\":\"hello\",\"versions\":[1,1],"
                   "\"client\":\"00000000-0000-4000-b000-%012u\"}",
                   client);
    CHECK(zmtp_ask(fd, request, reply, sizeof reply));
    at = strstr(reply, "\"session\":");
    CHECK(at != NULL);
    session = strtoull(at + 10, NULL, 10);
    for (size_t i = 0; i < sizeof BAD_OPS / sizeof BAD_OPS[0]; i++) {
        (void)snprintf(request, sizeof request, "{\"v\":1,\"id\":%zu,\"session\":%llu,\"op\":%s}",
                       i + 2, session, BAD_OPS[i].text);
        CHECK(zmtp_ask(fd, request, reply, sizeof reply));
        if (strstr(reply, BAD_OPS[i].answer) == NULL ||
            strstr(reply, "\"error\":{\"code\":\"E") == NULL) {
            (void)fprintf(stderr, "%s: %.500s\n", request, reply);
            return false;
        }
    }
    (void)close(fd);
    return true;
}

/* A document that is too deep, and one that is too long. */
static bool refuses_large_documents(const char *endpoint)
{
    static char deep[100000];
    size_t size = (size_t)17 << 20;
    char *big = malloc(size);
    int fd = zmtp_connect(endpoint);
    size_t got = 0;

    CHECK(fd >= 0 && big != NULL);
    memset(deep, '[', sizeof deep);
    CHECK(zmtp_send(fd, 0, deep, sizeof deep));
    CHECK(zmtp_receive(fd, reply, sizeof reply, &got));
    CHECK(strstr(reply, "\"error\":") != NULL);
    memset(big, ' ', size);
    CHECK(zmtp_send(fd, 0, big, size));
    free(big);
    CHECK(zmtp_receive(fd, reply, sizeof reply, &got));
    CHECK(strstr(reply, "\"error\":") != NULL);
    /* A request in two frames is none. */
    CHECK(zmtp_send(fd, ZMTP_MORE, "{}", 2) && zmtp_send(fd, 0, "{}", 2));
    CHECK(zmtp_receive(fd, reply, sizeof reply, &got));
    CHECK(strstr(reply, "\"error\":") != NULL);
    (void)close(fd);
    return true;
}

/* ---- data ---- */

/* Frames that are no data messages are answered REFUSED; those that look like
 * one from afar too. */
static bool refuses_messages(const char *endpoint)
{
    int fd = zmtp_connect(endpoint);
    size_t size = 0;

    CHECK(fd >= 0);
    for (int i = 0; i < 40; i++) {
        size_t length = next_noise() % 2000;
        uint8_t *bytes = noise + next_noise() % 1000;

        if (i % 2 == 1) {
            /* psd1, version 1, a kind, no flags */
            memcpy(bytes, "psd1\1\0", 6);
            bytes[6] = (uint8_t)(i % 16);
            bytes[7] = 0;
        }
        for (int k = i % 5; k > 0; k--) {
            CHECK(zmtp_send(fd, ZMTP_MORE, bytes, length));
        }
        CHECK(zmtp_send(fd, 0, bytes, length));
        CHECK(zmtp_receive(fd, reply, sizeof reply, &size));
        CHECK(size > 8 && memcmp(reply, "psd1", 4) == 0 && reply[6] == 9);
    }
    (void)close(fd);
    return true;
}

/* ---- rounds ---- */

static long resident_kb(const daemon_t *d)
{
    char path[64];
    char line[256];
    long kb = -1;
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)d->pid);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kb = strtol(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kb;
}

/* The first shard's tcp endpoint. */
static bool find_shard(const daemon_t *d, char ret[256])
{
    char path[PATH_MAX];
    char text[8192] = "";
    const char *at = NULL;
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "%.3000s/data/endpoints.json", d->dir.path);
    file = fopen(path, "re");
    CHECK(file != NULL);
    (void)fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    at = strstr(text, "\"shards\":[\"");
    CHECK(at != NULL);
    at += strlen("\"shards\":[\"");
    (void)snprintf(ret, 256, "%.*s", (int)strcspn(at, "\""), at);
    return true;
}

static bool play_round(const daemon_t *d, const char *shard, unsigned round)
{
    fill_noise();
    for (int i = 0; i < BLIND; i++) {
        CHECK(send_noise(d->control, next_noise() % 5000));
        CHECK(send_noise(shard, next_noise() % 5000));
    }
    CHECK(announce_2_gib(d->control));
    CHECK(announce_2_gib(shard));
    CHECK(choose_an_id(d->control));
    CHECK(refuses_requests(d->control, round));
    CHECK(refuses_large_documents(d->control));
    CHECK(refuses_messages(shard));
    return true;
}

int main(void)
{
    daemon_t d = {.pid = 0};
    char shard[256] = "";
    long before_kb = 0;
    long after_kb = 0;
    bool good = daemon_start(&d, "shards: 1\n") && find_shard(&d, shard);

    for (unsigned round = 0; good && round < WARM_UP + ROUNDS; round++) {
        if (round == WARM_UP) {
            before_kb = resident_kb(&d);
        }
        good = play_round(&d, shard, round);
    }
    after_kb = resident_kb(&d);
    (void)fprintf(stderr, "resident: %ld kB, then %ld kB\n", before_kb, after_kb);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* A sanitizer keeps what was freed for a while. */
    good = good && before_kb > 0 && after_kb - before_kb < GROWTH_KB;
#endif
    good = good && daemon_end(&d, 15);
    daemon_drop(&d, !good);
    return good ? 0 : 1;
}
