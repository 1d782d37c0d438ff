/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and stops a private psd. */
#include "cli/run/private_psd.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/output/interrupt.h"

#define LOOK_MS 10  /* poll interval for the child */
#define STOP_S 10.0 /* for an orderly end, after which it is killed */
#define EXIT_NO_PROGRAM 127
#define VOTERS "PSD_REGISTRY_VOTERS="

static void sleep_a_little(void)
{
    struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

    (void)nanosleep(&pause, NULL);
}

/* The psd beside this program: installed in one directory, or built in two. */
static void find_program(char ret_path[PATH_MAX])
{
    static const char *const PLACES[] = {"psd", "../daemon/psd"};
    char self[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 32);
    char *slash = n > 0 ? strrchr(self, '/') : NULL;

    for (size_t i = 0; slash != NULL && i < 2; i++) {
        memcpy(slash + 1, PLACES[i], strlen(PLACES[i]) + 1);
        if (access(self, X_OK) == 0) {
            memcpy(ret_path, self, strlen(self) + 1);
            return;
        }
    }
    memcpy(ret_path, "psd", sizeof "psd"); /* execvp looks in PATH */
}

/* Program and arguments of the child. */
typedef struct plan {
    const char *program;
    char data[PATH_MAX + 32];
    char log[PATH_MAX + 32];
    char listen[PATH_MAX];
    char shards[16];  /* "": psd's default */
    const char *join; /* NULL: it is the first one */
    pid_t parent;
    char **environment; /* owned */
} plan_t;

/* Variables with the place of another psd, and those of the unit that started this program. */
static bool is_of_others(const char *variable, bool has_registry)
{
    if (has_registry && strncmp(variable, VOTERS, strlen(VOTERS)) == 0) {
        return true;
    }
    return strncmp(variable, "PSD_RUNTIME_DIR=", 16) == 0 ||
           strncmp(variable, "RUNTIME_DIRECTORY=", 18) == 0;
}

/* The environment without them; NULL: no memory. Private nodes run on one host and stop
 * together: the first one has the registry, unless the user sets it otherwise. */
static char **make_environment(bool has_registry)
{
    static char voters[] = VOTERS "1";
    char **kept = NULL;
    size_t n = 0;

    while (environ[n] != NULL) {
        n++;
    }
    kept = ps_alloc(n + 2, sizeof *kept);
    n = 0;
    for (size_t i = 0; kept != NULL && environ[i] != NULL; i++) {
        if (!is_of_others(environ[i], has_registry)) {
            kept[n++] = environ[i];
        }
    }
    if (kept != NULL && (has_registry || getenv("PSD_REGISTRY_VOTERS") == NULL)) {
        kept[n] = voters;
    }
    return kept;
}

/* In the child; only calls that are safe after a fork. */
static _Noreturn void become_psd(const plan_t *plan)
{
    const char *argv[] = {plan->program, "--data-dir", plan->data, "--listen", plan->listen,
                          NULL,          NULL,         NULL,       NULL,       NULL};
    size_t n = 5;
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int out = open(plan->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (plan->shards[0] != '\0') {
        argv[n++] = "--shards";
        argv[n++] = plan->shards;
    }
    if (plan->join != NULL) {
        argv[n++] = "--join";
        argv[n++] = plan->join;
    }
    /* It must not outlive pscli, however pscli ends. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == plan->parent && in >= 0 && out >= 0 && setpgid(0, 0) == 0 &&
        dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
        dup2(out, STDERR_FILENO) >= 0) {
        (void)execvpe(plan->program, (char *const *)argv, plan->environment);
    }
    _exit(EXIT_NO_PROGRAM);
}

/* The control endpoint in DATA_DIR/endpoints.json; false while there is none.
 */
static bool read_endpoint(ps_private_psd_t *self)
{
    char path[PATH_MAX + 32];
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    const char *control = NULL;

    (void)snprintf(path, sizeof path, "%s/data/endpoints.json", self->directory);
    doc = json_load_file(path, 0, NULL);
    control = ps_json_text(doc, "control");
    if (control[0] == '\0' || strlen(control) >= sizeof self->endpoint) {
        return false;
    }
    memcpy(self->endpoint, control, strlen(control) + 1);
    return true;
}

static psd_status_t tell_log(const ps_private_psd_t *self, const char *program, int status,
                             psd_error_t *err)
{
    char path[PATH_MAX + 32];
    char line[400] = "";
    char last[400] = "without a message";
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "%s/psd.log", self->directory);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        memcpy(last, line, sizeof last);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_PROGRAM) {
        return psd_error_set(err, PSD_IO,
                             "%s cannot be started as a private psd; --psd "
                             "names the program",
                             program);
    }
    return psd_error_set(err, PSD_IO, "%s ended while it started: %s", program, last);
}

