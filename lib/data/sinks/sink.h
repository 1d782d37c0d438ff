/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/data/sinks: samples written in formats without lines
 *
 * It is       A sink for each such format, and the spool of bytes that must
 *             wait.
 * It uses     records, streams, lib/base.
 * It ignores  How the format is read (formats), and the writer that holds a sink
 *             (feed).
 * Start at    sink.h, then sink_uci.c, the shortest.
 */
/*
 * ps_sink - writes samples of formats without lines
 *
 * What     Functions of a format that has records, or several files: they take
 *          one sample after another, and rename the files into place when they
 *          are complete.
 * Owner    a sink belongs to the caller that opened it
 * Threads  a sink is confined to one thread
 * Errors   as ps_file_out, and PSD_INVALID
 */
#ifndef PS_DATA_SINK_H
#define PS_DATA_SINK_H

#include "data/streams/samples.h"

typedef struct ps_sink ps_sink_t; /* each format has its own */

typedef struct ps_sink_kind {
    psd_status_t (*open)(const char *path, ps_sink_t **ret_sink, psd_error_t *err);
    /* PSD_INVALID: the format cannot hold sample i, or not beside those before;
     * nothing is changed. After any other error the sink only closes. */
    psd_status_t (*write)(ps_sink_t *self, const psd_samples_t *samples, size_t i,
                          psd_error_t *err);
    psd_status_t (*commit)(ps_sink_t *self, psd_error_t *err);
    /* Removes files that were not committed. Takes NULL, nulls it. */
    void (*close)(ps_sink_t **self_p);
} ps_sink_kind_t;

extern const ps_sink_kind_t ps_sink_binary;
extern const ps_sink_kind_t ps_sink_uci;
extern const ps_sink_kind_t ps_sink_proto;
extern const ps_sink_kind_t ps_sink_proto_instance;
extern const ps_sink_kind_t ps_sink_proto_input;
#endif
