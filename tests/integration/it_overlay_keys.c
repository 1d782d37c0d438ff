/* SPDX-License-Identifier: Apache-2.0 */
/* PSD_OVERLAY at security.level encrypt: deltas go from worker to worker, with the same bits as
 * without, and nothing of them can be read on the network, while at plain it can; strangers at a
 * relay's port get no connection; a worker that is killed and joins again has a relay again. One
 * worker is known by its uid and has no key of its own. A relay that does not fit the level gets no
 * place: one without a key at encrypt, and a worker with PSD_KEY_FILE at plain has none. */
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <psd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/http_get.h"
#include "support/netns.h"
#include "support/zmtp.h"

#define WORKERS 4
#define ROWS 4000
#define CLOCKS 16
#define LOCAL 3  /* asks over ipc, without a key */
#define VICTIM 2 /* is killed, and comes again */
#define DIES_AT 5
#define WAIT_MS 60000
#define KNOWN 8 /* equal values in a row that a recording is searched for */
#define BUFFER_BYTES (64 << 20)
#define PACKET_BYTES (1 << 17)
#define KEY_BYTES 1024
#define TRIES 4
#define PUSHES "request=\"push\""
#define BUNDLES "request=\"bundle\""

static const char config[] = "shards: 2\n"
                             "workers:\n"
                             "  heartbeat_ms: 50\n"
                             "  lost_after_ms: 10000\n"
                             "security:\n"
                             "  level: %s\n";

/* What was seen on the network; shared. */
typedef struct seen {
    _Atomic int state; /* 1: it records; 2: it is to end */
    _Atomic uint64_t n_bytes;
    _Atomic uint64_t n_found;
    _Atomic uint64_t n_dropped;
    _Atomic int is_back; /* of a run */
    char key[KEY_BYTES]; /* a key file */
} seen_t;

typedef struct run {
    daemon_t *daemon;
    const char *job;
    bool is_on;
    bool kills;
    _Atomic int *is_back; /* shared: the victim is in the plan again */
} run_t;

/* ---- recording ---- */

/* What worker 0 .. 3 adds to most rows: never the same as another's, or as a sum. */
static float known_of(uint32_t worker)
{
    return 0.85231F + (float)worker * 0.013717F;
}

static uint64_t count_known(const char *bytes, size_t size)
{
    uint64_t n = 0;

    for (uint32_t worker = 0; worker < WORKERS; worker++) {
        const char *at = bytes;
        float pattern[KNOWN];

        for (int i = 0; i < KNOWN; i++) {
            pattern[i] = known_of(worker);
        }
        while ((at = memmem(at, size - (size_t)(at - bytes), pattern, sizeof pattern)) != NULL) {
            at += sizeof pattern;
            n++;
        }
    }
    return n;
}

/* Records all packets on loopback until the parent asks it to stop. */
static bool record(seen_t *seen)
{
    static char packet[PACKET_BYTES];
    const int buffer = BUFFER_BYTES;
    const struct timeval step = {.tv_usec = 50000};
    const struct sockaddr_ll at = {.sll_family = AF_PACKET,
                                   .sll_protocol = htons(ETH_P_ALL),
                                   .sll_ifindex = (int)if_nametoindex("lo")};
    struct tpacket_stats stats = {0};
    socklen_t size = sizeof stats;
    int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL));
    ssize_t n = 0;

    CHECK(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer); /* or it loses some */
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof step) == 0);
    CHECK(bind(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    atomic_store(&seen->state, 1);
    while (n > 0 || atomic_load(&seen->state) != 2) {
        n = recv(fd, packet, sizeof packet, 0);
        if (n > 0) {
            atomic_fetch_add(&seen->n_bytes, (uint64_t)n);
            atomic_fetch_add(&seen->n_found, count_known(packet, (size_t)n));
        }
    }
    CHECK(getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0);
    atomic_store(&seen->n_dropped, stats.tp_drops);
    (void)close(fd);
    return true;
}

/* Records from now on; -1: it does not. */
static pid_t start_recording(seen_t *seen)
{
    const struct timespec step = {.tv_nsec = 5000000};
    pid_t pid = -1;

    atomic_store(&seen->state, 0);
    atomic_store(&seen->n_bytes, 0);
    atomic_store(&seen->n_found, 0);
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        _exit(record(seen) ? 0 : 1);
    }
    for (int i = 0; pid > 0 && i < 4000 && atomic_load(&seen->state) == 0; i++) {
        (void)nanosleep(&step, NULL);
    }
    return pid > 0 && atomic_load(&seen->state) == 1 ? pid : -1;
}

