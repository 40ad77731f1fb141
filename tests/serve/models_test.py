"""A folder of models: requests choose one, models come and go, and a model that nobody uses sleeps."""
import os
import pathlib
import subprocess
import tempfile
import threading
import unittest

from server import LIMIT, MODEL, PROGRAM, Server, ServerTest, chat_body, main, unread_body

CHAT = "/v1/chat/completions"


class ModelsTest(ServerTest):
    MORE = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        top = pathlib.Path(cls.folder.name)
        (top / "inner").mkdir()
        for name in ("a.gguf", "b.gguf", "inner/x.gguf"):
            os.symlink(MODEL, top / name)
        (top / "broken.gguf").write_bytes(b"GGUF" + bytes(20))
        for name in ("note.txt", "mmproj-a.gguf", "part-00002-of-00003.gguf"):
            (top / name).write_text("no model")
        cls.server = Server("--models-dir", top, *cls.MORE, model=None)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def states(self):
        return {model["id"]: model["status"]["value"] for model in self.server.ask("GET", "/v1/models")[1]["data"]}

    def wait_for(self, name, state):
        self.wait_until(lambda: self.states()[name] == state, (name, state))

    def unload_all(self):
        for name, state in self.states().items():
            if state != "unloaded":
                self.server.post("/models/unload", {"model": name})
                self.wait_for(name, "unloaded")


