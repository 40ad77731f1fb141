"""What must not end the interpreter: signals, threads, callbacks that raise, any order of closing, forks, bad input."""
import asyncio
import copy
import os
import pickle
import signal
import sys
import tempfile
import threading
import unittest
from unittest import mock

from support import MODEL, PROMPT, ModelTest, greta, main, open_model, run_program

from greta import _handles


class Errors(ModelTest):
    def test_a_class_for_each_status(self):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            file.write(b"no model at all")
            file.flush()
            for path in (file.name, "/gone/away.gguf", "/tmp", "x" * 5000, "état \U0001f986\n.gguf"):
                with self.assertRaises(greta.FileError) as caught:
                    open_model_at(path)
                self.assertGreater(len(str(caught.exception)), 10)
                self.assertEqual(caught.exception.status, 2)
        with self.assertRaisesRegex((greta.DeviceError, greta.UnsupportedError, greta.ArgumentError), "vulkan7"):
            greta.Model(MODEL, device="vulkan7")
        with self.assertRaises(greta.OutOfMemoryError) as caught:
            open_model(memory_limit=1000)
        self.assertIsInstance(caught.exception, MemoryError)
        with self.assertRaises(greta.FullError) as caught:
            self.model.generate("tale " * 5000)
        self.assertGreater(caught.exception.length, caught.exception.limit)
        with greta.Service(self.model, max_requests=1) as service, service.submit(PROMPT):
            with self.assertRaises(greta.BusyError) as caught:
                service.submit(PROMPT)
            self.assertEqual(caught.exception.limit, 1)
        with self.assertRaisesRegex(greta.ArgumentError, "line|expected|grammar|rule"):
            self.model.generate(PROMPT, grammar="root ::= (")

    def test_arguments(self):
        for prompt in (None, 3, 3.5, object(), ["a"], [1.5], [None]):
            with self.assertRaises(TypeError):
                self.model.generate(prompt, max_tokens=1)
        for prompt in ([-1], [2**31 - 1], [2**40], [-2**70], []):
            with self.assertRaises((ValueError, greta.GretaError)):
                self.model.generate(prompt, max_tokens=1)
        for prompt in (b"bytes \xff\xfe", "\ud800 lone", "a\0b", "", "\U0010ffff", bytearray(b"x")):
            self.assertEqual(self.model.generate(prompt, max_tokens=1, ignore_end=True).generated_tokens, 1)
        with self.assertRaises(greta.FullError):
            self.model.generate("x" * 10_000_000, max_tokens=1)
        for name in ("max_tokens", "top_k", "seed", "priority", "draft_tokens", "top_logprobs", "penalty_last_n"):
            for value in (-3, 2**64, 10**5000, "7", 1.5):
                with self.assertRaisesRegex((TypeError, ValueError, greta.GretaError), name):
                    self.model.generate(PROMPT, **{"max_tokens": 1, name: value})
        for name in ("temperature", "top_p", "min_p", "mirostat_tau", "repeat_penalty"):
            for value in (-1e30, 1e300, float("nan"), "warm", 10**5000):
                with self.assertRaises((TypeError, greta.GretaError)):
                    self.model.generate(PROMPT, **{"max_tokens": 1, name: value})
        for name in ("context", "sequences", "cache_tokens", "threads"):
            for value in (-1, 2**40, "8", None if name == "never" else 1.5):
                with self.assertRaisesRegex((TypeError, ValueError), name):
                    greta.Model(MODEL, **{"device": "cpu", name: value}).service
        with self.assertRaisesRegex(TypeError, "max_tokens meant"):
            self.model.generate(PROMPT, max_token=3)
        for bad in (None, 3, "a\0b"):
            with self.assertRaises((TypeError, ValueError)):
                greta.Model(bad, device="cpu")
        with self.assertRaisesRegex(ValueError, "NUL"):
            self.model.generate(PROMPT, stop="a\0")

    def test_messages(self):
        chat = self.model.chat(max_tokens=2)
        for text in ("a\0b", "\ud800", "", "x" * 1000):
            chat.messages.clear()
            chat.ask(text)
        for bad in (3, {"a": 1}):
            with self.assertRaises(TypeError):
                chat.send(bad)
        chat.messages[:] = [{"nothing": "here"}]
        with self.assertRaises(greta.ArgumentError):
            chat.ask()
        with self.assertRaisesRegex(TypeError, "max_tokens meant"):
            self.model.chat(max_tokenz=3)

    def test_pickle_and_copy(self):
        with self.model.session() as session, self.model.stream(PROMPT) as request:
            for each in (self.model, session, request, self.model.service, self.model.runtime):
                for function in (pickle.dumps, copy.copy, copy.deepcopy):
                    with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                        function(each)


