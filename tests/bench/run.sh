#!/bin/sh
# Runs a bench's script with Debian's interpreter, from where `bazel run` put its files.
TEST_SRCDIR=$(cd .. && pwd)
TEST_WORKSPACE=$(basename "$PWD")
export TEST_SRCDIR TEST_WORKSPACE
exec /usr/bin/python3 "$@"
