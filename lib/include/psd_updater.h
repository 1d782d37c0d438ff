/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_updater - the interface of a plug-in: an updater of your own
 *
 * What     A shared object NAME.so in the directory that the operator allows
 *          (updaters.dir) exports one function, psd_updater_plugin, and tables
 *          then take `--updater plugin:NAME` or `plugin:NAME:TEXT`. TEXT is the
 *          plug-in's own matter.
 * Shape    State is n_states arrays beside the values, of the same type, zero
 *          in the beginning: state k of value i is
 *          state[k * state_stride + i].
 * Owner    What open made is freed by close; the psd_updater_t and all that it
 *          points at stay where they are for good.
 * Threads  open, close and apply are called by several threads at the same
 *          time; what open made is shared by the rows of one partition, and no
 *          call may change it.
 * Trust    A plug-in runs inside the daemon, with all of its rights. The same
 *          bytes must come out on every node: copies of a table are kept equal
 *          by doing the same again.
 */
#ifndef PSD_UPDATER_H
#define PSD_UPDATER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PSD_UPDATER_ABI 1 /* of this header; another one is refused */

/* Types of values. */
#define PSD_UPDATER_I32 1
#define PSD_UPDATER_I64 2
#define PSD_UPDATER_F32 3 /* float */
#define PSD_UPDATER_F64 4 /* double */

#define PSD_UPDATER_STATES_MAX 256 /* arrays beside the values */
/* A client that is in no job pushed. */
#define PSD_UPDATER_NO_WORKER UINT32_MAX

typedef struct psd_updater {
    uint32_t abi;     /* PSD_UPDATER_ABI */
    uint32_t size;    /* sizeof(psd_updater_t) */
    const char *name; /* as the file: NAME of NAME.so */
    uint32_t types;   /* sum of 1 << PSD_UPDATER_F32 … : those it takes */
    uint32_t sparse;  /* 1: a delta of zero leaves a value of zero with states
                         of zero as they are, so that sparse rows need not
                         keep them; 0: tables of dense rows only */
    /*
     * Makes ready what TEXT ("" when there is none) asks for. Returns 0 and
     * sets *ret_self (which may be NULL), or anything else and writes why, at
     * most reason_size bytes with the '\0', into ret_reason. Called for checks
     * too: it must have no effect outside.
     */
    int (*open)(uint32_t type, const char *text, void **ret_self, char *ret_reason,
                size_t reason_size);
    void (*close)(void *self);
    /* State arrays beside the values: 0 .. PSD_UPDATER_STATES_MAX. */
    uint32_t (*n_states)(const void *self);
    /* Makes the state of values that got first values other than zero. NULL:
     * it stays zero. */
    void (*begin)(const void *self, const void *values, void *state, size_t state_stride, size_t n);
    /* Applies n deltas to n neighbouring values; n > 0, any. All pointers are
     * aligned to the type; state is NULL when there is none. worker is the rank
     * in its job of whose deltas they are, or PSD_UPDATER_NO_WORKER. */
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
