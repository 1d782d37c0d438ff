/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/facts/table_doc.h: specs and routes in JSON. */
#include "protocol/facts/table_doc.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

static psd_error_t *err;

static void make_error(void)
{
    err = psd_error_new();
    cr_assert_not_null(err);
}

static void drop_error(void)
{
    psd_error_destroy(&err);
}

TestSuite(table_doc, .init = make_error, .fini = drop_error);

static ps_table_spec_t spec_of(const char *updater, const char *init, const char *partition_by)
{
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    memcpy(spec.name, "w", 2);
    spec.n_rows = 1000;
    spec.n_cols = 3;
    spec.n_col_slices = 1;
    spec.n_partitions = 3;
    cr_assert_eq(ps_updater_spec_parse(updater, &spec.updater, err), PSD_OK);
    cr_assert_eq(ps_init_spec_parse(init, &spec.init, err), PSD_OK);
    cr_assert_eq(ps_partition_by_parse(partition_by, &spec, err), PSD_OK);
    return spec;
}

static psd_status_t parse_spec(const char *text, ps_table_spec_t *ret_spec);

Test(table_doc, hash_keys_are_partitioned_by_hash_unless_said_otherwise)
{
    static const struct {
        const char *text;
        ps_partition_by_t by;
    } cases[] = {
        {"{\"name\":\"w\",\"keys\":\"hash\"}", PS_PARTITION_BY_HASH},
        {"{\"name\":\"w\",\"rows\":9}", PS_PARTITION_BY_RANGE},
        {"{\"name\":\"w\",\"keys\":\"hash\",\"partition_by\":\"range\"}", PS_PARTITION_BY_RANGE},
        {"{\"name\":\"w\",\"rows\":9,\"partition_by\":\"hash\"}", PS_PARTITION_BY_HASH}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ps_table_spec_t spec = {0};

        cr_assert_eq(parse_spec(cases[i].text, &spec), PSD_OK, "%s", psd_error_text(err));
        cr_expect_eq(spec.partition_by, cases[i].by, "%s", cases[i].text);
        ps_table_spec_done(&spec);
    }
}

static char *print_spec(const ps_table_spec_t *spec)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_buffer_t text = {0};

    cr_assert_not_null(doc);
    cr_assert(ps_table_spec_to_doc(spec, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    return (char *)text.data;
}

static psd_status_t parse_spec(const char *text, ps_table_spec_t *ret_spec)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    ps_bytes_t bytes = {(const uint8_t *)text, strlen(text)};

    psd_error_clear(err);
    cr_assert_eq(ps_doc_parse(bytes, &doc, err), PSD_OK, "%s", text);
    return ps_table_spec_from_doc(doc, ret_spec, err);
}

Test(table_doc, spec_has_the_words_of_table_inspect)
{
    PSD_AUTO(ps_table_spec_done)
    ps_table_spec_t spec = spec_of("add", "zero", "range");
    PSD_AUTO(ps_free_at) char *text = print_spec(&spec);

    cr_assert_str_eq(text, "{\"name\":\"w\",\"rows\":1000,\"cols\":3,\"type\":\"f32\","
                           "\"row_format\":\"dense\",\"keys\":\"range\","
                           "\"updater\":{\"name\":\"add\"},\"init\":{\"name\":\"zero\"},"
                           "\"seed\":0,\"n_partitions\":3,\"n_col_slices\":1,"
                           "\"partition_by\":\"range\",\"replicas\":1,\"ack\":\"memory\","
                           "\"allow_nonfinite\":false,\"combine\":\"each\"}");
}

