/* SPDX-License-Identifier: Apache-2.0 */
/* Writes SVG. */
#include "cli/output/svg.h"

#include "cli/output/output.h"

static const char *const CLASSES[] = {
    [PS_SVG_TITLE] = "title", [PS_SVG_HEAD] = "head",   [PS_SVG_LABEL] = "label",
    [PS_SVG_VALUE] = "value", [PS_SVG_FAINT] = "faint", [PS_SVG_BAR_0] = "bar0",
    [PS_SVG_BAR_1] = "bar1",  [PS_SVG_BAR_2] = "bar2",  [PS_SVG_BAR_3] = "bar3",
    [PS_SVG_LIMIT] = "limit", [PS_SVG_RULE] = "rule",
};

static const char *const ANCHORS[] = {"start", "middle", "end"};

/* The light scheme stands first, for viewers without the other. */
static const char STYLE[] = "<style>\n"
                            ".page{fill:#ffffff}\n"
                            "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,"
                            "'DejaVu Sans',sans-serif;font-size:12px;fill:#1f2328}\n"
                            ".title{font-size:17px;font-weight:600}\n"
                            ".head{font-size:14px;font-weight:600}\n"
                            ".value{font-size:11px}\n"
                            ".faint{font-size:11px;fill:#59636e}\n"
                            ".bar0{fill:#3b6fb6}.bar1{fill:#d08a1d}.bar2{fill:#2e8b57}"
                            ".bar3{fill:#8a5bb0}\n"
                            ".limit{stroke:#c0392b;stroke-width:2}\n"
                            ".rule{stroke:#d1d9e0;stroke-width:1}\n"
                            "@media (prefers-color-scheme:dark){\n"
                            ".page{fill:#0d1117}\n"
                            "text{fill:#e6edf3}\n"
                            ".faint{fill:#9198a1}\n"
                            ".bar0{fill:#6ea0e6}.bar1{fill:#e3ad55}.bar2{fill:#57b884}"
                            ".bar3{fill:#b48ad6}\n"
                            ".limit{stroke:#ff7b72}\n"
                            ".rule{stroke:#3d444d}\n"
                            "}\n"
                            "</style>\n";

static void write_escaped(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            (void)fputs("&amp;", file);
            break;
        case '<':
            (void)fputs("&lt;", file);
            break;
        case '>':
            (void)fputs("&gt;", file);
            break;
        case '"':
            (void)fputs("&quot;", file);
            break;
        default:
            /* XML has no other control characters. */
            (void)putc((unsigned char)*text < ' ' ? ' ' : *text, file);
        }
    }
}

void ps_svg_begin(FILE *file, double width, double height, const char *title)
{
    ps_print(file,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
             "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>",
             width, height, width, height);
    write_escaped(file, title);
    ps_print(file, "</title>\n%s", STYLE);
    ps_print(file, "<rect class=\"page\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
}

void ps_svg_end(FILE *file)
{
    (void)fputs("</svg>\n", file);
}

void ps_svg_text(FILE *file, double x, double y, ps_svg_class_t class, ps_svg_anchor_t anchor,
                 const char *text)
{
    ps_print(file, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", CLASSES[class],
             x, y, ANCHORS[anchor]);
    write_escaped(file, text);
    (void)fputs("</text>\n", file);
}

void ps_svg_bar(FILE *file, double x, double y, double width, double height, ps_svg_class_t class)
{
    ps_print(file,
             "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
             "height=\"%.1f\" rx=\"1.5\"/>\n",
             CLASSES[class], x, y, width, height);
}

void ps_svg_line(FILE *file, double x1, double y1, double x2, double y2, ps_svg_class_t class)
{
    ps_print(file,
             "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
             "y2=\"%.1f\"/>\n",
             CLASSES[class], x1, y1, x2, y2);
}
