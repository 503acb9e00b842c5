from xml.etree import ElementTree

from cuarl.monitor.plot import Mark, svg

SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_has_a_line_a_band_and_a_name_for_each_curve():
    marks = [Mark(0, 0.1, 0.0, 0.3), Mark(8, 0.5, 0.4, 0.6), Mark(16, 1.0, 0.9, 1.0)]
    root = ElementTree.fromstring(svg([("one", marks), ("two", marks[:2])], title="success"))
    lines = [e.get("points").split() for e in root.iter(f"{SVG}polyline")]
    assert [len(points) for points in lines] == [3, 2]
    places = [tuple(map(float, p.split(","))) for p in lines[0]]
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True), "more success is further up"
    assert [len(e.get("points").split()) for e in root.iter(f"{SVG}polygon")] == [6, 4]
    texts = [e.text for e in root.iter(f"{SVG}text")]
    assert {"one", "two", "success", "0%", "100%", "0", "8", "16"} <= set(texts)


def test_names_are_text_and_nothing_else():
    hostile = '</text><script>alert(1)</script>\x1b["&'
    root = ElementTree.fromstring(svg([(hostile, [Mark(0, 0.5, 0.4, 0.6)])], title=hostile))
    assert not list(root.iter(f"{SVG}script"))


def test_a_curve_without_marks_is_an_empty_line():
    assert ElementTree.fromstring(svg([("one", [])], title="t")) is not None