Test(table_doc, only_parameters_that_apply_are_written)
{
    static const char *const cases[][3] = {
        {"sgd:alpha=0.5,l1=0,l2=1", "constant:2",
         "\"updater\":{\"name\":\"sgd\",\"alpha\":0.5,\"l1\":0.0,\"l2\":1.0},"
         "\"init\":{\"name\":\"constant\",\"value\":2.0}"},
        {"adagrad:alpha=0.5,beta=1,l1=0,l2=0", "uniform:-1,1",
         "\"updater\":{\"name\":\"adagrad\",\"alpha\":0.5,\"beta\":1.0,"
         "\"l1\":0.0,\"l2\":0.0},"
         "\"init\":{\"name\":\"uniform\",\"low\":-1.0,\"high\":1.0}"},
        {"dcasgd:alpha=0.5,lambda=0.25,workers=4", "constant:2",
         "\"updater\":{\"name\":\"dcasgd\",\"alpha\":0.5,\"lambda\":0.25,"
         "\"workers\":4},"},
        {"plugin:mine:a=\"1\"", "constant:2",
         "\"updater\":{\"name\":\"plugin\",\"plugin\":\"mine\","
         "\"parameters\":\"a=\\\"1\\\"\"},"},
        {"assign", "normal:0,0.5",
         "\"updater\":{\"name\":\"assign\"},"
         "\"init\":{\"name\":\"normal\",\"mean\":0.0,\"std\":0.5}"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PSD_AUTO(ps_table_spec_done)
        ps_table_spec_t spec = spec_of(cases[i][0], cases[i][1], "hash");
        PSD_AUTO(ps_free_at) char *text = print_spec(&spec);

        cr_assert_not_null(strstr(text, cases[i][2]), "%s", text);
    }
}

static void assert_comes_back(const ps_table_spec_t *spec)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t back = {0};
    PSD_AUTO(ps_free_at) char *text = print_spec(spec);
    PSD_AUTO(ps_free_at) char *again = NULL;

    cr_assert_eq(parse_spec(text, &back), PSD_OK, "%s: %s", text, psd_error_text(err));
    again = print_spec(&back);
    cr_assert_str_eq(text, again);
}

Test(table_doc, every_spec_comes_back_as_it_was)
{
    static const char *const updaters[] = {"add",
                                           "assign",
                                           "sgd:alpha=0.1,l1=1e-9,l2=3",
                                           "adagrad:alpha=0.3333333333333333,beta=1,l1=0,l2=0.5",
                                           "ftrl:alpha=0.1,beta=1,l1=1,l2=1",
                                           "momentum:alpha=0.5,momentum=0.25",
                                           "nesterov:alpha=0.5,momentum=0.25",
                                           "adamw:alpha=0.5,beta1=0.1,beta2=0.2,eps=0.3,decay=0.4",
                                           "rmsprop:alpha=0.5,rho=0.25,eps=1",
                                           "min",
                                           "dcasgd:alpha=0.5,lambda=0.25,workers=255",
                                           "plugin:mine",
                                           "plugin:mine:a=1,b=\"\\"};
    static const char *const partitions[] = {"range", "hash", "list:10,999"};

    for (size_t i = 0; i < sizeof updaters / sizeof *updaters; i++) {
        for (size_t j = 0; j < 3; j++) {
            PSD_AUTO(ps_table_spec_done)
            ps_table_spec_t spec = spec_of(updaters[i], "zero", partitions[j]);

            spec.seed = UINT64_MAX - i;
            spec.allow_nonfinite = i == 1;
            spec.versions = i == 2;
            spec.combine = spec.updater.kind == PS_UPDATER_DCASGD ? PS_COMBINE_EACH
                                                                  : (ps_combine_t)(1 + (i + j) % 3);
            spec.type = i == 0 ? PS_TYPE_I64 : PS_TYPE_F64;
            spec.row_format = (ps_row_format_t)(1 + (i + j) % 3);
            assert_comes_back(&spec);
        }
    }
}

Test(table_doc, big_rows_of_hash_keys_come_back)
{
    PSD_AUTO(ps_table_spec_done)
    ps_table_spec_t spec = spec_of("add", "zero", "list:9223372036854775808,18446744073709551615");

    spec.keys = PS_KEYS_HASH;
    spec.n_rows = 0;
    assert_comes_back(&spec);
}