static bool end_recording(seen_t *seen, pid_t pid)
{
    int status = 0;

    atomic_store(&seen->state, 2);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

/* ---- a worker ---- */

/* Messages of that kind that came to the shards so far. */
static double count(const daemon_t *d, const char *kind)
{
    char *answer = NULL;
    char dir[4096];
    double sum = -1;

    (void)snprintf(dir, sizeof dir, "%.4000s/data", d->dir.path);
    if (http_ask(http_port(dir), "GET", "/metrics", &answer) == 200) {
        sum = http_sum(answer, "psd_requests_total", kind);
    }
    free(answer);
    return sum;
}

/* Everybody is in the plan; where worker `of` has its relay. */
static bool wait_for_plan(psd_client_t *client, const run_t *run, uint32_t of, char ret_relay[64],
                          psd_error_t *err)
{
    const struct timespec step = {.tv_nsec = 5000000};
    char question[80];
    bool found = false;

    (void)snprintf(question, sizeof question, "{\"op\":\"job_inspect\",\"job\":\"%s\"}", run->job);
    for (int i = 0; i < 4000 && !found; i++) {
        char *reply = NULL;

        CHECK_OK(psd_request(client, question, WAIT_MS, &reply, err), err);
        found = true;
        for (uint32_t k = 0; found && k < WORKERS; k++) {
            const char *at = NULL;
            char part[40];

            (void)snprintf(part, sizeof part, "\"worker\":%u,\"relay\":\"", k);
            at = strstr(reply, part);
            found = at != NULL;
            if (found && k == of) {
                at += strlen(part);
                (void)snprintf(ret_relay, 64, "%.*s", (int)strcspn(at, "\""), at);
            }
        }
        psd_free(reply);
        (void)nanosleep(&step, NULL);
    }
    CHECK(found);
    return true;
}

/* Who has no key gets no connection at the relay of another worker, whatever it sends. *ret_fd
 * stays, in the middle of a greeting. */
static bool strangers_get_nowhere(const char *relay, int *ret_fd)
{
    uint8_t greeting[ZMTP_GREETING_SIZE] = {0xFF};

    CHECK(strchr(relay, '#') == NULL); /* people see no key */
    CHECK(zmtp_connect(relay) < 0);
    *ret_fd = zmtp_dial(relay, 0);
    CHECK(*ret_fd >= 0);
    greeting[9] = 0x7F;
    greeting[10] = 3;
    memcpy(greeting + 12, "CURVE", 5);
    CHECK(zmtp_write(*ret_fd, greeting, sizeof greeting));
    CHECK(zmtp_write_head(*ret_fd, ZMTP_COMMAND, 4 << 20));
    return true;
}

/* The victim's second life begins when psd counts its first one as lost. */
static bool join(const run_t *run, psd_client_t *client, uint32_t worker, bool is_second,
                 psd_error_t *err)
{
    const struct timespec step = {.tv_nsec = 50000000};
    psd_status_t rc = psd_join(client, run->job, worker, WORKERS, 0, err);

    for (int i = 0; i < 1200 && is_second && rc != PSD_OK; i++) {
        psd_error_clear(err);
        (void)nanosleep(&step, NULL);
        rc = psd_join(client, run->job, worker, WORKERS, 0, err);
    }
    CHECK_OK(rc, err);
    return true;
}

/* The others go on when the victim is there again. */
static bool wait_for_victim(const run_t *run)
{
    const struct timespec step = {.tv_nsec = 5000000};

    for (int i = 0; i < 12000 && atomic_load(run->is_back) == 0; i++) {
        (void)nanosleep(&step, NULL);
    }
    CHECK(atomic_load(run->is_back) == 1);
    return true;
}

/* As a worker of an earlier build says it. */
static bool a_relay_without_key_is_refused(psd_client_t *client, const run_t *run, uint32_t worker,
                                           psd_error_t *err)
{
    char question[200];
    char *reply = NULL;

    (void)snprintf(question, sizeof question,
                   "{\"op\":\"heartbeat\",\"job\":\"%s\",\"worker\":%u,\"joins\":1,\"clock\":0,"
                   "\"relay\":\"tcp://127.0.0.1:1\"}",
                   run->job, worker);
    CHECK_OK(psd_request(client, question, WAIT_MS, &reply, err), err);
    CHECK(strstr(reply, "\"relay_refused\":\"security.level is encrypt, and it has no key") !=
          NULL);
    CHECK(strstr(reply, "\"overlay\"") == NULL);
    psd_free(reply);
    return true;
}

/* Nor does one that has a plan of before keep it: it gets one without workers, once. */
static bool a_refused_relay_loses_its_plan(psd_client_t *client, const run_t *run, uint32_t worker,
                                           psd_error_t *err)
{
    for (int plan = 7; plan <= 8; plan++) {
        char question[200];
        char *reply = NULL;

        (void)snprintf(question, sizeof question,
                       "{\"op\":\"heartbeat\",\"job\":\"%s\",\"worker\":%u,\"joins\":1,"
                       "\"clock\":0,\"plan\":%d,\"relay\":\"tcp://127.0.0.1:1\"}",
                       run->job, worker, plan);
        CHECK_OK(psd_request(client, question, WAIT_MS, &reply, err), err);
        CHECK(strstr(reply, "\"relay_refused\":") != NULL);
        CHECK((strstr(reply, "\"overlay\":{\"workers\":[],\"parents\":[],\"plan\":8,") != NULL) ==
              (plan == 7));
        psd_free(reply);
    }
    return true;
}

static void make_deltas(uint32_t worker, int clock, float *deltas)
{
    uint32_t state = 12345 + worker * 1000 + (uint32_t)clock;

    for (size_t i = 0; i < ROWS; i++) {
        state = state * 1664525 + 1013904223;
        deltas[i] = i % 64 < 32 ? known_of(worker) : (float)(int32_t)state / 1e9F;
    }
}

static bool train(const run_t *run, psd_client_t *client, psd_table_t *table, uint32_t worker,
                  bool is_second, psd_error_t *err)
{
    static float deltas[ROWS];
    static float values[ROWS];
    psd_select_t *all = psd_select_new();
    psd_call_t *call = psd_call_new();

    psd_select_all_rows(all);
    psd_call_set_ends_clock(call, true);
    for (int clock = is_second ? DIES_AT + 1 : 0; clock < CLOCKS; clock++) {
        psd_ticket_t ticket = 0;

        if (run->kills && clock == DIES_AT + 2) {
            CHECK(wait_for_victim(run));
        }
        CHECK_OK(psd_pull_start(table, all, values, ROWS, NULL, &ticket, err), err);
        CHECK_OK(psd_wait(client, ticket, WAIT_MS, err), err);
        make_deltas(worker, clock, deltas);
        CHECK_OK(psd_push_start(table, all, deltas, ROWS, call, &ticket, err), err);
        if (run->kills && worker == VICTIM && !is_second && clock == DIES_AT) {
            (void)raise(SIGKILL);
        }
        CHECK_OK(psd_wait(client, ticket, WAIT_MS, err), err);
    }
    psd_call_destroy(&call);
    psd_select_destroy(&all);
    return true;
}

static bool work(const run_t *run, uint32_t worker, bool is_second, bool knocks, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    char relay[64] = "";
    int fd = -1;

    CHECK_OK(
        psd_connect(worker == LOCAL ? run->daemon->ipc : run->daemon->control, NULL, &client, err),
        err);
    CHECK_OK(psd_spec_set(spec, "rows", "4000", err), err);
    CHECK_OK(psd_spec_set(spec, "combine", "clock-sum", err), err);
    CHECK(join(run, client, worker, is_second, err));
    CHECK_OK(psd_table_ensure(client, run->job, spec, &table, err), err);
    if (run->is_on) {
        CHECK(wait_for_plan(client, run, (worker + 1) % WORKERS, relay, err));
    }
    if (knocks) {
        CHECK(strangers_get_nowhere(relay, &fd));
        CHECK(a_relay_without_key_is_refused(client, run, worker, err));
        CHECK(a_refused_relay_loses_its_plan(client, run, worker, err));
    }
    if (is_second) {
        atomic_store(run->is_back, 1);
    } else {
        CHECK_OK(psd_barrier(client, WAIT_MS, err), err);
    }
    CHECK(train(run, client, table, worker, is_second, err));
    CHECK_OK(psd_leave(client, WAIT_MS, err), err);
    if (fd >= 0) {
        (void)close(fd);
    }
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

static pid_t start(const run_t *run, uint32_t worker, bool is_second, bool encrypts)
{
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        psd_error_t *err = psd_error_new();
        bool ok = (worker != LOCAL || unsetenv("PSD_KEY_FILE") == 0) &&
                  setenv("PSD_TRANSPORT", worker == LOCAL ? "ipc" : "tcp", 1) == 0 &&
                  (!run->is_on || setenv("PSD_OVERLAY", "tree", 1) == 0) &&
                  work(run, worker, is_second, encrypts && run->is_on && !is_second, err);

        psd_error_destroy(&err);
        _exit(ok ? 0 : 1);
    }
    return pid;
}

static bool ends_well(pid_t pid)
{
    int status = 0;

    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static bool run_job(const run_t *run, bool encrypts)
{
    pid_t pids[WORKERS];
    int status = 0;
    bool ok = true;

    for (uint32_t i = 0; i < WORKERS; i++) {
        pids[i] = start(run, i, false, encrypts);
    }
    if (run->kills) {
        CHECK(waitpid(pids[VICTIM], &status, 0) == pids[VICTIM] && WIFSIGNALED(status));
        pids[VICTIM] = start(run, VICTIM, true, encrypts);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        ok = ends_well(pids[i]) && ok;
    }
    return ok;
}

/* ---- the job ---- */

/* The whole table, in a process of its own: this one must have no threads when it forks. */
static bool read_table(const run_t *run, float *values)
{
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        psd_error_t *err = psd_error_new();
        psd_client_t *client = NULL;
        psd_table_t *table = NULL;
        psd_select_t *all = psd_select_new();
        psd_ticket_t ticket = 0;
        bool ok = false;

        psd_select_all_rows(all);
        ok = psd_connect(run->daemon->control, NULL, &client, err) == PSD_OK &&
             psd_table_open(client, run->job, &table, err) == PSD_OK &&
             psd_pull_start(table, all, values, ROWS, NULL, &ticket, err) == PSD_OK &&
             psd_wait(client, ticket, WAIT_MS, err) == PSD_OK;
        if (!ok) {
            (void)fprintf(stderr, "%s\n", psd_error_text(err));
        }
        psd_select_destroy(&all);
        psd_table_close(&table);
        psd_close(&client);
        psd_error_destroy(&err);
        _exit(ok ? 0 : 1);
    }
    return ends_well(pid);
}

/* Runs it; the messages that brought its deltas to the shards. */
static bool count_run(const run_t *run, bool encrypts, double *ret_messages)
{
    double pushes = count(run->daemon, PUSHES);
    double bundles = count(run->daemon, BUNDLES);

    CHECK(pushes >= 0 && bundles >= 0);
    CHECK(run_job(run, encrypts));
    pushes = count(run->daemon, PUSHES) - pushes;
    bundles = count(run->daemon, BUNDLES) - bundles;
    (void)printf("%s: %g pushes, %g bundles\n", run->job, pushes, bundles);
    CHECK(pushes >= 0 && bundles >= 0 && (run->is_on || bundles == 0));
    *ret_messages = pushes + bundles;
    return true;
}

/* With the overlay the table has the bits that it has without, and fewer messages bring them: a
 * bundle has several workers' deltas, so relays of several workers have met. Workers that a busy
 * machine lets run one after the other may send as many, so it has some more tries. */
static bool bits_are_the_same(daemon_t *d, bool encrypts, float *values)
{
    static float wanted[ROWS];
    char job[16];
    run_t run = {.daemon = d, .job = "star"};
    double star = 0;
    double tree = 0;

    CHECK(count_run(&run, encrypts, &star));
    CHECK(read_table(&run, values));
    memcpy(wanted, values, sizeof wanted);
    run.job = job;
    run.is_on = true;
    tree = star;
    for (int i = 0; i < TRIES && tree >= star; i++) {
        (void)snprintf(job, sizeof job, "tree%d", i);
        CHECK(count_run(&run, encrypts, &tree));
        CHECK(read_table(&run, values));
        CHECK(memcmp(wanted, values, sizeof wanted) == 0);
    }
    CHECK(tree < star);
    return true;
}

/* It is in the plan again, with another key, and the others go on with it. */
static bool a_worker_comes_again(daemon_t *d, _Atomic int *is_back)
{
    run_t run = {.daemon = d, .job = "again", .is_on = true, .kills = true, .is_back = is_back};

    CHECK(run_job(&run, true));
    return true;
}

/* ---- a key at a psd that has none ---- */

static bool work_with_key(const daemon_t *d, const char *path, psd_error_t *err)
{
    psd_client_t *client = NULL;
    char *reply = NULL;

    CHECK(setenv("PSD_KEY_FILE", path, 1) == 0 && setenv("PSD_OVERLAY", "tree", 1) == 0);
    CHECK_OK(psd_connect(d->ipc, NULL, &client, err), err);
    CHECK_OK(psd_join(client, "keyed", 0, 1, 0, err), err);
    CHECK_OK(psd_barrier(client, WAIT_MS, err), err);
    CHECK_OK(
        psd_request(client, "{\"op\":\"job_inspect\",\"job\":\"keyed\"}", WAIT_MS, &reply, err),
        err);
    CHECK(strstr(reply, "overlay") == NULL);
    CHECK_OK(psd_leave(client, WAIT_MS, err), err);
    psd_free(reply);
    psd_close(&client);
    return true;
}

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

    return fd >= 0 && close(fd) == 0 && n == (ssize_t)strlen(text);
}

