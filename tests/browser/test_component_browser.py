import pytest

from app.components.page import scripts
from tests.browser.panes import keys, lasso, opened, says, star, wait_for

CODE = "JSON.parse(document.querySelector('[data-testid=stCode] code')?.innerText || '{}')"


def heard(page, runs=0, events=0):
    condition = f"([runs, events]) => {CODE}.runs >= runs && {CODE}.events.length >= events"
    page.wait_for_function(condition, arg=[runs, events])
    return page.evaluate(CODE)


def test_python_hears_each_event_once_and_its_selection_is_shown(page, demo):
    opened(page, f"{demo}/?n=2000")
    n = lasso(page)
    ((kind, rows),) = heard(page, events=1)["events"]
    assert (kind, len(rows)) == ("select", n)
    page.mouse.click(*star(page, 3, 5))
    assert heard(page, events=2)["events"][1] == ["click", [28]]
    runs = heard(page)["runs"]
    page.get_by_text("Run again").click()
    assert len(heard(page, runs + 1)["events"]) == 2
    wait_for(page, "selected", n)
    drawn = says(page, "drawn")
    page.get_by_text("Highlight ten").click()
    wait_for(page, "selected", 10)
    page.get_by_text("More anchors").click()
    wait_for(page, "anchors", 9)
    assert says(page, "drawn") == drawn
    keys(page, "Escape")
    assert heard(page, events=3)["events"][2] == ["clear", []]


@pytest.mark.slow
def test_positions_that_cannot_be_loaded_are_reported(page, demo):
    page.route("**/media/**", lambda route: route.abort())
    page.goto(f"{demo}/?n=21000")
    page.get_by_role("alert").filter(has_text="could not be loaded").wait_for()
    page.unroute("**/media/**")
    page.get_by_text("Highlight ten").click()  # another payload: Streamlit does not send the same one again
    wait_for(page, "selected", 10)
    assert page.locator(".ls-error").count() == 0


def test_answers_by_the_channel_bring_no_code(page):
    page.set_content("<div id=at></div><div class=answers>before</div>")
    page.evaluate(
        """async (source) => {
            window.WebSocket = class { constructor() { window.socket = this; } };
            const parentElement = document.querySelector("#at");
            const { default: start } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
            start({ data: { address: "", name: "one", text: "text", answers: "answers" }, parentElement });
            window.come = (html) => socket.onmessage({ data: new TextEncoder().encode(html) });
        }""",
        scripts("channel", "answers"),
    )
    shown = page.locator(".answers")
    page.evaluate("() => come('')")
    assert shown.inner_html() == "before"
    page.evaluate(
        "() => come(`<div class=answers><p class=a onclick=go()>3 of 4<img src=x onerror=go()><script>go()</script>"
        "<a href='javascript:go()'>b</a></p></div>`)"
    )
    assert shown.inner_html() == '<p class="a">3 of 4</p>'
