/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads records of one size. */
#include "cli/launch/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "\036psd"
#define CODED_MAX (2 * PS_EXEC_RECORD_TEXT_MAX)
#define HEAD_SIZE (PS_EXEC_RECORD_SIZE - 1 - CODED_MAX)
/* In a record \001\002 is '[', and \001\001 is \001. */
#define ESCAPE '\001'
#define BRACKET '\002'

static size_t encode(const ps_exec_record_t *record, char *to)
{
    size_t n = 0;

    for (size_t i = 0; i < record->size; i++) {
        const char c = record->text[i];

        if (c == '[' || c == ESCAPE) {
            to[n++] = ESCAPE;
        }
        to[n++] = c == '[' ? BRACKET : c;
    }
    return n;
}

static size_t decode(const char *from, size_t n, char to[PS_EXEC_RECORD_TEXT_MAX])
{
    size_t size = 0;

    for (size_t i = 0; i < n && size < PS_EXEC_RECORD_TEXT_MAX; i++) {
        bool escaped = from[i] == ESCAPE && i + 1 < n;

        i += escaped ? 1 : 0;
        to[size++] = (char)(escaped && from[i] == BRACKET ? '[' : from[i]);
    }
    return size;
}

void ps_exec_record_format(const char *id, const ps_exec_record_t *record,
                           char ret_bytes[PS_EXEC_RECORD_SIZE])
{
    char head[HEAD_SIZE + 1];
    size_t n = 0;

    memset(ret_bytes, ' ', PS_EXEC_RECORD_SIZE);
    n = encode(record, ret_bytes + HEAD_SIZE);
    (void)snprintf(head, sizeof head, MARK " %.16s %4" PRIu32 " %c %3zu ", id, record->rank % 10000,
                   (char)record->kind, n % 1000);
    memcpy(ret_bytes, head, strlen(head));
    ret_bytes[PS_EXEC_RECORD_SIZE - 1] = '\n';
}

bool ps_exec_record_parse(const char *id, const char *line, size_t size,
                          ps_exec_record_t *ret_record)
{
    char head[HEAD_SIZE + 1] = "";
    char mark[PS_LAUNCH_ID_SIZE + sizeof MARK + 1];
    uint32_t rank = 0;
    size_t n = 0;
    char kind = 0;

    (void)snprintf(mark, sizeof mark, MARK " %.16s ", id);
    if (size != PS_EXEC_RECORD_SIZE - 1 || memcmp(line, mark, sizeof mark - 1) != 0) {
        return false;
    }
    memcpy(head, line, HEAD_SIZE);
    if (sscanf(head + sizeof mark - 1, "%" SCNu32 " %c %zu", &rank, &kind, &n) != 3 ||
        n > CODED_MAX || strchr("soOeExf", kind) == NULL) {
        return false;
    }
    *ret_record = (ps_exec_record_t){.rank = rank, .kind = (ps_exec_record_kind_t)kind};
    ret_record->size = decode(line + HEAD_SIZE, n, ret_record->text);
    return true;
}
