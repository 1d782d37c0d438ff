/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes over ends and links, and the slowest of them. */
#include "protocol/overlay/network.h"

#include <math.h>

#include "base/alloc.h"

uint64_t ps_load_bytes(const ps_load_t *load, uint32_t n_nodes, uint32_t colour)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < n_nodes; i++) {
        all += load->bytes[(size_t)colour * n_nodes + i];
    }
    return all;
}

double ps_network_rate(const ps_network_t *network, uint32_t from, uint32_t to)
{
    return network->rates[(size_t)from * (network->n_workers + network->n_nodes) + to];
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double ps_network_hop_s(const ps_network_t *network, const ps_load_t *load, double rate)
{
    return network->latency_s + (double)load->chunk_bytes / rate;
}

/* The slowest way to the nodes of one chunk. */
double ps_network_direct_hop_s(const ps_network_t *network, const ps_load_t *load, uint32_t colour,
                               uint32_t from)
{
    double slowest = 0;

    for (uint32_t i = 0; i < network->n_nodes; i++) {
        double rate = ps_network_rate(network, from, network->n_workers + i);

        if (load->bytes[(size_t)colour * network->n_nodes + i] > 0) {
            slowest = larger(slowest, rate > 0 ? ps_network_hop_s(network, load, rate) : INFINITY);
        }
    }
    return slowest;
}

void ps_traffic_done(ps_traffic_t *self)
{
    ps_free(self->out);
    ps_free(self->in);
    ps_free(self->links);
}

bool ps_traffic_init(ps_traffic_t *self, const ps_network_t *network)
{
    size_t n_ends = (size_t)network->n_workers + network->n_nodes;

    *self = (ps_traffic_t){.out = ps_alloc(n_ends, sizeof *self->out),
                           .in = ps_alloc(n_ends, sizeof *self->in),
                           .links = ps_alloc(n_ends * n_ends, sizeof *self->links)};
    return self->out != NULL && self->in != NULL && self->links != NULL;
}

void ps_traffic_add(ps_traffic_t *self, const ps_network_t *network, const ps_load_t *load,
                    uint32_t colour, const uint32_t *parents, double sign)
{
    uint32_t n_ends = network->n_workers + network->n_nodes;
    const uint64_t *bytes = &load->bytes[(size_t)colour * network->n_nodes];
    double all = (double)ps_load_bytes(load, network->n_nodes, colour);

    for (uint32_t i = 0; i < network->n_workers; i++) {
        self->out[i] += sign * all;
        if (parents[i] != PS_OVERLAY_NODES) {
            self->in[parents[i]] += sign * all;
            self->links[(size_t)i * n_ends + parents[i]] += sign * all;
            continue;
        }
        for (uint32_t node = 0; node < network->n_nodes; node++) {
            uint32_t to = network->n_workers + node;

            self->in[to] += sign * (double)bytes[node];
            self->links[(size_t)i * n_ends + to] += sign * (double)bytes[node];
        }
    }
}

/* The slowest part of all traffic. */
static double slowest_part(const ps_network_t *network, const ps_traffic_t *traffic)
{
    uint32_t n_ends = network->n_workers + network->n_nodes;
    double slowest = 0;

    for (uint32_t i = 0; i < n_ends; i++) {
        slowest = larger(slowest, traffic->out[i] / network->out[i]);
        slowest = larger(slowest, traffic->in[i] / network->in[i]);
        for (uint32_t j = 0; j < n_ends; j++) {
            double bytes = traffic->links[(size_t)i * n_ends + j];

            if (bytes > 0) {
                double rate = ps_network_rate(network, i, j);

                slowest = larger(slowest, rate > 0 ? bytes / rate : INFINITY);
            }
        }
    }
    return slowest;
}

/* The longest way of a first chunk to the nodes. */
static double longest_way(const ps_network_t *network, const ps_load_t *load, uint32_t colour,
                          const uint32_t *parents)
{
    double longest = 0;

    for (uint32_t i = 0; i < network->n_workers; i++) {
        double way = 0;
        uint32_t at = i;

        for (uint32_t n = 0; parents[at] != PS_OVERLAY_NODES; n++) {
            double rate = ps_network_rate(network, at, parents[at]);

            if (rate <= 0 || n == network->n_workers) {
                return INFINITY; /* no way, or a circle */
            }
            way += ps_network_hop_s(network, load, rate);
            at = parents[at];
        }
        longest = larger(longest, way + ps_network_direct_hop_s(network, load, colour, at));
    }
    return longest;
}

double ps_traffic_seconds(const ps_traffic_t *self, const ps_network_t *network,
                          const ps_load_t *load, const uint32_t *parents)
{
    double way = 0;

    for (uint32_t colour = 0; colour < load->n_colours; colour++) {
        way = larger(
            way, longest_way(network, load, colour, &parents[(size_t)colour * network->n_workers]));
    }
    return slowest_part(network, self) + way;
}
