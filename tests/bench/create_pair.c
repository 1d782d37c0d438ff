/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long it takes to create a table in one cluster, and in another: in turns, so
 * that both have the same machine. Prints the medians and ninth tenths in ms.
 *
 *     create_pair ENDPOINT ENDPOINT N
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <psd.h>

#define N_MAX 100000

typedef struct side {
    psd_client_t *client;
    double *took_ms;
} side_t;

static double now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int order(const void *a, const void *b)
{
    const double *one = a;
    const double *other = b;

    return *one < *other ? -1 : *one > *other;
}

/* The first one is not counted. */
static psd_status_t create(side_t *self, const psd_spec_t *spec, size_t i, psd_error_t *err)
{
    psd_table_t *table = NULL;
    char name[32];
    double begin_ms = 0;
    psd_status_t rc = PSD_OK;

    (void)snprintf(name, sizeof name, "pair-%zu", i);
    begin_ms = now_ms();
    rc = psd_table_create(self->client, name, spec, &table, err);
    if (i > 0) {
        self->took_ms[i - 1] = now_ms() - begin_ms;
    }
    psd_table_close(&table);
    return rc;
}

static psd_status_t measure(side_t sides[2], size_t n, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_status_t rc = spec == NULL ? PSD_NOMEM : psd_spec_set(spec, "rows", "1000", err);

    for (size_t i = 0; rc == PSD_OK && i <= n; i++) {
        size_t first = i % 2;

        rc = create(&sides[first], spec, i, err);
        if (rc == PSD_OK) {
            rc = create(&sides[1 - first], spec, i, err);
        }
    }
    psd_spec_destroy(&spec);
    for (int i = 0; rc == PSD_OK && i < 2; i++) {
        qsort(sides[i].took_ms, n, sizeof(double), order);
        (void)printf("%.3f %.3f\n", sides[i].took_ms[n / 2], sides[i].took_ms[n * 9 / 10]);
    }
    return rc;
}

int main(int n_args, char **args)
{
    side_t sides[2] = {{NULL, NULL}, {NULL, NULL}};
    psd_error_t *err = psd_error_new();
    long n = n_args == 4 ? strtol(args[3], NULL, 10) : 0;
    psd_status_t rc = PSD_OK;

    if (n < 1 || n > N_MAX || err == NULL) {
        (void)fprintf(stderr, "usage: create_pair ENDPOINT ENDPOINT N\n");
        return 2;
    }
    for (int i = 0; rc == PSD_OK && i < 2; i++) {
        sides[i].took_ms = calloc((size_t)n, sizeof(double));
        rc = sides[i].took_ms == NULL ? PSD_NOMEM
                                      : psd_connect(args[1 + i], NULL, &sides[i].client, err);
    }
    if (rc == PSD_OK) {
        rc = measure(sides, (size_t)n, err);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "create_pair: %s\n", psd_error_text(err));
    }
    for (int i = 0; i < 2; i++) {
        psd_close(&sides[i].client);
        free(sides[i].took_ms);
    }
    psd_error_destroy(&err);
    return rc == PSD_OK ? 0 : 1;
}
