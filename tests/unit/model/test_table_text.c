/* SPDX-License-Identifier: Apache-2.0 */
/* model/tables/table.h: the words, read strictly and printed so that they read back.
 */
#include "model/tables/table.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/fail_alloc.h"

Test(table_text, row_format)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_row_format_t value = PS_ROW_AUTO;

    for (int v = PS_ROW_DENSE; v <= PS_ROW_AUTO; v++) {
        cr_assert_eq(ps_row_format_parse(ps_row_format_name((ps_row_format_t)v), &value, err),
                     PSD_OK);
        cr_assert_eq((int)value, v);
    }
    cr_assert_eq(ps_row_format_parse("dens", &value, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err),
                     "row format \"dens\" is not known; allowed is dense, sparse or auto");
    cr_assert_eq(value, PS_ROW_AUTO);
    cr_assert_str_eq(ps_row_format_name((ps_row_format_t)0), "?");
}

Test(table_text, keys)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_keys_t value = PS_KEYS_HASH;

    for (int v = PS_KEYS_RANGE; v <= PS_KEYS_HASH; v++) {
        cr_assert_eq(ps_keys_parse(ps_keys_name((ps_keys_t)v), &value, err), PSD_OK);
        cr_assert_eq((int)value, v);
    }
    cr_assert_eq(ps_keys_parse("Range", &value, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "keys \"Range\" is not known; allowed is range or hash");
    cr_assert_str_eq(ps_keys_name((ps_keys_t)9), "?");
}

Test(table_text, ack)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_ack_t value = PS_ACK_DISK;

    for (int v = PS_ACK_MEMORY; v <= PS_ACK_DISK; v++) {
        cr_assert_eq(ps_ack_parse(ps_ack_name((ps_ack_t)v), &value, err), PSD_OK);
        cr_assert_eq((int)value, v);
    }
    cr_assert_eq(ps_ack_parse("", &value, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err),
                     "ack level \"\" is not known; allowed is memory, replica or disk");
    cr_assert_str_eq(ps_ack_name(PS_ACK_DEFAULT), "?");
}

static void read_updater(const char *text, ps_updater_spec_t want)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_updater_spec_t got = {.kind = PS_UPDATER_ADD};

    cr_assert_eq(ps_updater_spec_parse(text, &got, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(got.kind, want.kind);
    cr_assert_eq(got.alpha, want.alpha);
    cr_assert_eq(got.beta, want.beta);
    cr_assert_eq(got.l1, want.l1);
    cr_assert_eq(got.l2, want.l2);
}

/* Read, and printed again. */
static void repeat(const char *text, const char *printed)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_updater_spec_t got = {.kind = PS_UPDATER_ADD};
    char back[PS_SPEC_TEXT_SIZE] = "";

    cr_assert_eq(ps_updater_spec_parse(text, &got, err), PSD_OK, "%s", psd_error_text(err));
    ps_updater_spec_format(&got, back);
    cr_assert_str_eq(back, printed);
    cr_assert_eq(ps_updater_spec_parse(back, &got, err), PSD_OK);
}

Test(table_text, every_updater_has_its_parameters)
{
    repeat("momentum", "momentum:alpha=0.1,momentum=0.9");
    repeat("nesterov", "nesterov:alpha=0.7,momentum=0.9");
    repeat("nesterov:momentum=0.5", "nesterov:alpha=0.7,momentum=0.5");
    repeat("adam", "adam:alpha=0.001,beta1=0.9,beta2=0.999,eps=1e-08");
    repeat("adamw:decay=0.5", "adamw:alpha=0.001,beta1=0.9,beta2=0.999,eps=1e-08,decay=0.5");
    repeat("rmsprop:rho=0.5", "rmsprop:alpha=0.01,rho=0.5,eps=1e-08");
    repeat("min", "min");
    repeat("max", "max");
    repeat("dcasgd:lambda=2,workers=4", "dcasgd:alpha=0.1,lambda=2,workers=4");
    repeat("plugin:mine", "plugin:mine");
    repeat("plugin:mine:", "plugin:mine");
    repeat("plugin:mine:a=1,b:c", "plugin:mine:a=1,b:c");
}