static bool read_file(const char *path, char *ret, size_t size)
{
    FILE *file = fopen(path, "re");

    CHECK(file != NULL);
    ret[fread(ret, 1, size - 1, file)] = '\0';
    (void)fclose(file);
    return true;
}

/* It works over ipc, without a relay, and says so once. */
static bool a_worker_with_a_key_has_no_relay(const daemon_t *d, const char *key)
{
    char path[4096];
    char said[4096];
    char text[4096] = "";
    const char *at = NULL;
    pid_t pid = -1;

    (void)snprintf(path, sizeof path, "%.3000s/some.key", d->dir.path);
    (void)snprintf(said, sizeof said, "%.3000s/said", d->dir.path);
    CHECK(write_file(path, key) && write_file(said, ""));
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        psd_error_t *err = psd_error_new();
        bool ok = freopen(said, "a", stderr) != NULL && work_with_key(d, path, err);

        psd_error_destroy(&err);
        _exit(ok ? 0 : 1);
    }
    CHECK(ends_well(pid));
    CHECK(read_file(said, text, sizeof text));
    at = strstr(text, "overlay_off reason=\"PSD_KEY_FILE is set");
    CHECK(at != NULL && strstr(at + 1, "overlay_off") == NULL);
    return true;
}

/* In the middle of it the network is recorded, if it can be. */
static bool jobs_run(bool encrypts, bool can_record, seen_t *seen, float *values)
{
    daemon_t d = {.pid = 0};
    char text[400];
    char key[4096];
    pid_t recorder = -1;
    bool ok = false;

    (void)snprintf(text, sizeof text, config, encrypts ? "encrypt" : "plain");
    ok = daemon_start(&d, text);
    (void)snprintf(key, sizeof key, "%.3000s/data/admin.key", d.dir.path);
    ok = ok && (encrypts ? setenv("PSD_KEY_FILE", key, 1) : unsetenv("PSD_KEY_FILE")) == 0;
    recorder = ok && can_record ? start_recording(seen) : -1;
    ok = ok && (!can_record || recorder > 0);
    ok = ok && bits_are_the_same(&d, encrypts, values);
    ok = ok && (encrypts ? a_worker_comes_again(&d, &seen->is_back) &&
                               read_file(key, seen->key, sizeof seen->key)
                         : a_worker_with_a_key_has_no_relay(&d, seen->key));
    ok = (recorder <= 0 || end_recording(seen, recorder)) && ok;
    (void)unsetenv("PSD_KEY_FILE");
    ok = daemon_end(&d, SIGTERM) && ok;
    daemon_drop(&d, !ok);
    return ok;
}

