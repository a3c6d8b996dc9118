"""The plot of estimated against measured speedups."""

from __future__ import annotations

from xml.etree import ElementTree

from mugraph.research.scatter import scatter

SVG = "{http://www.w3.org/2000/svg}"


def test_each_point_is_where_its_numbers_say_and_names_itself():
    plot = ElementTree.fromstring(scatter([("a < b", 2.0, 1.0), ("even", 3.0, 3.0), ("low", 1.0, 2.0)], "Speedups"))
    a, even, low = plot.findall(f"{SVG}circle")
    title = a.find(f"{SVG}title")
    assert title is not None
    assert title.text == "a < b: estimated 2.00, measured 1.00"
    assert float(a.attrib["cy"]) < float(low.attrib["cy"])  # a larger estimate is higher
    assert float(a.attrib["cx"]) < float(low.attrib["cx"]) < float(even.attrib["cx"])
    line = plot.find(f"{SVG}line[@class='even']")
    assert line is not None
    away = float(even.attrib["cx"]) - float(line.attrib["x1"]) - (float(line.attrib["y1"]) - float(even.attrib["cy"]))
    assert abs(away) < 0.2  # equal ones lie on the line
