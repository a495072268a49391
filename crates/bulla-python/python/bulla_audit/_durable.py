"""What `await receipt.durable()` waits for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bulla_audit._native import Error, Receipt


def durable(receipt: Receipt) -> asyncio.Future[None]:
    """A future of the running loop that is done once what the receipt covers is durable, or fails with what keeps it
    from that.

    Cancelling it ends the wait, and changes nothing for the entries. Raises `RuntimeError` where no loop runs.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def complete(error: Error | None) -> None:
        # Who was cancelled is done already.
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    def told(error: Error | None) -> None:
        try:
            loop.call_soon_threadsafe(complete, error)
        except RuntimeError:
            # The loop is closed, so that nobody waits any more; the library's thread goes on.
            pass

    receipt.notify(told)
    return future
