/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends psd for a test. */
#include "support/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "support/daemon_embed.h"

#define READY_MS 60000
/* So that no test loses a worker on a busy machine unless it asks for that. */
#define CALM "workers:\n  lost_after_ms: 60000\n"
#define STEP_MS 5

static void path_of(const daemon_t *self, const char *name, char ret[PATH_MAX])
{
    (void)snprintf(ret, PATH_MAX, "%.3000s/%s", self->dir.path, name);
}

/* In the child: its output goes to the log; it dies with the test. */
static void become(const daemon_t *self, const char *program)
{
    char data[PATH_MAX];
    char config[PATH_MAX];
    char log[PATH_MAX];
    const char *arguments[] = {program,    "--listen", "tcp://127.0.0.1:0", "--data-dir", data,
                               "--config", config,     self->option,        NULL};
    int fd = -1;

    path_of(self, "data", data);
    path_of(self, "psd.yaml", config);
    path_of(self, "log", log);
    (void)setenv("XDG_STATE_HOME", self->dir.path, 1); /* it leaves nothing elsewhere */
    if (access(config, R_OK) != 0) {
        arguments[5] = self->option;
        arguments[6] = NULL;
        (void)setenv("PSD_WORKERS_LOST_AFTER_MS", "60000", 0);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd >= 0) {
        (void)dup2(fd, STDOUT_FILENO);
        (void)dup2(fd, STDERR_FILENO);
    }
    (void)execv(program, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

/* The text value of a key of a flat JSON object that psd itself wrote. */
static bool text_of(const char *json, const char *key, char ret[256])
{
    char wanted[64];
    const char *at = NULL;
    const char *end = NULL;

    (void)snprintf(wanted, sizeof wanted, "\"%s\":\"", key);
    at = strstr(json, wanted);
    if (at == NULL) {
        return false;
    }
    at += strlen(wanted);
    end = strchr(at, '"');
    if (end == NULL || end - at > 255) {
        return false;
    }
    (void)snprintf(ret, 256, "%.*s", (int)(end - at), at);
    return true;
}

static bool read_endpoints(daemon_t *self, const char *path)
{
    char json[8192] = "";
    FILE *file = fopen(path, "re");
    size_t n = 0;

    if (file == NULL) {
        return false;
    }
    n = fread(json, 1, sizeof json - 1, file);
    (void)fclose(file);
    json[n] = '\0';
    return text_of(json, "control", self->control) && text_of(json, "ipc", self->ipc);
}

static bool has_ended(daemon_t *self)
{
    int status = 0;

    if (waitpid(self->pid, &status, WNOHANG) == self->pid) {
        self->pid = 0;
        return true;
    }
    return false;
}

static bool restart_here(daemon_t *self)
{
    char data[PATH_MAX];
    char config[PATH_MAX];
    char log[PATH_MAX];
    char endpoints[PATH_MAX];

    path_of(self, "data", data);
    path_of(self, "psd.yaml", config);
    path_of(self, "log", log);
    path_of(self, "data/endpoints.json", endpoints);
    if (self->option == NULL) {
        self->embed = daemon_embed_start(data, config, log);
    }
    return self->embed != NULL && read_endpoints(self, endpoints);
}

bool daemon_restart(daemon_t *self)
{
    const char *program = getenv("PSD_PROGRAM");
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    char endpoints[PATH_MAX];

    if (daemon_embed_is_on()) {
        return restart_here(self);
    }
    if (program == NULL) {
        (void)fprintf(stderr, "PSD_PROGRAM does not name the daemon\n");
        return false;
    }
    path_of(self, "data/endpoints.json", endpoints);
    (void)unlink(endpoints);
    (void)fflush(NULL);
    self->pid = fork();
    if (self->pid == 0) {
        become(self, program);
    }
    for (int waited = 0; self->pid > 0 && waited < READY_MS; waited += STEP_MS) {
        if (read_endpoints(self, endpoints)) {
            return true;
        }
        if (has_ended(self)) {
            break;
        }
        (void)nanosleep(&step, NULL);
    }
    (void)fprintf(stderr, "%s did not get ready\n", program);
    return false;
}

bool daemon_restart_with(daemon_t *self, const char *option)
{
    bool ready = false;

    self->option = option;
    ready = daemon_restart(self);
    self->option = NULL;
    return ready;
}

bool daemon_start(daemon_t *self, const char *config)
{
    char path[PATH_MAX];

    *self = (daemon_t){.pid = 0};
    if (!temp_dir_make(&self->dir)) {
        perror("temporary directory");
        return false;
    }
    path_of(self, "data", path);
    if (mkdir(path, 0700) != 0) {
        perror(path);
        return false;
    }
    if (config != NULL) {
        FILE *file = NULL;

        path_of(self, "psd.yaml", path);
        file = fopen(path, "we");
        if (file == NULL ||
            fprintf(file, "%s%s", config, strstr(config, "workers:") == NULL ? CALM : "") < 0 ||
            fclose(file) != 0) {
            perror(path);
            return false;
        }
    }
    return daemon_restart(self);
}

bool daemon_end(daemon_t *self, int signal_number)
{
    int status = 0;

    if (self->embed != NULL && signal_number == SIGTERM) {
        daemon_embed_stop(&self->embed);
        return true;
    }
    if (self->pid <= 0 || kill(self->pid, signal_number) != 0 ||
        waitpid(self->pid, &status, 0) != self->pid) {
        return false;
    }
    self->pid = 0;
    return (WIFSIGNALED(status) && WTERMSIG(status) == signal_number) ||
           (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

bool daemon_freeze(daemon_t *self)
{
    int status = 0;

    return self->pid > 0 && kill(self->pid, SIGSTOP) == 0 &&
           waitpid(self->pid, &status, WUNTRACED) == self->pid && WIFSTOPPED(status);
}

static void print_log(const daemon_t *self)
{
    char path[PATH_MAX];
    char line[1024];
    FILE *file = NULL;

    path_of(self, "log", path);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        (void)fprintf(stderr, "psd: %s", line);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

void daemon_drop(daemon_t *self, bool failed)
{
    if (self->pid > 0) {
        (void)daemon_end(self, SIGKILL);
    }
    daemon_embed_stop(&self->embed);
    if (failed) {
        print_log(self);
    }
    temp_dir_drop(&self->dir);
}