class Choice(ModelsTest):
    MORE = ("--models-max", 2, "--metrics")

    def setUp(self):
        self.unload_all()

    def test_a_request_chooses(self):
        self.assertEqual(self.states(), {"a": "unloaded", "b": "unloaded", "broken": "unloaded", "inner": "unloaded"})
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)
        self.assertEqual(sorted(model["name"] for model in self.server.ask("GET", "/api/tags")[1]["models"]), ["a", "b", "broken", "inner"])
        answer = self.server.post(CHAT, chat_body(model="b"))
        self.assertEqual((answer["model"], self.states()["b"]), ("b", "loaded"))
        answers = [self.server.post("/v1/messages", {**chat_body(), "model": "inner"})["content"][0]["text"],
                   self.server.post("/api/chat", {**chat_body(), "model": "inner", "stream": False, "options": {"num_predict": 8, "temperature": 0}})["message"]["content"]]
        self.assertEqual(answers, [answer["choices"][0]["message"]["content"]] * 2)
        self.assertEqual(self.server.ask("GET", "/v1/models/inner")[1]["meta"]["n_vocab"], 4096)

    def test_what_is_refused(self):
        self.refused(404, 'there is no model "none"', "POST", CHAT, chat_body(model="none"))
        self.refused(400, "model is missing", "POST", CHAT, chat_body())
        self.refused(404, "there is no model", "GET", "/v1/models/none")
        self.refused(503, "the model is not loaded", "GET", "/props?model=a")
        for path in ("/models/load", "/models/unload"):
            self.refused(404, "there is no model", "POST", path, {"model": "none"})
            self.refused(400, "model is missing", "POST", path, {})
        for _ in range(2):
            self.refused(500, "the model cannot be loaded", "POST", CHAT, chat_body(model="broken"))
        self.assertEqual(self.states()["broken"], "failed")
        self.assertEqual(self.server.post(CHAT, chat_body(model="a"))["usage"]["completion_tokens"], 8)

    def test_the_least_recently_used_leaves(self):
        for name, loaded in (("a", {"a"}), ("b", {"a", "b"}), ("a", {"a", "b"}), ("inner", {"a", "inner"}), ("b", {"b", "inner"})):
            self.server.post(CHAT, chat_body(model=name))
            self.assertEqual({each for each, state in self.states().items() if state == "loaded"}, loaded)

    def test_one_that_answers_stays(self):
        self.server.post(CHAT, chat_body(model="b"))
        lines = self.server.stream("/completion", unread_body(model="a"))
        next(lines)
        self.server.post(CHAT, chat_body(model="b"))
        self.server.post(CHAT, chat_body(model="inner"))
        self.assertEqual(self.states()["a"], "loaded")
        self.assertIn('"stop":true', list(lines)[-2])

    def test_many_at_once(self):
        """Four models share two places, while their answers are streamed."""
        expected = self.server.post(CHAT, chat_body(model="a"))["choices"][0]["message"]["content"]
        wrong = []

        def ask(name):
            for _ in range(4):
                try:
                    text = "".join(data["choices"][0]["delta"].get("content", "") for _, data in self.server.events(CHAT, chat_body(model=name, stream=True))
                                   if data != "[DONE]")
                    if text != expected:
                        wrong.append((name, text))
                except AssertionError as error:
                    if "the model is not loaded" not in str(error):  # it was taken again before its turn came
                        wrong.append((name, error))
        threads = [threading.Thread(target=ask, args=(name,)) for name in ("a", "b", "inner") * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        self.assertEqual(wrong, [])

    def test_load_and_unload(self):
        self.assertEqual(self.server.post("/models/load", {"model": "a"}), {"success": True})
        self.wait_for("a", "loaded")
        props = self.server.ask("GET", "/props?model=a")[1]
        self.assertEqual((props["model_alias"], props["models_autoload"]), ("a", True))
        self.server.post(CHAT, chat_body(model="a"))
        self.assertIn('model_name="a"', self.server.ask("GET", "/metrics?model=a")[1])
        self.assertEqual(len(self.server.ask("GET", "/slots?model=a")[1]), 4)
        self.server.post("/models/unload", {"model": "a"})
        self.wait_for("a", "unloaded")


class ByHand(ModelsTest):
    MORE = ("--no-models-autoload",)

    def test_a_request_loads_nothing(self):
        self.refused(503, "the model is not loaded", "POST", CHAT, chat_body(model="a"))
        self.server.post("/models/load", {"model": "a"})
        self.wait_for("a", "loaded")
        self.assertEqual(self.server.post(CHAT, chat_body(model="a"))["model"], "a")


class Sleep(ServerTest):
    ARGS = ("--sleep-idle-seconds", 1, "--metrics")

    def test_an_idle_model_sleeps(self):
        first = self.server.post(CHAT, chat_body())["choices"][0]["message"]
        asked = []

        def is_awake():  # where the machine is busy, it may sleep before it is asked
            asked.append(self.server.ask("GET", "/props")[1])
            return not asked[-1]["is_sleeping"] or self.server.post(CHAT, chat_body()) is None
        self.wait_until(is_awake)
        awake = asked[-1]
        self.wait_until(lambda: self.server.ask("GET", "/v1/models")[1]["data"][0]["status"]["value"] == "sleeping")
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)
        asleep = self.server.ask("GET", "/props")[1]
        self.assertEqual((awake["is_sleeping"], asleep["is_sleeping"]), (False, True))
        self.assertEqual({**awake, "is_sleeping": True}, asleep)
        slots = self.server.ask("GET", "/slots")[1]
        self.assertEqual([(slot["n_ctx"], slot["is_processing"]) for slot in slots], [(1024, False)] * 4)
        counts = self.server.ask("GET", "/metrics")[1]
        self.assertRegex(counts, r"llamacpp:tokens_predicted_total [1-9]")
        self.assertIn("llamacpp:requests_processing 0", counts)
        (model,) = self.server.ask("GET", "/v1/models")[1]["data"]
        self.assertEqual(model["status"]["value"], "sleeping")  # nobody has woken it
        self.assertEqual(self.server.post(CHAT, chat_body())["choices"][0]["message"], first)
        lines = list(self.server.stream(CHAT, chat_body(stream=True, max_tokens=900, ignore_eos=True)))
        self.assertEqual(lines[-2:], ["data: [DONE]", ""])


class Options(unittest.TestCase):
    def test_what_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for args, model, words in ((("--models-dir", folder), None, "there are no .gguf files"), (("--models-dir", folder + "/none"), None, "cannot read"),
                                       (("--models-dir", folder), MODEL, "exclude each other")):
                words_given = ["-m", model] if model else []
                told = subprocess.run([PROGRAM, "serve", *args, *words_given], capture_output=True, text=True, check=False)
                self.assertIn(told.returncode, (1, 2))
                self.assertIn(words, told.stderr)


if __name__ == "__main__":
    main()
