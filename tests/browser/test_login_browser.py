from functools import partial
from http.server import SimpleHTTPRequestHandler

import pytest

from tests.browser.conftest import APP
from tests.loopback import serving

TOKEN = "the token of this file, which is long enough"
QUERY = "token=the+token+of+this+file%2C+which+is+long+enough"
SCRIPTS = {
    "the WebSocket": """url => new Promise(done => {
        const socket = new WebSocket(url.replace("http", "ws") + "/_stcore/stream");
        socket.onopen = () => done(true);
        socket.onerror = () => done(false);
    })""",
    "a request": "url => fetch(url + '/_stcore/health').then(answer => answer.ok, () => false)",
    "a picture": """url => new Promise(done => {
        const picture = new Image();
        picture.onload = () => done(true);
        picture.onerror = () => done(false);
        picture.src = url + "/favicon.png";
    })""",
}


@pytest.fixture(scope="module")
def locked(serve, tmp_path_factory):
    return serve(APP, RELSCOPE_STORE=str(tmp_path_factory.mktemp("locked")), RELSCOPE_TOKEN=TOKEN)


@pytest.fixture
def other_port(tmp_path):
    with serving(partial(SimpleHTTPRequestHandler, directory=tmp_path)) as (_, address):
        yield address.replace("127.0.0.1", "localhost")


def opened(page):
    page.wait_for_selector("h2.relscope-unseen", state="attached")
    return page.url


@pytest.mark.slow
def test_the_login_opens_the_page_that_was_asked(page, locked):
    page.goto(f"{locked}/anchors?k=5")
    field = page.get_by_label("Token")
    field.wait_for()
    assert page.evaluate("document.activeElement.id") == "token"
    page.keyboard.type("another one")
    page.keyboard.press("Enter")
    page.get_by_role("alert").get_by_text("not the token").wait_for()
    assert field.get_attribute("aria-invalid") == "true"
    page.keyboard.type(f"http://127.0.0.1:8501/?{QUERY}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{locked}/explore?*")  # where the anchors are now
    assert "k=5" in page.url
    bookmark = page.context.new_page()
    bookmark.goto(locked)
    assert "token" not in opened(bookmark)


@pytest.mark.slow
def test_links_of_another_site_open_and_its_scripts_do_not(page, locked, other_port, tmp_path):
    links = tmp_path / "links.html"
    links.write_text(f"<!doctype html><a href='{locked}/?{QUERY}'>first</a> <a href='{locked}'>later</a>")
    for link, tab in (("first", page.context.new_page()), ("later", page)):
        tab.goto(links.as_uri())
        tab.get_by_text(link).click()
        assert "token=" not in opened(tab)
    works = {what: page.evaluate(script, locked) for what, script in SCRIPTS.items()}
    page.goto(other_port)
    fails = {what: page.evaluate(script, locked) for what, script in SCRIPTS.items()}
    assert works == dict.fromkeys(SCRIPTS, True)
    assert fails == dict.fromkeys(SCRIPTS, False)
