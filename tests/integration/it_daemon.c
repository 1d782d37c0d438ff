/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the daemon: how it starts, refuses to start, reads its settings
 * again, stops, and what it knows after a restart. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "support/control.h"

/* The settings that a test adds to. */
#define BASE      \
    "shards: 2\n" \
    "workers: {heartbeat_ms: 50, lost_after_ms: 60000}\n"

/* ---- helpers ---- */

static bool write_file(const daemon_t *d, const char *name, const char *text)
{
    char path[PATH_MAX];
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "%.3000s/%s", d->dir.path, name);
    file = fopen(path, "we");
    return file != NULL && fputs(text, file) >= 0 && fclose(file) == 0;
}

/* Runs psd with these words to its end; what it wrote goes to ret_text.
 * Returns the exit code; -1 when it did not exit. */
static int run_psd(const char *const *words, char *ret_text, size_t size)
{
    const char *program = getenv("PSD_PROGRAM");
    int ends[2];
    int status = 0;
    size_t n = 0;
    pid_t pid = 0;

    ret_text[0] = '\0';
    if (program == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)execv(program, (char *const *)(uintptr_t)words);
        _exit(127);
    }
    (void)close(ends[1]);
    while (n < size - 1) {
        ssize_t got = read(ends[0], ret_text + n, size - 1 - n);

        if (got <= 0) {
            break;
        }
        n += (size_t)got;
    }
    ret_text[n] = '\0';
    (void)close(ends[0]);
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        return -1;
    }
    return WEXITSTATUS(status);
}

/* psd with these words ends with that code, saying that. */
#define CHECK_RUN(code, part, ...)                                                             \
    do {                                                                                       \
        static char said[65536];                                                               \
        int got = run_psd((const char *const[]){"psd", __VA_ARGS__, NULL}, said, sizeof said); \
        if (got != (code) || strstr(said, part) == NULL) {                                     \
            (void)fprintf(stderr, "%s:%d: exit %d, wanted %d and \"%s\": %s\n", __FILE__,      \
                          __LINE__, got, code, part, said);                                    \
            return false;                                                                      \
        }                                                                                      \
    } while (0)

/* ---- the command line ---- */

static bool words_that_only_print(void)
{
    CHECK_RUN(0, "examples:\n", "--help");
    CHECK_RUN(0, "psd ", "--version");
    CHECK_RUN(0, "limits:\n", "--print-config");
    CHECK_RUN(0, "configuration ok", "--check-config");
    return true;
}

static bool words_that_are_wrong(void)
{
    CHECK_RUN(2, "psd: E5001 unknown option \"--shrads\"; did you mean --shards?", "--shrads", "2");
    CHECK_RUN(2, "psd: E5001 --shards needs a value: N", "--shards");
    CHECK_RUN(2, "psd: E5002 --shards: shards is \"0\"; allowed: 1 .. 256", "--shards", "0");
    CHECK_RUN(2, "psd: E5002 no/such.yaml: cannot be opened", "--config", "no/such.yaml");
    CHECK_RUN(2, "psd: E5002 --join: cluster.join is \"somewhere\"", "--join", "somewhere");
    CHECK_RUN(2, "security.allow_plaintext: true", "--listen", "tcp://0.0.0.0:0");
    return true;
}

static bool a_wrong_file_is_told_with_its_line(daemon_t *d)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%.3000s/bad.yaml", d->dir.path);
    CHECK(write_file(d, "bad.yaml",
                     "log:\n  level: info\nlimits:\n  "
                     "chunk_bites: 1MiB\n"));
    CHECK_RUN(2,
              "bad.yaml:4: unknown key \"chunk_bites\"; did you mean "
              "limits.chunk_bytes?",
              "--config", path, "--check-config");
    CHECK(write_file(d, "bad.yaml", "limits:\n  chunk_bytes: 1\n"));
    CHECK_RUN(2,
              "bad.yaml:2: limits.chunk_bytes is \"1\"; allowed: 4096 .. "
              "67108864 bytes",
              "--config", path);
    return true;
}

