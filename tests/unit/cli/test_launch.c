/* SPDX-License-Identifier: Apache-2.0 */
/* cli/launch: hosts, words for a shell, records, rank and size, why a launcher failed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/launch/address.h"
#include "cli/launch/exec.h"
#include "cli/launch/launch.h"
#include "cli/launch/manifest.h"

/* ---- hosts ---- */

static uint32_t slots_of(const char *list, uint32_t n, size_t host)
{
    PSD_AUTO(ps_hosts_done) ps_hosts_t hosts = {0};

    cr_assert_eq(ps_hosts_parse(&hosts, list, NULL), PSD_OK);
    cr_assert_eq(ps_hosts_place(&hosts, n, NULL), PSD_OK);
    return hosts.items[host].slots;
}

static psd_status_t parse(const char *list)
{
    PSD_AUTO(ps_hosts_done) ps_hosts_t hosts = {0};

    return ps_hosts_parse(&hosts, list, NULL);
}

Test(launch, hosts_fill_in_their_order)
{
    PSD_AUTO(ps_hosts_done) ps_hosts_t hosts = {0};

    cr_assert_eq(slots_of("a:2,b:2", 3, 0), 2);
    cr_assert_eq(slots_of("a:2,b:2", 3, 1), 1);
    cr_assert_eq(slots_of("a,b", 5, 0), 3);
    cr_assert_eq(slots_of("a,b", 5, 1), 2);
    cr_assert_eq(slots_of("a:3,b", 4, 1), 1);
    cr_assert_eq(slots_of("a,b,c", 2, 2), 0);
    cr_assert_eq(ps_hosts_parse(&hosts, "me@a:1,[fe80::1]:2,::1", NULL), PSD_OK);
    cr_assert_eq(ps_hosts_place(&hosts, 4, NULL), PSD_OK);
    cr_assert_str_eq(ps_hosts_of(&hosts, 0)->name, "me@a");
    cr_assert_str_eq(ps_host_address(ps_hosts_of(&hosts, 0)), "a");
    cr_assert_str_eq(ps_hosts_of(&hosts, 2)->name, "fe80::1");
    cr_assert_str_eq(ps_hosts_of(&hosts, 3)->name, "::1");
    cr_assert_eq(ps_hosts_place(&hosts, 5, NULL), PSD_USAGE);
}

Test(launch, what_is_no_host_is_refused)
{
    static const char *const BAD[] = {"",
                                      ",",
                                      "a,,b",
                                      "a:0",
                                      "a:x",
                                      "a:5000",
                                      "-oProxyCommand=x",
                                      "a b",
                                      "a;b",
                                      "a'b",
                                      "me@",
                                      "[]:1",
                                      "[a",
                                      "a,a",
                                      "a:1,a:2",
                                      "x@a,y@a",
                                      "$(a)",
                                      "[-oProxyCommand=x]",
                                      "[-x]:2",
                                      "[a;b]:1",
                                      "[a b]",
                                      "[::1]x",
                                      "[::1]:0",
                                      "me@-x"};

    for (size_t i = 1; i < sizeof BAD / sizeof BAD[0]; i++) {
        cr_expect_eq(parse(BAD[i]), PSD_USAGE, "%s", BAD[i]);
    }
}

static psd_status_t read_file(size_t n_blanks)
{
    PSD_AUTO(ps_hosts_done) ps_hosts_t hosts = {0};
    char path[] = "/tmp/psd-test-XXXXXX";
    int fd = mkstemp(path);
    psd_status_t rc = PSD_OK;

    cr_assert_geq(fd, 0);
    cr_assert_gt(dprintf(fd, "a%*s\nb\n", (int)n_blanks, ""), 0);
    (void)close(fd);
    rc = ps_hosts_read(&hosts, path, NULL);
    (void)unlink(path);
    cr_expect(rc != PSD_OK || hosts.n == 2);
    return rc;
}

