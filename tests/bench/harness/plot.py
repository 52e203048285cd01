"""A bar a target, drawn by hand as SVG: how far the median is from what is aimed at."""

from xml.sax.saxutils import escape

WIDTH, LABEL, ROW, TOP = 960, 470, 22, 56
# Of the target; longer bars are cut there.
MOST = 3.0
COLOURS = {True: "#2e7d32", False: "#c62828"}


def _achieved(line, value):
    """1 where the target is met just so, more where it is exceeded."""
    if line["sense"] == ">=":
        return value / line["bound"]
    return MOST if value <= 0 else line["bound"] / value


def _x(achieved):
    return LABEL + (WIDTH - LABEL - 60) * min(achieved, MOST) / MOST


def svg(lines, title):
    height = TOP + ROW * len(lines) + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="#ffffff"/>',
           f'<text x="12" y="22" font-size="15" font-weight="bold">{escape(title)}</text>',
           '<text x="12" y="42" fill="#555555">Median against the target (1 = just met, longer is '
           'better; cut at 3); whiskers: least and most of all rounds</text>']
    for tick in (0, 1, 2, 3):
        x = _x(tick)
        colour = "#222222" if tick == 1 else "#dddddd"
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - 24}" '
                   f'stroke="{colour}"/>')
        out.append(f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle" '
                   f'fill="#555555">{tick}</text>')
    for i, line in enumerate(lines):
        y = TOP + ROW * i
        out.append(f'<text x="{LABEL - 8}" y="{y + 13}" text-anchor="end">'
                   f'{escape(line["target"][:74])}</text>')
        if line["median"] is None:
            out.append(f'<text x="{LABEL + 6}" y="{y + 13}" fill="#888888">not measured</text>')
            continue
        end = _x(_achieved(line, line["median"]))
        out.append(f'<rect x="{LABEL}" y="{y + 3}" width="{max(end - LABEL, 1):.1f}" height="12" '
                   f'fill="{COLOURS[line["met"]]}"/>')
        least, most = sorted(_x(_achieved(line, v)) for v in (line["least"], line["most"]))
        out.append(f'<line x1="{least:.1f}" y1="{y + 9}" x2="{most:.1f}" y2="{y + 9}" '
                   'stroke="#000000"/>')
    out.append("</svg>")
    return "\n".join(out) + "\n"
