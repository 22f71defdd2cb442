"""The one HTML builder: everything is escaped unless it is declared markup."""

from reconpriv.show import markup
from reconpriv.show.markup import Html, join, tag

NASTY = "</p><script>alert('&')</script>\""


def test_text_is_escaped_wherever_it_stands():
    made = [
        tag("p", NASTY),
        tag("p", [NASTY, [NASTY]]),
        tag("p", title=NASTY),
        join(NASTY),
        markup.words(f"`{NASTY}`"),
        markup.lines(f"{NASTY}\n{NASTY}"),
        markup.table([NASTY], [[NASTY]], [{"title": NASTY}], caption=tag("caption", NASTY)),
    ]
    for html in made:
        assert isinstance(html, Html)
        assert "<script" not in html and "alert" in html
    page = markup.document(NASTY, NASTY, style="")
    assert "<script" not in page and page.count("alert") == 2


def test_an_attribute_cannot_be_left_early():
    assert tag("p", title='" onclick="x') == '<p title="&quot; onclick=&quot;x"></p>'


def test_markup_stays_markup_only_as_it_was_made():
    """To add to it or to put it into a text makes it text again, which is escaped."""
    bold = tag("b", "x")
    assert tag("p", bold) == "<p><b>x</b></p>"
    assert tag("p", bold + "<i>") == "<p>&lt;b&gt;x&lt;/b&gt;&lt;i&gt;</p>"
    assert "<b>" not in tag("p", f"{bold}")


def test_elements_and_attributes():
    assert tag("br") == "<br>"
    assert tag("p", None, 0, 1.5) == "<p>01.5</p>"
    assert tag("a", class_="b", aria_label="c", hidden=True, id=None, open=False) == (
        '<a class="b" aria-label="c" hidden></a>'
    )
    table = markup.table(("a", "b"), [("1", None)], [{}, {"class_": "n"}])
    assert table == (
        '<table><thead><tr><th scope="col">a</th><th scope="col" class="n">b</th></tr></thead>'
        '<tbody><tr><td>1</td><td class="n"></td></tr></tbody></table>'
    )