Test(launch, a_line_of_a_file_is_read_whole_or_not)
{
    cr_expect_eq(read_file(100), PSD_OK);
    cr_expect_eq(read_file(509), PSD_OK);
    cr_expect_eq(read_file(510), PSD_USAGE, "it would be two lines");
}

/* ---- words ---- */

static void quotes(const char *word, const char *want)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    cr_assert(ps_quote(&text, word));
    cr_assert(ps_buffer_print(&text, "%s", ""));
    cr_expect_str_eq((const char *)text.data, want);
}

Test(launch, a_shell_reads_words_as_they_were)
{
    quotes("plain-1.0/x=y", "plain-1.0/x=y");
    quotes("", "''");
    quotes("a b", "'a b'");
    quotes("it's", "'it'\\''s'");
    quotes("$HOME\n`x`", "'$HOME\n`x`'");
    quotes("~", "'~'");
    quotes("!", "'!'");
}

/* ---- records ---- */

Test(launch, records_are_read_as_they_were_written)
{
    static const char ID[] = "0123456789abcdef";
    char bytes[PS_EXEC_RECORD_SIZE];
    ps_exec_record_t got = {0};
    ps_exec_record_t record = {
        .rank = 4095, .kind = PS_EXEC_RECORD_OUT, .size = 5, .text = "a\0b  "};

    ps_exec_record_format(ID, &record, bytes);
    cr_assert_eq(bytes[PS_EXEC_RECORD_SIZE - 1], '\n');
    cr_assert(ps_exec_record_parse(ID, bytes, PS_EXEC_RECORD_SIZE - 1, &got));
    cr_assert_eq(got.rank, 4095);
    cr_assert_eq(got.kind, PS_EXEC_RECORD_OUT);
    cr_assert_eq(got.size, 5);
    cr_assert_arr_eq(got.text, "a\0b  ", 5);

    /* The longest, of bytes that take two. */
    record = (ps_exec_record_t){.kind = PS_EXEC_RECORD_ERR_PART, .size = sizeof record.text};
    memset(record.text, '[', sizeof record.text);
    record.text[7] = '\001';
    record.text[8] = '\002';
    ps_exec_record_format(ID, &record, bytes);
    cr_assert_null(memchr(bytes, '[', sizeof bytes));
    cr_assert(ps_exec_record_parse(ID, bytes, PS_EXEC_RECORD_SIZE - 1, &got));
    cr_assert_eq(got.size, sizeof record.text);
    cr_assert_arr_eq(got.text, record.text, sizeof record.text);

    cr_assert_not(ps_exec_record_parse("0123456789abcdee", bytes, PS_EXEC_RECORD_SIZE - 1, &got),
                  "of another launch");
    cr_assert_not(ps_exec_record_parse(ID, bytes, PS_EXEC_RECORD_SIZE - 2, &got));
    bytes[24] = 'q';
    cr_assert_not(ps_exec_record_parse(ID, bytes, PS_EXEC_RECORD_SIZE - 1, &got));
}

/* ---- rank and size ---- */

static const char *const *variables;

static char *get(const char *name)
{
    for (size_t i = 0; variables[i] != NULL; i += 2) {
        if (strcmp(variables[i], name) == 0) {
            return (char *)variables[i + 1];
        }
    }
    return NULL;
}

static void ranks(const char *const *list, uint32_t want_rank, uint32_t want_size)
{
    uint32_t rank = 99;
    uint32_t size = 99;

    variables = list;
    cr_assert_eq(ps_exec_rank(get, &rank, &size, NULL), PSD_OK);
    cr_expect_eq(rank, want_rank, "%s: rank %u", list[0], rank);
    cr_expect_eq(size, want_size, "%s: size %u", list[0], size);
}

