/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a launcher's engine is there, and why it failed. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/launch/launch.h"
#include "cli/launch/become.h"

#define TEXT_SIZE 65536
#define SLURM_FROM 20.11 /* of srun's --overlap and of steps that share nothing by default */

/* Runs a command and takes what it writes to stdout and stderr. Errors: PSD_IO. */
static psd_status_t ask(const char *const *argv, char ret_text[TEXT_SIZE], int *ret_exit,
                        psd_error_t *err)
{
    int out[2] = {-1, -1};
    sigset_t mask;
    pid_t parent = getpid();
    pid_t pid = -1;
    size_t size = 0;
    ssize_t n = 0;
    int status = 0;

    if (pipe2(out, O_CLOEXEC) == 0 && sigprocmask(SIG_BLOCK, NULL, &mask) == 0) {
        (void)fflush(NULL);
        pid = fork();
    }
    if (pid == 0) {
        const ps_become_t child = {.argv = argv,
                                   .fds = {-1, out[1], out[1]},
                                   .parent = parent,
                                   .last_signal = SIGKILL,
                                   .mask = &mask};

        ps_become(&child);
    }
    if (pid < 0) {
        return psd_error_set(err, PSD_IO, "%s cannot be started: %s", argv[0], strerror(errno));
    }
    (void)close(out[1]);
    while (size < TEXT_SIZE - 1 &&
           ((n = read(out[0], ret_text + size, TEXT_SIZE - 1 - size)) > 0 || errno == EINTR)) {
        size += n > 0 ? (size_t)n : 0;
        if (n == 0) {
            break;
        }
    }
    ret_text[size] = '\0';
    (void)close(out[0]);
    (void)waitpid(pid, &status, 0);
    *ret_exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return PSD_OK;
}

static psd_status_t say_missing(const char *program, const char *package, psd_error_t *err)
{
    return psd_error_set(err, PSD_FAILED, "%s is not installed here (Debian: %s)", program,
                         package);
}

static psd_status_t check_mpi(char *text, psd_error_t *err)
{
    static const char *const ARGV[] = {"mpirun", "--version", NULL};
    int code = 0;
    psd_status_t rc = ask(ARGV, text, &code, err);
    const char *at = NULL;

    if (rc != PSD_OK || code == PS_EXIT_NO_PROGRAM) {
        return rc != PSD_OK ? rc : say_missing("mpirun", "openmpi-bin", err);
    }
    at = strstr(text, "(Open MPI) ");
    if (at == NULL || at[11] != '4') {
        text[strcspn(text, "\n")] = '\0';
        return psd_error_set(err, PSD_UNSUPPORTED, "mpirun is \"%.120s\"; allowed: Open MPI 4",
                             text);
    }
    return PSD_OK;
}

static psd_status_t check_slurm(char *text, psd_error_t *err)
{
    static const char *const VERSION[] = {"srun", "--version", NULL};
    static const char *const PING[] = {"scontrol", "ping", NULL};
    const char *digits = NULL;
    int code = 0;
    psd_status_t rc = ask(VERSION, text, &code, err);

    if (rc != PSD_OK || code == PS_EXIT_NO_PROGRAM) {
        return rc != PSD_OK ? rc : say_missing("srun", "slurm-client", err);
    }
    text[strcspn(text, "\n")] = '\0';
    digits = strpbrk(text, "0123456789");
    if (strncmp(text, "slurm", 5) != 0 || digits == NULL || strtod(digits, NULL) < SLURM_FROM) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "srun is \"%.120s\"; allowed: Slurm 20.11 and later", text);
    }
    rc = ask(PING, text, &code, err);
    if (rc == PSD_OK && code != 0) {
        text[strcspn(text, "\n")] = '\0';
        rc = psd_error_set(err, PSD_FAILED, "Slurm does not answer: %.200s", text);
    }
    return rc;
}

static psd_status_t check_ssh(const ps_launch_t *self, char *text, psd_error_t *err)
{
    PSD_AUTO(ps_words_done) ps_words_t words = {0};
    int code = 0;
    psd_status_t rc = PSD_OK;

    if (!ps_words_split(&words, self->ssh) || !ps_words_add(&words, "-V")) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a launcher");
    }
    rc = ask((const char *const *)words.items, text, &code, err);
    if (rc == PSD_OK && code == PS_EXIT_NO_PROGRAM) {
        rc = say_missing(words.items[0], "openssh-client", err);
    }
    return rc;
}

