#!/bin/sh
# Runs a Python test with Debian's interpreter, whatever else is on the path.

# Where no /sys is mounted, as in a bare root: the C library looks there when a thread first needs
# memory, which leaves "no such file" in errno, and gRPC may take that for the outcome of a connect.
[ -e /sys/devices/system/cpu/online ] || export MALLOC_ARENA_MAX=1

exec /usr/bin/python3 "$@"
