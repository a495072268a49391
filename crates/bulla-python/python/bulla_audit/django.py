"""`Middleware`: an entry for each request of a Django project, whether it runs by WSGI or ASGI.

In the settings:

    MIDDLEWARE = ["bulla_audit.django.Middleware", "django.middleware.security.SecurityMiddleware", ...]
    BULLA_AUDIT = {
        "target": "bulla_audit.gunicorn.producer",
        "actor": "shop.audit.actor",
        "subject": "shop.audit.subject",
        "client": "bulla_audit.django.peer",
    }
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.utils.module_loading import import_string

from bulla_audit._context import context
from bulla_audit._native import Error
from bulla_audit._web import REFUSAL, Request, Settings, length, tell_refused

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

__all__ = ["Middleware", "peer"]


def peer(request: HttpRequest) -> str | None:
    """The address that the connection came from, for `client`: a proxy's, where one is before the server."""
    return request.META.get("REMOTE_ADDR") or None


class Middleware:
    """Writes an entry for each request, and binds a context for what is written while it is served.

    The setting `BULLA_AUDIT` is a dictionary:

    - `target`: required: a `Producer`, a `Log` or a `Connection`, of which it makes a producer of its own; a function
      that makes a producer, which is called when one is needed first; or the dotted path of one of them
    - `actor`, `client`, `purpose`, `subject`, `controller`, `processor`, `stream`, `flags`: what these fields are: a
      function of the request, or its dotted path. Under ASGI it may be a coroutine function
    - `durable`: `True`: a response waits until its entry is durable (default `False`)
    - `unrecordable`: `"refuse"` (default) or `"pass"`

    A function is asked before the view, for the context and the entry; where it gave `None` then it is asked again for
    the entry, when the request was routed (`request.resolver_match`), and those middlewares have run that know who is
    logged in (`request.user`). So it gives `None` for what the request does not have yet. An exception of such a
    function ends the request. All but `flags` are texts, `subject` several too: of what a route's converter made a
    number or a UUID (`<int:user>`), and of a primary key, give `str(…)`, since nothing else can be recorded.

    The entry has besides:

    - `operation`: `read` (GET, HEAD), `create` (POST), `update` (PUT, PATCH), `delete` (DELETE), else the method in
      lower case
    - `location`: the path; never the query string
    - `status`: the response's status; an exception of a view is a response by then (500)
    - `duration`: nanoseconds from the call of the middleware until the response is there: of one that streams, until it
      begins
    - `size`: how many bytes the response has; absent where it streams and has no `Content-Length`, and for HEAD
    - what is left: the context where the middleware is: what was bound by `bulla_audit.bind` in the request's thread or
      task

    **What it promises.** Put it first, so that it sees what other middlewares refuse. The entry is appended before the
    response is handed to the server, once. By default nothing is waited for: it is durable a little later by itself,
    and a process that is killed until then loses it though the client has its response. With `durable` the response is
    handed on when the entry is durable; under ASGI other requests go on meanwhile, under WSGI this thread waits, and
    threads that wait at once share their syncs. Either way what the view did is done, and committed where it commits.

    **What cannot be recorded** (a field breaks a limit, the log takes nothing more, nobody listens at the socket) is by
    default refused: the client gets a 503 in place of the response. What the view did is not undone. With `"pass"` the
    response goes out and the entry is counted in `lost`.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]) -> None:
        self._get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)
        chosen = dict(getattr(settings, "BULLA_AUDIT", {}))
        if "target" not in chosen:
            raise ImproperlyConfigured("BULLA_AUDIT in the settings has no `target`: say where the entries go")
        target = _imported(chosen.pop("target"))
        durable, unrecordable = chosen.pop("durable", False), chosen.pop("unrecordable", "refuse")
        given = {name: _imported(value) for name, value in chosen.items()}
        try:
            self._settings = Settings(target, durable, unrecordable, given)
        except (TypeError, ValueError) as error:
            raise ImproperlyConfigured(f"BULLA_AUDIT in the settings: {error}") from error

    @property
    def lost(self) -> int:
        """How many requests could not be recorded and were responded to all the same."""
        return self._settings.way.lost

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self._is_async:
            return self._respond_async(request)
        under_way = Request(self._settings, cast(str, request.method), request.path)
        with context(**_asked(under_way, request)):
            response = cast("HttpResponseBase", self._get_response(request))
            _asked(under_way, request)
            entry = under_way.entry(response.status_code, _size(response))
            try:
                if self._settings.durable:
                    self._settings.way.append_flushed(entry).wait()
                else:
                    self._settings.way.append(entry)
            except Error as error:
                return self._unrecorded(response, error)
        return response

    async def _respond_async(self, request: HttpRequest) -> HttpResponseBase:
        under_way = Request(self._settings, cast(str, request.method), request.path)
        with context(**await _asked_async(under_way, request)):
            response = await cast("Awaitable[HttpResponseBase]", self._get_response(request))
            await _asked_async(under_way, request)
            entry = under_way.entry(response.status_code, _size(response))
            try:
                if self._settings.durable:
                    await self._settings.way.append_flushed(entry).durable()
                else:
                    self._settings.way.append(entry)
            except Error as error:
                return self._unrecorded(response, error)
        return response

    def _unrecorded(self, response: HttpResponseBase, error: Error) -> HttpResponseBase:
        if self._settings.refuses:
            tell_refused(error)
            return HttpResponse(REFUSAL, status=503, content_type="text/plain; charset=utf-8")
        self._settings.way.count_lost()
        return response


def _imported(value: Any) -> Any:
    return import_string(value) if isinstance(value, str) else value


def _asked(under_way: Request, request: HttpRequest) -> dict[str, Any]:
    """Asks what is not known of a request yet; what it is told."""
    told = {name: said(request) if callable(said) else said for name, said in under_way.unknown()}
    return under_way.know(told)


async def _asked_async(under_way: Request, request: HttpRequest) -> dict[str, Any]:
    told = {}
    for name, said in under_way.unknown():
        value = said(request) if callable(said) else said
        told[name] = await value if isawaitable(value) else value
    return under_way.know(told)


def _size(response: HttpResponseBase) -> int | None:
    if response.streaming:
        return length(response.headers.get("Content-Length"))
    return len(cast(HttpResponse, response).content)
