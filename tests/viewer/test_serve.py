"""`gnl serve`: the same page, live, where a person with the token decides, and nobody else."""

import http.client
import re
import signal
import socket
from urllib.parse import urlencode, urlsplit

import httpx
import pytest
from click.testing import CliRunner

from gnl_middleware import NotDone
from gnl_middleware.cli.app import app
from tests.viewer.stories import hostile, interrupted_twice, support


@pytest.fixture
def signed_in(tab, server):
    """A page that has come with the token."""
    tab.goto(server.address)
    return tab


def blocked_step(journal, run_id="support:42"):
    """The step that waits for a person."""
    return next(step for step in journal.steps(run_id) if step.name == "send_email")


class TestAPerson:
    def test_sees_runs_and_what_waits(self, journal, server, signed_in, pictures):
        """The first page lists the runs and the calls that wait, and can be narrowed."""
        interrupted_twice(journal)
        support(journal, "support:7", die_at="thinking")
        with journal.run("order:1", tags=["vip"]):
            pass

        signed_in.goto(server.base)
        signed_in.screenshot(path=pictures / "runs.png", full_page=True)

        assert signed_in.locator(".run .called").all_inner_texts() == ["order:1", "support:7", "support:42"]
        assert "send_email may have happened" in signed_in.locator(".waiting").inner_text()
        signed_in.get_by_label("Run id").fill("support:*")
        signed_in.get_by_label("Status").select_option("blocked")
        signed_in.get_by_role("button", name="Find").click()
        assert signed_in.locator(".run .called").all_inner_texts() == ["support:42"]
        assert signed_in.problems == []

    def test_decides_and_the_run_goes_on(self, journal, server, signed_in, pictures):
        """A person reads the arguments, says that it happened and with which result; the agent goes on with it."""
        interrupted_twice(journal)
        signed_in.goto(f"{server.base}/run?id=support:42")

        signed_in.get_by_text("It happened", exact=True).click()
        signed_in.get_by_label("Result as JSON").fill('{"id": "m-1"}')
        signed_in.get_by_label("Your name", exact=True).fill("Ada Ωμέγα")
        signed_in.get_by_label("Why, for the audit").fill("saw it in the mailbox")
        signed_in.screenshot(path=pictures / "deciding.png", full_page=True)
        signed_in.get_by_role("button", name="Decide").click()

        assert "is decided" in signed_in.get_by_role("alert").inner_text()
        assert "saw it in the mailbox" in signed_in.locator(".decided").inner_text()
        step = blocked_step(journal)
        assert (step.value, step.resolution) == ({"id": "m-1"}, "happened")
        assert [(found.by, found.note) for found in journal.resolutions("support:42")] == [
            ("Ada Ωμέγα", "saw it in the mailbox")
        ]
        support(journal, stop=True)
        assert journal.find("support:42").status == "completed"

    @pytest.mark.parametrize(
        "choice",
        [
            ("It did not", {}, "not_done"),
            ("It failed", {"The error that the agent gets": "mailbox is gone"}, "failed"),
        ],
        ids=lambda choice: choice[2],
    )
    def test_other_decisions(self, journal, server, signed_in, choice):
        """That it did not happen, and that it failed, are taken as well."""
        chosen, more, resolution = choice
        interrupted_twice(journal)
        signed_in.goto(f"{server.base}/run?id=support:42")

        signed_in.get_by_text(chosen, exact=True).click()
        for label, text in (more | {"Your name": "ada"}).items():
            signed_in.get_by_label(label, exact=True).fill(text)
        signed_in.get_by_role("button", name="Decide").click()
        signed_in.get_by_role("alert").wait_for()

        assert blocked_step(journal).resolution == resolution

    def test_is_told_what_is_wrong(self, journal, server, signed_in):
        """A result that is no JSON decides nothing, and the page says what to write."""
        interrupted_twice(journal)
        signed_in.goto(f"{server.base}/run?id=support:42")

        signed_in.get_by_text("It happened", exact=True).click()
        signed_in.get_by_label("Result as JSON").fill("sent")
        signed_in.get_by_label("Your name", exact=True).fill("ada")
        signed_in.get_by_role("button", name="Decide").click()

        assert "not JSON" in signed_in.get_by_role("alert").inner_text()
        assert blocked_step(journal).resolution is None

    def test_sees_what_changes(self, journal, server, signed_in):
        """The page of a run follows it while it is open, and keeps open what the reader has opened."""
        support(journal, die_at="thinking")
        signed_in.goto(f"{server.base}/run?id=support:42")
        signed_in.locator("#step-1 summary").click()

        support(journal, die_at="send_email")

        signed_in.locator(".attempt:nth-child(2)").wait_for(timeout=20_000)
        assert signed_in.locator("#step-1[open]").count() == 1
        signed_in.locator(".waiting").wait_for(timeout=20_000)

    def test_keeps_what_was_typed(self, journal, server, signed_in):
        """What a person is typing is not thrown away because the run has changed meanwhile."""
        interrupted_twice(journal)
        signed_in.goto(f"{server.base}/run?id=support:42")
        signed_in.get_by_label("Your name", exact=True).fill("ada")

        journal.resolve("support:42", "send_email", NotDone(), by="bob")

        signed_in.get_by_text("changed; reload when you have decided").wait_for(timeout=20_000)
        assert signed_in.get_by_label("Your name", exact=True).input_value() == "ada"

    def test_hostile_text_does_no_harm(self, journal, server, signed_in, pictures):
        """Served or live, whatever was written by a model, a tool or a caller is text."""
        run_id = hostile(journal)
        for place in (server.base, f"{server.base}/run?{urlencode({'id': run_id})}"):
            signed_in.goto(place)

            assert signed_in.evaluate("window.harmed") is None
            assert signed_in.locator("main img, main script, main svg:not(.bar)").count() == 0
        assert signed_in.problems == []


