/* SPDX-License-Identifier: Apache-2.0 */
/* base/text.h and ps_id_parse: no text hurts, and what two readers both take
 * they read alike. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_numbers(const char *text)
{
    uint64_t u64 = 0;
    uint64_t other = 0;
    int64_t i64 = 0;
    double f64 = 0;

    if (ps_text_u64(text, &u64)) {
        assert(ps_text_size(text, &other) && other == u64);
        assert(ps_text_f64(text, &f64) && f64 == (double)u64);
        assert(ps_text_i64(text, &i64) == (u64 <= INT64_MAX));
    } else if (ps_text_i64(text, &i64)) {
        assert(text[0] == '+' || text[0] == '-');
        assert(ps_text_f64(text, &f64) && f64 == (double)i64);
    }
    (void)!ps_text_f64(text, &f64);
    (void)!ps_text_size(text, &u64);
    (void)!ps_text_duration(text, &u64);
}

static void read_words(const char *text)
{
    static const char *const words[] = {"create", "list", "inspect", NULL};
    char back[PS_ID_TEXT_SIZE];
    ps_id_t id = {{0}};
    ps_id_t again = {{0}};

    if (ps_id_parse(text, &id)) {
        ps_id_format(&id, back);
        assert(ps_id_parse(back, &again) && ps_id_equal(&id, &again));
    }
    assert(!ps_text_is_name(text) || strlen(text) <= 63);
    (void)ps_text_suggest(text, words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = ps_alloc(size + 1, 1);

    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    read_numbers(text);
    read_words(text);
    ps_free(text);
    return 0;
}
