/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/journal: lines as fields; IDs that the catalog explains. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/journal.h"

static ps_journal_entry_t entry;

static void expect(size_t i, const char *field)
{
    cr_assert_lt(i, entry.n, "no field %zu", i);
    cr_expect_eq(entry.fields[i].iov_len, strlen(field), "%.*s", (int)entry.fields[i].iov_len,
                 (const char *)entry.fields[i].iov_base);
    cr_expect_eq(memcmp(entry.fields[i].iov_base, field, strlen(field)), 0, "%.*s",
                 (int)entry.fields[i].iov_len, (const char *)entry.fields[i].iov_base);
}

Test(journal, a_line_becomes_fields)
{
    ps_journal_entry_make(
        &entry, PS_LOG_WARN,
        "copy_late table=3 node=\"vm \\\"2\\\"\" \"words alone\" state=D x-y=1 ms=12");
    cr_expect_eq(entry.n, 8);
    expect(0,
           "MESSAGE=copy_late table=3 node=\"vm \\\"2\\\"\" \"words alone\" state=D x-y=1 ms=12");
    expect(1, "PRIORITY=4");
    expect(2, "SYSLOG_IDENTIFIER=psd");
    expect(3, "PSD_EVENT=copy_late");
    expect(4, "PSD_TABLE=3");
    expect(5, "PSD_NODE=vm \"2\"");
    expect(6, "PSD_STATE=D");
    expect(7, "PSD_MS=12");
}

Test(journal, a_known_event_has_an_id)
{
    ps_journal_entry_make(&entry, PS_LOG_INFO, "stopped");
    cr_expect_eq(entry.n, 5);
    cr_expect_eq(strncmp(entry.fields[4].iov_base, "MESSAGE_ID=", 11), 0);
    cr_expect_eq(entry.fields[4].iov_len, 11 + 32);
    cr_expect_null(ps_journal_id("nothing"));
}

Test(journal, what_does_not_fit_is_left_out)
{
    char line[4096] = "many";

    for (int i = 0; i < 200; i++) {
        (void)snprintf(line + strlen(line), sizeof line - strlen(line), " key%c%c=12345",
                       'a' + i / 26, 'a' + i % 26);
    }
    ps_journal_entry_make(&entry, PS_LOG_INFO, line);
    cr_expect_eq(entry.n, PS_JOURNAL_FIELDS_MAX);
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    ps_journal_entry_make(&entry, PS_LOG_INFO, line);
    cr_expect_eq(entry.n, 4);
    ps_journal_entry_make(&entry, PS_LOG_INFO, "");
    cr_expect_eq(entry.n, 4);
    ps_journal_entry_make(&entry, PS_LOG_INFO, "cut key=\"no end\\");
    expect(4, "PSD_KEY=no end\\");
}

Test(journal, the_catalog_explains_each_id_once)
{
    char text[65536] = "";
    FILE *file = fopen(PSD_CATALOG, "re");
    size_t n = 0;

    cr_assert_not_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
#define X(event, id)                                                   \
    cr_expect_eq(strlen(id), 32);                                      \
    cr_expect_not_null(strstr(text, "\n-- " id "\nSubject: "), event); \
    n++;
#include "daemon/journal_events.def"
#undef X
    for (const char *at = strstr(text, "\n-- "); at != NULL; at = strstr(at + 1, "\n-- ")) {
        n--;
    }
    cr_expect_eq(n, 0, "the catalog has others");
}

/* Where nobody reads entries, lines go on to stderr. */
Test(journal, is_used_where_journald_reads_stderr)
{
    int fds[2];

    cr_assert_eq(pipe(fds), 0);
    cr_assert_geq(dup2(fds[1], STDERR_FILENO), 0);
    ps_journal_use();
    cr_expect_null(ps_log_used(), "a pipe");
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    cr_assert_geq(dup2(fds[1], STDERR_FILENO), 0);
    ps_journal_use();
    cr_expect_eq(ps_log_used() != NULL, access("/run/systemd/journal/socket", W_OK) == 0);
}
