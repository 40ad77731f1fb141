"""HTTP/1.1 to a server on a unix socket, with asyncio alone. Closing an answer early closes its connection, which ends the request."""
import asyncio


class Gone(ConnectionError):
    """The server has left before its answer was whole."""


class Answer:
    """The head of an answer, and its body as an asynchronous iterator of bytes."""

    def __init__(self, status, headers, reader, writer):
        self.status, self.headers = status, headers
        self._reader, self._writer = reader, writer

    async def __aiter__(self):
        try:
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                while True:
                    size = int((await _line(self._reader)).split(b";")[0], 16)
                    piece = await _exactly(self._reader, size)
                    await _line(self._reader)
                    if not size:
                        return
                    yield piece
            elif "content-length" in self.headers:
                left = int(self.headers["content-length"])
                while left:
                    piece = await self._reader.read(min(left, 65536))
                    if not piece:
                        raise Gone("the body is not whole")
                    left -= len(piece)
                    yield piece
            else:
                while piece := await self._reader.read(65536):
                    yield piece
        except (OSError, ValueError) as error:
            raise Gone(str(error)) from error
        finally:
            self.close()

    async def body(self):
        return b"".join([piece async for piece in self])

    def close(self):
        self._writer.close()


async def _line(reader):
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise Gone("the server has left")
    return line.rstrip(b"\r\n")


async def _exactly(reader, size):
    try:
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        raise Gone("the server has left") from error


class Client:
    """Each call is a connection of its own, so that the end of the one is the end of the other."""

    def __init__(self, path):
        self.path = str(path)

    async def ask(self, method, path, body=b"", headers=()):
        """The head of the answer; its body is read from it. Raises Gone."""
        try:
            reader, writer = await asyncio.open_unix_connection(self.path)
        except OSError as error:
            raise Gone(f"{self.path}: {error}") from error
        try:
            lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {len(body)}"]
            lines += [f"{name}: {value}" for name, value in headers]
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await writer.drain()
            status = int((await _line(reader)).split(b" ")[1])
            found = {}
            while line := await _line(reader):
                name, _, value = line.decode("latin-1").partition(":")
                found[name.strip().lower()] = value.strip()
            return Answer(status, found, reader, writer)
        except BaseException as error:
            writer.close()
            if isinstance(error, (OSError, ValueError, IndexError)) and not isinstance(error, Gone):
                raise Gone(str(error)) from error
            raise
