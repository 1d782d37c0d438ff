/* SPDX-License-Identifier: Apache-2.0 */
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

#include "data/formats/format.h"

typedef struct ps_sink ps_sink_t; /* each format has its own */

struct ps_sink_kind {
    psd_status_t (*open)(const char *path, ps_sink_t **ret_sink, psd_error_t *err);
    /* PSD_INVALID: the format cannot hold sample i, or not beside those before;
     * nothing is changed. After any other error the sink only closes. */
    psd_status_t (*write)(ps_sink_t *self, const psd_samples_t *samples, size_t i,
                          psd_error_t *err);
    psd_status_t (*commit)(ps_sink_t *self, psd_error_t *err);
    /* Removes files that were not committed. Takes NULL, nulls it. */
    void (*close)(ps_sink_t **self_p);
};

extern const ps_sink_kind_t ps_sink_binary;
extern const ps_sink_kind_t ps_sink_uci;
extern const ps_sink_kind_t ps_sink_proto;
extern const ps_sink_kind_t ps_sink_proto_instance;
extern const ps_sink_kind_t ps_sink_proto_input;
#endif