/* ---- start ---- */

static bool it_starts_and_says_where(daemon_t *d)
{
    char text[8192];
    char path[PATH_MAX];
    const char *line = NULL;
    control_t c = {.fd = -1};

    CHECK(read_file(d, "data/endpoints.json", text, sizeof text));
    CHECK(strstr(text, "\"node\":\"") != NULL);
    CHECK(strstr(text, "\"incarnation\":") != NULL);
    CHECK(strstr(text, "\"shards\":[\"tcp://127.0.0.1:") != NULL);
    CHECK(strstr(text, "\"http\":") != NULL);
    CHECK(strncmp(d->control, "tcp://127.0.0.1:", 16) == 0);
    CHECK(strcmp(d->control, "tcp://127.0.0.1:0") != 0);
    CHECK(strncmp(d->ipc, "ipc:///", 7) == 0);
    (void)snprintf(path, sizeof path, "%s", d->ipc + 6);
    CHECK(access(path, F_OK) == 0);

    /* The first line of the log has the addresses, but for what is said of
     * variables of the test that psd does not know. */
    CHECK(read_file(d, "log", text, sizeof text));
    line = strstr(text, "Z info listening control=tcp://127.0.0.1:");
    CHECK(line != NULL && line - text >= 23);
    line -= 23;
    CHECK(line[4] == '-' && line[10] == 'T' && line[19] == '.');
    CHECK(line == text || line[-1] == '\n');
    CHECK(strstr(line, d->control) != NULL);
    CHECK(strstr(line, d->control) < strchr(line, '\n'));
    CHECK(strstr(line, d->ipc) < strchr(line, '\n'));

    CHECK(control_open(&c, d, 1));
    CHECK(control_ask(&c, "cluster_status", "", "\"healthy\":true"));
    CHECK(control_ask(&c, "node_list", "", "\"state\":\"up\""));
    CHECK(control_ask(&c, "cluster_events", "", "\"kind\":"));
    control_close(&c);
    return true;
}

static bool it_cannot_start_where_another_is(daemon_t *d)
{
    char data[PATH_MAX];
    char other[PATH_MAX];

    (void)snprintf(data, sizeof data, "%.3000s/data", d->dir.path);
    (void)snprintf(other, sizeof other, "%.3000s/other", d->dir.path);
    CHECK_RUN(1, d->control, "--data-dir", other, "--listen", d->control);
    CHECK_RUN(1, "ddress already in use", "--data-dir", other, "--listen", d->control);
    CHECK_RUN(1, "ddress already in use", "--data-dir", other, "--listen", d->ipc);
    /* The same data directory: the pid of the one that has it is named. */
    {
        char pid[32];

        (void)snprintf(pid, sizeof pid, "%ld", (long)d->pid);
        CHECK_RUN(6, pid, "--data-dir", data, "--listen", "tcp://127.0.0.1:0");
    }
    return true;
}

