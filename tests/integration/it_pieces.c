/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that begin and never end. Of 50 connections that nobody welcomed no
 * piece is kept; what those that said HELLO have begun goes when they go. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/zmtp.h"
#include "wire/messages/message.h"

/* AddressSanitizer keeps what is freed. */
#ifdef __SANITIZE_ADDRESS__
#define KEEPS_FREED true
#else
#define KEEPS_FREED false
#endif

#define CONNECTIONS 50
#define PIECE_BYTES (1 << 20)
#define PIECES 4                /* that each connection sends */
#define MORE_KB (16 << 10)      /* that the daemon may keep */
#define BACK_MS 60000           /* behind their end */
#define LOOK_MS 20              /* between two looks */
#define REFUSED_NO_SESSION 0x09 /* kind of the answer */

static char reply[1 << 16];
static size_t reply_size;
static uint8_t piece[PIECE_BYTES];

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

/* A text of endpoints.json or of an answer, behind `before`. */
static bool text_after(const char *in, const char *before, char ret[256])
{
    const char *at = strstr(in, before);

    CHECK(at != NULL);
    at += strlen(before);
    (void)snprintf(ret, 256, "%.*s", (int)strcspn(at, "\",}"), at);
    return true;
}

static bool find_shard(const daemon_t *d, char ret[256])
{
    char path[PATH_MAX];
    char text[8192] = "";
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "%.3000s/data/endpoints.json", d->dir.path);
    file = fopen(path, "re");
    CHECK(file != NULL);
    (void)fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    return text_after(text, "\"shards\":[\"", ret);
}

/* ---- what is sent ---- */

static bool send_message(int fd, const ps_message_t *message)
{
    uint8_t header[PS_HEADER_MAX];
    size_t size = ps_message_encode(message, header);

    return zmtp_send(fd, 0, header, size);
}

/* Larger than all of its pieces that are ever sent. */
static bool send_beginning(int fd)
{
    const ps_message_t push = {.kind = PS_KIND_PUSH,
                               .flags = PS_FLAG_MORE,
                               .push = {.request = 1,
                                        .table = 1,
                                        .seq = 1,
                                        .rows = PS_ROWS_RANGE,
                                        .type = PS_TYPE_F32,
                                        .n_rows = 1,
                                        .n_cols = PIECES * PIECE_BYTES,
                                        .n_values = PIECES * PIECE_BYTES}};
    uint8_t header[PS_HEADER_MAX];
    size_t size = ps_message_encode(&push, header);

    return zmtp_send(fd, ZMTP_MORE, header, size) && zmtp_send(fd, ZMTP_MORE, NULL, 0) &&
           zmtp_send(fd, ZMTP_MORE, NULL, 0) && zmtp_send(fd, 0, piece, sizeof piece);
}

static bool send_more(int fd)
{
    for (uint64_t i = 1; i < PIECES; i++) {
        const ps_message_t chunk = {.kind = PS_KIND_CHUNK,
                                    .chunk = {.request = 1, .offset = i * PIECE_BYTES}};
        uint8_t header[PS_HEADER_MAX];
        size_t size = ps_message_encode(&chunk, header);

        CHECK(zmtp_send(fd, ZMTP_MORE, header, size));
        CHECK(zmtp_send(fd, 0, piece, sizeof piece));
    }
    return true;
}

/* What is answered shows that all before it was taken in. */
static bool is_answered(int fd, ps_kind_t kind)
{
    CHECK(zmtp_receive(fd, reply, sizeof reply, &reply_size));
    CHECK(reply_size > 8 && memcmp(reply, "psd1", 4) == 0);
    CHECK(reply[6] == (char)kind);
    return true;
}

static bool settle(int fd)
{
    const ps_message_t probe = {.kind = PS_KIND_PROBE, .probe = {.table = 1, .seq = 1}};

    return send_message(fd, &probe) && is_answered(fd, PS_KIND_REFUSED);
}

/* What is refused is that request. */
static bool is_refused(int fd, uint64_t request)
{
    ps_message_t message;
    ps_body_t body;
    ps_bytes_t frame = {NULL, 0};

    CHECK(is_answered(fd, PS_KIND_REFUSED));
    frame = (ps_bytes_t){(const uint8_t *)reply, reply_size};
    CHECK(ps_message_decode(&frame, 1, &message, &body, NULL) == PSD_OK);
    CHECK(message.refused.request == request && message.refused.table == 1);
    return true;
}

/* ---- who sends it ---- */

static bool strangers_leave_nothing(const daemon_t *d, const char *shard, long before_kb)
{
    int fds[CONNECTIONS];
    long kb = 0;

    for (int i = 0; i < CONNECTIONS; i++) {
        fds[i] = zmtp_connect(shard);
        CHECK(fds[i] >= 0);
        CHECK(send_beginning(fds[i]));
        CHECK(is_answered(fds[i], PS_KIND_REFUSED));
        CHECK(send_more(fds[i]) && settle(fds[i]));
    }
    kb = resident_kb(d);
    (void)fprintf(stderr, "%d strangers: %ld kB, then %ld kB\n", CONNECTIONS, before_kb, kb);
    CHECK(KEEPS_FREED || kb - before_kb <= MORE_KB);
    for (int i = 0; i < CONNECTIONS; i++) {
        (void)close(fds[i]);
    }
    return true;
}

