"""The pages of a journal over HTTP, for the person on this machine who has the token.

Nothing is read or written without the token. It comes once in the URL that ``gnl serve`` prints and is kept in a cookie that
no other site's request carries. A decision must besides carry what only our own pages hold, and come from our own origin.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from gnl_middleware.errors import GnlError
from gnl_middleware.journal import Journal

from .deciding import decision_of
from .html import Live, asset, live_index, live_run
from .page import Page, page_of
from .plain import History, Place

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""The names under which a browser on this machine may ask; another name would be somebody else's, rebound to us."""

_COOKIE = "gnl_token"
_BY = "gnl_by"
_LARGEST_FORM = 1_000_000
_LISTED = 200
_WAITING = 20
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Watch:
    """A journal and who may look at it.

    Attributes:
        journal: The journal; its owner closes it.
        token: What the person must have.
        place: How commands to copy name the journal.
        every: Seconds between two looks for what has changed.
    """

    journal: Journal
    token: str
    place: Place
    every: float = 0.5

    @property
    def csrf(self) -> str:
        """What only our own pages hold."""
        return hmac.new(self.token.encode(), b"decide", hashlib.sha256).hexdigest()

    def page(self, run_id: str) -> Page | None:
        """The page of a run; None where there is no such run."""
        record = self.journal.find(run_id)
        if record is None:
            return None
        history = History(
            self.journal.attempts(run_id), self.journal.resolutions(run_id), self.journal.removals(run_id)
        )
        return page_of(record, self.journal.steps(run_id), history, self.place)


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


def application(watch: Watch) -> Starlette:
    """The pages as an ASGI application.

    Example:
        >>> uvicorn.run(application(Watch(journal, new_token(), Place())), host="127.0.0.1")     # doctest: +SKIP
    """
    routes = [
        Route("/", _guarded(watch, _index)),
        Route("/run", _guarded(watch, _run)),
        Route("/events", _guarded(watch, _events)),
        Route("/decide", _guarded(watch, _decide), methods=["POST"]),
        Route("/style.css", _asset("style.css", "text/css")),
        Route("/page.js", _asset("page.js", "text/javascript")),
    ]
    return Starlette(
        routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK))]
    )


_Endpoint = Callable[[Watch, Request], Awaitable[Response]]