class TestNobodyElse:
    def form(self, journal, client, **changed):
        """A decision as the page would send it."""
        page = client.get("/run", params={"id": "support:42"}).text
        found = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
        return found | {"decision": "happened", "by": "eve"} | changed

    @pytest.fixture
    def client(self, server, journal):
        """A client with the token."""
        interrupted_twice(journal)
        with httpx.Client(base_url=server.base, follow_redirects=True, timeout=60) as client:
            client.get("/", params={"token": server.token})
            yield client

    def test_reads_without_the_token(self, journal, server):
        """Without the token, or with a wrong one, nothing is shown, and nothing is taken."""
        interrupted_twice(journal)
        for place in ("/", "/run?id=support:42", "/events", "/?token=wrong"):
            answer = httpx.get(server.base + place, timeout=60)

            assert answer.status_code == 403
            assert "support:42" not in answer.text
        assert httpx.post(f"{server.base}/decide", data={"run": "support:42"}).status_code == 403

    def test_the_token_does_not_stay_in_the_address(self, server, journal):
        """The token moves from the address into a cookie that neither scripts nor other sites' requests get."""
        answer = httpx.get(server.address, timeout=60)

        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie

    def test_decides_without_our_page(self, journal, client):
        """The cookie alone is not enough: without what our own page holds, or with a wrong one, nothing is decided."""
        for csrf in ("", "0" * 64):
            answer = client.post("/decide", data=self.form(journal, client, csrf=csrf))
            assert answer.status_code == 403
        assert blocked_step(journal).resolution is None

    @pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
    def test_decides_from_another_origin(self, journal, client, origin):
        """A request that another site has made is refused, whatever it carries."""
        answer = client.post("/decide", data=self.form(journal, client), headers={"origin": origin})

        assert answer.status_code == 403
        assert blocked_step(journal).resolution is None

    def test_asks_under_another_name(self, server, journal):
        """A name that was rebound to this machine is not answered."""
        place = urlsplit(server.base)
        connection = http.client.HTTPConnection(place.hostname, place.port)
        connection.request("GET", f"/?token={server.token}", headers={"host": "evil.example"})

        assert connection.getresponse().status == 400
        connection.close()

    def test_reaches_it_from_another_machine(self, server):
        """It listens on the loopback only."""
        port = urlsplit(server.base).port
        outside = socket.gethostbyname(socket.gethostname())
        addresses = {outside} - {"127.0.0.1"} if not outside.startswith("127.") else set()

        assert urlsplit(server.base).hostname == "127.0.0.1"
        for address in addresses:
            with pytest.raises(OSError, match=r"refused|timed out|unreachable"):
                socket.create_connection((address, port), timeout=2)

    def test_decides_another_try(self, journal, client):
        """A decision about a try that is no longer the step's is refused: the person has not seen this one."""
        answer = client.post("/decide", data=self.form(journal, client, tries="7"))

        assert (answer.status_code, "tried anew" in answer.text) == (422, True)
        assert blocked_step(journal).resolution is None

    def test_decides_twice(self, journal, client):
        """The first decision wins; the second one is told so."""
        form = self.form(journal, client)
        first = client.post("/decide", data=form)
        second = client.post("/decide", data=form | {"decision": "not_done"})

        assert (first.status_code, second.status_code) == (200, 409)
        assert blocked_step(journal).resolution == "happened"

    def test_sends_what_is_too_large(self, journal, client):
        """A decision as large as no person writes is refused before it is read."""
        answer = client.post("/decide", data=self.form(journal, client, note="x" * 1_100_000))

        assert answer.status_code == 413

    def test_gets_pages_without_protection(self, client):
        """Every answer carries a policy that lets nothing run but our own script, and is neither framed nor kept."""
        for place in ("/", "/run?id=support:42", "/style.css", "/page.js", "/nowhere?token=x"):
            headers = client.get(place).headers
            if place.startswith("/nowhere"):
                continue
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")

    def test_asks_for_what_is_not_there(self, client):
        """A run that there is not is a plain answer."""
        assert client.get("/run", params={"id": "nobody"}).status_code == 404
        assert client.get("/run", params={"id": "\x00"}).status_code == 404
        assert client.get("/decide").status_code == 405


class TestTheCommand:
    def test_serves_and_ends(self, journal, served):
        """`gnl serve` prints an address that works, shows runs that another process writes, and ends with Ctrl-C."""
        process, address = served
        with httpx.Client(follow_redirects=True, timeout=60) as client:
            assert client.get(address).status_code == 200
            interrupted_twice(journal)
            assert "send_email" in client.get(address).text

        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=30) in (0, 130)

    def test_a_port_that_is_taken(self, journal, journal_path, server):
        """A port that somebody else has is a sentence with the way out."""
        port, place = str(urlsplit(server.base).port), str(journal_path)

        ended = CliRunner().invoke(app, ["serve", "--port", port, "--journal", place])

        assert (ended.exit_code, "choose one with --port" in ended.output) == (1, True)