static psd_status_t wait_until_ready(ps_private_psd_t *self, const char *program,
                                     uint32_t timeout_ms, psd_error_t *err)
{
    double end_s = ps_cli_now_s() + (double)timeout_ms / 1000;

    while (!read_endpoint(self)) {
        int status = 0;

        if (waitpid(self->pid, &status, WNOHANG) == self->pid) {
            self->pid = 0;
            return tell_log(self, program, status, err);
        }
        if (ps_interrupt_came()) {
            return psd_error_set(err, PSD_INTERRUPTED, "interrupted");
        }
        if (ps_cli_now_s() > end_s) {
            return psd_error_set(err, PSD_DEADLINE, "the private psd is not ready within %u ms",
                                 timeout_ms);
        }
        sleep_a_little();
    }
    return PSD_OK;
}

/* Starts it, and does not wait. */
static psd_status_t launch(ps_private_psd_t *ret_psd, const ps_private_args_t *args,
                           const char *program, psd_error_t *err)
{
    const char *tmp = getenv("TMPDIR");
    plan_t plan = {.parent = getpid(), .program = program, .join = args->join};

    (void)snprintf(ret_psd->directory, sizeof ret_psd->directory, "%s/pscli-run-XXXXXX",
                   tmp == NULL || tmp[0] == '\0' ? "/tmp" : tmp);
    if (mkdtemp(ret_psd->directory) == NULL) {
        psd_status_t rc = psd_error_set(err, PSD_IO, "%s cannot be made: %s", ret_psd->directory,
                                        strerror(errno));

        ret_psd->directory[0] = '\0';
        return rc;
    }
    (void)snprintf(plan.data, sizeof plan.data, "%s/data", ret_psd->directory);
    (void)snprintf(plan.log, sizeof plan.log, "%s/psd.log", ret_psd->directory);
    (void)snprintf(plan.listen, sizeof plan.listen,
                   args->host != NULL && strchr(args->host, ':') != NULL ? "tcp://[%s]:0"
                                                                         : "tcp://%s:0",
                   args->host == NULL ? "127.0.0.1" : args->host);
    if (args->n_shards > 0) {
        (void)snprintf(plan.shards, sizeof plan.shards, "%u", args->n_shards);
    }
    plan.environment = make_environment(args->has_registry);
    if (plan.environment == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to start %s", program);
    }
    (void)fflush(NULL);
    ret_psd->pid = fork();
    if (ret_psd->pid == 0) {
        become_psd(&plan);
    }
    ps_free(plan.environment);
    if (ret_psd->pid < 0) {
        ret_psd->pid = 0;
        return psd_error_set(err, PSD_IO, "%s cannot be started: %s", program, strerror(errno));
    }
    return PSD_OK;
}

psd_status_t ps_private_psd_start(ps_private_psd_t *ret_psd, const ps_private_args_t *args,
                                  psd_error_t *err)
{
    char found[PATH_MAX] = "";
    const char *program = args->program == NULL ? found : args->program;
    psd_status_t rc = PSD_OK;

    find_program(found);
    rc = launch(ret_psd, args, program, err);
    return rc == PSD_OK ? wait_until_ready(ret_psd, program, args->timeout_ms, err) : rc;
}

psd_status_t ps_private_nodes_start(ps_private_nodes_t *ret_nodes, uint32_t n,
                                    const ps_private_args_t *args, psd_error_t *err)
{
    ps_private_args_t one = *args;
    psd_status_t rc = PSD_OK;

    ret_nodes->items = ps_alloc(n, sizeof *ret_nodes->items);
    if (ret_nodes->items == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for private nodes");
    }
    while (rc == PSD_OK && ret_nodes->n < n) {
        rc = ps_private_psd_start(&ret_nodes->items[ret_nodes->n++], &one, err);
        one.join = ret_nodes->items[0].endpoint;
    }
    return rc;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

void ps_private_psd_done(ps_private_psd_t *self)
{
    double end_s = ps_cli_now_s() + STOP_S;

    if (self->pid > 0) {
        (void)kill(self->pid, SIGTERM);
        while (waitpid(self->pid, NULL, WNOHANG) == 0) {
            if (ps_cli_now_s() > end_s) {
                (void)kill(self->pid, SIGKILL);
                (void)waitpid(self->pid, NULL, 0);
                break;
            }
            sleep_a_little();
        }
        self->pid = 0;
    }
    if (self->directory[0] != '\0') {
        (void)nftw(self->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        self->directory[0] = '\0';
    }
}

void ps_private_nodes_done(ps_private_nodes_t *self)
{
    /* The others first: they report their end to the registry. */
    for (uint32_t i = self->n; i > 0; i--) {
        ps_private_psd_done(&self->items[i - 1]);
    }
    ps_free(self->items);
    *self = (ps_private_nodes_t){0};
}
