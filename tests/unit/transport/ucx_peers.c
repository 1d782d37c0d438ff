/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes over UCX: one has a port and sends back what comes, the other one has a link. The
 * one with the port is killed, and a later one takes its place.
 *
 *   ucx_peers           the one with the link; it starts the others
 *   ucx_peers answer    writes where its port is, and answers until it is killed */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "carrier_kit.h"

#define N_MESSAGES 40
#define IDLE_MS 2000
#define IDLE_MOST 0.5 /* % of a processor */
#define TOLD_MS 1000
#define TRIES 3 /* a machine that stands still tells nobody */

static const ps_socket_args_t ARGS = {.high_water = 100,
                                      .frame_bytes = 8 * MIB,
                                      .assembly_bytes = 256 * MIB,
                                      .chunk_bytes = CHUNK,
                                      .linger_ms = 1000,
                                      .is_watched = true};

static uint64_t size_of(uint64_t number)
{
    return number % 10 == 7 ? 4 * MIB : number % 5;
}

/* ---- the one with the port ----------------------------------------------- */

static bool answer(psd_error_t *err)
{
    const char *endpoint = "ucx://127.0.0.1:0";
    ps_socket_t *port = NULL;

    CHECK_OK(ps_socket_bind(&endpoint, 1, &ARGS, &port, err), err);
    (void)printf("%s\n", ps_socket_endpoint(port, 0));
    CHECK(fflush(stdout) == 0);
    for (uint64_t number = 0;; number++) {
        bool is_some = false;
        got_t got;

        while (!is_some) {
            CHECK_OK(look(port, PATIENCE_MS, &is_some, &got, err), err);
        }
        CHECK(is_numbered(&got, number, size_of(number)));
        ps_payload_destroy(&got.payload);
        CHECK_OK(send_numbered(port, got.conn, number, size_of(number), err), err);
        ps_socket_flush(port);
    }
}

typedef struct peer {
    pid_t pid;
    char endpoint[256];
} peer_t;

static bool start_peer(peer_t *ret)
{
    int ends[2];
    FILE *from = NULL;
    pid_t pid = 0;

    CHECK(pipe(ends) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execl("/proc/self/exe", "ucx_peers", "answer", (char *)NULL);
        _exit(1);
    }
    (void)close(ends[1]);
    from = fdopen(ends[0], "r");
    ret->pid = pid;
    CHECK(from != NULL && fgets(ret->endpoint, sizeof ret->endpoint, from) != NULL);
    ret->endpoint[strcspn(ret->endpoint, "\n")] = '\0';
    (void)fclose(from);
    return true;
}

/* ---- the one with the link ----------------------------------------------- */

static bool talk(ps_socket_t *link, psd_error_t *err)
{
    for (uint64_t i = 0; i < N_MESSAGES; i++) {
        CHECK_OK(send_numbered(link, 0, i, size_of(i), err), err);
        CHECK(receive_numbered(link, link, i, size_of(i), NULL, err));
    }
    return true;
}

static double processor_ms(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

/* With a link on which nothing comes. */
static bool an_idle_process_sleeps(ps_socket_t *link, psd_error_t *err)
{
    double begin_ms = processor_ms();
    double part = 0;
    bool ready = false;

    CHECK_OK(ps_socket_wait(&link, 1, IDLE_MS, &ready, err), err);
    part = (processor_ms() - begin_ms) / IDLE_MS * 100;
    (void)fprintf(stderr, "idle: %.2f %% of a processor\n", part);
    return !ready && part <= IDLE_MOST;
}

static bool is_told_of_a_kill(ps_socket_t *link, const peer_t *peer, uint64_t *ret_ms,
                              psd_error_t *err)
{
    uint64_t begin_ms = ps_now_ms();

    CHECK(kill(peer->pid, SIGKILL) == 0);
    while (!ps_socket_is_gone(link) && ps_now_ms() < begin_ms + PATIENCE_MS) {
        bool ready = false;

        CHECK_OK(ps_socket_wait(&link, 1, 1000, &ready, err), err);
    }
    *ret_ms = ps_now_ms() - begin_ms;
    (void)fprintf(stderr, "told of a kill after %llu ms\n", (unsigned long long)*ret_ms);
    CHECK(ps_socket_is_gone(link));
    return waitpid(peer->pid, NULL, 0) == peer->pid;
}

static bool all(psd_error_t *err)
{
    uint64_t told_ms = TOLD_MS + 1;

    for (int i = 0; i < TRIES && (i < 2 || told_ms > TOLD_MS); i++) {
        ps_socket_t *link = NULL;
        peer_t peer;
        uint64_t ms = 0;

        CHECK(start_peer(&peer)); /* the second one joins later */
        CHECK_OK(ps_socket_connect(peer.endpoint, &ARGS, &link, err), err);
        CHECK(talk(link, err));
        CHECK(i > 0 || an_idle_process_sleeps(link, err));
        CHECK(is_told_of_a_kill(link, &peer, &ms, err));
        told_ms = ms < told_ms ? ms : told_ms;
        ps_socket_close(&link);
    }
    return told_ms <= TOLD_MS;
}

int main(int argc, char **argv)
{
    psd_error_t *err = psd_error_new();
    bool ok = make_pool() && (argc > 1 && strcmp(argv[1], "answer") == 0 ? answer(err) : all(err));

    psd_error_destroy(&err);
    free(pool);
    return ok ? 0 : 1;
}