/* The longest that each part can be fits into the room for it. */
Test(table_text, long_updaters_fit)
{
    char text[PS_SPEC_TEXT_SIZE + 2] = "plugin:";
    ps_updater_spec_t adamw = {.kind = PS_UPDATER_ADAMW,
                               .alpha = 1.2345678901234567e-300,
                               .beta1 = 1.2345678901234567e-301,
                               .beta2 = 1.2345678901234567e-302,
                               .eps = 1.2345678901234567e-303,
                               .decay = 1.2345678901234567e-304};
    ps_updater_spec_t got = {.kind = PS_UPDATER_ADD};
    char printed[PS_SPEC_TEXT_SIZE] = "";

    memset(text + 7, 'n', PS_NAME_MAX);
    text[7 + PS_NAME_MAX] = ':';
    memset(text + 8 + PS_NAME_MAX, 't', PS_PLUGIN_TEXT_SIZE - 1);
    repeat(text, text);
    ps_updater_spec_format(&adamw, printed);
    cr_assert_eq(ps_updater_spec_parse(printed, &got, NULL), PSD_OK);
    cr_assert_eq(got.decay, adamw.decay);
    text[7 + PS_NAME_MAX + PS_PLUGIN_TEXT_SIZE] = 't'; /* one more */
    cr_assert_eq(ps_updater_spec_parse(text, &got, NULL), PSD_INVALID);
    memset(text + 7, 'n', PS_NAME_MAX + 1);
    text[8 + PS_NAME_MAX] = '\0';
    cr_assert_eq(ps_updater_spec_parse(text, &got, NULL), PSD_INVALID);
    cr_assert_eq(got.kind, PS_UPDATER_ADAMW);
}

static void refuse_updater(const char *text, const char *why)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_updater_spec_t got = {.kind = PS_UPDATER_SGD, .alpha = 77};

    cr_assert_eq(ps_updater_spec_parse(text, &got, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), why);
    cr_assert_eq(got.alpha, 77);
}

Test(table_text, updaters_are_read)
{
    read_updater("add", (ps_updater_spec_t){.kind = PS_UPDATER_ADD});
    read_updater("assign", (ps_updater_spec_t){.kind = PS_UPDATER_ASSIGN});
    read_updater("sgd", (ps_updater_spec_t){.kind = PS_UPDATER_SGD, .alpha = 0.1});
    read_updater("adagrad",
                 (ps_updater_spec_t){.kind = PS_UPDATER_ADAGRAD, .alpha = 0.1, .beta = 1});
    read_updater("sgd:alpha=0.5,l1=1e-3,l2=2",
                 (ps_updater_spec_t){.kind = PS_UPDATER_SGD, .alpha = 0.5, .l1 = 1e-3, .l2 = 2});
    read_updater("ftrl:l2=3,beta=0",
                 (ps_updater_spec_t){.kind = PS_UPDATER_FTRL, .alpha = 0.1, .l2 = 3});
}

#define RULES_ARE                                                                            \
    "allowed is add, assign, min, max, sgd, momentum, adagrad, adam, adamw, rmsprop, ftrl, " \
    "dcasgd, nesterov, or plugin:NAME"

Test(table_text, updaters_are_refused)
{
    refuse_updater("lamb", "updater \"lamb\" is not known; " RULES_ARE);
    refuse_updater("", "updater \"\" is not known; " RULES_ARE);
    refuse_updater("sgdx:alpha=1", "updater \"sgdx:alpha=1\" is not known; " RULES_ARE);
    refuse_updater("min:alpha=1", "updater \"min:alpha=1\" takes no parameters");
    refuse_updater("adam:beta=1", "updater parameter \"beta\" is not known; "
                                  "allowed is alpha, beta1, beta2 or eps");
    refuse_updater("plugin", "updater \"plugin\" names no plug-in; allowed is "
                             "plugin:NAME or plugin:NAME:TEXT with a name of 1 "
                             "to 63 characters");
    refuse_updater("plugin::a=1", "updater \"plugin::a=1\" names no plug-in; allowed is "
                                  "plugin:NAME or plugin:NAME:TEXT with a name of 1 to 63 "
                                  "characters");
    refuse_updater("add:alpha=1", "updater \"add:alpha=1\" takes no parameters");
    refuse_updater("sgd:", "updater parameter \"\" is not known; allowed is "
                           "alpha, l1 or l2");
    refuse_updater("sgd:alpha=1,", "updater parameter \"\" is not known; "
                                   "allowed is alpha, l1 or l2");
    refuse_updater("sgd:beta=1", "updater parameter \"beta\" is not known; "
                                 "allowed is alpha, l1 or l2");
    refuse_updater("ftrl:gamma=1", "updater parameter \"gamma\" is not known; "
                                   "allowed is alpha, beta, l1 or l2");
    refuse_updater("sgd:alpha", "alpha \"\" is not a number; allowed is a "
                                "decimal number such as 0.05 or 1e-3");
    refuse_updater("sgd:alpha=0,5", "updater parameter \"5\" is not known; "
                                    "allowed is alpha, l1 or l2");
    refuse_updater("sgd:alpha=nan", "alpha \"nan\" is not a number; allowed is "
                                    "a decimal number such as 0.05 or 1e-3");
    refuse_updater("sgd:l1=1x", "l1 \"1x\" is not a number; allowed is a "
                                "decimal number such as 0.05 or 1e-3");
    refuse_updater("sgd:alpha=0.0000000000000000000000000000000000001",
                   "updater parameter "
                   "\"alpha=0.0000000000000000000000000000000000001\" is not a "
                   "number; allowed is a decimal number such as 0.05 or 1e-3");
}

