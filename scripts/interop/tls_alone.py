"""A plugin of pytest: redis-py's tests make connections without TLS whatever the URL says; with this they have TLS alone."""

import redis.asyncio.connection
import redis.connection

for module in (redis.connection, redis.asyncio.connection):
    module.Connection = module.SSLConnection
