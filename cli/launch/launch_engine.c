/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a launcher's engine is there, and why it failed. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/launch/address.h"
#include "cli/launch/become.h"
#include "cli/launch/launch.h"

#define TEXT_MAX (16U << 20) /* bytes of an answer; scontrol describes a node in 1 KB */
#define READ_SIZE 65536
#define SLURM_FROM 20.11 /* of srun's --overlap and of steps that share nothing by default */

/* All that comes until the other end is closed, with a '\0' after it. Errors: PSD_LIMIT,
 * PSD_NOMEM, PSD_IO. */
static psd_status_t read_all(int fd, const char *program, ps_buffer_t *ret_text, psd_error_t *err)
{
    ssize_t n = 1;

    ret_text->size = 0;
    while (n != 0) {
        if (!ps_buffer_reserve(ret_text, READ_SIZE)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for the answer of %s", program);
        }
        n = read(fd, ret_text->data + ret_text->size, READ_SIZE - 1);
        if (n < 0 && errno != EINTR) {
            return psd_error_set(err, PSD_IO, "the answer of %s: %s", program, strerror(errno));
        }
        ret_text->size += n > 0 ? (size_t)n : 0;
        if (ret_text->size > TEXT_MAX) {
            return psd_error_set(err, PSD_LIMIT, "%s answers with more than %u MB", program,
                                 TEXT_MAX >> 20);
        }
    }
    ret_text->data[ret_text->size] = '\0';
    return PSD_OK;
}

/* Runs a command and takes all that it writes to stdout and stderr. Errors: PSD_IO, PSD_LIMIT,
 * PSD_NOMEM. */
static psd_status_t ask(const char *const *argv, ps_buffer_t *ret_text, int *ret_exit,
                        psd_error_t *err)
{
    int out[2] = {-1, -1};
    sigset_t mask;
    pid_t parent = getpid();
    pid_t pid = -1;
    int status = 0;
    psd_status_t rc = PSD_OK;

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
    rc = read_all(out[0], argv[0], ret_text, err);
    (void)close(out[0]);
    if (rc != PSD_OK) {
        (void)kill(-pid, SIGKILL);
    }
    (void)waitpid(pid, &status, 0);
    *ret_exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return rc;
}

/* The first line of an answer. */
static const char *line_of(ps_buffer_t *text)
{
    char *line = (char *)text->data;

    line[strcspn(line, "\n")] = '\0';
    return line;
}

static psd_status_t say_missing(const char *program, const char *package, psd_error_t *err)
{
    return psd_error_set(err, PSD_FAILED, "%s is not installed here (Debian: %s)", program,
                         package);
}

static psd_status_t check_mpi(ps_buffer_t *text, psd_error_t *err)
{
    static const char *const ARGV[] = {"mpirun", "--version", NULL};
    int code = 0;
    psd_status_t rc = ask(ARGV, text, &code, err);
    const char *at = NULL;

    if (rc != PSD_OK || code == PS_EXIT_NO_PROGRAM) {
        return rc != PSD_OK ? rc : say_missing("mpirun", "openmpi-bin", err);
    }
    at = strstr((const char *)text->data, "(Open MPI) ");
    if (at == NULL || at[11] != '4') {
        return psd_error_set(err, PSD_UNSUPPORTED, "mpirun is \"%.120s\"; allowed: Open MPI 4",
                             line_of(text));
    }
    return PSD_OK;
}

static psd_status_t check_slurm(ps_buffer_t *text, psd_error_t *err)
{
    static const char *const VERSION[] = {"srun", "--version", NULL};
    static const char *const PING[] = {"scontrol", "ping", NULL};
    const char *line = NULL;
    const char *digits = NULL;
    int code = 0;
    psd_status_t rc = ask(VERSION, text, &code, err);

    if (rc != PSD_OK || code == PS_EXIT_NO_PROGRAM) {
        return rc != PSD_OK ? rc : say_missing("srun", "slurm-client", err);
    }
    line = line_of(text);
    if (code != 0) { /* it has no settings, or another fault of its own */
        return psd_error_set(err, PSD_FAILED, "srun does not start: %.200s", line);
    }
    digits = strpbrk(line, "0123456789");
    if (strncmp(line, "slurm", 5) != 0 || digits == NULL || strtod(digits, NULL) < SLURM_FROM) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "srun is \"%.120s\"; allowed: Slurm 20.11 and later", line);
    }
    rc = ask(PING, text, &code, err);
    if (rc == PSD_OK && code != 0) {
        rc = psd_error_set(err, PSD_FAILED, "Slurm does not answer: %.200s", line_of(text));
    }
    return rc;
}

