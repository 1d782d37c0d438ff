/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_status - the list of every status that a call can return
 *
 * What     Each row makes an enum constant, a text, the wire code, the E-code
 *          and the exit code of pscli. Numbers are explicit, are sent on the
 *          wire, and are never reused.
 * Shape    X(NAME, number, "E-code", exit code, "text", "what to do")
 */
#ifndef PSD_STATUS_H
#define PSD_STATUS_H

#define PSD_STATUS_MAP(X)                                                                         \
    X(OK, 0, "E0000", 0, "ok", "nothing to do")                                                   \
    X(FAILED, 1, "E1000", 1, "operation failed",                                                  \
      "read the message; it names the place and the reason")                                      \
    X(INVALID, 2, "E1001", 2, "argument outside its documented range",                            \
      "the message names the argument, its value and what is allowed")                            \
    X(NOMEM, 3, "E1002", 1, "memory could not be allocated",                                      \
      "free memory on the machine, or lower the limits in psd.yaml")                              \
    X(IO, 4, "E1003", 1, "operating system call failed",                                          \
      "the message carries the system's own reason; check disk and permissions")                  \
    X(PROTO, 5, "E1004", 1, "peer broke the protocol",                                            \
      "check that both sides are psd of compatible versions")                                     \
    X(LIMIT, 6, "E1005", 1, "a configured limit would be exceeded",                               \
      "send less at once, or raise the limit named in the message")                               \
    X(UNSUPPORTED, 7, "E1006", 2, "not supported", "the message names what is supported instead") \
    X(SHAPE, 16, "E2001", 1, "row and delta differ in length",                                    \
      "push as many values as the table has columns")                                             \
    X(RANGE, 17, "E2002", 1, "row or column outside the table",                                   \
      "\"pscli table inspect NAME\" shows rows and cols")                                         \
    X(NO_TABLE, 18, "E2003", 5, "table does not exist",                                           \
      "\"pscli table list\" shows those that do")                                                 \
    X(TABLE_EXISTS, 19, "E2004", 6, "table exists already",                                       \
      "take another name, open that table, or drop it first")                                     \
    X(NOT_FINITE, 20, "E2005", 1, "value is not a finite number",                                 \
      "clip or drop NaN and infinite deltas before the push")                                     \
    X(ROWS_LOST, 21, "E2006", 6, "rows were lost when the node restarted",                        \
      "restart the job; a new client starts from the initial values")                             \
    X(TYPE, 22, "E2007", 1, "value is not of the table's type",                                   \
      "\"pscli table inspect NAME\" shows the type")                                              \
    X(DAMAGED, 23, "E2008", 9, "stored data is damaged",                                          \
      "restore the file named in the message from a backup")                                      \
    X(NO_CHECKPOINT, 24, "E2009", 5, "checkpoint does not exist",                                 \
      "\"pscli checkpoint list\" shows those that do")                                            \
    X(CHECKPOINT_EXISTS, 25, "E2010", 6, "checkpoint exists already",                             \
      "\"pscli checkpoint drop\" it, or choose another name")                                     \
    X(CONNECT, 32, "E3001", 3, "cannot connect",                                                  \
      "is psd running there? --endpoint names the address")                                       \
    X(DEADLINE, 33, "E3002", 7, "deadline passed, outcome unknown",                               \
      "the message names what was waited for; raise --timeout or check there")                    \
    X(VERSION, 34, "E3003", 3, "protocol versions do not overlap",                                \
      "install the same version on both sides")                                                   \
    X(CLUSTER, 35, "E3004", 3, "peer belongs to another cluster",                                 \
      "check --endpoint; the message names both clusters")                                        \
    X(INCARNATION, 36, "E3005", 3, "node is not the one asked for",                               \
      "the node was restarted; open a new client")                                                \
    X(MOVED, 37, "E3006", 1, "partition lives elsewhere",                                         \
      "the library follows it and retries; if a program sees this, it is a bug")                  \
    X(GAP, 38, "E3007", 1, "an earlier push is missing",                                          \
      "the library resends it; if a program sees this, it is a bug")                              \
    X(BUSY, 39, "E3008", 1, "another operation is in progress",                                   \
      "the message names it; retry when it is done")                                              \
    X(NO_SESSION, 40, "E3009", 1, "no session on this connection",                                \
      "the library repeats the handshake")                                                        \
    X(CLOSED, 41, "E3010", 1, "client is closed or broken",                                       \
      "open a new client; the first error says why this one broke")                               \
    X(DENIED, 42, "E3011", 4, "not allowed",                                                      \
      "the message says what forbids it and, where possible, how to allow it")                    \
    X(NO_NODE, 43, "E3012", 5, "node does not exist", "\"pscli node list\" shows those that do")  \
    X(STOPPING, 44, "E3013", 3, "node is stopping", "wait until it is back, or use another node") \
    X(KEYS, 45, "E3014", 1, "list of keys is no longer cached",                                   \
      "the library resends it; if a program sees this, it is a bug")                              \
    X(NODE_HELD, 46, "E3015", 6, "node cannot be removed now",                                    \
      "the message says why: drain it, stop it, or use --force if it is lost")                    \
    X(FEW_NODES, 47, "E3016", 6, "not enough nodes",                                              \
      "start the node that is named, or more nodes (psd --join), or lower --replicas")            \
    X(NO_JOB, 48, "E4001", 5, "job does not exist", "\"pscli job list\" shows those that do")     \
    X(NO_WORKER, 49, "E4002", 5, "worker does not exist",                                         \
      "\"pscli worker list JOB\" shows those that do")                                            \
    X(WORKER_EXISTS, 50, "E4003", 6, "worker of that rank is already running",                    \
      "use another rank, or wait until the old one is declared lost")                             \
    X(JOB_STOPPED, 51, "E4004", 6, "job was stopped",                                             \
      "an operator stopped it; start it under a new name to run again")                           \
    X(WORKER_LOST, 52, "E4005", 6, "worker was declared lost",                                    \
      "it was silent for too long; join again as a new worker")                                   \
    X(NOT_JOINED, 53, "E4006", 6, "client is not a worker of a job", "call psd_join first")       \
    X(JOB_MISMATCH, 54, "E4007", 6, "job runs with other settings",                               \
      "all workers of a job must agree on max_delay and workers")                                 \
    X(USAGE, 64, "E5001", 2, "command line not understood", "--help shows examples")              \
    X(CONFIG, 65, "E5002", 2, "configuration not understood",                                     \
      "psd --print-config shows every key; conf/psd.yaml explains them")                          \
    X(FOREIGN, 66, "E5003", 6, "data directory belongs to another psd",                           \
      "the message says what is wrong with it")                                                   \
    X(PARTIAL, 67, "E5004", 8, "partly done", "the message says how much was done")               \
    X(INTERRUPTED, 68, "E5005", 130, "interrupted", "run it again")                               \
    X(HELD, 69, "E5006", 6, "data directory is in use",                                           \
      "another psd runs there; stop it, or give this one a --data-dir")                           \
    X(NOT_LEADER, 80, "E3017", 3, "node is not the registry",                                     \
      "the message names the nodes that were asked; start the one that has the registry")         \
    X(SPLIT, 81, "E3018", 1, "a bundle is not taken as one",                                      \
      "the library sends its pushes one by one; a program sees this only on a bug")

