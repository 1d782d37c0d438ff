/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_exec_record - what a worker's helper tells pscli, through the launcher's output
 *
 * What     Under ssh, mpirun and srun a helper (exec.h) runs beside each worker. All that it
 *          says travels on its standard output, in records of one size, which is less than a
 *          launcher's own buffers. Each record has the random id of its launch: those of
 *          another launch are no records.
 * Shape    PS_EXEC_RECORD_SIZE bytes: a mark, id, rank, kind, size, text, blanks, '\n'. There is no
 *          '[' in one: mpirun cuts output anywhere and puts "[1,RANK]<stdout>:" in front of
 *          each piece, which is how pscli tells the pieces of ranks apart.
 */
#ifndef PS_CLI_RECORD_H
#define PS_CLI_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PS_EXEC_RECORD_SIZE 512
#define PS_EXEC_RECORD_TEXT_MAX 239
#define PS_LAUNCH_ID_SIZE 17 /* 16 hex digits and '\0' */

typedef enum ps_exec_record_kind {
    PS_EXEC_RECORD_STARTED = 's',  /* "PID HOST": the program runs */
    PS_EXEC_RECORD_OUT_PART = 'o', /* the beginning of a line of stdout … */
    PS_EXEC_RECORD_OUT = 'O',      /* … and its end */
    PS_EXEC_RECORD_ERR_PART = 'e', /* the same of stderr */
    PS_EXEC_RECORD_ERR = 'E',
    PS_EXEC_RECORD_ENDED = 'x', /* "EXIT SIGNAL HOST": the program has ended */
    PS_EXEC_RECORD_FAILED = 'f' /* the helper could not start it, and why */
} ps_exec_record_kind_t;

typedef struct ps_exec_record {
    uint32_t rank;
    ps_exec_record_kind_t kind;
    size_t size;                        /* bytes of the text */
    char text[PS_EXEC_RECORD_TEXT_MAX]; /* no '\n' in it; not terminated */
} ps_exec_record_t;

/* id: PS_LAUNCH_ID_SIZE - 1 digits. */
void ps_exec_record_format(const char *id, const ps_exec_record_t *record,
                           char ret_bytes[PS_EXEC_RECORD_SIZE]);
/* A line without its '\n'. False when it is no record of that launch. */
bool ps_exec_record_parse(const char *id, const char *line, size_t size,
                          ps_exec_record_t *ret_record);
#endif
