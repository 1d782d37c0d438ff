/* SPDX-License-Identifier: Apache-2.0 */
#include "server/state/history_text.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "wire/messages/utf8.h"

#define BY ", by "
#define CUT "..."

/* How much of the text is whole characters, up to most bytes. */
static size_t whole(const char *text, size_t length, size_t most)
{
    size_t at = 0;

    while (at < length) {
        size_t n = ps_utf8_character((const uint8_t *)text + at, length - at);

        if (n == 0 || at + n > most) {
            break;
        }
        at += n;
    }
    return at;
}

void ps_history_sign(char *text, size_t size, const char *who)
{
    size_t tail = strlen(BY) + strlen(who);
    size_t length = strlen(text);
    size_t kept = 0;

    assert(size > tail + strlen(CUT));
    if (length == 0) {
        return;
    }
    kept = whole(text, length, size - 1 - tail);
    if (kept < length) {
        kept = whole(text, length, size - 1 - tail - strlen(CUT));
        memcpy(text + kept, CUT, strlen(CUT));
        kept += strlen(CUT);
    }
    (void)snprintf(text + kept, size - kept, BY "%s", who);
}

const char *ps_history_quote(const char *foreign, char *ret, size_t size)
{
    size_t length = strlen(foreign);
    bool fits = length + sizeof "\"\"" <= size;
    size_t most = size - sizeof "\"" - (fits ? 0 : strlen(CUT));
    size_t at = 0;

    assert(size >= 8);
    ret[at++] = '"';
    for (size_t i = 0, n = 0; i < length; i += n) {
        size_t whole_bytes = ps_utf8_character((const uint8_t *)foreign + i, length - i);
        unsigned char first = (unsigned char)foreign[i];

        n = whole_bytes == 0 ? 1 : whole_bytes;
        if (at + n > most) {
            break;
        }
        memcpy(ret + at, foreign + i, n);
        if (n == 1) {
            ret[at] = (char)(whole_bytes == 0               ? '?'
                             : first == '"'                 ? '\''
                             : first < ' ' || first == 0x7F ? ' '
                                                            : first);
        }
        at += n;
    }
    (void)snprintf(ret + at, size - at, "%s\"", fits ? "" : CUT);
    return ret;
}

void ps_history_mend(char *text)
{
    size_t length = strlen(text);

    for (size_t at = whole(text, length, length); at < length;
         at += 1 + whole(text + at + 1, length - at - 1, length - at - 1)) {
        text[at] = '?';
    }
}