Test(table_doc, what_is_missing_is_the_default)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};

    cr_assert_eq(parse_spec("{\"name\":\"w\",\"rows\":7}", &spec), PSD_OK);
    cr_assert_str_eq(spec.name, "w");
    cr_assert_eq(spec.n_rows, 7);
    cr_assert_eq(spec.n_cols, 1);
    cr_assert_eq(spec.type, PS_TYPE_F32);
    cr_assert_eq(spec.row_format, PS_ROW_DENSE);
    cr_assert_eq(spec.keys, PS_KEYS_RANGE);
    cr_assert_eq(spec.updater.kind, PS_UPDATER_ADD);
    cr_assert_eq(spec.init.kind, PS_INIT_ZERO);
    cr_assert_eq(spec.ack, PS_ACK_MEMORY);
    cr_assert_eq(spec.replicas, 1);
    cr_assert_eq(spec.n_partitions, 0, "the cluster chooses");
    cr_assert_eq(spec.n_col_slices, 0, "the cluster chooses");
}

Test(table_doc, missing_parameters_are_those_of_the_word_alone)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};
    ps_updater_spec_t plain = {0};

    cr_assert_eq(ps_updater_spec_parse("ftrl", &plain, err), PSD_OK);
    cr_assert_eq(parse_spec("{\"name\":\"w\",\"rows\":7,"
                            "\"updater\":{\"name\":\"ftrl\",\"l1\":2}}",
                            &spec),
                 PSD_OK);
    cr_assert_eq(spec.updater.alpha, plain.alpha);
    cr_assert_eq(spec.updater.beta, plain.beta);
    cr_assert_eq(spec.updater.l1, 2.0);
}

