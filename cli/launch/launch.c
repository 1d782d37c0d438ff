/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of launchers. */
#include "cli/launch/launch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "cli/launch/exec.h"
#include "transport/threads/clock.h"

void ps_launch_done(ps_launch_t *self)
{
    ps_hosts_done(&self->hosts);
    ps_words_done(&self->variables);
    *self = (ps_launch_t){0};
}

const char *ps_launch_engine(const ps_launch_t *self)
{
    static const char *const ENGINES[] = {"", "ssh", "mpirun", "srun", "kubectl", "yarn"};

    return ENGINES[self->kind];
}

uint32_t ps_launch_engines(const ps_launch_t *self)
{
    return self->kind == PS_LAUNCH_SSH ? self->n : 1;
}

bool ps_launch_reads(const ps_launch_t *self)
{
    return self->kind == PS_LAUNCH_SSH || self->kind == PS_LAUNCH_SLURM;
}

const char *ps_launch_place(const ps_launch_t *self, uint32_t rank)
{
    const ps_host_t *host = self->kind == PS_LAUNCH_SSH ? ps_hosts_of(&self->hosts, rank) : NULL;

    return host == NULL ? ps_launch_engine(self) : host->name;
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a launcher");
}

psd_status_t ps_launch_settle(ps_launch_t *self, psd_error_t *err)
{
    uint64_t id = 0;
    psd_status_t rc = ps_random(&id, sizeof id, err);
    ssize_t n = 0;

    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(self->id, sizeof self->id, "%016" PRIx64, id);
    if (self->pscli[0] == '\0') {
        n = readlink("/proc/self/exe", self->pscli, sizeof self->pscli - 1);
        if (n <= 0) {
            return psd_error_set(err, PSD_IO, "the path of pscli: %s", strerror(errno));
        }
        self->pscli[n] = '\0';
    }
    return getcwd(self->dir, sizeof self->dir) != NULL
               ? PSD_OK
               : psd_error_set(err, PSD_IO, "the working directory: %s", strerror(errno));
}

/* ---- the environment ---- */

psd_status_t ps_launch_set(ps_launch_t *self, const char *name, const char *value, psd_error_t *err)
{
    const size_t size = strlen(name);

    for (size_t i = 0; i < self->variables.n; i++) {
        char *item = self->variables.items[i];

        if (strncmp(item, name, size) == 0 && item[size] == '=') {
            ps_free(item);
            self->variables.items[i] = self->variables.items[--self->variables.n];
            self->variables.items[self->variables.n] = NULL;
            break;
        }
    }
    return ps_words_add(&self->variables, "%s=%s", name, value) ? PSD_OK : no_memory(err);
}

psd_status_t ps_launch_export(const ps_launch_t *self, psd_error_t *err)
{
    /* A rank that pscli itself has is nobody else's. */
    bool ok = unsetenv("PSD_WORKER") == 0;

    for (size_t i = 0; ok && self->kind == PS_LAUNCH_MPI && i < self->variables.n; i++) {
        const char *item = self->variables.items[i];
        char name[PS_ENV_NAME_SIZE];

        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(item, "="), item);
        ok = setenv(name, strchr(item, '=') + 1, 1) == 0;
    }
    return ok ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for the environment");
}

/* What only this process, or one worker, has. */
static bool is_own(const char *name)
{
    static const char *const NAMES[] = {"PSD_RUNTIME_DIR", "PSD_WORKER", "PSD_WORKERS",
                                        "PSD_DATA_DIR",    "PSD_CONFIG", NULL};

    for (size_t i = 0; NAMES[i] != NULL; i++) {
        if (strcmp(name, NAMES[i]) == 0) {
            return true;
        }
    }
    return false;
}

