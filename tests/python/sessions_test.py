"""Sessions, their streams and their arrays, and DLPack."""
import array
import asyncio
import gc
import os
import tempfile
import unittest

from support import PROMPT, ModelTest, greta, main, numpy, open_model


class Sessions(ModelTest):
    def test_logits_fork_save_restore(self):
        with self.model.session() as session, tempfile.TemporaryDirectory() as folder:
            logits = session.eval(PROMPT)
            self.assertEqual(len(logits), self.model.info.vocab_size)
            token = session.sample(logits)
            self.assertEqual(logits[token], max(logits))
            self.assertEqual(session.tokens, self.model.tokenizer.encode(PROMPT))
            fork, saved = session.fork(), session.save()
            path = os.path.join(folder, "état 1.bin")
            self.assertIsNone(session.save(path))
            with open(path, "rb") as file:
                self.assertEqual(file.read(), saved)
            text = session.generate([token], max_tokens=10).text
            self.assertEqual(fork.generate([token], max_tokens=10).text, text)
            for source in (saved, path, memoryview(saved)):
                session.restore(source)
                self.assertEqual(session.generate([token], max_tokens=10).text, text)
            with self.assertRaises(greta.FileError):
                session.restore(saved[:-1])
            fork.close()
            session.truncate(2)
            self.assertEqual(session.position, 2)
            rows = session.eval(self.model.tokenizer.encode(PROMPT)[2:], rows="all")
            self.assertEqual(len(rows), 3)
            self.assertIsNone(session.eval("x", rows="none"))
            vector = session.embed("x")
            self.assertEqual(len(vector), self.model.info.width)

    def test_sampling_and_callbacks(self):
        with self.model.session() as session:
            session.set_sampling(grammar='root ::= "ab" "c"')
            pieces = []
            self.assertEqual(session.generate(PROMPT, on_text=pieces.append).text, "abc")
            self.assertEqual("".join(pieces), "abc")
            texts = []
            for seed in (3, 3, 4):
                session.truncate(0)
                session.set_sampling(temperature=2, top_k=50, seed=seed, xtc_probability=0.1, repeat_penalty=1.1)
                texts.append(session.generate(PROMPT, max_tokens=12).text)
            self.assertEqual(texts[0], texts[1])
            self.assertNotEqual(texts[0], texts[2])
            with self.assertRaisesRegex(greta.ArgumentError, "top.p"):
                session.set_sampling(top_p=2)
            with self.assertRaisesRegex(TypeError, "max_tokens"):
                session.set_sampling(max_tokens=2)

    def test_stream(self):
        with self.model.session() as session:
            read = []
            whole = session.generate(PROMPT, max_tokens=20, on_prompt=lambda done, total: read.append((done, total)))
            self.assertEqual(read[-1], (5, 5))
            session.truncate(0)
            stream = session.stream(PROMPT, max_tokens=20)
            self.assertEqual(session.position, 0)  # nothing runs before it is asked for
            pieces = list(stream)
            self.assertEqual((len(pieces) > 10, "".join(pieces)), (True, whole.text))
            self.assertEqual((stream.result().tokens, stream.result().reason), (whole.tokens, "length"))
            session.truncate(0)
            for count, _ in enumerate(session.stream(PROMPT, ignore_end=True)):
                with self.assertRaisesRegex(greta.InUseError, "in use"):
                    session.fork()
                self.assertEqual(repr(session), "<greta.Session, in use>")
                if count == 3:
                    break
            self.assertEqual(session.position, 8)  # five of the prompt, and all but the last piece's token
            with session.stream(" and", max_tokens=9) as rest:
                self.assertIn("running", repr(rest))
                self.assertEqual(rest.result().generated_tokens, 9)
            with self.assertRaisesRegex(TypeError, "prompt is None"):
                list(session.stream(None))
            dropped = session.stream("x", max_tokens=9)
            dropped.close()
            with self.assertRaisesRegex(greta.ClosedError, "closed before its end"):
                dropped.result()

    def test_stream_with_asyncio(self):
        async def read(session):
            beside = []

            async def tick():
                while True:
                    beside.append(1)
                    await asyncio.sleep(0)

            other = asyncio.create_task(tick())
            stream = session.stream(PROMPT, max_tokens=20)
            pieces = [piece async for piece in stream]
            other.cancel()
            return pieces, await stream.aresult(), len(beside)

        async def leave(session):
            count = 0
            async for _ in session.stream(PROMPT, ignore_end=True):
                count += 1
                if count == 4:
                    break
            held = session.position  # at once: the stream has ended with its loop
            rest = await session.stream(" and", max_tokens=9).aresult()
            return held, rest.generated_tokens

        async def cancel(session):
            began = asyncio.Event()

            async def write():
                async for _ in session.stream(PROMPT, shift=True, ignore_end=True):
                    began.set()

            task = asyncio.create_task(write())
            await began.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            with self.assertRaisesRegex(TypeError, "prompt is None"):
                async for _ in session.stream(None):
                    pass
            return session.position

        with self.model.session() as session:
            whole = session.generate(PROMPT, max_tokens=20)
            session.truncate(0)
            pieces, result, beside = asyncio.run(read(session))
            self.assertEqual((len(pieces) > 10, "".join(pieces), result.tokens), (True, whole.text, whole.tokens))
            self.assertGreater(beside, len(pieces))  # the loop went on meanwhile
            session.truncate(0)
            self.assertEqual(asyncio.run(leave(session)), (8, 9))
            session.truncate(0)
            self.assertGreaterEqual(asyncio.run(cancel(session)), 5)
            mixed = session.stream("x", max_tokens=9)
            first = next(iter(mixed))  # a loop that is left ends the stream, whoever asks next
            self.assertTrue(first)
            with self.assertRaisesRegex(greta.ClosedError, "closed before its end"):
                asyncio.run(mixed.aresult())

    def test_closing_a_session_ends_its_stream(self):
        session = self.model.session()
        stream = session.stream(PROMPT, shift=True, ignore_end=True)
        pieces = iter(stream)
        next(pieces)
        session.close()
        self.assertEqual(list(pieces), [])
        self.assertEqual((stream.result().reason, session._handle.pointer), ("cancelled", 0))

    @unittest.skipUnless(numpy, "numpy is not there")
    def test_arrays_without_copies(self):
        with self.model.session() as session:
            copied = session.eval(PROMPT)
            session.truncate(0)
            shown = session.eval(PROMPT, copy=False)
            self.assertTrue((shown == copied).all())
            self.assertFalse(shown.flags.writeable)
            part = shown[:10]
            del shown
            with self.assertRaisesRegex(greta.InUseError, "array"):
                session.position
            session.close()  # is put off until the array is gone
            self.assertEqual(part[0], copied[0])
            del part
            self.assertEqual(session._handle.pointer, 0)
            self.assertTrue(numpy.from_dlpack(copied).dtype == numpy.float32)


