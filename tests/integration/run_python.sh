#!/bin/sh
# Runs a Python test with Debian's interpreter, whatever else is on the path.
exec /usr/bin/python3 "$@"
