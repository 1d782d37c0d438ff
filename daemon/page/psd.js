/* SPDX-License-Identifier: Apache-2.0
 * The page of psd: asks /api/v1 every two seconds, and draws what it gets. What it shows over
 * time begins when the page is opened. Texts from psd are set as text, never as HTML. */
(() => {
"use strict";

const EVERY_MS = 2000;
const ASK_MS = 6000;       // for an answer
const KEEP = 900;          // looks that charts show: half an hour
const LINES_MAX = 10;      // workers with a colour of their own
const NODES_MAX = 64;      // that are asked for their shards
const COLOURS = ["#3b7dd8", "#e08a1e", "#2f9e63", "#c2528b", "#7a5fd0", "#1aa3a3", "#b5651d",
    "#8a9a1b", "#d2483f", "#6b7c93"];

// ---- small things ----

const byId = (id) => document.getElementById(id);

function h(tag, attrs, ...children) {
    const node = document.createElement(tag);

    for (const [key, value] of Object.entries(attrs || {})) {
        if (key === "class") {
            node.className = value;
        } else if (key.startsWith("on")) {
            node.addEventListener(key.slice(2), value);
        } else {
            node.setAttribute(key, value);
        }
    }
    for (const child of children.flat()) {
        if (child !== null && child !== undefined) {
            node.append(child);
        }
    }
    return node;
}

function setText(node, text) {
    if (node.textContent !== text) {
        node.textContent = text;
    }
}

const cssValue = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function num(value) {
    if (!Number.isFinite(value)) {
        return "–";
    }
    for (const [unit, size, from] of [["G", 1e9, 1e9], ["M", 1e6, 1e6], ["k", 1e3, 1e4]]) {
        if (Math.abs(value) >= from) {
            return (value / size).toFixed(1) + " " + unit;
        }
    }
    return Number.isInteger(value) || Math.abs(value) >= 100 ? String(Math.round(value))
        : value.toFixed(1);
}

function bytes(value) {
    for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
        if (value >= size) {
            return (value / size).toFixed(1) + " " + unit;
        }
    }
    return num(value) + " B";
}

function span(seconds) {
    if (!Number.isFinite(seconds)) {
        return "–";
    }
    if (seconds === 0) {
        return "0 s";
    }
    if (seconds < 0.0995) {
        return seconds < 0.000995 ? (seconds * 1e6).toFixed(0) + " us"
            : (seconds * 1e3).toFixed(1) + " ms";
    }
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
        if (seconds >= 2 * size) {
            return (seconds / size).toFixed(1) + " " + unit;
        }
    }
    return seconds.toFixed(1) + " s";
}

const clock = (unixMs) => new Date(unixMs).toLocaleString();
const sum = (list, get) => list.reduce((total, item) => total + (get(item) || 0), 0);
const bytesOf = (table) => sum(Object.values(table.bytes || {}), (value) => value);

// ---- asking ----

let token = sessionStorage.getItem("psd-token") || "";

// The link of "pscli page" has the token after #: it is in no request and no log.
function takeToken() {
    const found = /(?:^#|&)token=([0-9a-f]{64})/.exec(location.hash);

    if (found) {
        token = found[1];
        sessionStorage.setItem("psd-token", token);
        history.replaceState(null, "", location.pathname + "#/overview");
    }
}

class Refusal extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

async function ask(path) {
    const answer = await fetch(path, {
        headers: token ? { Authorization: "Bearer " + token } : {},
        signal: AbortSignal.timeout(ASK_MS),
    });
    const text = await answer.text();

    if (path.startsWith("/api/")) {
        if (!answer.ok) {
            let message = text.trim();

            try {
                const error = JSON.parse(text).error;

                message = error.code + " " + error.message;
            } catch { /* it is plain text */ }
            throw new Refusal(answer.status, message);
        }
        return JSON.parse(text);
    }
    if (answer.status === 401) {
        throw new Refusal(401, text.trim());
    }
    return text;
}

const api = (path) => ask("/api/v1/" + path);

// An answer, or the refusal in place of it: one that fails does not hide the others.
async function gently(asked) {
    try {
        return await asked;
    } catch (error) {
        if (error.status === 401) {
            throw error;
        }
        return { refused: error.message || String(error) };
    }
}

// ---- /metrics ----

// [{name, labels, value}] of the families whose names begin so.
function readMetrics(text, prefixes) {
    const found = [];

    for (const line of text.split("\n")) {
        const name = /^[a-z_]+/.exec(line);

        if (!name || !prefixes.some((prefix) => line.startsWith(prefix))) {
            continue;
        }
        const labels = {};

        for (const label of line.matchAll(/([a-z_]+)="([^"]*)"/g)) {
            labels[label[1]] = label[2];
        }
        found.push({ name: name[0], labels,
            value: Number(line.slice(line.lastIndexOf(" ") + 1)) });
    }
    return found;
}

const metricSum = (metrics, name, label, value) =>
    sum(metrics.filter((m) => m.name === name && (!label || m.labels[label] === value)),
        (m) => m.value);

// ---- history ----

const looks = new Map(); // of a name: {x: [], y: [[], …]}

function remember(name, x, values) {
    let kept = looks.get(name);

    if (!kept || kept.y.length !== values.length) {
        kept = { x: [], y: values.map(() => []) };
        looks.set(name, kept);
    }
    kept.x.push(x);
    values.forEach((value, i) => kept.y[i].push(Number.isFinite(value) ? value : null));
    if (kept.x.length > KEEP) {
        kept.x.shift();
        kept.y.forEach((list) => list.shift());
    }
    return [kept.x, ...kept.y];
}

const before = new Map(); // of a counter: its last value and time

