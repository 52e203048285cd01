#!/bin/sh
# Debian's interpreter, by its own path: there need be no "python" on the way.
exec /usr/bin/python3 tests/formats/formats_test.py