#define PSD_STATUS_ENUM(name, number, code, exit, text, hint) PSD_##name = number,
typedef enum psd_status { PSD_STATUS_MAP(PSD_STATUS_ENUM) } psd_status_t;
#undef PSD_STATUS_ENUM

#if defined(__GNUC__)
#define PSD_MUST_CHECK __attribute__((warn_unused_result))
#define PSD_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#define PSD_EXPORT __attribute__((visibility("default")))
#else
#define PSD_MUST_CHECK
#define PSD_PRINTF(format_at, first_at)
#define PSD_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The constant's name without PSD_ ("NO_TABLE"); "?" for an unknown number. */
PSD_EXPORT const char *psd_status_name(psd_status_t status);
/* The text of the list; never NULL. */
PSD_EXPORT const char *psd_status_text(psd_status_t status);
/* The stable code ("E2003"); "E0001" for an unknown number. */
PSD_EXPORT const char *psd_status_code(psd_status_t status);
/* What a person can do about it; never NULL. */
PSD_EXPORT const char *psd_status_hint(psd_status_t status);
/* The exit code that pscli ends with. */
PSD_EXPORT int psd_status_exit(psd_status_t status);

/* Why a call failed: a status and one line of text. The caller owns it and may
 * reuse it: every call clears it first. It is opaque, so that it may grow. */
typedef struct psd_error psd_error_t;

/* A new, empty error; NULL when there is no memory (every call takes NULL). */
PSD_EXPORT psd_error_t *psd_error_new(void);
/* Frees *self_p and nulls it; takes NULL and pointers to NULL. */
PSD_EXPORT void psd_error_destroy(psd_error_t **self_p);
/* Empties it for the next call. NULL is ignored. */
PSD_EXPORT void psd_error_clear(psd_error_t *self);
/* PSD_OK for NULL or an empty error. */
PSD_EXPORT psd_status_t psd_error_status(const psd_error_t *self);
/* The line of text; "" for NULL or an empty error. Borrowed until the error
 * changes. */
PSD_EXPORT const char *psd_error_text(const psd_error_t *self);
/* Sets status and text and returns the status. The first cause wins: an error
 * that is already set keeps its status and text, but the call returns the new
 * status. */
PSD_EXPORT psd_status_t psd_error_set(psd_error_t *self, psd_status_t status, const char *format,
                                      ...) PSD_PRINTF(3, 4);
/* Puts context in front of the text ("context: text") and returns status. */
PSD_EXPORT psd_status_t psd_error_wrap(psd_error_t *self, psd_status_t status, const char *format,
                                       ...) PSD_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
