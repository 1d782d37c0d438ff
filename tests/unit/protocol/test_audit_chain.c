/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/audit/audit_chain.h: each way of changing lines is found, and named. */
#include "protocol/audit/audit_chain.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"

#define N_LINES 40

/* Lines of an audit, each with its line break. */
typedef struct lines {
    char *text[N_LINES + 2];
    size_t n;
} lines_t;

static char *copy_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    cr_assert_not_null(text);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static char *line_of(ps_audit_chain_t *chain, const char *event, const ps_audit_record_t *record)
{
    ps_doc_t *doc = ps_audit_line_new(chain, 1000 + chain->seq, event);
    ps_buffer_t text = {0};
    char digest[PS_AUDIT_DIGEST_TEXT_SIZE];
    char *copy = NULL;

    cr_assert_not_null(doc);
    if (record != NULL) {
        cr_assert(ps_audit_line_fill(doc, record));
    } else {
        cr_assert(ps_doc_set_text(doc, "prev", ps_audit_digest_text(chain->digest, digest)));
    }
    cr_assert(ps_audit_line_end(chain, doc, &text));
    copy = copy_of(text.data, text.size);
    ps_buffer_done(&text);
    ps_doc_destroy(&doc);
    return copy;
}

/* A file after one that ended with number `before`. */
static void fill(lines_t *self, uint64_t before)
{
    ps_audit_chain_t chain = {.seq = before};

    memset(chain.digest, before == 0 ? 0 : 7, sizeof chain.digest);
    self->n = 0;
    self->text[self->n++] = line_of(&chain, "begin", NULL);
    while (self->n < N_LINES) {
        const ps_audit_record_t record = {.who = self->n % 3 == 0 ? NULL : "alice",
                                          .has_uid = self->n % 2 == 0,
                                          .uid = 1000,
                                          .address = "127.0.0.1",
                                          .op = "table_drop",
                                          .verb = "drop",
                                          .object = "table",
                                          .name = "a \"quoted\",\"event\":\"cut\" name",
                                          .pairs = {{"role", "job"}, {"tables", "a*"}},
                                          .n_pairs = self->n % 4 == 0 ? 2 : 0,
                                          .result = self->n % 5 == 0 ? PSD_DENIED : PSD_OK,
                                          .session = 9,
                                          .request = self->n};

        self->text[self->n++] = line_of(&chain, "request", &record);
    }
}

static void drop(lines_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        free(self->text[i]);
    }
}

static void forget(lines_t *self, size_t at)
{
    free(self->text[at]);
    memmove(self->text + at, self->text + at + 1, (self->n - at - 1) * sizeof *self->text);
    self->n--;
}

/* The number of the first wrong line, from 1; 0: none. */
static size_t wrong_line(const lines_t *self, ps_audit_check_t *ret_check)
{
    ps_audit_check_t check = {0};
    size_t wrong = 0;

    for (size_t i = 0; wrong == 0 && i < self->n; i++) {
        const ps_bytes_t line = {.data = (const uint8_t *)self->text[i],
                                 .size = strlen(self->text[i]) - 1};

        wrong = ps_audit_check_line(&check, line, NULL) == PSD_OK ? 0 : i + 1;
    }
    if (ret_check != NULL) {
        *ret_check = check;
    }
    return wrong;
}

Test(audit_chain, good_lines_are_good_also_after_older_files)
{
    lines_t lines;
    ps_audit_check_t check;

    for (uint64_t before = 0; before < 200; before += 100) {
        fill(&lines, before);
        cr_assert_eq(wrong_line(&lines, &check), 0);
        cr_assert_eq(check.first, before + 1);
        cr_assert_eq(check.chain.seq, before + N_LINES);
        cr_assert_eq(check.top, before + N_LINES);
        cr_assert_eq(check.n_lines, N_LINES);
        cr_assert_eq(check.n_cuts, 0, "a name is no event");
        drop(&lines);
    }
}

/* Every bit of every line, but the line break, which is not in it. */
Test(audit_chain, every_changed_byte_is_found)
{
    lines_t lines;

    fill(&lines, 0);
    for (size_t i = 0; i < lines.n; i++) {
        for (size_t at = 0; at + 1 < strlen(lines.text[i]); at++) {
            lines.text[i][at] = (char)(lines.text[i][at] ^ 1);
            if (lines.text[i][at] != '\0') {
                cr_assert_eq(wrong_line(&lines, NULL), i + 1, "byte %zu of line %zu", at, i + 1);
            }
            lines.text[i][at] = (char)(lines.text[i][at] ^ 1);
        }
    }
    cr_assert_eq(wrong_line(&lines, NULL), 0);
    drop(&lines);
}

