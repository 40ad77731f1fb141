"""greta-cli serve as a child: started, watched, started again when it ends by itself, and stopped."""
import asyncio
import collections
import os
import pathlib
import shutil
import signal
import tempfile

from .client import Client, Gone

LOOK = 0.05  # seconds between two looks at /health


class Server:
    """A server on a unix socket of its own. start() returns when it answers; watch() keeps it so."""

    def __init__(self, args, program=None, env=None):
        self.program = program or os.environ.get("GRETA_CLI") or shutil.which("greta-cli")
        if not self.program:
            raise FileNotFoundError("there is no greta-cli: set GRETA_CLI or PATH")
        self.args, self.env = [str(each) for each in args], env
        self.folder = tempfile.TemporaryDirectory(prefix="greta-")
        self.path = pathlib.Path(self.folder.name) / "greta.sock"
        self.client = Client(self.path)
        self.lines = collections.deque(maxlen=100)  # what it said last
        self.process = None
        self.starts = 0
        self._tasks = []
        self._stopping = False

    async def start(self, patience=600):
        """Starts it and waits until it is ready. Raises RuntimeError with its last words if it ends before."""
        await self._begin()
        self._tasks.append(asyncio.ensure_future(self._watch()))
        await asyncio.wait_for(self.ready(), patience)

    async def _begin(self):
        words = [self.program, "serve", *self.args, "--host", str(self.path)]
        self.process = await asyncio.create_subprocess_exec(*words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
                                                            stderr=asyncio.subprocess.PIPE, env={**os.environ, **(self.env or {})})
        self.starts += 1
        self._tasks.append(asyncio.ensure_future(self._read(self.process)))

    async def _read(self, process):
        while line := await process.stderr.readline():
            self.lines.append(line.decode("utf-8", "replace").rstrip())

    async def ready(self):
        while not await self.healthy():
            if self.process.returncode is not None and self.starts == 1:
                await asyncio.sleep(LOOK)  # its last words
                raise RuntimeError(f"greta-cli ended with {self.process.returncode}: {' '.join(self.lines)}")
            await asyncio.sleep(LOOK)

    async def healthy(self):
        try:
            answer = await self.client.ask("GET", "/health")
            await answer.body()
            return answer.status == 200
        except Gone:
            return False

    async def _watch(self):
        """Starts it again each time it ends, unless it never was ready: what is wrong then stays wrong."""
        pause = LOOK
        while not self._stopping:
            was_ready = False
            while self.process.returncode is None:
                was_ready = was_ready or await self.healthy()
                if was_ready:
                    await self.process.wait()
                else:
                    await asyncio.sleep(LOOK)
            if self._stopping or not was_ready:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, 10)
            await self._begin()

    async def metrics(self):
        """The text of /metrics; the server needs --metrics for it."""
        answer = await self.client.ask("GET", "/metrics")
        text = (await answer.body()).decode()
        if answer.status != 200:
            raise RuntimeError(text)
        return text

    async def stop(self, patience=60):
        """Lets answers under way end, as SIGTERM does. Gives the exit code."""
        self._stopping = True
        if self.process and self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self.process.wait(), patience)
            except asyncio.TimeoutError:
                self.process.kill()
                await self.process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.folder.cleanup()
        return self.process.returncode if self.process else None