static const struct {
    const char *text;
    psd_status_t status;
    const char *says[3];
} wrong_specs[] = {
    {"{}", PSD_PROTO, {"name"}},
    {"{\"name\":7}", PSD_PROTO, {"name"}},
    {"{\"name\":\".w\",\"rows\":1}", PSD_INVALID, {"name", "\".w\""}},
    {"{\"name\":\"w\",\"rows\":0}", PSD_INVALID, {"rows", "0"}},
    {"{\"name\":\"w\",\"rows\":-1}", PSD_INVALID, {"rows", "-1"}},
    {"{\"name\":\"w\",\"rows\":1.5}", PSD_PROTO, {"rows"}},
    {"{\"name\":\"w\",\"rows\":1099511627777}",
     PSD_INVALID,
     {"rows", "1099511627777", "1099511627776"}},
    {"{\"name\":\"w\",\"rows\":1,\"cols\":0}", PSD_INVALID, {"cols", "0", "1.."}},
    {"{\"name\":\"w\",\"rows\":1,\"type\":\"f16\"}", PSD_INVALID, {"type", "f16", "f32"}},
    {"{\"name\":\"w\",\"rows\":1,\"row_format\":\"flat\"}",
     PSD_INVALID,
     {"row_format", "flat", "sparse"}},
    {"{\"name\":\"w\",\"rows\":1,\"keys\":\"any\"}", PSD_INVALID, {"keys", "any", "hash"}},
    {"{\"name\":\"w\",\"rows\":1,\"keys\":\"hash\"}", PSD_INVALID, {"rows", "1"}},
    {"{\"name\":\"w\",\"rows\":1,\"ack\":\"paper\"}", PSD_INVALID, {"ack", "paper", "disk"}},
    {"{\"name\":\"w\",\"rows\":1,\"updater\":{\"name\":\"lamb\"}}",
     PSD_INVALID,
     {"updater", "lamb", "dcasgd"}},
    {"{\"name\":\"w\",\"rows\":1,\"updater\":{\"name\":\"plugin\"}}",
     PSD_PROTO,
     {"updater", "plugin"}},
    {"{\"name\":\"w\",\"rows\":1,\"updater\":{\"name\":\"plugin\","
     "\"plugin\":\"../../x\"}}",
     PSD_INVALID,
     {"../../x", "letters"}},
    {"{\"name\":\"w\",\"rows\":1,\"updater\":{\"name\":\"plugin\","
     "\"plugin\":\"x\",\"parameters\":7}}",
     PSD_PROTO,
     {"updater", "parameters"}},
    {"{\"name\":\"w\",\"rows\":1,\"updater\":{\"name\":\"dcasgd\","
     "\"workers\":1.5}}",
     PSD_INVALID,
     {"workers", "1.5", "1..255"}},
    {"{\"name\":\"w\",\"rows\":1,\"updater\":{\"name\":\"sgd:alpha=1\"}}",
     PSD_INVALID,
     {"updater", "sgd:alpha=1"}},
    {"{\"name\":\"w\",\"rows\":1,\"updater\":\"sgd\"}", PSD_PROTO, {"updater"}},
    {"{\"name\":\"w\",\"rows\":1,"
     "\"updater\":{\"name\":\"sgd\",\"alpha\":-1}}",
     PSD_INVALID,
     {"alpha", "-1"}},
    {"{\"name\":\"w\",\"rows\":1,\"type\":\"i32\","
     "\"updater\":{\"name\":\"ftrl\"}}",
     PSD_INVALID,
     {"ftrl"}},
    {"{\"name\":\"w\",\"rows\":1,\"init\":{\"name\":\"one\"}}",
     PSD_INVALID,
     {"init", "one", "uniform"}},
    {"{\"name\":\"w\",\"rows\":1,\"init\":{\"name\":\"uniform\"}}", PSD_PROTO, {"low"}},
    {"{\"name\":\"w\",\"rows\":1,"
     "\"init\":{\"name\":\"uniform\",\"low\":2,\"high\":1}}",
     PSD_INVALID,
     {"init"}},
    {"{\"name\":\"w\",\"rows\":1,\"n_partitions\":4097}",
     PSD_INVALID,
     {"n_partitions", "4097", "4096"}},
    {"{\"name\":\"w\",\"rows\":9,\"cols\":4,\"n_partitions\":3,"
     "\"n_col_slices\":2}",
     PSD_INVALID,
     {"3"}},
    {"{\"name\":\"w\",\"rows\":9,\"partition_by\":\"luck\"}",
     PSD_INVALID,
     {"partition_by", "luck", "hash"}},
    {"{\"name\":\"w\",\"rows\":9,\"partition_by\":\"list\"}", PSD_PROTO, {"boundaries"}},
    {"{\"name\":\"w\",\"rows\":9,\"partition_by\":\"list\","
     "\"boundaries\":[5,5]}",
     PSD_INVALID,
     {"5"}},
    {"{\"name\":\"w\",\"rows\":9,\"partition_by\":\"list\","
     "\"boundaries\":[\"x\"]}",
     PSD_PROTO,
     {"boundaries"}},
    {"{\"name\":\"w\",\"rows\":1,\"replicas\":0}", PSD_INVALID, {"replicas", "0"}},
    {"{\"name\":\"w\",\"rows\":1,\"allow_nonfinite\":\"yes\"}", PSD_PROTO, {"allow_nonfinite"}},
    {"{\"name\":\"w\",\"rows\":1,\"versions\":\"yes\"}", PSD_PROTO, {"versions"}},
    {"{\"name\":\"w\",\"rows\":1,\"combine\":\"sum\"}",
     PSD_INVALID,
     {"combine", "sum", "clock-mean"}},
    {"{\"name\":\"w\",\"rows\":1,\"seed\":-5}", PSD_INVALID, {"seed"}},
};

Test(table_doc, wrong_specs_are_refused_by_field_value_and_what_is_allowed)
{
    for (size_t i = 0; i < sizeof wrong_specs / sizeof *wrong_specs; i++) {
        ps_table_spec_t spec = {.n_rows = 42};

        cr_assert_eq(parse_spec(wrong_specs[i].text, &spec), wrong_specs[i].status, "%s: %s",
                     wrong_specs[i].text, psd_error_text(err));
        cr_assert_eq(psd_error_status(err), wrong_specs[i].status);
        cr_assert_eq(spec.n_rows, 42, "nothing is set on failure");
        for (size_t j = 0; j < 3 && wrong_specs[i].says[j] != NULL; j++) {
            cr_assert_not_null(strstr(psd_error_text(err), wrong_specs[i].says[j]), "%s: %s",
                               wrong_specs[i].text, psd_error_text(err));
        }
    }
}

