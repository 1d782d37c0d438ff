/* SPDX-License-Identifier: Apache-2.0 */
/* check - for tests that are plain programs: a failed check prints place and
 * reason, and makes its function return false. */
#ifndef PS_TESTS_CHECK_H
#define PS_TESTS_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            (void)fprintf(stderr, "%s:%d: %s: not true: %s\n", __FILE__, __LINE__, __func__, \
                          #condition);                                                       \
            return false;                                                                    \
        }                                                                                    \
    } while (0)

/* call is PSD_OK; err is the psd_error_t that it was given, emptied after. */
#define CHECK_OK(call, err)                                                                   \
    do {                                                                                      \
        if ((call) != PSD_OK) {                                                               \
            (void)fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, __func__, #call, \
                          psd_error_text(err));                                               \
            return false;                                                                     \
        }                                                                                     \
        psd_error_clear(err);                                                                 \
    } while (0)

/* call ends with status and its text holds `part`. */
#define CHECK_ERROR(call, status, part, err)                                                   \
    do {                                                                                       \
        psd_status_t check_got = (call);                                                       \
        if (check_got != (status) || strstr(psd_error_text(err), part) == NULL) {              \
            (void)fprintf(stderr, "%s:%d: %s: %s: got %s: %s\n", __FILE__, __LINE__, __func__, \
                          #call, psd_status_name(check_got), psd_error_text(err));             \
            return false;                                                                      \
        }                                                                                      \
        psd_error_clear(err);                                                                  \
    } while (0)

/* A step of main, unless one before has failed; it needs a `bool good`. */
#define RUN(call)                                                          \
    do {                                                                   \
        if (good) {                                                        \
            good = (call);                                                 \
            (void)fprintf(stderr, "%s %s\n", good ? "ok" : "FAIL", #call); \
        }                                                                  \
    } while (0)
#endif