Test(audit_chain, every_removed_doubled_and_swapped_line_is_found)
{
    for (size_t i = 0; i < N_LINES; i++) {
        lines_t lines;

        fill(&lines, 0);
        forget(&lines, i);
        cr_assert_eq(wrong_line(&lines, NULL), i + 1 < N_LINES ? i + 1 : 0,
                     "the last ones alone cannot be missed");
        drop(&lines);

        fill(&lines, 0);
        memmove(lines.text + i + 1, lines.text + i, (lines.n++ - i) * sizeof *lines.text);
        lines.text[i] = strdup(lines.text[i + 1]);
        cr_assert_eq(wrong_line(&lines, NULL), i + 2);
        drop(&lines);

        if (i + 1 < N_LINES) {
            char *first = NULL;

            fill(&lines, 0);
            first = lines.text[i];
            lines.text[i] = lines.text[i + 1];
            lines.text[i + 1] = first;
            cr_assert_eq(wrong_line(&lines, NULL), i + 1);
            drop(&lines);
        }
    }
}

/* A line of another file, and a file of which the beginning is another's. */
Test(audit_chain, lines_of_another_chain_are_found)
{
    lines_t lines;
    lines_t others;

    fill(&lines, 0);
    fill(&others, 1);
    free(lines.text[20]);
    lines.text[20] = strdup(others.text[19]); /* number 21, too */
    cr_assert_eq(wrong_line(&lines, NULL), 21);
    free(lines.text[0]);
    lines.text[0] = strdup(others.text[0]);
    cr_assert_eq(wrong_line(&lines, NULL), 2);
    drop(&lines);
    drop(&others);
}

Test(audit_chain, what_is_no_line_is_refused)
{
    static const char *const WRONG[] = {
        "",
        "{",
        "{}",
        "{\"seq\":1}",
        "{\"seq\":,\"unix_ms\":1}",
        "null",
        "{\"seq\":18446744073709551615,\"digest\":\""
        "0000000000000000000000000000000000000000000000000000000000000000\"}",
        "{\"seq\":1,\"digest\":"
        "\"0000000000000000000000000000000000000000000000000000000000000000\"}",
        "{\"seq\":1,\"unix_ms\":1,\"event\":\"begin\",\"digest\":\""
        "0000000000000000000000000000000000000000000000000000000000000000\"}",
        "{\"seq\":1,\"unix_ms\":1,\"event\":\"begin\",\"prev\":\"00\",\"digest\":\""
        "0000000000000000000000000000000000000000000000000000000000000000\"}"};
    ps_rng_t rng = {5};
    uint8_t noise[300];

    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        ps_audit_check_t check = {0};
        const ps_bytes_t line = {.data = (const uint8_t *)WRONG[i], .size = strlen(WRONG[i])};

        cr_assert_eq(ps_audit_check_line(&check, line, NULL), PSD_DAMAGED, "%s", WRONG[i]);
    }
    for (size_t i = 0; i < 2000; i++) {
        ps_audit_check_t check = {0};

        for (size_t k = 0; k < sizeof noise; k++) {
            noise[k] = (uint8_t)ps_rng_u64(&rng);
        }
        memcpy(noise, "{\"seq\":1,", i % 2 == 0 ? 9 : 0);
        cr_assert_eq(ps_audit_check_line(
                         &check, (ps_bytes_t){.data = noise, .size = i % sizeof noise}, NULL),
                     PSD_DAMAGED);
    }
}

Test(audit_chain, text_that_is_no_utf_8_is_left_out)
{
    ps_audit_chain_t chain = {0};
    const ps_audit_record_t record = {.name = "\xff\xfe", .result = PSD_DENIED};
    char *line = line_of(&chain, "request", &record);

    cr_assert_not_null(strstr(line, "\"name\":null,\"result\":\"DENIED\",\"code\":\""));
    free(line);
}

Test(audit_chain, a_line_that_is_too_long_changes_nothing)
{
    ps_audit_chain_t chain = {.seq = 5};
    ps_doc_t *doc = ps_audit_line_new(&chain, 1, "request");
    ps_buffer_t text = {0};
    char *name = malloc(PS_AUDIT_LINE_MAX);

    cr_assert(name != NULL && doc != NULL);
    memset(name, 'a', PS_AUDIT_LINE_MAX);
    name[PS_AUDIT_LINE_MAX - 1] = '\0';
    cr_assert(ps_doc_set_text(doc, "name", name));
    cr_assert_not(ps_audit_line_end(&chain, doc, &text));
    cr_assert_eq(chain.seq, 5);
    cr_assert_eq(text.size, 0);
    free(name);
    ps_buffer_done(&text);
    ps_doc_destroy(&doc);
}

Test(audit_chain, refusals_have_a_pace)
{
    ps_audit_pace_t pace = {0};
    uint64_t n = 0;

    while (ps_audit_pace_take(&pace, 7, 5000)) {
        n++;
    }
    cr_assert_eq(n, 7);
    cr_assert_not(ps_audit_pace_take(&pace, 7, 5000 + PS_AUDIT_PACE_MS - 1));
    for (n = 0; ps_audit_pace_take(&pace, 7, 5000 + UINT64_C(3) * PS_AUDIT_PACE_MS); n++) {
    }
    cr_assert_eq(n, 3);
    for (n = 0; ps_audit_pace_take(&pace, 7, 10000000); n++) {
    }
    cr_assert_eq(n, 7, "rest is not saved up");
}
