/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that have a safer form. System headers use some of these words
 * themselves, so #pragma poison cannot be forced on every source. Instead,
 * tests/lint/check_calls.py reads this list and searches the sources of lib,
 * daemon, cli and examples for the words. A file may also include this header,
 * as its last.
 *
 *   strcpy strcat ...    snprintf, memcpy with a checked length,
 * ps_buffer_print atoi atof ...        ps_text_u64, ps_text_i64, ps_text_f64
 *   localtime ctime ...  localtime_r, gmtime_r, strftime
 *   system exit          posix_spawn; return a status to main
 *   usleep               wait for an event (allowed in tests/bench)
 *   malloc calloc ...    ps_alloc and its siblings (not asked of examples)
 */
#ifndef PS_BASE_BANNED_H
#define PS_BASE_BANNED_H

#pragma GCC poison strcpy strcat sprintf vsprintf strncpy strncat strtok gets
#pragma GCC poison atoi atol atoll atof
#pragma GCC poison localtime gmtime asctime ctime system exit usleep rand srand
#pragma GCC poison malloc calloc realloc strdup strndup asprintf vasprintf
#endif