// A second's growth of a counter; one that went back began again.
function rate(name, value, atS) {
    const last = before.get(name);
    let result = NaN;

    if (last && last.atS === atS) {
        return last.rate;
    }
    if (last && value >= last.value && atS > last.atS) {
        result = (value - last.value) / (atS - last.atS);
    }
    before.set(name, { value, atS, rate: result });
    return result;
}

// ---- charts ----

class Chart {
    // series: [{label, colour, unit}]; format: of values of the axis.
    // floats: the axis need not begin at 0.
    constructor(title, series, format, floats) {
        this.place = h("div");
        this.series = series;
        this.format = format || num;
        this.floats = floats === true;
        this.data = null;
        this.plot = null;
        this.node = h("div", { class: "card" }, h("h2", null, title), this.place);
        new ResizeObserver(() => this.fit()).observe(this.place);
    }

    make(width) {
        const soft = cssValue("--soft");
        const grid = { stroke: cssValue("--grid"), width: 1 };
        const axis = { stroke: soft, grid, ticks: grid, font: "11px system-ui, sans-serif" };

        this.plot = new uPlot({
            width,
            height: 200,
            legend: { live: true, show: this.series.length <= LINES_MAX },
            cursor: { drag: { x: true, y: false } },
            scales: { y: { range: (u, low, high) => [this.floats ? Math.max(0, (low || 0) - 1)
                : Math.min(0, low || 0), this.floats ? (high || 0) + 1 : (high || 1) * 1.05] } },
            axes: [axis, { ...axis, size: 76, values: (u, ticks) => ticks.map(this.format) }],
            series: [{ label: "time", value: (u, v) =>
                v === null || v === undefined ? "–" : new Date(v * 1000).toLocaleTimeString() },
            ...this.series.map((one) => ({
                label: one.label, stroke: one.colour, width: one.thin ? 1 : 2,
                points: { show: false },
                value: (u, v) => (v === null || v === undefined ? "–" : this.format(v)),
            }))],
        }, this.data, this.place);
    }

    fit() {
        const width = Math.floor(this.place.clientWidth);

        if (width > 40 && this.data) {
            if (!this.plot) {
                this.make(width);
            } else if (width !== this.plot.width) {
                this.plot.setSize({ width, height: 200 });
            }
        }
    }

    show(data) {
        this.data = data;
        if (this.plot) {
            this.plot.setData(data);
        } else {
            this.fit();
        }
    }

    // Colours have changed.
    renew() {
        if (this.plot) {
            this.plot.destroy();
            this.plot = null;
            this.fit();
        }
    }
}

// ---- lists ----

// columns: [{title, get (what sorts it), show (its text), cell (its content), num, wide}]
class List {
    constructor(columns, key, sort, down) {
        this.columns = columns;
        this.key = key;
        this.sort = sort === undefined ? null : sort;
        this.down = down === true;
        this.rows = new Map();
        this.items = [];
        this.filter = "";
        this.heads = columns.map((column, i) => h("th",
            { class: "sorts" + (column.num ? " num" : ""), scope: "col" },
            h("button", { onclick: () => this.sortBy(i) }, column.title)));
        this.body = h("tbody");
        this.none = h("p", { class: "soft", hidden: "" }, "none");
        this.node = h("div", null, h("div", { class: "scroll" },
            h("table", { class: "list" }, h("thead", null, h("tr", null, this.heads)), this.body)),
        this.none);
    }

    sortBy(i) {
        this.down = this.sort === i ? !this.down : this.columns[i].num === true;
        this.sort = i;
        this.draw();
    }

    show(items) {
        this.items = items;
        this.draw();
    }

    ordered() {
        const column = this.sort === null ? null : this.columns[this.sort];
        let items = this.filter === "" ? this.items.slice()
            : this.items.filter((item) => this.key(item).toLowerCase().includes(this.filter));

        if (column) {
            const sign = this.down ? -1 : 1;

            items = items.map((item) => [column.get(item), item]);
            items.sort((a, b) => {
                const x = Number.isNaN(a[0]) ? -1 : a[0];
                const y = Number.isNaN(b[0]) ? -1 : b[0];

                return x < y ? -sign : x > y ? sign : 0;
            });
            items = items.map((pair) => pair[1]);
        }
        return items;
    }

    draw() {
        const items = this.ordered();
        const nodes = [];
        const seen = new Set();

        this.columns.forEach((column, i) => {
            setText(this.heads[i].firstChild, column.title +
                (this.sort === i ? (this.down ? " ▾" : " ▴") : ""));
        });
        for (const item of items) {
            const key = this.key(item);
            let row = this.rows.get(key);

            seen.add(key);
            if (!row) {
                row = h("tr", null, this.columns.map((column) => h("td",
                    { class: (column.num ? "num" : "") + (column.wide ? " wide" : "") })));
                this.rows.set(key, row);
            }
            this.columns.forEach((column, i) => {
                if (column.cell) {
                    column.cell(row.children[i], item);
                } else {
                    setText(row.children[i], column.show ? column.show(item)
                        : String(column.get(item)));
                }
            });
            nodes.push(row);
        }
        for (const key of [...this.rows.keys()]) {
            if (!seen.has(key)) {
                this.rows.delete(key);
            }
        }
        if (nodes.length !== this.body.children.length ||
            nodes.some((node, i) => node !== this.body.children[i])) {
            this.body.replaceChildren(...nodes);
        }
        this.none.hidden = nodes.length > 0;
    }
}

// A cell that is a link, made once.
function linkCell(td, href, text) {
    if (!td.firstChild) {
        td.append(h("a", { href }, text));
    }
}