psd_status_t ps_launch_take_environment(ps_launch_t *self, const char *more, psd_error_t *err)
{
    static const char *const PREFIXES[] = {"PSD_", "DMLC_", "PS_", "LD_LIBRARY_PATH", NULL};
    char name[PS_ENV_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; PREFIXES[i] != NULL; i++) {
        for (size_t at = 0; rc == PSD_OK && ps_env_next(environ, &at, PREFIXES[i], name);) {
            if (!is_own(name)) {
                rc = ps_launch_set(self, name, getenv(name), err);
            }
        }
    }
    while (rc == PSD_OK && more != NULL && *more != '\0') {
        size_t size = strcspn(more, ",");

        (void)snprintf(name, sizeof name, "%.*s", (int)size, more);
        rc = getenv(name) == NULL ? psd_error_set(err, PSD_USAGE, "--env: %s is not set", name)
                                  : ps_launch_set(self, name, getenv(name), err);
        more += size + (more[size] == ',' ? 1 : 0);
    }
    return rc;
}

/* ---- the commands ---- */

static bool add_all(ps_words_t *to, const char *const *words)
{
    bool ok = true;

    for (size_t i = 0; ok && words[i] != NULL; i++) {
        ok = ps_words_add(to, "%s", words[i]);
    }
    return ok;
}

/* "pscli worker exec … -- PROGRAM ARGS" */
static bool add_helper(const ps_launch_t *self, bool to_paste, ps_words_t *to)
{
    bool ok = ps_words_add(to, "%s", self->pscli) && ps_words_add(to, "worker") &&
              ps_words_add(to, "exec");

    if (ok && !to_paste) {
        ok = ps_words_add(to, "--launch") && ps_words_add(to, "%s", self->id) &&
             (!ps_launch_reads(self) || ps_words_add(to, "--stdin"));
    }
    return ok && ps_words_add(to, "--") && add_all(to, self->argv);
}

/* What a shell on the other host runs, as one word. */
static bool add_remote(const ps_launch_t *self, uint32_t rank, bool to_paste, ps_words_t *to)
{
    PSD_AUTO(ps_words_done) ps_words_t words = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t line = {0};
    bool ok = true;

    if (to_paste) {
        ok = ps_buffer_print(&line, "cd ") && ps_quote(&line, self->dir) &&
             ps_buffer_print(&line, " && ") && ps_words_add(&words, "env");
        for (size_t i = 0; ok && i < self->variables.n; i++) {
            ok = ps_words_add(&words, "%s", self->variables.items[i]);
        }
        ok = ok && ps_words_add(&words, "PSD_WORKER=%" PRIu32, rank);
    }
    return ok && ps_buffer_print(&line, "exec ") && add_helper(self, to_paste, &words) &&
           ps_quote_all(&line, (const char *const *)words.items) &&
           ps_words_add(to, "%s", (const char *)line.data);
}

static bool add_ssh(const ps_launch_t *self, uint32_t rank, bool to_paste, ps_words_t *to)
{
    static const char *const OPTIONS[] = {"-T",
                                          "-o",
                                          "BatchMode=yes",
                                          "-o",
                                          "ConnectTimeout=5",
                                          "-o",
                                          "ServerAliveInterval=5",
                                          "-o",
                                          "ServerAliveCountMax=3",
                                          "--", /* no host is an option */
                                          NULL};

    return ps_words_split(to, self->ssh) && add_all(to, OPTIONS) &&
           ps_words_add(to, "%s", ps_hosts_of(&self->hosts, rank)->name) &&
           add_remote(self, rank, to_paste, to);
}

static bool add_hosts(const ps_launch_t *self, ps_words_t *to)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t list = {0};
    bool ok = true;

    for (size_t i = 0; ok && i < self->hosts.n; i++) {
        const ps_host_t *host = &self->hosts.items[i];

        if (host->slots > 0) {
            ok = ps_buffer_print(&list, "%s%s:%" PRIu32, list.size == 0 ? "" : ",", host->name,
                                 host->slots);
        }
    }
    return ok && (list.size == 0 ||
                  (ps_words_add(to, "--host") && ps_words_add(to, "%s", (const char *)list.data)));
}