Test(launch, rank_and_size_come_from_the_launcher)
{
    static const char *const NONE[] = {NULL};
    static const char *const MPI[] = {
        "OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE", "4", "SLURM_PROCID", "0", NULL};
    static const char *const PMI[] = {"PMI_RANK", "1", "PMI_SIZE", "2", NULL};
    static const char *const PMIX[] = {"PMIX_RANK", "3", "SLURM_NTASKS", "4", NULL};
    static const char *const STEP[] = {
        "SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_STEP_ID", "0", NULL};
    static const char *const BATCH[] = {"SLURM_PROCID", "0", "SLURM_NTASKS", "2", NULL};
    static const char *const INDEXED[] = {"JOB_COMPLETION_INDEX", "5", "PSD_WORKERS", "6", NULL};
    static const char *const OWN[] = {"PSD_WORKER", "1", "PSD_WORKERS", "3", "PMI_RANK", "0", NULL};
    static const char *const WRONG[] = {"PMI_RANK", "2", "PMI_SIZE", "2", NULL};
    static const char *const NO_NUMBER[] = {"PMI_RANK", "x", NULL};
    uint32_t rank = 0;
    uint32_t size = 0;

    ranks(NONE, 0, 1);
    ranks(MPI, 2, 4);
    ranks(PMI, 1, 2);
    ranks(PMIX, 3, 4);
    ranks(STEP, 1, 2);
    ranks(BATCH, 0, 1);
    ranks(INDEXED, 5, 6);
    ranks(OWN, 1, 3);
    variables = WRONG;
    cr_assert_eq(ps_exec_rank(get, &rank, &size, NULL), PSD_INVALID);
    variables = NO_NUMBER;
    cr_assert_eq(ps_exec_rank(get, &rank, &size, NULL), PSD_INVALID);
}

/* ---- the rest ---- */

Test(launch, one_line_says_why_a_launcher_failed)
{
    char line[PS_LAUNCH_WHY_SIZE];

    ps_launch_why("-----\nThere are not enough slots available in the system to satisfy\n-----\n",
                  line);
    cr_assert_str_eq(line, "not enough slots for the workers; name more with --hosts HOST:SLOTS, "
                           "or --oversubscribe");
    ps_launch_why(
        "Warning: Permanently added 'x'\r\nssh: connect to host a: Connection refused\r\n", line);
    cr_assert_str_eq(line, "ssh: connect to host a: Connection refused");
    ps_launch_why("", line);
    cr_assert_str_eq(line, "no message");
}

Test(launch, this_host_is_reached_by_loopback)
{
    PSD_AUTO(ps_hosts_done) ps_hosts_t hosts = {0};
    char address[PS_ADDRESS_SIZE] = "";
    const char *other = NULL;

    cr_assert_eq(ps_hosts_parse(&hosts, "localhost", NULL), PSD_OK);
    cr_assert_eq(ps_address_to(&hosts, address, &other, NULL), PSD_OK);
    cr_assert_str_eq(address, "127.0.0.1");
    cr_assert(ps_address_is_local("127.0.1.1"));
    cr_assert(ps_address_is_local("::1"));
    cr_assert_not(ps_address_is_local("10.0.0.1"));
}

/* ---- the environment ---- */

static bool has_word(const ps_words_t *words, const char *word)
{
    for (size_t i = 0; i < words->n; i++) {
        if (strcmp(words->items[i], word) == 0) {
            return true;
        }
    }
    return false;
}

Test(launch, the_command_of_mpirun_has_no_values)
{
    static const char *const ARGV[] = {"true", NULL};
    PSD_AUTO(ps_launch_done)
    ps_launch_t launch = {.kind = PS_LAUNCH_MPI, .n = 2, .dir = "/", .argv = ARGV};
    PSD_AUTO(ps_words_done) ps_words_t words = {0};
    PSD_AUTO(ps_words_done) ps_words_t paste = {0};

    cr_assert_eq(setenv("PSD_WORKER", "3", 1), 0);
    cr_assert_eq(ps_launch_set(&launch, "TOKEN", "a=secret", NULL), PSD_OK);
    cr_assert_eq(ps_launch_command(&launch, 0, false, &words, NULL), PSD_OK);
    cr_expect(has_word(&words, "TOKEN"));
    cr_expect_not(has_word(&words, "TOKEN=a=secret"));
    cr_assert_eq(ps_launch_command(&launch, 0, true, &paste, NULL), PSD_OK);
    cr_expect(has_word(&paste, "TOKEN=a=secret"));

    cr_assert_eq(ps_launch_export(&launch, NULL), PSD_OK);
    cr_expect_str_eq(getenv("TOKEN"), "a=secret");
    cr_expect_null(getenv("PSD_WORKER"), "workers of srun would all have its rank");
}