function stateCell(td, text, kind) {
    setText(td, text);
    td.className = kind;
}

// A number with its share of the greatest beside it.
function heatCell(td, text, share) {
    setText(td, text);
    td.style.background = share > 0
        ? `rgba(${cssValue("--heat")}, ${(0.08 + 0.42 * share).toFixed(3)})` : "";
}

function filterBox(list, what) {
    return h("input", {
        type: "search", placeholder: "filter " + what, "aria-label": "filter " + what,
        oninput: (event) => {
            list.filter = event.target.value.trim().toLowerCase();
            list.draw();
        },
    });
}

class Tiles {
    constructor(titles) {
        this.values = titles.map(() => h("b", null, "–"));
        this.node = h("div", { class: "tiles" }, titles.map((title, i) =>
            h("div", { class: "card" }, this.values[i], h("span", { class: "soft" }, title))));
    }

    show(texts) {
        texts.forEach((text, i) => setText(this.values[i], text));
    }
}

// What could not be had, above everything else.
function refusals(place, docs) {
    const texts = docs.filter((doc) => doc && doc.refused).map((doc) => doc.refused);

    place.hidden = texts.length === 0;
    setText(place, texts.join(" · "));
}

const refusalPlace = () => h("p", { class: "bad", hidden: "" });

// ---- views: {node, look()}; look asks and draws ----

function problemsCard() {
    const list = h("ul", { class: "plain" });
    const node = h("div", { class: "card" }, h("h2", null, "Problems"), list);

    return {
        node,
        show(status, health) {
            const items = [];

            if (health && !health.refused && !health.startsWith("healthy")) {
                health.trim().split("\n").forEach((text) => items.push(["bad", text]));
            }
            (status.problems || []).forEach((p) =>
                items.push(["bad", typeof p === "string" ? p : p.text]));
            (status.warnings || []).forEach((text) => items.push(["warn", text]));
            if (status.refused) {
                items.push(["bad", status.refused]);
            }
            if (items.length === 0) {
                items.push(["good", "none"]);
            }
            const key = JSON.stringify(items);

            if (list.dataset.key !== key) {
                list.dataset.key = key;
                list.replaceChildren(...items.map(([kind, text]) => h("li", { class: kind }, text)));
            }
        },
    };
}

const TOTALS = ["pushes", "pulls", "rows_pushed", "rows_pulled"];

// Rates of all tables together; NaN: none was looked at before. A table that is new or gone
// makes no step.
function totalRates(tables, atS) {
    const rates = {};

    for (const what of TOTALS) {
        const each = tables.map((table) =>
            rate("table " + table.id + " " + what, (table.stats || {})[what] || 0, atS));

        rates[what] = each.some((value) => !Number.isNaN(value)) || each.length === 0
            ? sum(each, (value) => value) : NaN;
    }
    return rates;
}

const LEVELS = [0.5, 0.99];

// The time within which that share of the requests since the last look was answered.
function quantiles(metrics, request) {
    const grown = new Map();
    let total = 0;

    for (const m of metrics) {
        if (m.name !== "psd_request_seconds_bucket" || m.labels.request !== request) {
            continue;
        }
        const le = m.labels.le === "+Inf" ? Infinity : Number(m.labels.le);
        const name = "bucket " + m.labels.shard + " " + request + " " + m.labels.le;
        const last = before.get(name);

        before.set(name, { value: m.value, atS: 0 });
        grown.set(le, (grown.get(le) || 0) + (last ? Math.max(0, m.value - last.value) : 0));
    }
    total = grown.get(Infinity) || 0;
    const bounds = [...grown.keys()].sort((a, b) => a - b);

    return LEVELS.map((level) => (total === 0 ? NaN
        : bounds.find((le) => grown.get(le) >= level * total)));
}

function overview() {
    const problems = problemsCard();
    const refused = refusalPlace();
    const tiles = new Tiles(["nodes up", "tables", "jobs running", "memory", "pushes/s", "pulls/s",
        "rows/s", "epoch"]);
    const requests = new Chart("Pushes and pulls a second, all tables",
        [{ label: "pushes/s", colour: COLOURS[0] }, { label: "pulls/s", colour: COLOURS[1] }]);
    const rows = new Chart("Rows a second, all tables",
        [{ label: "pushed", colour: COLOURS[0] }, { label: "pulled", colour: COLOURS[1] }]);
    const times = new Chart("Time of a request, this node",
        [{ label: "push p50", colour: COLOURS[0] }, { label: "push p99", colour: COLOURS[4] },
            { label: "pull p50", colour: COLOURS[1] }, { label: "pull p99", colour: COLOURS[8] }],
        span);
    const memory = new Chart("Memory of rows, all copies",
        [{ label: "bytes", colour: COLOURS[2] }], bytes);

    return {
        node: h("div", null, h("h1", null, "Overview"), refused, problems.node, tiles.node,
            h("div", { class: "two" }, requests.node, rows.node, times.node, memory.node)),
        charts: [requests, rows, times, memory],
        async look(shared) {
            const [tables, text] = await Promise.all(
                [gently(api("tables")), gently(ask("/metrics"))]);
            const atS = Date.now() / 1000;
            const status = shared.status;
            const metrics = text.refused ? [] : readMetrics(text, ["psd_request_seconds_bucket"]);
            const list = tables.tables || [];
            const rates = totalRates(list, atS);
            const held = sum(list, bytesOf);
            const nodes = status.nodes || [];

            problems.show(status, shared.health);
            refusals(refused, [tables, text]);
            tiles.show([nodes.filter((n) => n.state === "up").length + " of " + nodes.length,
                num(status.tables), num(status.jobs_running), bytes(held), num(rates.pushes),
                num(rates.pulls), num(rates.rows_pushed + rates.rows_pulled),
                num(status.cluster ? status.cluster.epoch : NaN)]);
            requests.show(remember("requests", atS, [rates.pushes, rates.pulls]));
            rows.show(remember("rows", atS, [rates.rows_pushed, rates.rows_pulled]));
            times.show(remember("times", atS,
                [...quantiles(metrics, "push"), ...quantiles(metrics, "pull")]));
            memory.show(remember("memory", atS, [tables.refused ? NaN : held]));
        },
    };
}

