"""`gnl export`: one file that shows a run to anybody, and lets nothing in it do harm."""

import json
import re

import pytest
from click.testing import CliRunner

from gnl_middleware.cli.app import app
from tests.viewer.stories import diverged, hostile, interrupted_twice


@pytest.fixture
def exported(journal, journal_path, tmp_path):
    """Write the page of a run, and give its path."""

    def export(run_id, name="run.html"):
        path = tmp_path / name
        arguments = ["export", "-o", str(path), "--journal", str(journal_path), "--", run_id]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        return path

    return export


@pytest.mark.parametrize(
    "screen", [(scheme, width) for scheme in ("light", "dark") for width in (1180, 390)], ids=str
)
def test_a_run_fits_every_screen(journal, exported, tab, pictures, screen):
    """On a desk and on a phone, light and dark, nothing is cut off sideways, and a picture of it is kept."""
    interrupted_twice(journal)
    scheme, width = screen
    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(color_scheme=scheme)

    tab.goto(exported("support:42").as_uri())
    tab.screenshot(path=pictures / f"run-{scheme}-{width}.png", full_page=True)

    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 380) is (scheme == "dark")
    assert tab.problems == []


def test_what_ran_is_solid_and_what_came_back_is_dashed(journal, exported, tab):
    """Attempts stand one under the other; in each, a step is solid where it ran and dashed where it was read back."""
    interrupted_twice(journal)
    tab.goto(exported("support:42").as_uri())

    def shown(attempt, kind):
        rows = tab.locator(f".attempt:nth-child({attempt}) .step.{kind}")
        return [row.get_by_text(re.compile(r"\w+")).first.inner_text() for row in rows.all()], rows

    here, first = shown(1, "here")
    back, second = shown(2, "back")
    assert here == back == ["1", "2", "3", "4", "5", "6"]
    assert first.locator("rect").first.evaluate("bar => getComputedStyle(bar).fill") != "none"
    assert second.locator("rect").first.evaluate("bar => getComputedStyle(bar).strokeDasharray") != "none"
    assert second.locator("rect").first.evaluate("bar => getComputedStyle(bar).fill") == "none"
    assert shown(2, "here")[0] == ["7", "8", "9"]
    heads = tab.locator(".attempt > .when").all_inner_texts()
    assert "read back" not in heads[0]
    assert re.search(r"read back 3 steps: \d+ ms not spent again", heads[1])


def test_what_happened_inside_a_step_is_indented(journal, exported, tab):
    """The steps of a nested agent stand under the step that ran it, further to the right; a branch has its name."""
    interrupted_twice(journal)
    tab.goto(exported("support:42").as_uri())

    def left(number):
        return tab.locator(f"#step-{number} .called").bounding_box()["x"]

    assert left(2) < left(3) == left(5)
    assert tab.locator(".branch").first.inner_text() == "billing"
    assert left(8) > left(7)


def test_a_blocked_call_shows_how_to_decide_it(journal, exported, tab):
    """What may have happened stands first, with its arguments, its key and the very commands that decide it."""
    interrupted_twice(journal)
    tab.goto(exported("support:42").as_uri())

    card = tab.locator(".waiting")
    assert "send_email may have happened" in card.inner_text()
    assert '"to": "ann@example.com"' in card.inner_text()
    assert "gnl resolve support:42 9 --happened --by YOU" in card.locator(".copy").all_inner_texts()[1]
    assert tab.locator("form, button, input").count() == 0


def test_a_divergence_reads_as_a_difference(journal, exported, tab, pictures):
    """What was recorded and what was asked stand under each other, marked, in the attempt that stopped there."""
    diverged(journal)
    tab.goto(exported("order:9").as_uri())
    tab.screenshot(path=pictures / "divergence.png", full_page=True)

    assert "10" in tab.locator(".attempt.failed .minus").inner_text()
    assert "12" in tab.locator(".attempt.failed .plus").inner_text()


def test_keys_move_open_and_find(journal, exported, tab):
    """Without a mouse: j and k move, o opens, e opens and closes all, and a step that was read back leads to where it ran."""
    interrupted_twice(journal)
    tab.goto(exported("support:42").as_uri())

    tab.keyboard.press("j")
    tab.keyboard.press("j")
    tab.keyboard.press("o")
    assert tab.locator("details[open][id]").get_attribute("id") == "step-1"
    assert "Look the customer up" in tab.locator("#step-1 .inside").inner_text()
    tab.keyboard.press("e")
    assert tab.locator("details[open][id^=step-]").count() == 9
    tab.keyboard.press("e")
    assert tab.locator("details[open][id^=step-]").count() == 0
    tab.locator(".attempt:nth-child(2) .step.back a").nth(3).click()
    assert tab.locator("details[open][id^=step-]").evaluate_all("all => all.map(one => one.id)") == ["step-4"]
    assert tab.evaluate("document.activeElement.closest('details').id") == "step-4"


def test_no_payload_does_harm(journal, exported, tab, pictures):
    """Whatever a model, a tool or a caller wrote is shown as text: no script runs, nothing loads, no sign turns the text."""
    run_id = hostile(journal)
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    page = exported(run_id)

    tab.goto(page.as_uri())
    tab.keyboard.press("e")
    tab.screenshot(path=pictures / "hostile.png", full_page=True)

    assert tab.evaluate("window.harmed") is None
    assert asked == [page.as_uri()]
    assert tab.locator("main img, main script, main svg:not(.bar), main b:not(.choice b)").count() == 0
    assert "{{ 7 * 7 }}" in tab.locator("main").inner_text()
    assert not set("\x1b\u202e\u2066") & set(page.read_text(encoding="utf-8"))
    assert tab.problems == []


def test_the_policy_refuses_what_got_through(journal, exported, tab):
    """Even a script that stood in the page could neither run nor call out: the page's own policy forbids it."""
    interrupted_twice(journal)
    page = exported("support:42")
    smuggled = (
        "<script>window.harmed = true</script><img src='http://127.0.0.1:9/x' onerror='window.harmed = true'>"
    )
    page.write_text(
        page.read_text(encoding="utf-8").replace("<main", f"{smuggled}<main", 1), encoding="utf-8"
    )

    tab.goto(page.as_uri())

    assert tab.evaluate("window.harmed") is None
    assert any("Content Security Policy" in problem for problem in tab.problems)


def test_lines_of_json(journal, journal_path, tmp_path):
    """JSONL has one object a line: the run, its attempts, its steps, as `gnl show --json` has them."""
    interrupted_twice(journal)
    path = tmp_path / "run.jsonl"
    options = ["--journal", str(journal_path)]

    CliRunner().invoke(app, ["export", "support:42", "-o", str(path), *options])
    printed = CliRunner().invoke(app, ["export", "support:42", "--format", "jsonl", *options]).stdout
    told = json.loads(CliRunner().invoke(app, ["show", "support:42", "--json", *options]).stdout)

    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["type"] for line in lines] == ["run", *["attempt"] * 3, *["step"] * 9]
    assert lines[0] == {"type": "run"} | told["run"]
    assert lines[4:] == [{"type": "step"} | step for step in told["steps"]]
    assert printed == path.read_text(encoding="utf-8")


def test_where_it_cannot_write(journal, journal_path, tmp_path):
    """A file that cannot be written is a sentence, not a traceback."""
    interrupted_twice(journal)

    result = CliRunner().invoke(
        app, ["export", "support:42", "-o", str(tmp_path / "no" / "run.html"), "--journal", str(journal_path)]
    )

    assert (result.exit_code, "cannot be written" in result.output) == (1, True)
