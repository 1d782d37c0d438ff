/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a command's requests went: --trace, --trace-file, --trace-otlp
 *
 * What     --trace prints a table on stderr (with -o json or jsonl a document), so
 *          that the rows on stdout stay as they are. --trace-file writes a file of
 *          Chrome's trace format, --trace-otlp appends a line of OTLP JSON.
 */
#ifndef PS_CLI_TRACE_OUT_H
#define PS_CLI_TRACE_OUT_H

#include "cli/run/cli.h"
#include "psd/trace.h"

/* A trace for the calls, if an option asks for it; else NULL. Errors: PSD_USAGE, with --watch, or
 * "-" for a file; PSD_IO a file that cannot be written; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_trace_out_new(const ps_cli_t *cli, psd_trace_t **ret_trace,
                                             psd_error_t *err);
/* Shows it in each way that is asked for; nothing for NULL, or when nothing was
 * sent. Errors: PSD_IO naming the file;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_trace_out(const ps_cli_t *cli, const psd_trace_t *trace,
                                         const char *table, psd_error_t *err);
#endif