function nodesView() {
    const refused = refusalPlace();
    const list = new List([
        { title: "Node", get: (n) => n.name },
        { title: "State", get: (n) => n.state, cell: (td, n) => stateCell(td, n.state,
            n.state === "up" ? "good" : n.state === "down" ? "bad" : "warn") },
        { title: "Registry", get: (n) => n.member || "" },
        { title: "Shards", get: (n) => n.shards, num: true },
        { title: "Primary", get: (n) => n.partitions.primary, num: true },
        { title: "Replica", get: (n) => n.partitions.replica, num: true },
        { title: "Memory", get: (n) => n.bytes, show: (n) => bytes(n.bytes), num: true },
        { title: "Kept for copies", get: (n) => n.tail_bytes, show: (n) => bytes(n.tail_bytes),
            num: true },
        { title: "Seen", get: (n) => n.last_seen_s, show: (n) => span(n.last_seen_s) + " ago",
            num: true },
        { title: "Endpoint", get: (n) => n.endpoint },
    ], (n) => n.name, 0);
    const threads = new List([
        { title: "Thread", get: (t) => t.labels.thread },
        { title: "Last turn", get: (t) => t.value, num: true, cell: (td, t) => {
            setText(td, span(t.value) + " ago");
            td.className = t.value > 0.8 ? "num bad" : "num";
        } },
    ], (t) => t.labels.thread + " " + t.labels.tid, 0);
    const disk = new List([
        { title: "Shard", get: (s) => Number(s.shard), num: true },
        { title: "Free disk", get: (s) => s.free, show: (s) => bytes(s.free), num: true },
        { title: "Log", get: (s) => s.log, show: (s) => bytes(s.log), num: true },
        { title: "Flushes/s", get: (s) => s.flushes, show: (s) => num(s.flushes), num: true },
        { title: "Copy lag", get: (s) => s.lag, show: (s) => span(s.lag), num: true },
        { title: "Waiting requests", get: (s) => s.held, num: true },
    ], (s) => s.shard, 0);

    return {
        node: h("div", null, h("h1", null, "Nodes"), refused,
            h("div", { class: "card" }, list.node),
            h("div", { class: "two" },
                h("div", { class: "card" }, h("h2", null, "Threads of this node"), threads.node),
                h("div", { class: "card" }, h("h2", null, "Shards of this node"), disk.node))),
        async look(shared) {
            const text = await gently(ask("/metrics"));
            const atS = Date.now() / 1000;
            const metrics = text.refused ? []
                : readMetrics(text, ["psd_thread_loop_age_seconds", "psd_disk_free_bytes",
                    "psd_log_", "psd_copy_lag_seconds", "psd_held_requests"]);
            const shards = new Map();

            for (const [name, key] of [["psd_disk_free_bytes", "free"], ["psd_log_bytes", "log"],
                ["psd_log_flushes_total", "flushed"], ["psd_copy_lag_seconds", "lag"],
                ["psd_held_requests", "held"]]) {
                for (const m of metrics.filter((one) => one.name === name)) {
                    const shard = shards.get(m.labels.shard) || { shard: m.labels.shard };

                    shard[key] = m.value;
                    shards.set(m.labels.shard, shard);
                }
            }
            for (const shard of shards.values()) {
                shard.flushes = rate("flushes " + shard.shard, shard.flushed || 0, atS);
            }
            refusals(refused, [shared.status, text]);
            list.show(shared.status.nodes || []);
            threads.show(metrics.filter((m) => m.name === "psd_thread_loop_age_seconds"));
            disk.show([...shards.values()]);
        },
    };
}

const updaterOf = (t) => (t.updater && t.updater.name) || t.updater || "";

function tablesView() {
    const refused = refusalPlace();
    const count = h("span", { class: "soft" });
    let most = 0;
    const list = new List([
        { title: "Table", get: (t) => t.name,
            cell: (td, t) => linkCell(td, "#/tables/" + t.name, t.name) },
        { title: "State", get: (t) => (t.rows_lost && !t.loss_acked ? 1 : 0), cell: (td, t) =>
            stateCell(td, t.rows_lost && !t.loss_acked ? "rows lost" : "ok",
                t.rows_lost && !t.loss_acked ? "bad" : "good") },
        { title: "Rows", get: (t) => t.rows, show: (t) => (t.rows === 0 ? "hash" : num(t.rows)),
            num: true },
        { title: "Columns", get: (t) => t.cols, show: (t) => num(t.cols), num: true },
        { title: "Type", get: (t) => t.type },
        { title: "Updater", get: updaterOf },
        { title: "Present", get: (t) => t.rows_present, show: (t) => num(t.rows_present),
            num: true },
        { title: "Memory", get: bytesOf, show: (t) => bytes(bytesOf(t)), num: true },
        { title: "Copies", get: (t) => t.replicas, num: true },
        { title: "Ack", get: (t) => t.ack },
        { title: "Pushes/s", get: (t) => t.r.pushes, show: (t) => num(t.r.pushes), num: true },
        { title: "Pulls/s", get: (t) => t.r.pulls, show: (t) => num(t.r.pulls), num: true },
        { title: "Rows/s", get: (t) => t.heat, num: true, cell: (td, t) => {
            td.className = "num";
            heatCell(td, num(t.heat), most > 0 ? t.heat / most : 0);
        } },
    ], (t) => t.name, 0);

    return {
        node: h("div", null, h("h1", null, "Tables"), refused,
            h("div", { class: "card" },
                h("div", { class: "tools" }, filterBox(list, "tables"), count), list.node)),
        async look() {
            const tables = await gently(api("tables"));
            const atS = Date.now() / 1000;
            const items = tables.tables || [];

            for (const table of items) {
                table.r = {};
                for (const what of TOTALS) {
                    table.r[what] = rate("table " + table.id + " " + what,
                        (table.stats || {})[what] || 0, atS);
                }
                table.heat = (table.r.rows_pushed || 0) + (table.r.rows_pulled || 0);
            }
            most = Math.max(0, ...items.map((t) => t.heat));
            refusals(refused, [tables]);
            setText(count, items.length + " tables");
            list.show(items);
        },
    };
}