psd_status_t ps_launch_check(const ps_launch_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *text = ps_alloc(TEXT_SIZE, 1);

    if (text == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a launcher");
    }
    if (self->kind == PS_LAUNCH_MPI) {
        return check_mpi(text, err);
    }
    if (self->kind == PS_LAUNCH_SLURM) {
        return check_slurm(text, err);
    }
    return self->kind == PS_LAUNCH_SSH ? check_ssh(self, text, err) : PSD_OK;
}

/* ---- hosts of Slurm ---- */

/* Adds the NodeAddr= of each line; several nodes may be one address. */
static psd_status_t take_nodes(const char *text, ps_hosts_t *ret_hosts, psd_error_t *err)
{
    static const char FIELD[] = " NodeAddr=";
    PSD_AUTO(ps_buffer_done) ps_buffer_t list = {0};

    for (const char *at = strstr(text, FIELD); at != NULL; at = strstr(at, FIELD)) {
        char address[PS_HOST_SIZE + 2];
        size_t size = 0;

        at += sizeof FIELD - 1;
        size = strcspn(at, " \n");
        (void)snprintf(address, sizeof address, ",%.*s,", (int)size, at);
        if (list.size > 0 && strstr((const char *)list.data, address) != NULL) {
            continue;
        }
        if (!ps_buffer_print(&list, "%s", list.size == 0 ? address : address + 1)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for hosts");
        }
    }
    if (list.size == 0) {
        return psd_error_set(err, PSD_FAILED,
                             "scontrol names no address of the allocation's nodes");
    }
    return ps_hosts_parse(ret_hosts, (const char *)list.data + 1, err);
}

psd_status_t ps_launch_read_slurm(ps_hosts_t *ret_hosts, psd_error_t *err)
{
    const char *nodes = getenv("SLURM_JOB_NODELIST");
    /* Outside of an allocation Slurm may choose any node. */
    const char *const argv[] = {"scontrol", "-o", "show", "node", nodes, NULL};
    PSD_AUTO(ps_free_at) char *text = ps_alloc(TEXT_SIZE, 1);
    int code = 0;
    psd_status_t rc = text == NULL ? psd_error_set(err, PSD_NOMEM, "no memory for hosts")
                                   : ask(argv, text, &code, err);

    if (rc == PSD_OK && code != 0) {
        text[strcspn(text, "\n")] = '\0';
        rc = psd_error_set(err, PSD_FAILED, "scontrol show node: %.200s", text);
    }
    return rc == PSD_OK ? take_nodes(text, ret_hosts, err) : rc;
}

/* ---- why it failed ---- */

/* What engines write about one cause, over many lines, and how psd says it. */
static const struct {
    const char *has;
    const char *says;
} CAUSES[] = {
    {"not enough slots available",
     "not enough slots for the workers; name more with --hosts HOST:SLOTS, or --oversubscribe"},
    {"unable to find the specified executable file", "pscli is not there on the hosts"},
    {"More processors requested than permitted",
     "the allocation has fewer tasks than workers; ask for more, or --oversubscribe"},
    {"Unable to contact slurm controller", "Slurm does not answer"},
    {"Requested node configuration is not available", "Slurm has no such nodes"},
};

/* A line with a word in it, that is not only about where help is. */
static bool is_telling(const char *line, size_t size)
{
    size_t letters = 0;

    for (size_t i = 0; i < size; i++) {
        letters += isalpha((unsigned char)line[i]) ? 1 : 0;
    }
    return letters > 8 && strncmp(line, "Warning: Permanently added", 26) != 0;
}

void ps_launch_why(const char *text, char ret_line[PS_LAUNCH_WHY_SIZE])
{
    const char *found = "no message";
    size_t found_size = strlen(found);

    for (size_t i = 0; i < sizeof CAUSES / sizeof CAUSES[0]; i++) {
        if (strstr(text, CAUSES[i].has) != NULL) {
            (void)snprintf(ret_line, PS_LAUNCH_WHY_SIZE, "%s", CAUSES[i].says);
            return;
        }
    }
    /* The last one: launchers say at the end why they gave up. */
    for (const char *at = text; *at != '\0';) {
        size_t size = strcspn(at, "\r\n");

        if (is_telling(at, size)) {
            found = at;
            found_size = size;
        }
        at += size + strspn(at + size, "\r\n");
    }
    (void)snprintf(ret_line, PS_LAUNCH_WHY_SIZE, "%.*s", (int)found_size, found);
}
