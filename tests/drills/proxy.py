"""A TCP proxy on the loopback before the server, whose traffic can be held without a word to either side."""

import asyncio
import contextlib
import threading
from typing import Any


class Proxy:
    """Forwards connections to the server; the loop runs in a thread of its own.

    Args:
        database: the entry of ``DATABASES`` of the server; its HOST may be the folder of a Unix socket.
    """

    def __init__(self, database: dict[str, Any]) -> None:
        self._database = database
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @property
    def database(self) -> dict[str, Any]:
        """The same database, by way of this proxy."""
        return {**self._database, "HOST": "127.0.0.1", "PORT": str(self.port)}

    def stall(self) -> None:
        """Hold every byte in both directions; the kernel goes on acknowledging them, so no keepalive notices."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def flow(self) -> None:
        """Let everything that was held go on."""
        self._loop.call_soon_threadsafe(self._flowing.set)

    def cut(self) -> None:
        """End all connections, held or not; new ones are welcome."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(10)

    def close(self) -> None:
        """End everything."""
        self._loop.call_soon_threadsafe(self._server.close)
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _cut(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await self._connect()
        pumps = [
            self._loop.create_task(self._pump(reader, server_writer)),
            self._loop.create_task(self._pump(server_reader, writer)),
        ]
        self._tasks.update(pumps)
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        self._tasks.difference_update(pumps)
        for each in (writer, server_writer):
            each.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._database["HOST"], self._database["PORT"] or "5432"
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, int(port))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