// max / mean: 1 is even.
function skewOf(values) {
    const total = sum(values, (value) => value);

    return total > 0 ? Math.max(...values) * values.length / total : NaN;
}

function tableView(name) {
    const refused = refusalPlace();
    const facts = h("p", { class: "soft" });
    const tiles = new Tiles(["rows present", "memory", "pushes/s", "pulls/s", "rows/s",
        "skew of rows/s", "skew of rows present", "copies behind"]);
    const heat = h("div", { class: "heat" });
    const chart = new Chart("Rows a second",
        [{ label: "pushed", colour: COLOURS[0] }, { label: "pulled", colour: COLOURS[1] }]);
    const list = new List([
        { title: "Partition", get: (p) => p.id, num: true },
        { title: "First row", get: (p) => Number(p.first_row), show: (p) => String(p.first_row),
            num: true },
        { title: "Last row", get: (p) => Number(p.last_row), show: (p) => String(p.last_row),
            num: true },
        { title: "Primary", get: (p) => p.primary, cell: (td, p) =>
            stateCell(td, p.primary === "" ? "none" : p.primary, p.primary === "" ? "bad" : "") },
        { title: "In sync", get: (p) => p.in_sync.join(" ") },
        { title: "Catching up", get: (p) => p.catching_up.join(" ") },
        { title: "Present", get: (p) => p.rows_present, show: (p) => num(p.rows_present),
            num: true },
        { title: "Record", get: (p) => Number(p.lsn), num: true },
        { title: "Pushes/s", get: (p) => p.pushes, show: (p) => num(p.pushes), num: true },
        { title: "Pulls/s", get: (p) => p.pulls, show: (p) => num(p.pulls), num: true },
        { title: "Rows/s", get: (p) => p.heat, show: (p) => num(p.heat), num: true },
    ], (p) => String(p.id), 0);

    function drawHeat(partitions) {
        const most = Math.max(0, ...partitions.map((p) => p.heat || 0));

        while (heat.children.length > partitions.length) {
            heat.lastChild.remove();
        }
        partitions.forEach((p, i) => {
            const cell = heat.children[i] || heat.appendChild(h("div"));

            heatCell(cell, String(p.id), most > 0 ? (p.heat || 0) / most : 0);
            cell.title = `partition ${p.id} at ${p.primary || "no primary"}: ` +
                `${num(p.heat)} rows/s, ${num(p.rows_present)} rows`;
        });
    }

    return {
        node: h("div", null, h("h1", null, "Table " + name), refused, facts, tiles.node,
            h("div", { class: "two" },
                h("div", { class: "card" },
                    h("h2", null, "Heat of partitions: rows a second"), heat), chart.node),
            h("div", { class: "card" }, list.node)),
        charts: [chart],
        async look() {
            const doc = await gently(api("tables/" + encodeURIComponent(name)));
            const atS = Date.now() / 1000;
            const table = doc.table || {};
            const partitions = table.partitions || [];
            const rates = {};

            refusals(refused, [doc]);
            for (const what of TOTALS) {
                rates[what] = rate("one " + table.id + " " + what, (doc.stats || {})[what] || 0,
                    atS);
            }
            for (const p of partitions) {
                const of = `part ${table.id} ${p.id} `;

                for (const what of TOTALS) {
                    p[what] = rate(of + what, (p.stats || {})[what] || 0, atS);
                }
                p.heat = (p.rows_pushed || 0) + (p.rows_pulled || 0);
            }
            if (doc.table) {
                setText(facts, `${table.type}, ${table.rows === 0 ? "hash keys" :
                    table.rows + " rows"}, ${table.cols} columns, updater ${updaterOf(table)}, ` +
                    `${table.replicas} copies, ack ${table.ack}, ` +
                    `${partitions.length} partitions by ${table.partition_by}`);
            }
            tiles.show([num(table.rows_present), bytes(bytesOf(table)), num(rates.pushes),
                num(rates.pulls), num(rates.rows_pushed + rates.rows_pulled),
                num(skewOf(partitions.map((p) => p.heat || 0))),
                num(skewOf(partitions.map((p) => p.rows_present))),
                num(sum(partitions, (p) =>
                    p.copies.filter((c) => c.lag_records > 0 || c.answers === false).length))]);
            drawHeat(partitions);
            chart.show(remember("table " + name, atS, [rates.rows_pushed, rates.rows_pulled]));
            list.show(partitions);
        },
    };
}