def _guarded(watch: Watch, endpoint: _Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        if "token" in request.query_params and request.method == "GET":
            response = _signed_in(watch, request)
        elif not _same(request.cookies.get(_COOKIE), watch.token):
            response = PlainTextResponse(
                "Open the address that `gnl serve` has printed: it holds the token.\n", 403
            )
        else:
            response = await endpoint(watch, request)
        response.headers.update(_HEADERS)
        return response

    return answer


def _signed_in(watch: Watch, request: Request) -> Response:
    """Take the token out of the address, where it would be seen and shared, and into a cookie."""
    if not _same(request.query_params["token"], watch.token):
        return PlainTextResponse(
            "This token is not of this server: it prints a new one whenever it starts.\n", 403
        )
    kept = {name: value for name, value in request.query_params.items() if name != "token"}
    response = RedirectResponse(request.url.path + (f"?{urlencode(kept)}" if kept else ""), 303)
    response.set_cookie(_COOKIE, watch.token, httponly=True, samesite="strict")
    return response


def _same(given: str | None, right: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(), right.encode())


def _asset(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        return Response(asset(name), media_type=kind, headers=_HEADERS)

    return answer


async def _index(watch: Watch, request: Request) -> Response:
    asked = {name: request.query_params.get(name, "") for name in ("like", "status", "tag")}
    return await run_in_threadpool(_index_page, watch, asked, _live(watch, request))


def _index_page(watch: Watch, asked: Mapping[str, str], live: Live) -> Response:
    journal = watch.journal
    try:
        records = journal.runs(
            status=asked["status"] or None,
            like=asked["like"] or None,
            tags=[asked["tag"]] if asked["tag"] else [],
            limit=_LISTED,
        )
        open_runs = journal.runs(status=("blocked", "interrupted"), limit=_WAITING)
        pages = [page for record in open_runs if (page := watch.page(record.run_id)) and page.waiting]
    except GnlError as error:
        return PlainTextResponse(f"{error}\n", 500)
    return HTMLResponse(live_index(records, pages, live, asked))


async def _run(watch: Watch, request: Request) -> Response:
    run_id = request.query_params.get("id", "")
    return await run_in_threadpool(_run_page, watch, run_id, _live(watch, request))


def _run_page(watch: Watch, run_id: str, live: Live, status: int = 200) -> Response:
    try:
        page = watch.page(run_id)
    except GnlError as error:
        return PlainTextResponse(f"{error}\n", 500)
    except ValueError:
        page = None
    if page is None:
        return PlainTextResponse("There is no such run.\n", 404)
    return HTMLResponse(live_run(page, live), status)


async def _events(watch: Watch, request: Request) -> Response:
    """Tell whenever something has changed; the page then asks for itself anew."""
    run_id = request.query_params.get("id")

    async def changes() -> AsyncIterator[str]:
        seen: object = None
        yield ": live\n\n"
        while not await request.is_disconnected():
            now = await run_in_threadpool(_pulse, watch.journal, run_id)
            if seen is not None and now != seen:
                yield "data: changed\n\n"
            seen = now
            await asyncio.sleep(watch.every)

    return StreamingResponse(changes(), media_type="text/event-stream")


def _pulse(journal: Journal, run_id: str | None) -> object:
    try:
        return (
            tuple(_told(record) for record in journal.runs(limit=_LISTED))
            if run_id is None
            else journal.pulse(run_id)
        )
    except (GnlError, ValueError) as error:
        return str(error)


def _told(record: Any) -> object:
    return record.run_id, record.status, record.attempts, record.updated_at


async def _decide(watch: Watch, request: Request) -> Response:
    if int(request.headers.get("content-length") or _LARGEST_FORM + 1) > _LARGEST_FORM:
        return PlainTextResponse("This decision is too large.\n", 413)
    form = {
        name: values[-1]
        for name, values in parse_qs(
            (await request.body()).decode("utf-8", "replace"), keep_blank_values=True
        ).items()
    }
    if not _same(form.get("csrf"), watch.csrf) or not _from_us(request):
        return PlainTextResponse(
            "This decision did not come from a page of this server, and was not taken.\n", 403
        )
    return await run_in_threadpool(_decided, watch, form)


def _from_us(request: Request) -> bool:
    origin = request.headers.get("origin")
    return origin is None or origin == f"{request.url.scheme}://{request.headers.get('host')}"


def _decided(watch: Watch, form: Mapping[str, str]) -> Response:
    run_id = form.get("run", "")
    try:
        _check_same_try(watch, form)
        decision = decision_of(form)
        step = watch.journal.resolve(
            run_id, form.get("step", ""), decision, by=form["by"], note=form.get("note", "")
        )
    except (GnlError, ValueError) as error:
        live = Live(csrf=watch.csrf, by=form.get("by", ""), message=str(error))
        return _run_page(watch, run_id, live, 409 if isinstance(error, GnlError) else 422)
    response = RedirectResponse(f"/run?{urlencode({'id': run_id, 'decided': step.number})}", 303)
    response.set_cookie(_BY, form["by"].encode("unicode_escape").decode(), httponly=True, samesite="strict")
    return response


def _check_same_try(watch: Watch, form: Mapping[str, str]) -> None:
    """Refuse a decision about another try than the one that the person has looked at."""
    found = [step for step in watch.journal.steps(form.get("run", "")) if step.key == form.get("step")]
    seen = form.get("tries"), form.get("began")
    if not found or (str(found[0].attempts), str(found[0].started_at)) != seen:
        raise ValueError("The call was tried anew since this page was shown. Look again, then decide.")


def _live(watch: Watch, request: Request) -> Live:
    decided = request.query_params.get("decided", "")
    message = (
        f"Step {decided} is decided. Run the same code again: it goes on from there."
        if decided.isdigit()
        else ""
    )
    by = request.cookies.get(_BY, "").encode("ascii", "replace").decode("unicode_escape", "replace")
    return Live(csrf=watch.csrf, by=by, message=message)