class Dlpack(unittest.TestCase):
    """greta.Tensor, with and without a library that takes it."""

    def test_capsules_that_nobody_takes(self):
        from greta import _dlpack
        floats = array.array("f", [1, 2, 3, 4])
        for version in (None, (1, 0), (2, 7)):
            capsule = greta.Tensor(floats).__dlpack__(max_version=version)
            self.assertEqual(len(_dlpack._given), 1)
            self.assertIn("dltensor_versioned" if version else '"dltensor"', repr(capsule))
            del capsule
            self.assertEqual(len(_dlpack._given), 0)
        shown = greta.Tensor(memoryview(bytes(24)).cast("f", (2, 3)))
        self.assertEqual((shown.shape, shown.__dlpack_device__()), ((2, 3), (1, 0)))
        self.assertEqual(repr(shown), "<greta.Tensor, float32 [2, 3], read-only>")
        with self.assertRaisesRegex(BufferError, "read-only"):
            shown.__dlpack__()
        shown.__dlpack__(copy=True)
        with self.assertRaisesRegex(BufferError, "CPU"):
            shown.__dlpack__(dl_device=(2, 0))
        for other in (b"1234", memoryview(floats)[::2], array.array("d", [1])):
            with self.assertRaisesRegex(TypeError, "float32"):
                greta.Tensor(other)

    @unittest.skipUnless(numpy, "numpy is not there")
    def test_the_memory_is_shared_and_kept(self):
        from greta import _dlpack
        floats = array.array("f", [1, 2, 3, 4])
        taken = numpy.from_dlpack(greta.Tensor(floats))
        taken_part = taken[1:]
        floats[1] = 9
        self.assertEqual(taken_part[0], 9)
        del taken, floats
        gc.collect()
        self.assertEqual((len(_dlpack._given), list(taken_part)), (1, [9, 3, 4]))
        del taken_part
        gc.collect()
        self.assertEqual(len(_dlpack._given), 0)
        if int(numpy.__version__.split(".")[0]) >= 2 and numpy.__version__ >= "2.1":
            shown = numpy.from_dlpack(greta.Tensor(memoryview(bytes(24)).cast("f", (2, 3))))
            self.assertEqual((shown.shape, shown.flags.writeable), ((2, 3), False))

    def test_an_array_holds_its_session(self):
        with open_model() as model, model.session() as session:
            shown = greta.Tensor(session.eval(PROMPT, copy=False))
            capsule = shown.__dlpack__(max_version=(1, 0))
            del shown
            gc.collect()
            with self.assertRaisesRegex(greta.InUseError, "array"):
                session.position
            del capsule
            gc.collect()
            self.assertEqual(session.position, 5)


if __name__ == "__main__":
    main()
