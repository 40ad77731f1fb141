"""Slots: what they have read is saved to files, given back to the cache, and erased."""
import pathlib
import tempfile

from server import ROOT, Server, ServerTest, chat_body, main

STORY = "Once upon a time there was a little fox who lived in a wood. " * 12


def ask(server, text=STORY, **more):
    return server.post("/completion", {"prompt": text, "n_predict": 4, "temperature": 0, **more})


class Slots(ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.ARGS = ("--slot-save-path", cls.folder.name, "--parallel", 2)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def act(self, slot, action, body=None, status=200):
        got, answer, _ = self.server.ask("POST", f"/slots/{slot}?action={action}", body)
        self.assertEqual(got, status, answer)
        return answer

    def test_save_erase_and_restore(self):
        first = ask(self.server, id_slot=1)
        self.assertEqual(first["id_slot"], 1)
        tokens = first["tokens_evaluated"] + first["tokens_predicted"]
        pages = first["tokens_evaluated"] // 64 * 64
        self.assertGreaterEqual(pages, 128)
        self.assertEqual(ask(self.server, id_slot=1)["timings"]["cache_n"], pages)
        saved = self.act(1, "save", {"filename": "fox.bin"})
        file = pathlib.Path(self.folder.name, "fox.bin")
        self.assertEqual((saved["id_slot"], saved["filename"], saved["n_saved"]), (1, "fox.bin", tokens))
        self.assertEqual(saved["n_written"], file.stat().st_size)
        self.assertGreater(saved["timings"]["save_ms"], 0)
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.assertEqual([path.name for path in pathlib.Path(self.folder.name).iterdir()], ["fox.bin"])
        self.assertEqual(self.act(1, "erase"), {"id_slot": 1, "n_erased": tokens})
        self.assertEqual(self.act(1, "erase"), {"id_slot": 1, "n_erased": 0})
        self.assertIn("slot 1 is empty", self.act(1, "save", {"filename": "b"}, 400)["error"]["message"])
        again = ask(self.server, id_slot=1, cache_prompt=False)
        self.assertEqual((again["timings"]["cache_n"], again["content"]), (0, first["content"]))
        restored = self.act(0, "restore", {"filename": "fox.bin"})
        self.assertEqual((restored["id_slot"], restored["n_restored"], restored["n_read"]), (0, tokens, saved["n_written"]))
        third = ask(self.server)
        self.assertEqual((third["timings"]["cache_n"], third["content"]), (pages, first["content"]))
        # A tenant's pages are its own.
        self.act(0, "restore", {"filename": "fox.bin", "cache_salt": "ann"})
        self.assertEqual(ask(self.server, cache_salt="bob")["timings"]["cache_n"], 0)
        self.assertEqual(ask(self.server, cache_salt="ann")["timings"]["cache_n"], pages)
        # A later server reads the file.
        other = Server(*self.ARGS)
        try:
            other.post("/slots/0?action=restore", {"filename": "fox.bin"})
            fourth = ask(other)
            self.assertEqual((fourth["timings"]["cache_n"], fourth["content"]), (pages, first["content"]))
        finally:
            self.assertEqual(other.stop(), 0)

    def test_a_conversation_is_kept_too(self):
        answer = self.server.post("/v1/chat/completions", chat_body(STORY, id_slot=0))
        saved = self.act(0, "save", {"filename": "chat.bin"})
        self.assertEqual(saved["n_saved"], answer["usage"]["total_tokens"])
        self.assertEqual(self.act(0, "erase")["n_erased"], saved["n_saved"])
        self.act(0, "restore", {"filename": "chat.bin"})
        cached = self.server.post("/v1/chat/completions", chat_body(STORY))["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertEqual(cached, answer["usage"]["prompt_tokens"] // 64 * 64)
        pathlib.Path(self.folder.name, "chat.bin").unlink()

    def test_slots_are_taken_in_turn(self):
        slots = [ask(self.server, "A fox.")["id_slot"] for _ in range(4)]
        self.assertEqual((slots[0], slots[1]), (slots[2], slots[3]))
        self.assertEqual(sorted(slots[:2]), [0, 1])

    def test_refused(self):
        refused = self.refused
        post = ("POST",)
        refused(400, "there is no slot", *post, "/slots/2?action=save", {"filename": "a"})
        refused(400, "there is no slot", *post, "/slots/x?action=save", {"filename": "a"})
        refused(400, "expected save, restore or erase", *post, "/slots/0?action=sing", {})
        refused(400, "expected save, restore or erase", *post, "/slots/0", {})
        refused(400, "id_slot must be", *post, "/completion", {"prompt": "a", "id_slot": 2})
        for name in ("../a", "a/b", "", ".a", "a\\b", "a\nb", "a" * 201, 5, None):
            refused(400, "filename", *post, "/slots/0?action=restore", {"filename": name})
        refused(400, "there is no file", *post, "/slots/0?action=restore", {"filename": "none.bin"})
        path = pathlib.Path(self.folder.name, "bad.bin")
        path.write_bytes(b"no state" * 100)
        self.assertEqual(refused(400, "state", *post, "/slots/0?action=restore", {"filename": "bad.bin"})["param"], "filename")
        path.unlink()
        self.assertEqual(ask(self.server, "A fox.")["tokens_predicted"], 4)


class States(ServerTest):
    """What is saved of a model whose layers keep states stands behind whole pages, where the cache can have it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = cls.new_server()

    @classmethod
    def new_server(cls):
        return Server("--slot-save-path", cls.folder.name, "--parallel", 2, model=ROOT / "tests" / "golden" / "architectures" / "granitehybrid-converted.gguf")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_saved_and_restored(self):
        tokens = [i % 40 + 3 for i in range(150)]
        body = {"prompt": tokens, "n_predict": 6, "temperature": 0, "ignore_eos": True, "id_slot": 1, "return_tokens": True}
        first = self.server.post("/completion", body)
        saved = self.server.post("/slots/1?action=save", {"filename": "state.bin"})
        self.assertEqual(saved["n_saved"], 128)
        self.assertEqual(saved["n_written"], pathlib.Path(self.folder.name, "state.bin").stat().st_size)
        self.assertEqual(self.server.post("/slots/1?action=erase", {})["n_erased"], 156)
        self.assertEqual(self.server.post("/slots/0?action=restore", {"filename": "state.bin"})["n_restored"], 128)
        again = self.server.post("/completion", body)
        self.assertEqual((again["timings"]["cache_n"], again["content"]), (128, first["content"]))
        other = self.new_server()  # a later one, which has read nothing
        try:
            other.post("/slots/0?action=restore", {"filename": "state.bin"})
            again = other.post("/completion", body)
            self.assertEqual((again["timings"]["cache_n"], again["content"]), (128, first["content"]))
        finally:
            self.assertEqual(other.stop(), 0)

    def test_too_short(self):
        self.server.post("/completion", {"prompt": [3, 4, 5], "n_predict": 2, "ignore_eos": True, "id_slot": 0})
        self.refused(400, "less than the 64 tokens", "POST", "/slots/0?action=save", {"filename": "short.bin"})


class NoFolder(ServerTest):
    def test_refused(self):
        self.refused(501, "--slot-save-path", "POST", "/slots/0?action=save", {"filename": "a"})


if __name__ == "__main__":
    main()