static psd_status_t check_ssh(const ps_launch_t *self, ps_buffer_t *text, psd_error_t *err)
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
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    if (self->kind == PS_LAUNCH_MPI) {
        return check_mpi(&text, err);
    }
    if (self->kind == PS_LAUNCH_SLURM) {
        return check_slurm(&text, err);
    }
    return self->kind == PS_LAUNCH_SSH ? check_ssh(self, &text, err) : PSD_OK;
}

/* ---- hosts of Slurm ---- */

/* The value of the next NodeAddr= at or after *at, which moves past it. false: none. */
static bool next_node(const char **at, char ret_address[PS_HOST_SIZE])
{
    static const char FIELD[] = " NodeAddr=";
    const char *found = strstr(*at, FIELD);
    size_t size = 0;

    if (found == NULL) {
        return false;
    }
    found += sizeof FIELD - 1;
    size = strcspn(found, " \n");
    (void)snprintf(ret_address, PS_HOST_SIZE, "%.*s", (int)size, found);
    *at = found + size;
    return true;
}

static psd_status_t no_node(psd_error_t *err)
{
    return psd_error_set(err, PSD_FAILED, "scontrol names no address of the allocation's nodes");
}

/* The nodes of an allocation; several of them may be one address. */
static psd_status_t take_nodes(const char *text, ps_hosts_t *ret_hosts, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t list = {0};
    char address[PS_HOST_SIZE];

    while (next_node(&text, address)) {
        char word[PS_HOST_SIZE + 2];

        (void)snprintf(word, sizeof word, ",%s,", address);
        if (list.size > 0 && strstr((const char *)list.data, word) != NULL) {
            continue;
        }
        if (!ps_buffer_print(&list, "%s", list.size == 0 ? word : word + 1)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for hosts");
        }
    }
    return list.size == 0 ? no_node(err)
                          : ps_hosts_parse(ret_hosts, (const char *)list.data + 1, err);
}

/* Of the nodes of a whole site one is enough: the first one that is another host, else one
 * that is this host. Nodes whose names do not resolve are passed over. */
static psd_status_t take_far_node(const char *text, ps_hosts_t *ret_hosts, psd_error_t *err)
{
    char address[PS_HOST_SIZE];
    char last[PS_HOST_SIZE] = "";
    bool far = false;

    while (!far && next_node(&text, address)) {
        PSD_AUTO(ps_hosts_done) ps_hosts_t one = {0};
        char own[PS_ADDRESS_SIZE];
        const char *other = "";

        if (strcmp(address, last) == 0 || ps_hosts_parse(&one, address, NULL) != PSD_OK ||
            ps_address_to(&one, own, &other, NULL) != PSD_OK) {
            continue;
        }
        far = !ps_address_is_local(own);
        (void)snprintf(last, sizeof last, "%s", address);
    }
    return last[0] == '\0' ? no_node(err) : ps_hosts_parse(ret_hosts, last, err);
}

psd_status_t ps_launch_read_slurm(ps_hosts_t *ret_hosts, psd_error_t *err)
{
    const char *nodes = getenv("SLURM_JOB_NODELIST");
    /* Outside of an allocation Slurm may choose any node. */
    const char *const argv[] = {"scontrol", "-o", "show", "node", nodes, NULL};
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    int code = 0;
    psd_status_t rc = ask(argv, &text, &code, err);

    if (rc == PSD_OK && code != 0) {
        rc = psd_error_set(err, PSD_FAILED, "scontrol show node: %.200s", line_of(&text));
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return nodes != NULL ? take_nodes((const char *)text.data, ret_hosts, err)
                         : take_far_node((const char *)text.data, ret_hosts, err);
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
