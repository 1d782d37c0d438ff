# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# What the tests of psd-mnist share: images of ten classes, and how well a model does
# on them. Source it after cli_lib.sh.

# Each class is a bright stripe, in noise.
python3 - "$work" <<'END'
import random, struct, sys
for part, n in (("train", 700), ("t10k", 300)):
    random.seed(n)
    classes = bytes(random.randrange(10) for _ in range(n))
    images = bytearray()
    for c in classes:
        image = [random.randrange(120) for _ in range(100)]
        for i in range(10):
            image[10 * c + i] = 100 + random.randrange(150)
        images += bytes(image)
    with open(f"{sys.argv[1]}/{part}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">IIII", 0x803, n, 10, 10) + images)
    with open(f"{sys.argv[1]}/{part}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">II", 0x801, n) + classes)
END
train=$work/train-images-idx3-ubyte
test=$work/t10k-images-idx3-ubyte

# accuracy_is WHAT BOUND: the last one told is at least that.
accuracy_is() {
    local accuracy
    accuracy=$(sed -n 's/.*test .*accuracy \([0-9.]*\)$/\1/p' "$work/out" | tail -1)
    n_checked=$((n_checked + 1))
    if ! awk "BEGIN { exit !(${accuracy:-0} >= $2) }"; then
        fail "$1: accuracy ${accuracy:-not told}"
        show
    fi
}