def stopped_at(place, package, call):
    """Calls, with KeyboardInterrupt at the nth place of the package's code. False: it has fewer."""
    left = place

    def look(frame, event, _):
        nonlocal left
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(package):
            left -= 1
            if left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return left <= 0


def open_model_at(path):
    return greta.Model(path, device="cpu", progress=False)


class Closing(unittest.TestCase):
    def test_closing_twice_and_use_after_it(self):
        model = open_model()
        session, request, service = model.session(), model.stream(PROMPT), model.service
        tokenizer = model.tokenizer
        for _ in range(2):
            model.close()
            session.close()
            request.close()
            service.close()
            model.runtime.close()
        for call in (lambda: model.generate("x"), lambda: session.eval("x"), lambda: list(request), lambda: service.info,
                     lambda: tokenizer.encode("x"), lambda: model.info, session.fork, lambda: session.position,
                     request.result, request.cancel):
            with self.assertRaisesRegex(greta.GretaError, "closed"):
                call()

    def test_a_model_that_is_closed_while_a_session_is_opened(self):
        model, hold = open_model(), _handles.Handle.hold

        def late(handle, pointer):
            model.close()
            hold(handle, pointer)

        with mock.patch.object(_handles.Handle, "hold", late):
            session = model.session()
        self.assertTrue(session.closed)
        self.assertEqual((session._handle.pointer, model._handle.pointer), (0, 0))
        with self.assertRaisesRegex(greta.ClosedError, "closed"):
            session.eval("x")

    def test_any_order_and_the_collector(self):
        done = run_program("""
import itertools, weakref
for order in list(itertools.permutations(range(4)))[::4]:
    model = open_model()
    objects = [model, model.session(), model.stream('Once'), model.service]
    objects[1].fork()
    for index in order: objects[index].close()
for _ in range(6):
    model = open_model()
    session = model.session(); fork = session.fork(); stream = model.stream('Once', max_tokens=50); next(iter(stream))
    chat = model.chat(); cycle = [model, session, fork, stream, chat]; cycle.append(cycle)
    for each in (model, session): each.cycle = cycle
    del model, session, fork, stream, chat, cycle
    gc.collect()
model = open_model(); alive = weakref.ref(model); piece = iter(model.stream('Once', max_tokens=9)); del model
assert alive() is not None and len(list(piece)) > 3
del piece
assert alive() is None  # no cycle keeps the weights until the collector comes
for name in ('model', 'session'): assert name not in globals() or True
left = open_model(); running = left.stream('Once', ignore_end=True); next(iter(running)); kept = left.session()
writing = iter(kept.stream('Once', shift=True, ignore_end=True)); next(writing)
""")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_memory_threads_and_descriptors_stay(self):
        done = run_program("""
def state():
    gc.collect()
    with open('/proc/self/status') as file: lines = dict(line.split(':', 1) for line in file)
    return int(lines['VmRSS'].split()[0]), int(lines['Threads']), len(os.listdir('/proc/self/fd'))
def once():
    with open_model(context=64) as model: assert model.generate('x', max_tokens=2, ignore_end=True).generated_tokens == 2
for _ in range(10): once()
before = state()
for _ in range(20): once()
after = state()
assert after[1:] == before[1:], (before, after)
assert after[0] < before[0] + 8000, (before, after)
""")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_forks(self):
        done = run_program("""
import greta
model = open_model(); session = model.session(); model.generate('x', max_tokens=1)
child = os.fork()
if child == 0:
    code = 0
    for call in (lambda: model.generate('x', max_tokens=1), lambda: session.eval('x'), lambda: model.session()):
        try: call()
        except greta.DeviceError as error: assert 'fork' in str(error), error
        else: code = 3
    other = open_model(); assert other.generate('x', max_tokens=1).text; other.close()
    session.close(); model.close()
    # A sanitizer would count what belongs to the parent.
    os._exit(code) if os.environ.get('LD_PRELOAD') else sys.exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert model.generate('x', max_tokens=1).generated_tokens == 1
""")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Stopping(ModelTest):
    def test_ctrl_c(self):
        for call in ("model.generate('Once', max_tokens=10**9, shift=True, ignore_end=True)",
                     "list(model.stream('Once', max_tokens=10**9, shift=True, ignore_end=True))",
                     "model.generate_all(['Once', 'The'], max_tokens=10**9, shift=True, ignore_end=True)",
                     "session.generate('Once', max_tokens=10**9, shift=True, ignore_end=True)",
                     "list(session.stream('Once', max_tokens=10**9, shift=True, ignore_end=True))",
                     "model.chat().ask('Once', max_tokens=10**9, shift=True, ignore_end=True)"):
            with self.subTest(call):
                done = run_program(f"""
model = open_model(); session = model.session(); model.generate('x', max_tokens=1)
threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
try: {call}
except KeyboardInterrupt: print('stopped')
else: print('went on')
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
session.truncate(0)
assert model.generate('x', max_tokens=1).generated_tokens == 1
assert session.generate('x', max_tokens=1).generated_tokens == 1
print('works')
""")
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "stopped\nworks\n", ""))

    def test_ctrl_c_while_a_prompt_is_read(self):
        for call in ("session.eval(tokens, rows='none')", "session.eval(tokens, rows='all')", "session.embed(tokens)"):
            with self.subTest(call):
                done = run_program(f"""
model = open_model(exact=True); session = model.session(context=8192)
tokens = (model.tokenizer.encode('Once upon a time') * 2000)[:8000]
session.eval(tokens[:3]); began = threading.Event()
def interrupt():
    while not session._guard.busy: time.sleep(0.001)
    time.sleep(0.05); os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try: {call}
except KeyboardInterrupt: print('stopped')
else: print('went on')
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
held = session.position
assert 3 <= held < 8000 and session.tokens == (tokens[:3] + tokens)[:held], held
logits = list(session.eval([5]))
fresh = model.session(context=8192); fresh.eval(session.tokens[:held])
assert list(fresh.eval([5])) == logits
print('works')
""")
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "stopped\nworks\n", ""))

    def test_ctrl_c_at_each_place(self):
        """Python looks for signals where a function is entered, and where one in C has ended. After each of these places
        the session and the model work, also for other threads."""
        session, model = self.model.session(), self.model
        package = os.path.dirname(greta.__file__)

        def opened():
            with model.session(context=64) as other:
                other.fork()

        calls = (lambda: session.generate(PROMPT, max_tokens=2), lambda: session.eval(PROMPT),
                 lambda: model.generate(PROMPT, max_tokens=1), lambda: list(model.stream(PROMPT, max_tokens=1)), opened)
        model.generate(PROMPT, max_tokens=1)
        told = mock.patch("sys.unraisablehook")  # Python tells of Ctrl-C in what the collector calls
        told.start()
        self.addCleanup(told.stop)
        for call in calls:
            place = 1
            while stopped_at(place, package, call):
                place += 3  # a free-threaded Python takes long to set a function that looks
                found = []

                def work():
                    session.truncate(0)
                    found.append(session.generate("x", max_tokens=1, ignore_end=True).generated_tokens)
                    found.append(model.generate("x", max_tokens=1, ignore_end=True).generated_tokens)

                thread = threading.Thread(target=work, daemon=True)
                thread.start()
                thread.join(60)
                self.assertEqual(found, [1, 1], place)
                session.truncate(0)
            self.assertGreater(place, 50)
        session.close()
        calls = [call() for handle in (model._handle, model.service._handle, session._handle) for call in handle.users]
        self.assertEqual((session._handle.pointer, [call for call in calls if call]), (0, []))

    def test_a_second_ctrl_c_leaves_the_session_locked_until_the_call_has_ended(self):
        from greta import _library
        began, may_end, cancelled = threading.Event(), threading.Event(), []

        def call():
            began.set()
            may_end.wait()
            raise greta.CancelledError("stopped")

        def cancel():
            cancelled.append(True)
            if len(cancelled) > 2:
                os.kill(os.getpid(), signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        threads = threading.active_count()
        threading.Thread(target=lambda: began.wait() and os.kill(os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            _library.call_beside(call, cancel)
        self.assertEqual((len(cancelled), threading.active_count()), (3, threads + 1))  # the call goes on by itself
        may_end.set()

    def test_cancel_of_a_prompt(self):
        with self.model.session() as session:
            tokens = self.model.tokenizer.encode(PROMPT) * 100
            stop = threading.Event()

            def cancel():
                while not stop.is_set():
                    session.cancel()

            thread = threading.Thread(target=cancel)
            thread.start()
            try:
                with self.assertRaisesRegex(greta.CancelledError, "stopped after"):
                    for _ in range(100):
                        session.truncate(0)
                        session.eval(tokens, rows="all")
            finally:
                stop.set()
                thread.join()
            self.assertEqual(session.tokens, tokens[:session.position])

    def test_ctrl_c_while_loading(self):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with self.assertRaises(KeyboardInterrupt):
            open_model(progress=lambda done, total: os.kill(os.getpid(), signal.SIGINT))
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_callbacks_that_raise(self):
        with self.model.session() as session:
            def refuse(text):
                raise ZeroDivisionError(text)

            for _ in range(3):
                with self.assertRaises(ZeroDivisionError):
                    session.generate(PROMPT, max_tokens=5, on_text=refuse)
                session.truncate(0)

            class Full:
                def write(self, data):
                    raise OSError("the disk is full")

            session.eval(PROMPT)
            with self.assertRaisesRegex(OSError, "the disk is full"):
                session.save(Full())
            self.assertEqual(session.position, 5)

            def use(text):
                session.truncate(0)

            with self.assertRaisesRegex(greta.InUseError, "in use"):
                session.generate(PROMPT, max_tokens=5, on_text=use)
        session = self.model.session()
        answer = session.generate(PROMPT, max_tokens=50, on_text=lambda text: session.close())
        self.assertEqual((answer.reason, session.closed, session._handle.pointer), ("cancelled", True, 0))

    def test_cancel_and_leave(self):
        with self.model.stream(PROMPT, ignore_end=True) as request:
            for _ in zip(range(3), request):
                pass
        with self.assertRaisesRegex(greta.ClosedError, "closed before its end"):
            request.result()
        request = self.model.stream(PROMPT, ignore_end=True)
        request.cancel()
        self.assertEqual(request.result().reason, "cancelled")

        async def leave():
            async for _ in self.model.stream(PROMPT, ignore_end=True):
                break
            task = asyncio.create_task(self.model.agenerate(PROMPT, shift=True, ignore_end=True))
            await asyncio.sleep(0.1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(leave())
        self.assertEqual(self.model.generate(PROMPT, max_tokens=1).generated_tokens, 1)


class Threads(ModelTest):
    def test_two_threads_on_one_session(self):
        with self.model.session() as session:
            began, found = threading.Event(), []

            def write():
                found.append(session.generate(PROMPT, shift=True, ignore_end=True, on_text=lambda _: began.set()))

            thread = threading.Thread(target=write)
            thread.start()
            began.wait()
            fork_refused = []
            for call in (session.fork, lambda: session.eval("x"), lambda: session.position, session.save):
                try:
                    call()
                except greta.InUseError as error:
                    fork_refused.append("one thread at a time" in str(error))
            session.cancel()
            thread.join()
            self.assertEqual((fork_refused, found[0].reason), ([True] * 4, "cancelled"))
            self.assertGreater(session.position, 0)

    def test_two_threads_on_one_request(self):
        with self.model.stream(PROMPT, shift=True, ignore_end=True) as request:
            began, refused = threading.Event(), []

            def read():
                for _ in request:
                    began.set()

            thread = threading.Thread(target=read)
            thread.start()
            began.wait()
            while not refused:
                try:
                    request._next(0)
                except greta.InUseError as error:
                    refused.append(str(error))
            request.cancel()
            thread.join()
            self.assertIn("one thread at a time", refused[0])

    def test_many_threads_on_one_model(self):
        texts, errors = [], []

        def work(index):
            try:
                for _ in range(3):
                    texts.append(self.model.generate(PROMPT, max_tokens=4).generated_tokens)
                    with self.model.session(context=64) as session:
                        session.eval("x", rows="none")
                    asyncio.run(self.model.agenerate(PROMPT, max_tokens=2))
                    self.model.tokenizer.decode(self.model.tokenizer.encode(PROMPT))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((errors, texts), ([], [4] * 72))

    def test_closing_while_others_work(self):
        for _ in range(5):
            model = open_model()
            began, ended = threading.Semaphore(0), []

            def work():
                session = model.session()
                try:
                    if len(ended) % 2:
                        session.generate(PROMPT, shift=True, ignore_end=True, on_text=lambda _: began.release())
                    else:
                        for _ in model.stream(PROMPT, shift=True, ignore_end=True):
                            began.release()
                    ended.append("end")
                except greta.GretaError as error:
                    ended.append(str(error))

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(6):
                began.acquire()
            model.close()
            for thread in threads:
                thread.join(300)
            self.assertEqual([thread.is_alive() for thread in threads], [False] * 3)
            self.assertEqual((len(ended), model._handle.pointer), (3, 0))


if __name__ == "__main__":
    main()