static psd_status_t read_list_spec(void *fixture)
{
    static const char text[] = "{\"name\":\"w\",\"rows\":9,\"partition_by\":\"list\","
                               "\"boundaries\":[2,5],\"updater\":{\"name\":\"sgd\"}}";
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};
    ps_bytes_t bytes = {(const uint8_t *)text, sizeof text - 1};
    psd_status_t rc = ps_doc_parse(bytes, &doc, NULL);

    (void)fixture;
    return rc == PSD_OK ? ps_table_spec_from_doc(doc, &spec, NULL) : rc;
}

static psd_status_t write_list_spec(void *fixture)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();

    if (doc == NULL) {
        return PSD_NOMEM;
    }
    return ps_table_spec_to_doc(fixture, doc) ? PSD_OK : PSD_NOMEM;
}

Test(table_doc, no_memory_is_said_and_nothing_leaks)
{
    PSD_AUTO(ps_table_spec_done)
    ps_table_spec_t spec = spec_of("sgd", "normal:0,1", "list:2,5");

    cr_assert_null(fail_alloc_sweep(read_list_spec, NULL));
    cr_assert_null(fail_alloc_sweep(write_list_spec, &spec));
}

/* Routes */

static psd_status_t parse_routes(const char *text, ps_route_t **ret_routes, uint32_t *ret_n)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    const ps_doc_t *array = NULL;
    ps_bytes_t bytes = {(const uint8_t *)text, strlen(text)};

    psd_error_clear(err);
    cr_assert_eq(ps_doc_parse(bytes, &doc, err), PSD_OK, "%s", text);
    cr_assert_eq(ps_doc_get_array(doc, "routes", 100000, &array, err), PSD_OK);
    return ps_routes_from_doc(array, ret_routes, ret_n, err);
}

Test(table_doc, routes_come_back_as_they_were)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(ps_free_at) ps_route_t *back = NULL;
    ps_route_t routes[2] = {
        {.partition = 0,
         .epoch = 1,
         .incarnation = UINT64_MAX,
         .shard = 1,
         .tcp = "tcp://127.0.0.1:4000",
         .ipc = "ipc:///run/psd/1"},
        {.partition = 1, .epoch = UINT64_MAX, .incarnation = 1, .tcp = "tcp://[::1]:4001"}};
    uint32_t n = 0;

    cr_assert(ps_routes_to_doc(routes, 2, ps_doc_add_array(doc, "routes")));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    cr_assert_eq(parse_routes((const char *)text.data, &back, &n), PSD_OK);
    cr_assert_eq(n, 2);
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(back[i].partition, routes[i].partition);
        cr_assert_eq(back[i].epoch, routes[i].epoch);
        cr_assert_eq(back[i].incarnation, routes[i].incarnation);
        cr_assert_eq(back[i].shard, routes[i].shard);
        cr_assert_str_eq(back[i].tcp, routes[i].tcp);
        cr_assert_str_eq(back[i].ipc, routes[i].ipc);
    }
}

