/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "cli/run/cli.h"
#include "cli/watch/check.h"

static json_t *parse(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);

    cr_assert_not_null(value, "%s", text);
    return value;
}

static void assert_health(const char *status, ps_verdict_t verdict, const char *text)
{
    PSD_AUTO(ps_json_unref) json_t *doc = parse(status);
    ps_check_t check = {.name = "health", .unit = ""};

    ps_check_health(&check, doc);
    cr_assert_eq(check.verdict, verdict);
    cr_assert_str_eq(check.text, text);
}

Test(check, health_is_what_the_status_says)
{
    assert_health("{\"cluster\":{\"healthy\":true},\"nodes\":[{},{}],\"tables\":3,"
                  "\"problems\":[],\"warnings\":[]}",
                  PS_VERDICT_OK, "healthy, 2 nodes, 3 tables");
    assert_health("{\"cluster\":{\"healthy\":true},\"problems\":[],\"warnings\":[\"old\"]}",
                  PS_VERDICT_WARNING, "old");
    assert_health("{\"cluster\":{\"healthy\":false},\"problems\":[\"node b is down\",\"x\"],"
                  "\"warnings\":[\"old\"]}",
                  PS_VERDICT_CRITICAL, "node b is down (and more)");
    assert_health("{\"cluster\":{\"healthy\":false},\"problems\":[{\"text\":\"t\"}]}",
                  PS_VERDICT_CRITICAL, "t");
    assert_health("{}", PS_VERDICT_CRITICAL, "not healthy");
}

Test(check, lag_is_that_of_the_worst_copy_of_all_tables)
{
    PSD_AUTO(ps_json_unref)
    json_t *a = parse("{\"table\":{\"name\":\"a\",\"partitions\":[{\"id\":4,\"copies\":["
                      "{\"place\":\"n1/0\",\"lag_s\":0},{\"place\":\"n2/1\",\"lag_s\":2.5}]}]}}");
    PSD_AUTO(ps_json_unref)
    json_t *b = parse("{\"table\":{\"name\":\"b\",\"partitions\":[{\"id\":0,\"copies\":["
                      "{\"place\":\"n1/0\",\"lag_s\":1.5}]}]}}");
    ps_check_t check = {.name = "lag", .unit = "s", .warn = 1, .crit = 10};

    ps_check_lag(&check, a);
    ps_check_lag(&check, b);
    cr_assert_eq(check.verdict, PS_VERDICT_WARNING);
    cr_assert_float_eq(check.value, 2.5, 1e-9);
    cr_assert_str_eq(check.text, "the copy on n2/1 of partition 4 of table a lags 2.5 s");

    check = (ps_check_t){.warn = 1, .crit = 2.5};
    ps_check_lag(&check, a);
    cr_assert_eq(check.verdict, PS_VERDICT_CRITICAL);
}

Test(check, without_lag_all_is_well)
{
    PSD_AUTO(ps_json_unref)
    json_t *a = parse("{\"table\":{\"name\":\"a\",\"partitions\":[{\"id\":0,\"copies\":["
                      "{\"place\":\"n1/0\",\"lag_s\":0}]}]}}");
    ps_check_t check = {.warn = 1, .crit = 10};

    ps_check_lag(&check, a);
    cr_assert_eq(check.verdict, PS_VERDICT_OK);
    cr_assert_str_eq(check.text, "no copy lags");
}

Test(check, clocks_name_the_worker_that_waits_longest)
{
    PSD_AUTO(ps_json_unref)
    json_t *clocks = parse("{\"workers\":[{\"worker\":0,\"clock\":7,\"waiting_s\":null},"
                           "{\"worker\":1,\"clock\":8,\"waiting_s\":90},"
                           "{\"worker\":2,\"clock\":8,\"waiting_s\":70}]}");
    ps_check_t check = {.warn = 60, .crit = 300};

    ps_check_clocks(&check, "lr", clocks);
    cr_assert_eq(check.verdict, PS_VERDICT_WARNING);
    cr_assert_str_eq(check.text, "worker 1 of job lr has waited 90 s at clock 8");
}

Test(check, backup_is_as_old_as_the_newest_whole_checkpoint)
{
    PSD_AUTO(ps_json_unref)
    json_t *list = parse("{\"checkpoints\":["
                         "{\"name\":\"a\",\"state\":\"whole\",\"created_unix_ms\":1000},"
                         "{\"name\":\"b\",\"state\":\"whole\",\"created_unix_ms\":50000},"
                         "{\"name\":\"c\",\"state\":\"damaged\",\"created_unix_ms\":90000}]}");
    PSD_AUTO(ps_json_unref) json_t *none = parse("{\"checkpoints\":[]}");
    ps_check_t check = {.warn = 30, .crit = 60};

    ps_check_backup(&check, list, 100000);
    cr_assert_eq(check.verdict, PS_VERDICT_WARNING);
    cr_assert_str_eq(check.text, "the newest checkpoint, b, is 50 s old");

    check = (ps_check_t){.warn = 30, .crit = 60};
    ps_check_backup(&check, none, 100000);
    cr_assert_eq(check.verdict, PS_VERDICT_CRITICAL);
}
