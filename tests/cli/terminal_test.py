"""What a model or a file writes must not steer the terminal: on one, control characters are shown as \\x1b; a pipe gets
every byte as it is. Skipped where the system has no pseudo-terminals."""
import json

from sampling_test import Folder, model_with
from support import MODEL, main, vocabulary_gguf

ESCAPE = "\x1b]0;title\x07\x1b[2J"  # sets the window's title and clears the screen
SHOWN = "\\x1b]0;title\\x07\\x1b[2J"
# Forces the model to write an escape sequence, byte by byte.
GRAMMAR = r'root ::= " \x1b[2J\t\x07"' + "\n"
C1 = "\x9b2J"  # the same in one control character of two bytes


class Terminals(Folder):
    def on_terminal(self, *args, code=0):
        """All that came, with its escape sequences; neither stream is piped."""
        terminal = self.terminal(*args, state=self.folder)
        self.assertEqual(terminal.exit_code(), code, terminal.whole)
        return terminal.whole.replace("\r\n", "\n")

    def check_shown(self, seen, shown):
        self.assertIn(shown, seen)
        for control in ("\x07", "\x9b", "\x1b[2J", "\x1b]"):
            self.assertNotIn(control, seen)


class Run(Terminals):
    def run_args(self, prompt):
        return ["run", "-p", prompt, "-n", "12", "-c", "256", "--temp", "0", "--grammar", GRAMMAR]

    def test_text_of_the_model(self):  # CVE-2026-3108
        seen = self.on_terminal(*self.run_args("Once upon a time"))
        self.check_shown(seen, "Once upon a time \\x1b[2J\t\\x07")

    def test_prompt(self):
        self.check_shown(self.on_terminal(*self.run_args("one\ntwo" + ESCAPE)), "one\ntwo" + SHOWN)

    def test_a_pipe_gets_every_byte(self):
        self.assertEqual(self.out(*self.run_args("one" + ESCAPE + C1)), "one" + ESCAPE + C1 + " \x1b[2J\t\x07\n")


class Template(Terminals):
    def setUp(self):
        super().setUp()
        self.form = self.file("form.jinja", "a" + ESCAPE + C1 + "\n{{ messages[0].content }}")
        self.context = self.file("context.json", json.dumps({"messages": [{"role": "user", "content": "b" + ESCAPE}]}))

    def test_file_and_rendering(self):
        self.check_shown(self.on_terminal("template", "--file", self.form), "a" + SHOWN + "\\xc2\\x9b2J\n{{")
        seen = self.on_terminal("template", "--file", self.form, "--context", self.context)
        self.check_shown(seen, "a" + SHOWN + "\\xc2\\x9b2J\nb" + SHOWN)

    def test_a_models_template(self):
        form = {"tokenizer.chat_template": "c" + ESCAPE + "{{ messages }}"}
        path = self.file("escape.gguf", model_with(form, vocabulary_gguf([])))
        self.check_shown(self.on_terminal("template", "-m", path), "c" + SHOWN + "{{")
        self.assertEqual(self.out("template", "-m", path), "c" + ESCAPE + "{{ messages }}")

    def test_an_error_of_the_template(self):
        form = self.file("raise.jinja", "{{ raise_exception('" + ESCAPE + "') }}")
        self.check_shown(self.on_terminal("template", "--file", form, "--context", self.context, code=1), SHOWN)

    def test_a_pipe_gets_every_byte(self):
        out = self.out("template", "--file", self.form, "--context", self.context)
        self.assertEqual(out, "a" + ESCAPE + C1 + "\nb" + ESCAPE)


class Others(Terminals):
    def test_info(self):
        path = self.file("escape.gguf", model_with({"escape.value": "text" + ESCAPE + "\x7f" + C1}))
        for args in ([], ["--json"]):
            self.check_shown(self.on_terminal("info", "-m", path, *args), "text")

    def test_tokenize_and_names_of_files(self):
        self.check_shown(self.on_terminal("tokenize", "-p", ESCAPE), "\\x1b")
        self.check_shown(self.on_terminal("template", "--file", self.folder / ("no" + ESCAPE), code=1), "no" + SHOWN)

    def test_chat(self):
        seen = self.on_terminal("chat", "-p", "Hi", "-m", MODEL, "-n", "12", "-c", "256", "--grammar", GRAMMAR)
        self.check_shown(seen, "\\x1b[2J\t\\x07")


if __name__ == "__main__":
    main()