/* Asks the control port for a session. */
static bool introduce(const daemon_t *d, unsigned client, ps_msg_hello_t *ret_hello)
{
    char request[256];
    char text[256];
    char id[64];
    int fd = zmtp_connect(d->control);

    (void)snprintf(id, sizeof id, "00000000-0000-4000-b000-%012u", client);
    (void)snprintf(request, sizeof request,
                   "{\"v\":1,\"id\":1,\"op\":\"hello\",\"versions\":[1,1],"
                   "\"client\":\"%s\"}",
                   id);
    CHECK(fd >= 0 && zmtp_ask(fd, request, reply, sizeof reply));
    *ret_hello = (ps_msg_hello_t){.version_min = 1, .version_max = 1};
    CHECK(ps_id_parse(id, &ret_hello->client));
    CHECK(text_after(reply, "\"uuid\":\"", text));
    CHECK(ps_id_parse(text, &ret_hello->cluster));
    CHECK(text_after(reply, "\"incarnation\":", text));
    ret_hello->incarnation = strtoull(text, NULL, 10);
    CHECK(text_after(reply, "\"session\":", text));
    ret_hello->session = strtoull(text, NULL, 10);
    (void)close(fd);
    return true;
}

static bool comes_back(const daemon_t *d, long before_kb)
{
    const struct timespec step = {.tv_nsec = LOOK_MS * 1000000L};
    long kb = resident_kb(d);

    for (int waited = 0; kb - before_kb > MORE_KB && waited < BACK_MS; waited += LOOK_MS) {
        (void)nanosleep(&step, NULL);
        kb = resident_kb(d);
    }
    (void)fprintf(stderr, "when they are gone: %ld kB\n", kb);
    return kb - before_kb <= MORE_KB;
}

static bool what_guests_began_goes_with_them(const daemon_t *d, const char *shard, long before_kb)
{
    int fds[CONNECTIONS];
    long kb = 0;

    for (int i = 0; i < CONNECTIONS; i++) {
        ps_message_t hello = {.kind = PS_KIND_HELLO};

        CHECK(introduce(d, (unsigned)i + 1, &hello.hello));
        fds[i] = zmtp_connect(shard);
        CHECK(fds[i] >= 0 && send_message(fds[i], &hello));
        CHECK(is_answered(fds[i], PS_KIND_WELCOME));
        CHECK(send_beginning(fds[i]) && send_more(fds[i]) && settle(fds[i]));
    }
    kb = resident_kb(d);
    (void)fprintf(stderr, "%d guests: %ld kB\n", CONNECTIONS, kb);
    CHECK(kb - before_kb > CONNECTIONS * PIECES * (PIECE_BYTES >> 10) / 2);
    for (int i = 0; i < CONNECTIONS; i++) {
        (void)close(fds[i]);
    }
    CHECK(KEEPS_FREED || comes_back(d, before_kb));
    return true;
}

/* The node's limit counts them: one connection always has room, and the others
 * what is left. */
static bool a_limit_counts_them(const daemon_t *d, const char *shard)
{
    const ps_message_t probe = {.kind = PS_KIND_PROBE,
                                .probe = {.request = 9, .table = 1, .seq = 1}};
    int fds[2] = {-1, -1};

    for (unsigned i = 0; i < 2; i++) {
        ps_message_t hello = {.kind = PS_KIND_HELLO};

        CHECK(introduce(d, CONNECTIONS + 1 + i, &hello.hello));
        fds[i] = zmtp_connect(shard);
        CHECK(fds[i] >= 0 && send_message(fds[i], &hello));
        CHECK(is_answered(fds[i], PS_KIND_WELCOME));
    }
    CHECK(send_beginning(fds[0]) && send_more(fds[0]) && settle(fds[0]));
    CHECK(send_beginning(fds[1]));
    CHECK(is_refused(fds[1], 1));
    CHECK(strstr(reply + 8, "all of the memory") != NULL ||
          memmem(reply, sizeof reply, "all of the memory", 17) != NULL);
    /* Nothing is answered to the CHUNKs of what was refused. */
    CHECK(send_more(fds[1]) && send_message(fds[1], &probe));
    CHECK(is_refused(fds[1], 9));
    CHECK(settle(fds[0]));
    (void)close(fds[0]);
    (void)close(fds[1]);
    return true;
}

int main(void)
{
    daemon_t d = {.pid = 0};
    char shard[256] = "";
    bool good = daemon_start(&d, "shards: 1\n") && find_shard(&d, shard);
    long before_kb = good ? resident_kb(&d) : 0;

    good = good && strangers_leave_nothing(&d, shard, before_kb) &&
           what_guests_began_goes_with_them(&d, shard, before_kb);
    good = good && daemon_end(&d, 15);
    daemon_drop(&d, !good);
    if (good) {
        good = daemon_start(&d, "shards: 1\nlimits:\n  memory_bytes: 4MiB\n") &&
               find_shard(&d, shard) && a_limit_counts_them(&d, shard) && daemon_end(&d, 15);
        daemon_drop(&d, !good);
    }
    return good ? 0 : 1;
}