/* ---- manifests ---- */

static void is_named(const char *job, const char *want)
{
    static const char *const ARGV[] = {"true", NULL};
    PSD_AUTO(ps_launch_done)
    ps_launch_t launch = {.kind = PS_LAUNCH_KUBERNETES, .n = 2, .dir = "/", .argv = ARGV};
    const ps_manifest_t manifest = {.launch = &launch};
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    char line[128];

    (void)snprintf(line, sizeof line, "  name: %s\n", want);
    cr_assert_eq(ps_launch_set(&launch, "PSD_JOB", job, NULL), PSD_OK);
    cr_assert_eq(ps_manifest_kubernetes(&manifest, &text, NULL), PSD_OK);
    cr_expect_not_null(strstr((const char *)text.data, line), "%s: %s", job,
                       (const char *)text.data);
}

Test(launch, names_in_manifests_begin_with_a_letter)
{
    is_named("Wide_1", "wide-1");
    is_named("2nd", "job-2nd");
    is_named("_x", "job--x");
    is_named("---", "job");
}

/* ---- nodes of Slurm ---- */

/* A scontrol that describes n nodes in 1 KB each; the addresses of the first n_local are
 * loopback. */
static void fake_scontrol(char dir[64], unsigned n_local, unsigned n)
{
    char path[128];
    FILE *file = NULL;

    (void)snprintf(dir, 64, "/tmp/psd-test-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/scontrol", dir);
    file = fopen(path, "w");
    cr_assert_not_null(file);
    (void)fprintf(file,
                  "#!/bin/sh\nexec awk 'BEGIN { for (i = 1; i <= %u; i++) printf(\"NodeName=n%%d "
                  "NodeAddr=%%s.%%d.%%d Comment=%%0900d\\n\", i, i <= %u ? \"127.0\" : \"10.1\", "
                  "i / 250, i %% 250 + 1, 0) }'\n",
                  n, n_local);
    cr_assert_eq(fchmod(fileno(file), 0700), 0);
    (void)fclose(file);
    (void)snprintf(path, sizeof path, "%s:%s", dir, "/usr/bin:/bin");
    cr_assert_eq(setenv("PATH", path, 1), 0);
}

static void end_scontrol(const char *dir)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/scontrol", dir);
    (void)unlink(path);
    (void)rmdir(dir);
}

Test(launch, all_nodes_of_a_wide_allocation_are_read)
{
    PSD_AUTO(ps_hosts_done) ps_hosts_t hosts = {0};
    char dir[64];

    fake_scontrol(dir, 0, 700); /* far more than a pipe holds */
    cr_assert_eq(setenv("SLURM_JOB_NODELIST", "n[1-700]", 1), 0);
    cr_expect_eq(ps_launch_read_slurm(&hosts, NULL), PSD_OK);
    cr_expect_eq(hosts.n, 700);
    end_scontrol(dir);
}

Test(launch, one_node_of_a_wide_site_is_enough)
{
    PSD_AUTO(ps_hosts_done) ps_hosts_t hosts = {0};
    char dir[64];

    fake_scontrol(dir, 1500, 1500); /* more than PS_HOSTS_MAX */
    cr_assert_eq(unsetenv("SLURM_JOB_NODELIST"), 0);
    cr_expect_eq(ps_launch_read_slurm(&hosts, NULL), PSD_OK);
    cr_expect_eq(hosts.n, 1);
    end_scontrol(dir);
}
