"""Small SVG charts without dependencies."""

import html
import math

COLOURS = ["#1b6ca8", "#d1495b", "#e6a23c", "#3a7d44", "#7b4b94", "#4f6d7a", "#b56576", "#2a9d8f", "#8d6a3f", "#555555",
           "#9a031e", "#0f4c5c"]


def ticks(top):
    step = 10 ** math.floor(math.log10(top)) if top > 0 else 1
    for factor in (0.1, 0.2, 0.25, 0.5, 1, 2):
        if top / (step * factor) <= 8:
            step *= factor
            break
    values = []
    value = 0.0
    while value <= top * 1.0001:
        values.append(value)
        value += step
    return values


def lines(path, series, x_label, y_label):
    """series: [(name, [y at x = 1, 2, ...], number of the colour, dashes or "")]. Writes an SVG with names on the right."""
    width, height, left, bottom, top, right = 900, 480, 70, 50, 20, 300
    count = max(len(points) for _, points, _, _ in series)
    most = max(max(points) for _, points, _, _ in series) or 1
    x = lambda i: left + (width - left - right) * (i / max(1, count - 1))
    y = lambda v: height - bottom - (height - bottom - top) * (v / most)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for value in ticks(most):
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for i in range(count):
        out.append(f'<text x="{x(i):.1f}" y="{height - bottom + 18}" text-anchor="middle">{i + 1}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 12}" text-anchor="middle">{html.escape(x_label)}</text>')
    out.append(f'<text transform="translate(16 {(top + height - bottom) / 2}) rotate(-90)" text-anchor="middle">{html.escape(y_label)}</text>')
    # Names at the height of the last point, pushed apart: downwards, then up from the bottom.
    ends = sorted(range(len(series)), key=lambda k: -series[k][1][-1])
    label_y = {}
    last = -1e9
    for k in ends:
        label_y[k] = last = max(y(series[k][1][-1]), last + 15)
    last = height - bottom + 15
    for k in reversed(ends):
        label_y[k] = last = min(label_y[k], last - 15)
    for k, (name, points, colour, dashes) in enumerate(series):
        colour = COLOURS[colour % len(COLOURS)]
        path_data = " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in enumerate(points))
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        out.append(f'<polyline points="{path_data}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        out.append(f'<text x="{width - right + 8}" y="{label_y[k] + 4:.1f}" fill="{colour}">{html.escape(name)} ({points[-1]:.0f})</text>')
    out.append("</svg>")
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


def ratios(path, rows, label):
    """rows: [(name, low, middle, high)] of ratios around 1, drawn on a logarithmic axis."""
    width, left, right, line = 900, 260, 30, 20
    height = 60 + line * len(rows)
    low = min(0.25, min(r[1] for r in rows))
    high = max(4, max(r[3] for r in rows))
    x = lambda v: left + (width - left - right) * (math.log(v / low) / math.log(high / low))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for value in (0.25, 0.5, 1, 2, 4, 8, 16):
        if low <= value <= high:
            out.append(f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="10" y2="{height - 40}" stroke="{"#000" if value == 1 else "#ddd"}"/>'
                       f'<text x="{x(value):.1f}" y="{height - 24}" text-anchor="middle">{value:g}</text>')
    for i, (name, a, b, c) in enumerate(rows):
        y = 22 + i * line
        colour = "#3a7d44" if b >= 1 else "#d1495b"
        out.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{html.escape(name)}</text>'
                   f'<line x1="{x(a):.1f}" x2="{x(c):.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"/>'
                   f'<circle cx="{x(b):.1f}" cy="{y}" r="4" fill="{colour}"/>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 6}" text-anchor="middle">{html.escape(label)}</text></svg>')
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")