Test(table_doc, wrong_routes_are_refused)
{
    static const struct {
        const char *text;
        psd_status_t status;
        const char *says;
    } cases[] = {
        {"{\"routes\":[]}", PSD_PROTO, "0; allowed: 1..4096"},
        {"{\"routes\":[7]}", PSD_PROTO, ""},
        {"{\"routes\":[{}]}", PSD_PROTO, "partition"},
        {"{\"routes\":[{\"partition\":1,\"epoch\":1,\"incarnation\":1,"
         "\"shard\":0,\"tcp\":\"tcp://a:1\",\"ipc\":\"\"}]}",
         PSD_INVALID, "partition"},
        {"{\"routes\":[{\"partition\":0,\"epoch\":0,\"incarnation\":1,"
         "\"shard\":0,\"tcp\":\"tcp://a:1\",\"ipc\":\"\"}]}",
         PSD_INVALID, "epoch"},
        {"{\"routes\":[{\"partition\":0,\"epoch\":1,\"incarnation\":1,"
         "\"shard\":4294967296,\"tcp\":\"tcp://a:1\",\"ipc\":\"\"}]}",
         PSD_INVALID, "shard"},
        {"{\"routes\":[{\"partition\":0,\"epoch\":1,\"incarnation\":1,"
         "\"shard\":0,\"tcp\":7,\"ipc\":\"\"}]}",
         PSD_PROTO, "tcp"},
        {"{\"routes\":[{\"partition\":0,\"epoch\":1,\"incarnation\":1,"
         "\"tcp\":\"tcp://a:1\",\"ipc\":\"\"}]}",
         PSD_PROTO, "shard"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ps_route_t *routes = NULL;
        uint32_t n = 0;

        cr_assert_eq(parse_routes(cases[i].text, &routes, &n), cases[i].status, "%s: %s",
                     cases[i].text, psd_error_text(err));
        cr_assert_not_null(strstr(psd_error_text(err), cases[i].says), "%s: %s", cases[i].text,
                           psd_error_text(err));
        cr_assert_null(routes);
    }
}

Test(table_doc, endpoints_longer_than_a_route_holds_are_refused)
{
    ps_route_t *routes = NULL;
    uint32_t n = 0;
    char tcp[PS_ENDPOINT_MAX + 2];
    char text[1024];

    memset(tcp, 'a', sizeof tcp - 1);
    tcp[sizeof tcp - 1] = '\0';
    (void)snprintf(text, sizeof text,
                   "{\"routes\":[{\"partition\":0,\"epoch\":1,"
                   "\"incarnation\":1,\"shard\":0,\"tcp\":\"%s\","
                   "\"ipc\":\"\"}]}",
                   tcp);
    cr_assert_neq(parse_routes(text, &routes, &n), PSD_OK);
    cr_assert_not_null(strstr(psd_error_text(err), "tcp"));
    cr_assert_null(routes);
}

static psd_status_t read_routes(void *fixture)
{
    static const char text[] = "{\"routes\":[{\"partition\":0,\"epoch\":1,\"incarnation\":1,"
                               "\"shard\":0,\"tcp\":\"tcp://a:1\",\"ipc\":\"\"}]}";
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;
    const ps_doc_t *array = NULL;
    ps_bytes_t bytes = {(const uint8_t *)text, sizeof text - 1};
    uint32_t n = 0;
    psd_status_t rc = ps_doc_parse(bytes, &doc, NULL);

    (void)fixture;
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(doc, "routes", 10, &array, NULL);
    }
    return rc == PSD_OK ? ps_routes_from_doc(array, &routes, &n, NULL) : rc;
}

Test(table_doc, no_memory_for_routes_is_said_and_nothing_leaks)
{
    cr_assert_null(fail_alloc_sweep(read_routes, NULL));
}

Test(table_doc, filter_is_written_in_one_order_and_checked)
{
    static const char *const wrong[][2] = {
        {"\"filter\":\"f16+bf16\"", "filter names \"bf16\""},
        {"\"type\":\"i64\",\"filter\":\"f16\"", "filter f16 rounds values"},
        {"\"updater\":{\"name\":\"adagrad\"},\"filter\":\"topk=0.5\"",
         "filter topk sends values late"},
    };
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};
    PSD_AUTO(ps_free_at) char *text = NULL;

    cr_assert_eq(parse_spec("{\"name\":\"w\",\"rows\":1,"
                            "\"filter\":\"f16,delta\"}",
                            &spec),
                 PSD_OK);
    cr_assert_str_eq(spec.filter, "delta+f16");
    text = print_spec(&spec);
    cr_assert_not_null(strstr(text, "\"filter\":\"delta+f16\""));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ps_table_spec_t bad = {0};
        char json[200];

        (void)snprintf(json, sizeof json, "{\"name\":\"w\",\"rows\":1,%s}", wrong[i][0]);
        cr_assert_eq(parse_spec(json, &bad), PSD_INVALID);
        cr_assert_not_null(strstr(psd_error_text(err), wrong[i][1]), "%s", psd_error_text(err));
    }
}