function jobsView() {
    const refused = refusalPlace();
    const list = new List([
        { title: "Job", get: (j) => j.name,
            cell: (td, j) => linkCell(td, "#/jobs/" + j.name, j.name) },
        { title: "State", get: (j) => j.state, cell: (td, j) => stateCell(td, j.state,
            j.state === "running" || j.state === "finished" ? "good" : "warn") },
        { title: "Max delay", get: (j) => j.max_delay, num: true },
        { title: "Workers", get: (j) => j.workers, num: true },
        { title: "Running", get: (j) => j.running, num: true },
        { title: "Lost", get: (j) => j.lost, num: true, cell: (td, j) => {
            setText(td, String(j.lost));
            td.className = j.lost > 0 ? "num bad" : "num";
        } },
        { title: "Waiting", get: (j) => j.waiting, num: true },
        { title: "Slowest clock", get: (j) => j.min, num: true },
        { title: "Fastest clock", get: (j) => j.max, num: true },
        { title: "Clocks/s", get: (j) => j.speed, show: (j) => num(j.speed), num: true },
        { title: "Began", get: (j) => j.created_unix_ms, show: (j) => clock(j.created_unix_ms) },
        { title: "Tables", get: (j) => (j.tables || []).join(" "), wide: true },
    ], (j) => j.name, 10, true);

    return {
        node: h("div", null, h("h1", null, "Jobs"), refused, h("div", { class: "card" },
            h("div", { class: "tools" }, filterBox(list, "jobs")), list.node)),
        async look() {
            const jobs = await gently(api("jobs"));
            const atS = Date.now() / 1000;

            for (const job of jobs.jobs || []) {
                job.speed = rate("job " + job.id, job.min, atS);
            }
            refusals(refused, [jobs]);
            list.show(jobs.jobs || []);
        },
    };
}

function jobView(name) {
    const refused = refusalPlace();
    const tiles = new Tiles(["state", "workers", "slowest clock", "fastest clock", "clocks/s",
        "slices/s", "rows/s of its tables", "waiting now"]);
    const place = h("div");
    const spread = new Chart("Staleness: clocks behind the fastest worker",
        [{ label: "most", colour: COLOURS[8] }, { label: "mean", colour: COLOURS[0] }]);
    const why = h("ul", { class: "plain" });
    const shares = new Map(); // of a worker: seconds at the gate and elsewhere
    const mine = { gate: COLOURS[1], work: COLOURS[2] };
    const list = new List([
        { title: "Worker", get: (w) => w.worker, num: true },
        { title: "State", get: (w) => w.state, cell: (td, w) => stateCell(td, w.state,
            w.state === "lost" ? "bad" : w.state === "waiting" ? "warn" : "good") },
        { title: "Clock", get: (w) => w.clock, num: true },
        { title: "Behind", get: (w) => w.behind, num: true },
        { title: "Clocks/s", get: (w) => w.speed, show: (w) => num(w.speed), num: true },
        { title: "Time", get: (w) => w.gate, cell: (td, w) => {
            if (!td.firstChild) {
                td.append(h("div", { class: "parts" }, h("div"), h("div")));
            }
            const [gate, work] = td.firstChild.children;

            gate.style.cssText = `background: ${mine.gate}; width: ${(w.gate * 100).toFixed(1)}%`;
            work.style.cssText = `background: ${mine.work}; width: ${(w.work * 100).toFixed(1)}%`;
            td.title = `${(w.gate * 100).toFixed(0)} % waiting since the page was opened`;
        } },
        { title: "Waits", get: (w) => w.waiting_s,
            show: (w) => (w.waiting_s > 0 ? span(w.waiting_s) : ""), num: true },
        { title: "Waits for", get: (w) => (w.waiting_for || []).join("; "), wide: true },
        { title: "Seen", get: (w) => w.last_seen_s || 0,
            show: (w) => (w.last_seen_s === undefined ? "–" : span(w.last_seen_s) + " ago"),
            num: true },
    ], (w) => String(w.worker), 0);
    const queues = new List([
        { title: "Queue", get: (q) => q.queue },
        { title: "Epoch", get: (q) => q.epoch, num: true },
        { title: "of", get: (q) => q.epochs, num: true },
        { title: "Slices done", get: (q) => q.done, num: true },
        { title: "of", get: (q) => q.slices, num: true },
        { title: "Given", get: (q) => q.given, num: true },
        { title: "Waiting", get: (q) => q.waiting, num: true },
    ], (q) => q.queue, 0);
    const queueCard = h("div", { class: "card", hidden: "" }, h("h2", null, "Work queues"),
        queues.node);
    let clocks = null; // the chart, for these workers
    let ranks = "";
    const self = {
        node: h("div", null, h("h1", null, "Job " + name), refused, tiles.node, place, spread.node,
            h("div", { class: "card" }, h("h2", null, "Workers"),
                h("p", { class: "soft" }, "time since this page was opened:",
                    h("span", { class: "key", style: `background: ${mine.gate}` }),
                    "waiting at the gate or a barrier",
                    h("span", { class: "key", style: `background: ${mine.work}` }),
                    "computing, pushing, pulling"), list.node),
            queueCard, h("div", { class: "card" }, h("h2", null, "Why it waits"), why)),
        charts: [spread],
    };

    function chartOf(workers) {
        const few = workers.length <= LINES_MAX;

        return new Chart(few ? "Clock of each worker" :
            `Clocks of ${workers.length} workers`, workers.map((w, i) => ({
            label: "worker " + w.worker, thin: !few, colour: COLOURS[i % COLOURS.length] })),
        num, true);
    }

    self.look = async () => {
        const path = encodeURIComponent(name);
        const [doc, reasons, tables] = await Promise.all([gently(api("jobs/" + path)),
            gently(api("jobs/" + path + "/why")), gently(api("tables"))]);
        const atS = Date.now() / 1000;
        const job = doc.job || {};
        const workers = (job.workers || []).slice().sort((a, b) => a.worker - b.worker);
        const alive = workers.filter((w) => w.state !== "lost" && w.state !== "finished");
        const most = Math.max(0, ...workers.map((w) => w.clock));
        let rows = 0;

        refusals(refused, [doc, reasons]);
        for (const w of workers) {
            const share = shares.get(w.worker) || { gate: 0, all: 0, atS };

            if (w.state === "waiting") {
                share.gate += atS - share.atS;
            }
            if (w.state === "waiting" || w.state === "running") {
                share.all += atS - share.atS;
            }
            share.atS = atS;
            shares.set(w.worker, share);
            w.gate = share.all > 0 ? share.gate / share.all : 0;
            w.work = share.all > 0 ? 1 - w.gate : 0;
            w.behind = most - w.clock;
            w.speed = rate(`worker ${job.id} ${w.worker}`, w.clock, atS);
        }
        for (const table of tables.tables || []) {
            if ((job.tables || []).includes(table.name)) {
                rows += (rate("job table " + table.id + " in", table.stats.rows_pushed, atS) || 0) +
                    (rate("job table " + table.id + " out", table.stats.rows_pulled, atS) || 0);
            }
        }
        const slices = (job.queues || []).length === 0 ? NaN : sum(job.queues, (q) =>
            rate(`queue ${job.id} ${q.queue}`, (Math.max(1, q.epoch) - 1) * q.slices + q.done, atS));

        tiles.show([job.state || "–", alive.length + " of " + workers.length, num(job.min),
            num(job.max), num(rate("clock " + job.id, job.min || 0, atS)), num(slices), num(rows),
            num(job.waiting)]);
        if (ranks !== workers.map((w) => w.worker).join() && workers.length > 0) {
            ranks = workers.map((w) => w.worker).join();
            clocks = chartOf(workers);
            self.charts = [spread, clocks];
            place.replaceChildren(clocks.node);
        }
        if (clocks && workers.length > 0) {
            clocks.show(remember("clocks " + name, atS, workers.map((w) => w.clock)));
        }
        spread.show(remember("spread " + name, atS,
            [Math.max(0, ...alive.map((w) => w.behind)),
                alive.length > 0 ? sum(alive, (w) => w.behind) / alive.length : 0]));
        list.show(workers);
        queueCard.hidden = (job.queues || []).length === 0;
        queues.show(job.queues || []);
        const lines = reasons.text || [];

        why.replaceChildren(...(lines.length > 0 ? lines : ["nobody waits"])
            .map((line) => h("li", null, line)));
    };
    return self;
}

