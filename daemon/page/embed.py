#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of the page as C: embed.py OUT HTML STYLE SCRIPT...
STYLE stands in HTML where it says /*STYLE*/; the scripts are one file."""

import sys

LIMIT = 300_000  # bytes of both


def read(path):
    with open(path, "rb") as file:
        return file.read()


def array(name, data):
    lines = [f"const unsigned char {name}[] = {{"]
    lines += [",".join(str(byte) for byte in data[i:i + 32]) + ","
              for i in range(0, len(data), 32)]
    return "\n".join(lines) + f"\n}};\nconst size_t {name}_size = sizeof {name};\n"


def main():
    out, html, style, *scripts = sys.argv[1:]
    page = read(html).replace(b"/*STYLE*/", read(style).strip())
    script = b"\n".join(read(path) for path in scripts)
    if len(page) + len(script) > LIMIT:
        sys.exit(f"embed.py: the page has {len(page) + len(script)} bytes; "
                 f"allowed: {LIMIT}")
    with open(out, "w", encoding="ascii") as file:
        file.write('#include "daemon/page/page.h"\n\n'
                   + array("ps_page_html", page)
                   + array("ps_page_js", script))


if __name__ == "__main__":
    main()
