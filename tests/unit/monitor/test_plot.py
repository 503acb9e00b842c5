from xml.etree import ElementTree

from cuarl.monitor.plot import Mark, in_characters, svg

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


def test_in_characters_marks_stand_at_their_shares_with_their_intervals():
    marks = [Mark(0, 0.0, 0.0, 0.1), Mark(8, 0.5, 0.4, 0.6), Mark(16, 1.0, 0.9, 1.0)]
    drawn = in_characters([("one", marks)], width=40).splitlines()
    assert max(map(len, drawn)) <= 40 and len(drawn) == 13
    rows = {line[:5].strip(): line for line in drawn}
    columns = [rows[share].index("●") for share in ("0%", "50%", "100%")]
    assert columns == [8, 24, 39]
    assert [line.ljust(40)[columns[1]] for line in drawn[3:8]] == [" ", "│", "●", "│", " "]


def test_in_characters_several_curves_have_letters_and_names():
    drawn = in_characters([("one", [Mark(4, 0.2, 0.2, 0.2)]), ("two\x1b", [Mark(4, 0.9, 0.9, 0.9)])]).splitlines()
    assert drawn[-2:] == ["a one", "b two\\x1b"] and drawn[8].endswith("a") and drawn[1].endswith("b")


def test_in_characters_nothing_is_drawn_of_nothing_or_without_room():
    assert in_characters([("one", [])]) == in_characters([("one", [Mark(0, 0.5, 0.4, 0.6)])], width=20) == ""