function checkpointsView() {
    const refused = refusalPlace();
    const list = new List([
        { title: "Checkpoint", get: (c) => c.name },
        { title: "State", get: (c) => c.state || "", cell: (td, c) => stateCell(td, c.state || "",
            c.state === "damaged" ? "bad" : c.state === "whole" ? "good" : "warn") },
        { title: "Made", get: (c) => c.created_unix_ms || 0,
            show: (c) => (c.created_unix_ms ? clock(c.created_unix_ms) : "–") },
        { title: "Consistent", get: (c) => c.consistent || "" },
        { title: "Tables", get: (c) => c.tables || 0, num: true },
        { title: "Size", get: (c) => c.bytes || 0, show: (c) => bytes(c.bytes || 0), num: true },
        { title: "Since", get: (c) => c.since || "" },
    ], (c) => c.name, 2, true);

    return {
        node: h("div", null, h("h1", null, "Checkpoints"), refused,
            h("div", { class: "card" }, list.node)),
        async look() {
            const doc = await gently(api("checkpoints"));

            refusals(refused, [doc]);
            list.show(doc.checkpoints || []);
        },
    };
}

function connectionsView() {
    const refused = refusalPlace();
    const tiles = new Tiles(["connections, this node", "requests/s", "refused/s", "received",
        "sent", "HTTP connections"]);
    const traffic = new Chart("Bytes a second, this node",
        [{ label: "received", colour: COLOURS[0] }, { label: "sent", colour: COLOURS[1] }], bytes);
    const refusedList = new List([
        { title: "Refused with", get: (r) => r.code },
        { title: "Times", get: (r) => r.n, num: true },
    ], (r) => r.code, 1, true);
    const list = new List([
        { title: "Node", get: (s) => s.node },
        { title: "Shard", get: (s) => s.shard, num: true },
        { title: "Connections", get: (s) => s.sessions, num: true },
        { title: "Waiting requests", get: (s) => s.held_requests, num: true },
        { title: "of bytes", get: (s) => s.held_bytes, show: (s) => bytes(s.held_bytes),
            num: true },
        { title: "Refused", get: (s) => s.refused, num: true },
        { title: "Partitions", get: (s) => s.partitions, num: true },
        { title: "Address", get: (s) => s.tcp },
    ], (s) => s.node + "/" + s.shard, 0);

    return {
        node: h("div", null, h("h1", null, "Connections"), refused, tiles.node,
            h("div", { class: "card" }, h("h2", null, "Shards"), list.node),
            h("div", { class: "two" }, traffic.node,
                h("div", { class: "card" }, h("h2", null, "Refusals of this node"),
                    refusedList.node))),
        charts: [traffic],
        async look(shared) {
            const names = (shared.status.nodes || []).filter((n) => n.state !== "down")
                .slice(0, NODES_MAX).map((n) => n.name);
            const [text, ...docs] = await Promise.all([gently(ask("/metrics")),
                ...names.map((n) => gently(api("nodes/" + encodeURIComponent(n))))]);
            const atS = Date.now() / 1000;
            const metrics = text.refused ? [] : readMetrics(text, ["psd_connections",
                "psd_requests_total", "psd_refusals_total", "psd_received_bytes_total",
                "psd_sent_bytes_total", "psd_http_connections"]);
            const of = (name) => metricSum(metrics, name);
            const speed = (name) => rate("metric " + name, of(name), atS);
            const codes = new Map();

            metrics.filter((m) => m.name === "psd_refusals_total").forEach((m) =>
                codes.set(m.labels.code, (codes.get(m.labels.code) || 0) + m.value));
            refusals(refused, [text, ...docs]);
            tiles.show([num(of("psd_connections")), num(speed("psd_requests_total")),
                num(speed("psd_refusals_total")), bytes(of("psd_received_bytes_total")),
                bytes(of("psd_sent_bytes_total")), num(of("psd_http_connections"))]);
            traffic.show(remember("traffic", atS, [speed("psd_received_bytes_total"),
                speed("psd_sent_bytes_total")]));
            refusedList.show([...codes].map(([code, n]) => ({ code, n })));
            list.show(docs.flatMap((doc) => ((doc.node || {}).shard_list || [])
                .map((shard) => ({ ...shard, node: doc.node.name }))));
        },
    };
}