/* Open MPI's. Without orte_enable_recovery it ends all ranks when one dies. */
static bool add_mpirun(const ps_launch_t *self, bool to_paste, ps_words_t *to)
{
    static const char *const OPTIONS[] = {"--mca", "orte_enable_recovery", "1", NULL};
    /* The threads of a rank need more than one core, and one of them looks for messages. */
    static const char *const OF_RANKS[] = {
        "--mca", "hwloc_base_binding_policy", "none", "--mca", "mpi_yield_when_idle", "1", NULL};
    bool ok = ps_words_add(to, "mpirun") && ps_words_add(to, "-n") &&
              ps_words_add(to, "%" PRIu32, self->n) && add_hosts(self, to) && add_all(to, OPTIONS);

    if (ok && self->by_ranks) {
        ok = add_all(to, OF_RANKS);
    }
    if (ok && !to_paste) {
        ok = ps_words_add(to, "--tag-output"); /* record.h says why */
    }
    if (ok && geteuid() == 0) {
        ok = ps_words_add(to, "--allow-run-as-root");
    }
    if (ok && self->oversubscribe) {
        ok = ps_words_add(to, "--oversubscribe");
    }
    ok = ok && ps_words_add(to, "--wdir") && ps_words_add(to, "%s", self->dir) &&
         (self->more == NULL || ps_words_split(to, self->more));
    for (size_t i = 0; ok && i < self->variables.n; i++) {
        const char *item = self->variables.items[i];
        size_t size = to_paste ? strlen(item) : strcspn(item, "="); /* ps_launch_export has it */

        ok = ps_words_add(to, "-x") && ps_words_add(to, "%.*s", (int)size, item);
    }
    return ok && add_helper(self, to_paste, to);
}

/* Without --kill-on-bad-exit=0 a site may have set that one task's failure ends all. */
static bool add_srun(const ps_launch_t *self, bool to_paste, ps_words_t *to)
{
    static const char *const OPTIONS[] = {"--kill-on-bad-exit=0", "--wait=0", "--input=all",
                                          "--export=ALL", NULL};
    bool ok = true;

    if (to_paste) {
        ok = ps_words_add(to, "env");
        for (size_t i = 0; ok && i < self->variables.n; i++) {
            ok = ps_words_add(to, "%s", self->variables.items[i]);
        }
    }
    ok = ok && ps_words_add(to, "srun") && ps_words_add(to, "-n") &&
         ps_words_add(to, "%" PRIu32, self->n) && add_all(to, OPTIONS);
    if (ok && self->oversubscribe) {
        ok = ps_words_add(to, "--overcommit");
    }
    return ok && ps_words_add(to, "-D") && ps_words_add(to, "%s", self->dir) &&
           (self->more == NULL || ps_words_split(to, self->more)) && add_helper(self, to_paste, to);
}

psd_status_t ps_launch_command(const ps_launch_t *self, uint32_t rank, bool to_paste,
                               ps_words_t *ret_words, psd_error_t *err)
{
    bool ok = true;

    if (self->kind == PS_LAUNCH_SSH) {
        ok = add_ssh(self, rank, to_paste, ret_words);
    } else if (self->kind == PS_LAUNCH_MPI) {
        ok = add_mpirun(self, to_paste, ret_words);
    } else {
        ok = add_srun(self, to_paste, ret_words);
    }
    return ok ? PSD_OK : no_memory(err);
}

psd_status_t ps_launch_settings(const ps_launch_t *self, uint32_t rank, ps_buffer_t *to,
                                psd_error_t *err)
{
    PSD_AUTO(ps_words_done) ps_words_t words = {0};
    bool ok = true;

    for (size_t i = 0; ok && i < self->variables.n; i++) {
        ok = ps_words_add(&words, "%s", self->variables.items[i]);
    }
    if (ok && self->kind == PS_LAUNCH_SSH) {
        ok = ps_words_add(&words, "PSD_WORKER=%" PRIu32, rank);
    }
    ok = ok &&
         ps_exec_settings(to, self->dir, &words, self->restarts && self->kind == PS_LAUNCH_SLURM);
    return ok ? PSD_OK : no_memory(err);
}
