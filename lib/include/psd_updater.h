/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_updater - the interface of plug-ins: write your own updater
 *
 * What     A shared object NAME.so in the directory that the operator allows
 *          (updaters.dir) exports one function, psd_updater_plugin. Tables then
 *          accept `--updater plugin:NAME` or `plugin:NAME:TEXT`; only the
 *          plug-in interprets TEXT.
 * Shape    State is n_states arrays beside the values, of the same type, zero
 *          at first: state k of value i is state[k * state_stride + i].
 * Owner    close frees what open made; the psd_updater_t and all that it points
 *          at must stay valid until the process ends.
 * Threads  Several threads call open, close and apply at the same time. The
 *          rows of one partition share what open made, and no call may change
 *          it.
 * Trust    A plug-in runs inside the daemon, with all of its rights. It must
 *          compute the same bytes on every node: the copies of a table stay
 *          equal because each of them applies the same deltas.
 */
#ifndef PSD_UPDATER_H
#define PSD_UPDATER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PSD_UPDATER_ABI 2 /* of this header; psd refuses any other */

/* Types of values. */
#define PSD_UPDATER_I32 1
#define PSD_UPDATER_I64 2
#define PSD_UPDATER_F32 3 /* float */
#define PSD_UPDATER_F64 4 /* double */

#define PSD_UPDATER_STATES_MAX 256 /* arrays beside the values */
/* The client that pushed is in no job. */
#define PSD_UPDATER_NO_WORKER UINT32_MAX

typedef struct psd_updater {
    uint32_t abi;     /* PSD_UPDATER_ABI */
    uint32_t size;    /* sizeof(psd_updater_t) */
    const char *name; /* as the file: NAME of NAME.so */
    uint32_t types;   /* sum of 1 << PSD_UPDATER_F32 …: the types it takes */
    uint32_t sparse;  /* 1: a delta of zero leaves a value of zero with states
                         of zero unchanged, so that sparse rows need not store
                         them; 0: tables of dense rows only */
    uint32_t sums;    /* 1: tables may combine the deltas of a clock (clock-sum,
                         clock-mean): apply then gets their sum or mean once,
                         from PSD_UPDATER_NO_WORKER; 0: tables that combine
                         each only */
    /*
     * Prepares the updater for TEXT ("" when there is none). On success it
     * returns 0 and sets *ret_self (which may be NULL). Otherwise it returns
     * another number and writes the reason into ret_reason, at most reason_size
     * bytes with the '\0'. psd also calls it for checks: it must have no side
     * effects.
     */
    int (*open)(uint32_t type, const char *text, void **ret_self, char *ret_reason,
                size_t reason_size);
    void (*close)(void *self);
    /* State arrays beside the values: 0 .. PSD_UPDATER_STATES_MAX. */
    uint32_t (*n_states)(const void *self);
    /* Initializes the state of values whose initial values are not zero. NULL:
     * the state stays zero. */
    void (*begin)(const void *self, const void *values, void *state, size_t state_stride, size_t n);
    /* Applies n deltas to n adjacent values; any n > 0. All pointers are
     * aligned to the type; state is NULL when there is none. worker is the rank
     * of the worker that pushed the deltas, or PSD_UPDATER_NO_WORKER. */
    void (*apply)(const void *self, uint32_t worker, void *values, void *state, size_t state_stride,
                  const void *deltas, size_t n);
} psd_updater_t;

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
/* What the shared object exports. Called once, when the daemon starts. */
const psd_updater_t *
psd_updater_plugin(void);

#ifdef __cplusplus
}
#endif
#endif