static bool it_refuses_what_is_not_its_own(daemon_t *d)
{
    char data[PATH_MAX];
    char garbage[PATH_MAX];
    char later[PATH_MAX];
    char file[PATH_MAX];
    char path[PATH_MAX];

    (void)snprintf(data, sizeof data, "%.3000s/data", d->dir.path);
    (void)snprintf(garbage, sizeof garbage, "%.3000s/garbage", d->dir.path);
    (void)snprintf(later, sizeof later, "%.3000s/later", d->dir.path);
    (void)snprintf(file, sizeof file, "%.3000s/file", d->dir.path);
    CHECK(write_file(d, "cluster.yaml", "cluster: {name: other}\n"));
    (void)snprintf(path, sizeof path, "%.3000s/cluster.yaml", d->dir.path);
    CHECK_RUN(6, "belongs to cluster \"psd\", cluster.name is \"other\"", "--data-dir", data,
              "--listen", "tcp://127.0.0.1:0", "--config", path);
    CHECK(write_file(d, "node.yaml", "node: {name: someone}\n"));
    (void)snprintf(path, sizeof path, "%.3000s/node.yaml", d->dir.path);
    CHECK_RUN(6, "node.name is \"someone\"", "--data-dir", data, "--listen", "tcp://127.0.0.1:0",
              "--config", path);

    CHECK(mkdir(garbage, 0700) == 0);
    CHECK(write_file(d, "garbage/registry.db",
                     "this was never a registry, it is only some text that "
                     "somebody put here\n"));
    CHECK_RUN(6, "registry.db", "--data-dir", garbage, "--listen", "tcp://127.0.0.1:0");
    CHECK(mkdir(later, 0700) == 0);
    CHECK(write_file(d, "later/format", "psd data format 99\n"));
    CHECK_RUN(6, "has data format 99, and this psd reads and writes", "--data-dir", later,
              "--listen", "tcp://127.0.0.1:0");
    CHECK(write_file(d, "file", "a file\n"));
    CHECK_RUN(1, "a file is in the way", "--data-dir", file, "--listen", "tcp://127.0.0.1:0");
    return true;
}

/* ---- signals ---- */

static bool hup_reads_the_settings_again(daemon_t *d)
{
    CHECK(write_file(d, "psd.yaml", BASE "log: {level: debug}\nlimits: {tables: 1}\n"));
    CHECK(kill(d->pid, SIGHUP) == 0);
    CHECK(wait_log(d, "info reloaded restart_needed=0"));
    {
        control_t c = {.fd = -1};

        CHECK(control_open(&c, d, 20));
        CHECK(control_ask(&c, "table_create", ",\"spec\":{\"name\":\"one\",\"rows\":10}",
                          "\"status\":\"OK\""));
        CHECK(control_ask(&c, "table_create", ",\"spec\":{\"name\":\"two\",\"rows\":10}",
                          "limits.tables, which is 1"));
        CHECK(control_ask(&c, "table_drop", ",\"name\":\"one\"", "\"dropped\":true"));
        control_close(&c);
    }
    /* A line of level debug, which were not there before. */
    CHECK(wait_log(d, "debug request_refused"));

    CHECK(write_file(d, "psd.yaml", BASE "limits:\n  sessions: 99\n"));
    CHECK(kill(d->pid, SIGHUP) == 0);
    CHECK(wait_log(d, "warn restart_needed key=limits.sessions"));
    CHECK(wait_log(d, "info reloaded restart_needed=1"));

    CHECK(write_file(d, "psd.yaml", BASE "limits:\n  sessions: many\n"));
    CHECK(kill(d->pid, SIGHUP) == 0);
    CHECK(wait_log(d, "error reload_failed"));
    CHECK(wait_log(d, "psd.yaml:4: limits.sessions"));
    CHECK(write_file(d, "psd.yaml", BASE));
    return true;
}

