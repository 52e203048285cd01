"""Makes a faulty copy of a source: replaces what stands between the marks of an edit, once each.

usage: mutate.py SOURCE EDIT OUTPUT. An edit is text of the form

    <<<<
    lines that stand in the source, once
    ====
    what stands in their place in the copy
    >>>>

and anything outside of the marks is a comment. An edit that finds nothing, or finds it twice, is an
error: the source has changed, and the edit has to follow.
"""

import re
import sys


def main():
    source, edit, output = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    with open(edit, encoding="utf-8") as file:
        blocks = re.findall(r"^<<<<\n(.*?)^====\n(.*?)^>>>>$", file.read(), re.S | re.M)
    if not blocks:
        sys.exit(f"{edit}: no edit is in it")
    for old, new in blocks:
        if text.count(old) != 1:
            sys.exit(f"{edit}: stands {text.count(old)} times in {source}, not once:\n{old}")
        text = text.replace(old, new)
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
