"""`Middleware`: an entry for each request of an ASGI application (FastAPI, Starlette, and others).

In short:

    from fastapi import FastAPI
    from bulla_audit import connect
    from bulla_audit.asgi import Middleware

    app = FastAPI()
    app.add_middleware(
        Middleware,
        target=connect("audit.sock"),
        actor=lambda scope: scope["user"].username if "user" in scope else None,
        subject=lambda scope: scope.get("path_params", {}).get("user_id"),
        purpose="customer service",
    )
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from inspect import isawaitable
from typing import Any, TypeAlias

from bulla_audit._context import context
from bulla_audit._native import Error
from bulla_audit._way import Target
from bulla_audit._web import REFUSAL, Request, Settings, length, tell_refused

__all__ = ["Middleware", "peer"]

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def peer(scope: Scope) -> str | None:
    """The address that the connection came from, for `client`: a proxy's, where one is before the server that is not
    told of to it.
    """
    client = scope.get("client")
    return client[0] if client else None


class Middleware:
    """Writes an entry for each HTTP request, and binds a context for what is written while it is served.

    `target` is a `Producer`, a `Log` or a `Connection`, of which it makes a producer of its own, or a function that
    makes a producer, which is called when one is needed first (`bulla_audit.gunicorn.producer`).

    `actor`, `client`, `purpose`, `subject`, `controller`, `processor`, `stream` and `flags` say what these fields are:
    a function of the request's `scope`, which may be a coroutine function, or a value. A function is asked before the
    application is called, for the context and the entry; where it gave `None` then it is asked again for the entry,
    when the application has routed the request, and knows who is logged in. An exception of such a function ends the
    request. All but `flags` are texts, `subject` several too: of what a route's converter made a number or a UUID
    (`{user_id:int}`) give `str(…)`, since nothing else can be recorded.

    The entry has besides:

    - `operation`: `read` (GET, HEAD), `create` (POST), `update` (PUT, PATCH), `delete` (DELETE), else the method in
      lower case
    - `location`: the path; never the query string
    - `status`: the response's status; 500 where the application raised an exception before it responded; absent where
      there was no response
    - `duration`: nanoseconds from the call of the middleware until the response begins
    - `size`: what the response's `Content-Length` says; absent where it has none, and for HEAD
    - what is left: the context where the response begins: what a coroutine bound by `bulla_audit.bind` in the request's
      task

    **What it promises.** The entry is appended before the first byte of the response is sent, once. By default nothing
    is waited for: it is durable a little later by itself, and a process that is killed until then loses it though the
    client has its response. With `durable=True` the response begins when the entry is durable; the event loop goes on
    with other requests meanwhile. Either way it tells that a response of this status begins, not that the client got
    all of it, and what the application did before it responded is done.

    **What cannot be recorded** (a field breaks a limit, the log takes nothing more, nobody listens at the socket) is by
    default refused, `unrecordable="refuse"`: the client gets a 503 in place of the response, of which nothing is sent.
    What the application did is not undone. With `"pass"` the response goes out and the entry is counted in `lost`.

    Appending itself waits, and the event loop with it, where the memory for entries is full, for `append_timeout` at
    most: a setting of `Log` and of `connect`.

    WebSockets get the context and no entry. asyncio alone has `durable`.
    """

    def __init__(
        self,
        app: Application,
        target: Target,
        *,
        durable: bool = False,
        unrecordable: str = "refuse",
        **given: Callable[[Scope], Any] | str | int | None,
    ) -> None:
        self._app = app
        self._settings = Settings(target, durable, unrecordable, given)

    @property
    def lost(self) -> int:
        """How many requests could not be recorded and were responded to all the same."""
        return self._settings.way.lost

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request = Request(self._settings, scope.get("method", ""), scope["path"])
        known = await _asked(request, scope)
        with context(**known):
            if scope["type"] == "websocket":
                await self._app(scope, receive, send)
            else:
                await _Response(self._settings, request, scope, send).of(self._app, receive)


async def _asked(request: Request, scope: Scope) -> dict[str, Any]:
    """Asks what is not known of a request yet; what it is told."""
    told = {}
    for name, said in request.unknown():
        value = said(scope) if callable(said) else said
        told[name] = await value if isawaitable(value) else value
    return request.know(told)


class _Response:
    """The response to a request: nothing of it is sent before its entry is written, nor of one that is refused."""

    __slots__ = ("_is_recorded", "_is_refused", "_request", "_scope", "_send", "_settings")

    def __init__(self, settings: Settings, request: Request, scope: Scope, send: Send) -> None:
        self._settings = settings
        self._request = request
        self._scope = scope
        self._send = send
        self._is_recorded = False
        self._is_refused = False

    async def of(self, app: Application, receive: Receive) -> None:
        try:
            await app(self._scope, receive, self.send)
        except Exception:
            # What is outside of the middleware makes a response of it, with this status.
            await self._ended(500)
            raise
        except BaseException:
            # Cancelled: there is no response, and nothing can be waited for.
            self._record_at_once()
            raise
        await self._ended(None)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._is_recorded:
            header = next(
                (value for name, value in message.get("headers", ()) if name.lower() == b"content-length"), None
            )
            await self._record(message["status"], length(header))
        if not self._is_refused:
            await self._send(message)

    async def _ended(self, status: int | None) -> None:
        if not self._is_recorded:
            await self._record(status, None)

    async def _record(self, status: int | None, size: int | None) -> None:
        self._is_recorded = True
        await _asked(self._request, self._scope)
        entry = self._request.entry(status, size)
        try:
            if self._settings.durable:
                await self._settings.way.append_flushed(entry).durable()
            else:
                self._settings.way.append(entry)
        except Error as error:
            if not self._settings.refuses:
                self._settings.way.count_lost()
                return
            tell_refused(error)
            self._is_refused = True
            await self._refuse()

    def _record_at_once(self) -> None:
        if self._is_recorded:
            return
        self._is_recorded = True
        try:
            self._settings.way.append(self._request.entry(None, None))
        except Error:
            self._settings.way.count_lost()

    async def _refuse(self) -> None:
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(REFUSAL)).encode())]
        await self._send({"type": "http.response.start", "status": 503, "headers": headers})
        await self._send({"type": "http.response.body", "body": REFUSAL})
