/* SPDX-License-Identifier: Apache-2.0 */
/* psd, the daemon: runs what the command line asks for, and sets the exit code. */
#include <malloc.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/journal.h"
#include "server/quorum/replica.h"
#include "daemon/options.h"
#include "daemon/run.h"

#define KEEP_BYTES (128 << 20) /* free memory that the allocator keeps */
#define MAPPED_FROM                                         \
    (32 << 20) /* blocks from here on are mappings; glibc's \
                  greatest */

/* Frames of values come and go by the thousand. By default the allocator
 * gives each back to the kernel and maps it again, and clearing those pages
 * costs more than all work on the values. */
static void keep_freed_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED_FROM);
    (void)mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
}

/* One line on stderr: "psd: E5002 …". */
static int fail(psd_status_t status, const psd_error_t *err)
{
    const char *text = psd_error_text(err);

    (void)fprintf(stderr, "%spsd: %s %s\n", ps_run_is_journal() ? "<3>" : "",
                  psd_status_code(status), text[0] == '\0' ? psd_status_text(status) : text);
    return psd_status_exit(status);
}

static psd_status_t print_config(const ps_config_t *config, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    if (!ps_config_print(config, &text)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to print");
    }
    if (fwrite(text.data, 1, text.size, stdout) != text.size || fflush(stdout) != 0) {
        return psd_error_set(err, PSD_IO, "cannot write to stdout");
    }
    return PSD_OK;
}

/* "2026-11-22T06:52:01.123Z "; a journal has times of its own. */
static void print_time(char ret[PS_LOG_STAMP_SIZE])
{
    uint64_t now_ms = ps_unix_ms();
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm parts = {0};
    size_t size = 0;

    if (gmtime_r(&seconds, &parts) != NULL) {
        size = strftime(ret, PS_LOG_STAMP_SIZE, "%Y-%m-%dT%H:%M:%S", &parts);
    }
    (void)snprintf(ret + size, PS_LOG_STAMP_SIZE - size, ".%03uZ ", (unsigned)(now_ms % 1000));
}

static psd_status_t act(const ps_opts_t *options, psd_error_t *err)
{
    PSD_AUTO(ps_config_done) ps_config_t config = {0};
    psd_status_t rc = ps_options_config(options, &config, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_opts_on(options, "print-config")) {
        return print_config(&config, err);
    }
    if (ps_opts_on(options, "check-config")) {
        (void)printf("configuration ok%s%s\n", config.file == NULL ? "" : ": ",
                     config.file == NULL ? "" : config.file);
        return PSD_OK;
    }
    keep_freed_memory();
    ps_log_open(STDERR_FILENO, PS_LOG_WARN, ps_run_is_journal());
    ps_log_set_stamp(ps_run_is_journal() ? NULL : print_time);
    if (ps_run_is_journal()) {
        ps_journal_use();
    }
    return ps_run(options, &config, err);
}

int main(int argc, char **argv)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_opts_done) ps_opts_t options = {0};
    psd_status_t rc = ps_options_parse(argc, argv, &options, err);

    if (rc == PSD_OK && ps_opts_on(&options, "help")) {
        (void)fputs(ps_options_help(), stdout);
        return 0;
    }
    if (rc == PSD_OK && ps_opts_on(&options, "version")) {
        (void)puts("psd " PSD_RELEASE);
        return 0;
    }
    if (rc == PSD_OK) {
        rc = act(&options, err);
    }
    return rc == PSD_OK ? 0 : fail(rc, err);
}