static void read_init(const char *text, ps_init_kind_t kind, double a, double b)
{
    ps_init_spec_t got = {.kind = (ps_init_kind_t)0};

    cr_assert_eq(ps_init_spec_parse(text, &got, NULL), PSD_OK, "%s", text);
    cr_assert_eq(got.kind, kind);
    cr_assert_eq(got.a, a);
    cr_assert_eq(got.b, b);
}

static void refuse_init(const char *text, const char *why)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_init_spec_t got = {.kind = PS_INIT_NORMAL, .a = 77};

    cr_assert_eq(ps_init_spec_parse(text, &got, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), why);
    cr_assert_eq(got.a, 77);
}

#define INITS "allowed is zero, constant:V, uniform:LOW,HIGH or normal:MEAN,STD"
#define NUMBERS "allowed is a decimal number such as 0.05 or 1e-3"

Test(table_text, inits)
{
    read_init("zero", PS_INIT_ZERO, 0, 0);
    read_init("constant:-3", PS_INIT_CONSTANT, -3, 0);
    read_init("uniform:-0.5,0.5", PS_INIT_UNIFORM, -0.5, 0.5);
    read_init("normal:0,1e-2", PS_INIT_NORMAL, 0, 1e-2);
    read_init("uniform:0,9223372036854775808", PS_INIT_UNIFORM, 0, 0x1p63);
    read_init("constant:-9223372036854775808", PS_INIT_CONSTANT, -0x1p63, 0);
    refuse_init("zeros", "init \"zeros\" is not known; " INITS);
    refuse_init("zero:1", "init \"zero:1\" is not known; " INITS);
    refuse_init("constant", "init \"constant\" is not known; " INITS);
    refuse_init("constant:", "first value \"\" is not a number; " NUMBERS);
    refuse_init("uniform:1", "first value \"\" is not a number; " NUMBERS);
    refuse_init("uniform:1,2,3", "first value \"2,3\" is not a number; " NUMBERS);
    refuse_init("normal:x,1", "first value \"x\" is not a number; " NUMBERS);
    refuse_init("uniform:0.00000000000000000000000000000000001,1",
                "first value \"0.00000000000000000000000000000000001,1\" is "
                "not a number; " NUMBERS);
    refuse_init("constant:9007199254740993",
                "first value \"9007199254740993\" cannot be held exactly; "
                "beyond 2^53 only some whole numbers can");
    refuse_init("constant:9223372036854775807",
                "first value \"9223372036854775807\" cannot be held exactly; "
                "beyond 2^53 only some whole numbers can");
}

static void check_partition(const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec;
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

    ps_table_spec_init(&spec);
    cr_assert_eq(ps_partition_by_parse("list:1,2", &spec, err), PSD_OK);
    cr_assert_eq(ps_partition_by_parse(text, &spec, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert(ps_buffer_print(&buffer, "x "));
    cr_assert(ps_partition_by_format(&spec, &buffer));
    cr_assert_str_eq((char *)buffer.data + 2, text);
}

static void refuse_partition(const char *text, const char *why)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    cr_assert_eq(ps_partition_by_parse("list:7", &spec, NULL), PSD_OK);
    cr_assert_eq(ps_partition_by_parse(text, &spec, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), why);
    cr_assert_eq(spec.partition_by, PS_PARTITION_BY_LIST);
    cr_assert_eq(spec.boundaries[0], 7);
}

#define ROWS "rows 1..18446744073709551615 are allowed"

Test(table_text, partitions)
{
    check_partition("range");
    check_partition("hash");
    check_partition("list:5");
    check_partition("list:1,20,18446744073709551615");
    refuse_partition("lists", "partition \"lists\" is not known; allowed is "
                              "range, hash or list:ROW,ROW,...");
    refuse_partition("list:", "boundary 0 of the partition list is \"\"; " ROWS);
    refuse_partition("list:1,,3", "boundary 1 of the partition list is \"\"; " ROWS);
    refuse_partition("list:1,-3", "boundary 1 of the partition list is \"-3\"; " ROWS);
    refuse_partition("list:0000000000000000000000000000000000000001",
                     "boundary 0 of the partition list is "
                     "\"000000000000000000000000000000\"; " ROWS);
    refuse_partition("list:18446744073709551616", "boundary 0 of the partition list is "
                                                  "\"18446744073709551616\"; " ROWS);
}

Test(table_text, a_list_is_bounded)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    cr_assert(ps_buffer_print(&text, "list:1"));
    for (int i = 2; i <= 4096; i++) {
        cr_assert(ps_buffer_print(&text, ",%d", i));
    }
    cr_assert_eq(ps_partition_by_parse((char *)text.data, &spec, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err),
                     "partition list has 4096 boundaries; 1..4095 are allowed");
}