static bool term_stops_cleanly(daemon_t *d)
{
    char path[PATH_MAX];
    control_t c = {.fd = -1};

    CHECK(control_open(&c, d, 30));
    CHECK(control_ask(&c, "job_join",
                      ",\"job\":\"j\",\"worker\":0,\"workers\":2,"
                      "\"max_delay\":0",
                      "\"status\":\"OK\""));
    CHECK(control_post(&c, "barrier",
                       ",\"job\":\"j\",\"worker\":0,\"number\":1,"
                       "\"timeout_ms\":60000"));
    /* It waits; `why` on another connection knows it. */
    {
        control_t other = {.fd = -1};
        bool seen = false;

        CHECK(control_open(&other, d, 31));
        for (int i = 0; i < WAIT_STEPS && !seen; i++) {
            CHECK(control_ask(&other, "why", ",\"job\":\"j\"", "\"waiters\""));
            seen = strstr(other.reply, "\"kind\":\"barrier\"") != NULL;
        }
        CHECK(seen);
        CHECK(strstr(other.reply, "worker 1 (not joined yet)") != NULL);
        control_close(&other);
    }
    CHECK(kill(d->pid, SIGTERM) == 0);
    /* Who waits is answered before the end. */
    CHECK(answer_has(&c, "\"status\":\"STOPPING\""));
    control_close(&c);
    {
        int status = 0;

        CHECK(waitpid(d->pid, &status, 0) == d->pid);
        d->pid = 0;
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK(log_has(d, "info stopped"));
    (void)snprintf(path, sizeof path, "%.3000s/data/endpoints.json", d->dir.path);
    CHECK(access(path, F_OK) != 0);
    (void)snprintf(path, sizeof path, "%.3000s/data/psd.ipc", d->dir.path);
    CHECK(access(path, F_OK) != 0);
    return true;
}

/* A peer that never reads keeps answers in the queue, so that a clean stop
 * takes as long as the sockets linger. */
static bool a_second_term_stops_at_once(daemon_t *d)
{
    static const char REQUEST[] = "{\"v\":1,\"id\":1,\"op\":\"nothing\"}";
    static char many[1 << 20];
    size_t used = 0;
    int status = 0;
    int fd = zmtp_dial(d->control, 4096);

    CHECK(fd >= 0 && zmtp_shake(fd, NULL));
    while (used + sizeof REQUEST + 1 < sizeof many) {
        many[used++] = 0;
        many[used++] = (char)(sizeof REQUEST - 1);
        memcpy(many + used, REQUEST, sizeof REQUEST - 1);
        used += sizeof REQUEST - 1;
    }
    for (int i = 0; i < 4; i++) {
        CHECK(zmtp_write(fd, many, used));
    }
    CHECK(kill(d->pid, SIGTERM) == 0);
    CHECK(wait_log(d, "info stopping signal=TERM"));
    /* The signal's own meaning is back shortly after that line. */
    for (int i = 0; i < WAIT_STEPS && waitpid(d->pid, &status, WNOHANG) == 0; i++) {
        (void)kill(d->pid, SIGTERM);
        step();
    }
    d->pid = 0;
    (void)close(fd);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) ||
          (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return true;
}

/* ---- systemd ---- */

/* Reads what psd tells systemd until it says that. */
static bool is_told(int fd, const char *word)
{
    char text[1024];

    for (;;) {
        ssize_t n = recv(fd, text, sizeof text - 1, 0);

        if (n <= 0) {
            (void)fprintf(stderr, "systemd was never told %s\n", word);
            return false;
        }
        text[n] = '\0';
        if (strstr(text, word) != NULL) {
            return true;
        }
    }
}

static bool systemd_is_told(daemon_t *d)
{
    const struct timeval limit = {.tv_sec = 20};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct stat log;
    char text[PATH_MAX];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%.90s/notify", d->dir.path);
    CHECK(fd >= 0);
    CHECK(bind(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)snprintf(text, sizeof text, "%.3000s/log", d->dir.path);
    CHECK(stat(text, &log) == 0);
    (void)snprintf(text, sizeof text, "%ju:%ju", (uintmax_t)log.st_dev, (uintmax_t)log.st_ino);
    CHECK(setenv("NOTIFY_SOCKET", at.sun_path, 1) == 0);
    CHECK(setenv("WATCHDOG_USEC", "200000", 1) == 0);
    CHECK(setenv("JOURNAL_STREAM", text, 1) == 0);
    CHECK(daemon_restart(d));
    CHECK(is_told(fd, "READY=1\nSTATUS=serving on tcp://127.0.0.1:"));
    CHECK(is_told(fd, "WATCHDOG=1"));
    CHECK(is_told(fd, "WATCHDOG=1"));
    CHECK(kill(d->pid, SIGHUP) == 0);
    CHECK(is_told(fd, "RELOADING=1\nMONOTONIC_USEC="));
    CHECK(is_told(fd, "READY=1"));
    CHECK(wait_log(d, "<6>listening control="));
    CHECK(daemon_end(d, SIGTERM));
    CHECK(is_told(fd, "STOPPING=1"));
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("JOURNAL_STREAM");
    (void)close(fd);
    return true;
}

/* ---- restart ---- */

static bool after_a_restart_tables_are_known_and_rows_lost(daemon_t *d)
{
    control_t c = {.fd = -1};
    unsigned long long old = 0;

    CHECK(control_open(&c, d, 40));
    old = c.session;
    CHECK(control_ask(&c, "table_create", ",\"spec\":{\"name\":\"kept\",\"rows\":1000,\"cols\":3}",
                      "\"rows_lost\":false"));
    CHECK(control_ask(&c, "job_join",
                      ",\"job\":\"old\",\"worker\":0,\"workers\":1,"
                      "\"max_delay\":2",
                      "\"joins\":1"));
    CHECK(control_ask(&c, "table_open", ",\"name\":\"kept\",\"job\":\"old\"", "\"OK\""));
    control_close(&c);
    CHECK(daemon_end(d, SIGKILL));
    CHECK(daemon_restart(d));
    CHECK(wait_log(d, "warn rows_lost table=kept"));
    CHECK(wait_log(d, "'pscli table ack kept' accepts the loss"));

    CHECK(control_open(&c, d, 41));
    CHECK(c.session > old);
    CHECK(control_ask(&c, "table_inspect", ",\"name\":\"kept\"", "\"rows_lost\":true"));
    CHECK(strstr(c.reply, "\"hint\":") != NULL);
    CHECK(strstr(c.reply, "\"rows\":1000,\"cols\":3") != NULL);
    CHECK(control_ask(&c, "cluster_status", "", "\"healthy\":false"));
    CHECK(control_ask(&c, "worker_list", ",\"job\":\"old\"", "\"state\":\"lost\""));
    CHECK(control_ask(&c, "why", ",\"job\":\"old\"",
                      "worker 0 was lost at clock 0, with the rows of table "
                      "\\\"kept\\\", which are gone"));
    /* A session of the last start is told that its rows are gone, once it asks
     * for them, or for what its worker waits for. */
    c.session = old;
    CHECK(control_ask(&c, "table_list", "", "\"OK\""));
    CHECK(control_ask(&c, "routes", ",\"tables\":[1]", "\"status\":\"ROWS_LOST\""));
    CHECK(control_ask(&c, "heartbeat", ",\"job_id\":1,\"worker\":0", "\"status\":\"ROWS_LOST\""));
    c.session = old + 100000;
    CHECK(control_ask(&c, "table_list", "", "\"status\":\"NO_SESSION\""));
    control_close(&c);

    CHECK(control_open(&c, d, 42));
    CHECK(control_ask(&c, "table_drop", ",\"name\":\"kept\"", "\"OK\""));
    CHECK(control_ask(&c, "cluster_status", "", "\"healthy\":true"));
    control_close(&c);
    return true;
}

/* ---- all ---- */

int main(void)
{
    daemon_t d = {.pid = 0};
    bool good = true;

    RUN(words_that_only_print());
    RUN(words_that_are_wrong());
    good = good && daemon_start(&d, BASE);
    RUN(it_starts_and_says_where(&d));
    RUN(a_wrong_file_is_told_with_its_line(&d));
    RUN(it_cannot_start_where_another_is(&d));
    RUN(after_a_restart_tables_are_known_and_rows_lost(&d));
    RUN(hup_reads_the_settings_again(&d));
    RUN(term_stops_cleanly(&d));
    RUN(it_refuses_what_is_not_its_own(&d));
    RUN(systemd_is_told(&d));
    RUN(daemon_restart(&d));
    RUN(a_second_term_stops_at_once(&d));
    daemon_drop(&d, !good);
    return good ? 0 : 1;
}