function eventsView() {
    const refused = refusalPlace();
    const list = new List([
        { title: "Time", get: (e) => e.id, show: (e) => clock(e.unix_ms) },
        { title: "Kind", get: (e) => e.kind },
        { title: "What happened", get: (e) => e.text, wide: true },
        { title: "Epoch", get: (e) => e.epoch, num: true },
    ], (e) => e.id + " " + e.kind + " " + e.text, 0, true);

    return {
        node: h("div", null, h("h1", null, "Events"), refused, h("div", { class: "card" },
            h("div", { class: "tools" }, filterBox(list, "events")), list.node)),
        async look() {
            const doc = await gently(api("events?last=200"));

            refusals(refused, [doc]);
            list.show(doc.events || []);
        },
    };
}

// Without a token there is nothing to show.
function doorView(message) {
    const field = h("input", { type: "password", size: "40", placeholder: "token",
        "aria-label": "token", autocomplete: "off" });

    return {
        node: h("div", { class: "card" }, h("h1", null, "A token opens this page"),
            h("p", null, "Run "), h("p", null, h("code", null, "pscli page")),
            h("p", null, "as the user of psd, or root, and open the link that it prints; or give " +
                "the token of the file http.token in psd's data directory:"),
            h("form", { class: "tools", onsubmit: (event) => {
                event.preventDefault();
                token = field.value.trim();
                sessionStorage.setItem("psd-token", token);
                open();
            } }, field, h("button", { class: "plain" }, "Open")),
            message ? h("p", { class: "bad" }, message) : null),
    };
}

// ---- the page ----

const VIEWS = [["overview", "Overview", overview], ["nodes", "Nodes", nodesView],
    ["tables", "Tables", tablesView, tableView], ["jobs", "Jobs", jobsView, jobView],
    ["checkpoints", "Checkpoints", checkpointsView],
    ["connections", "Connections", connectionsView], ["events", "Events", eventsView]];

let view = null;
let viewPath = null;
let round = 0; // grows when another view opens: answers for the one before are dropped

function showState(status, health) {
    const state = byId("state");
    const healthy = status.cluster && status.cluster.healthy && !health.refused &&
        health.startsWith("healthy");

    setText(byId("cluster"), status.cluster ? status.cluster.name : "");
    state.className = "pill " + (healthy ? "good" : "bad");
    setText(state, healthy ? "healthy" : status.cluster ? "NOT HEALTHY" : "no answer");
    setText(byId("when"), new Date().toLocaleTimeString());
}

// What the link says; one that somebody has cut in a "%20" names nothing.
function decoded(text) {
    try {
        return text === undefined ? undefined : decodeURIComponent(text);
    } catch {
        return undefined;
    }
}

function route() {
    const [, kind, name] = location.hash.split("/");

    return [VIEWS.find((one) => one[0] === kind) || VIEWS[0], decoded(name)];
}

function open() {
    const [found, name] = route();

    round++;
    viewPath = location.hash;
    view = name !== undefined && found[3] ? found[3](name) : found[2]();
    byId("nav").replaceChildren(...VIEWS.map((one) => h("a", {
        href: "#/" + one[0], class: one === found ? "here" : "" }, one[1])));
    byId("main").replaceChildren(view.node);
    look();
}

function showDoor(message) {
    round++;
    view = null;
    setText(byId("state"), "");
    byId("state").className = "";
    byId("nav").replaceChildren();
    byId("main").replaceChildren(doorView(message).node);
}

async function look() {
    const mine = round;

    try {
        // The thread that hangs is named without it; the others are asked meanwhile.
        const [health, status] = await Promise.all(
            [gently(ask("/healthz")), gently(api("cluster"))]);

        if (mine !== round) {
            return;
        }
        showState(status, health);
        await view.look({ health, status });
    } catch (error) {
        if (mine === round && error.status === 401) {
            showDoor(token ? "psd does not know this token" : "");
            return;
        }
        if (mine === round) {
            throw error;
        }
    } finally {
        if (mine === round && view) {
            setTimeout(() => mine === round && look(), document.hidden ? 5 * EVERY_MS : EVERY_MS);
        }
    }
}

addEventListener("hashchange", () => {
    takeToken();
    if (location.hash !== viewPath) {
        open();
    }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    ((view && view.charts) || []).forEach((chart) => chart.renew()));
takeToken();
open(); // without a token of ours too: a browser may have asked its user for it
})();