static psd_status_t parse_and_format(void *fixture)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec;
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};
    psd_status_t rc = PSD_OK;

    (void)fixture;
    ps_table_spec_init(&spec);
    rc = ps_partition_by_parse("list:1,2,3", &spec, NULL);
    if (rc == PSD_OK && !ps_partition_by_format(&spec, &buffer)) {
        cr_assert_eq(buffer.size, 0);
        rc = PSD_NOMEM;
    }
    return rc;
}

Test(table_text, partitions_without_memory)
{
    cr_assert_null(fail_alloc_sweep(parse_and_format, NULL));
}

Test(table_text, updaters_and_inits_are_printed)
{
    char text[PS_SPEC_TEXT_SIZE];
    ps_updater_spec_t ftrl = {
        .kind = PS_UPDATER_FTRL, .alpha = 0.1, .beta = 1, .l1 = 1e-30, .l2 = 3};
    ps_updater_spec_t sgd = {.kind = PS_UPDATER_SGD, .alpha = 0.5};
    ps_updater_spec_t add = {.kind = PS_UPDATER_ADD, .alpha = 7};
    ps_init_spec_t uniform = {.kind = PS_INIT_UNIFORM, .a = -0.05, .b = 0x1p63};
    ps_init_spec_t constant = {.kind = PS_INIT_CONSTANT, .a = 3};
    ps_init_spec_t zero = {.kind = PS_INIT_ZERO};

    ps_updater_spec_format(&ftrl, text);
    cr_assert_str_eq(text, "ftrl:alpha=0.1,beta=1,l1=1e-30,l2=3");
    ps_updater_spec_format(&sgd, text);
    cr_assert_str_eq(text, "sgd:alpha=0.5,l1=0,l2=0");
    ps_updater_spec_format(&add, text);
    cr_assert_str_eq(text, "add");
    ps_init_spec_format(&uniform, text);
    cr_assert_str_eq(text, "uniform:-0.05,9.223372036854776e+18");
    ps_init_spec_format(&constant, text);
    cr_assert_str_eq(text, "constant:3");
    ps_init_spec_format(&zero, text);
    cr_assert_str_eq(text, "zero");
    cr_assert_str_eq(ps_updater_name((ps_updater_kind_t)0), "?");
    cr_assert_str_eq(ps_init_name((ps_init_kind_t)0), "?");
}

/* Any finite double: from its bits. */
static double any_double(ps_rng_t *rng)
{
    double value = NAN;

    while (!isfinite(value)) {
        uint64_t bits = ps_rng_u64(rng);

        memcpy(&value, &bits, sizeof value);
    }
    return value;
}

Test(table_text, numbers_read_back_to_the_same_bits)
{
    ps_rng_t rng = {21};

    for (int i = 0; i < 3000; i++) {
        ps_updater_spec_t updater = {.kind = PS_UPDATER_ADAGRAD,
                                     .alpha = any_double(&rng),
                                     .beta = any_double(&rng),
                                     .l1 = any_double(&rng),
                                     .l2 = any_double(&rng)};
        ps_init_spec_t init = {
            .kind = PS_INIT_NORMAL, .a = any_double(&rng), .b = ps_rng_f64(&rng)};
        ps_init_spec_t init_back = {.kind = PS_INIT_ZERO};
        char text[PS_SPEC_TEXT_SIZE];

        ps_updater_spec_format(&updater, text);
        read_updater(text, updater);
        ps_init_spec_format(&init, text);
        cr_assert_eq(ps_init_spec_parse(text, &init_back, NULL), PSD_OK, "%s", text);
        cr_assert_eq(init_back.a, init.a);
        cr_assert_eq(init_back.b, init.b);
    }
}

/* A program that links the library may have set any locale. */
Test(table_text, the_locale_does_not_matter)
{
    ps_init_spec_t init = {.kind = PS_INIT_CONSTANT, .a = -1.5e-7};
    char text[PS_SPEC_TEXT_SIZE];

    /* Whichever with a decimal comma is installed; C always is. */
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL) {
        cr_assert_not_null(setlocale(LC_ALL, "C"));
    }
    ps_init_spec_format(&init, text);
    cr_assert_str_eq(text, "constant:-1.5e-07");
    read_init(text, PS_INIT_CONSTANT, -1.5e-7, 0);
}