static bool the_network_shows(const seen_t *seen, bool encrypts)
{
    (void)printf("%s: %llu MB recorded, %llu packets lost, known values %llu times\n",
                 encrypts ? "encrypt" : "plain",
                 (unsigned long long)(atomic_load(&seen->n_bytes) >> 20),
                 (unsigned long long)atomic_load(&seen->n_dropped),
                 (unsigned long long)atomic_load(&seen->n_found));
    CHECK(!encrypts || atomic_load(&seen->n_found) == 0);
    if (atomic_load(&seen->n_dropped) > 0) {
        return true; /* what was lost might have been it */
    }
    CHECK(atomic_load(&seen->n_bytes) > (uint64_t)WORKERS * CLOCKS * ROWS * sizeof(float));
    CHECK(encrypts || atomic_load(&seen->n_found) > 0);
    return true;
}

static void *share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

int main(void)
{
    float *values = share(ROWS * sizeof *values);
    seen_t *seen = share(sizeof *seen);
    bool can_record = netns_can() && netns_enter_hub();
    bool good = values != NULL && seen != NULL;

    RUN(jobs_run(true, can_record, seen, values));
    RUN(!can_record || the_network_shows(seen, true));
    RUN(jobs_run(false, can_record, seen, values));
    RUN(!can_record || the_network_shows(seen, false));
    return good ? 0 : 1;
}
