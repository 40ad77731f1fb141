"""Chromium without a window, over a pipe of the DevTools protocol. Python's standard library is enough for it."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

NAMES = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome")
LIMIT = 60


def find():
    return os.environ.get("GRETA_CHROMIUM") or next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page. Its console, its failures and its requests are kept."""

    def __init__(self, width=1100, height=800):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.downloads = os.path.join(self.folder.name, "downloads")
        ours, theirs = os.pipe(), os.pipe()  # what we write it reads from 3, what it writes to 4 we read

        def place():
            read, write = os.dup(ours[0]), os.dup(theirs[1])
            os.dup2(read, 3)
            os.dup2(write, 4)
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--disable-extensions",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", "--lang=en", "--hide-scrollbars",
                 f"--user-data-dir={self.folder.name}/profile", f"--window-size={width},{height}", "about:blank"]
        self.process = subprocess.Popen([find(), *flags], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        close_fds=False, preexec_fn=place, start_new_session=True)
        os.close(ours[0])
        os.close(theirs[1])
        self.out, self.input = os.fdopen(ours[1], "wb"), os.fdopen(theirs[0], "rb")
        self.number, self.answers = 0, {}
        self.console, self.requests, self.dialogs = [], [], []
        self.lock = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        target = self.call("Target.getTargets", session=None)["targetInfos"]
        page = next(each for each in target if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", session=None, targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", session=None, behavior="allow", downloadPath=self.downloads)
        self.size(width, height)

    session = None

    def _read(self):
        rest = b""
        while piece := os.read(self.input.fileno(), 1 << 16):
            *whole, rest = (rest + piece).split(b"\0")
            for message in map(json.loads, whole):
                self._take(message)
        with self.lock:
            self.answers = None
            self.lock.notify_all()

    def _take(self, message):
        method, params = message.get("method"), message.get("params", {})
        with self.lock:
            if "id" in message:
                self.answers[message["id"]] = message
            elif method == "Runtime.consoleAPICalled":
                self.console.append([each.get("value") for each in params["args"]])
            elif method == "Runtime.exceptionThrown":
                self.console.append(params["exceptionDetails"])
            elif method == "Log.entryAdded":
                self.console.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            elif method == "Page.javascriptDialogOpening":
                self.dialogs.append(params["message"])
                self._send("Page.handleJavaScriptDialog", self.session, {"accept": True})
            self.lock.notify_all()

    def _send(self, method, session, params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        self.out.write(json.dumps(message).encode() + b"\0")
        self.out.flush()
        return self.number

    def call(self, method, session=True, **params):
        with self.lock:
            number = self._send(method, self.session if session else None, params)
            assert self.lock.wait_for(lambda: self.answers is None or number in self.answers, LIMIT), f"{method} is not answered"
            assert self.answers is not None, "the browser has ended"
            answer = self.answers.pop(number)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def run(self, script):
        """The value of an expression, which may be a promise."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in answer, (script, answer)
        return answer["result"].get("value")

    def until(self, script, seconds=LIMIT):
        """Waits until an expression is true, and gives its value."""
        deadline = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < deadline, (script, self.run("document.body.innerText"), self.console)
            time.sleep(0.05)
        return value

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until(f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'")

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def dark(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    KEYS = {"Enter": 13, "Escape": 27, "ArrowUp": 38, "Tab": 9, " ": 32}

    def key(self, key, alt=False, shift=False):
        code = self.KEYS.get(key) or ord(key.upper())
        text = {"Enter": "\r", " ": " "}.get(key) or (key if len(key) == 1 and not alt else None)
        name = f"Key{key.upper()}" if len(key) == 1 and key.isalpha() else key
        more = {"key": key, "code": name, "windowsVirtualKeyCode": code, "modifiers": (1 if alt else 0) | (8 if shift else 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", **more, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **more)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        try:
            self.call("Browser.close", session=None)
        except AssertionError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(10)
        self.out.close()
        self.input.close()
        self.folder.cleanup()
