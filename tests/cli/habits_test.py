"""Each line of docs/coming-from-*.md is run: what people type who know llama.cpp or Ollama."""
import os
import pathlib
import re
import shlex
import tempfile

from support import MODEL, ROOT, CliTest, has_server, main

CONVERSATION = r"Ctrl-D leaves\s+> "


def rows(page):
    """(what is typed, what happens) for each row of the tables that has a line of code in its second column."""
    for line in (ROOT / "docs" / page).read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and re.fullmatch(r"`[^`]+`", cells[1]):
            yield cells[1].strip("`"), cells[2]


class Habits(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "model.gguf").symlink_to(MODEL)
        (self.folder / "small.gguf").symlink_to(MODEL)
        (self.folder / "models").mkdir()
        (self.folder / "models" / "model.gguf").symlink_to(MODEL)
        (self.folder / "models.ini").write_text("[tales]\nmodel = model.gguf\n")
        (self.folder / "text.txt").write_text("Tell me a story about a beaver and a fox. " * 20)
        (self.folder / "yes.gbnf").write_text('root ::= "yes" | "no"\n')
        (self.folder / "schema.json").write_text('{"type": "boolean"}')
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)

    def run_line(self, line, outcome):
        """On a terminal, as people do. A conversation is left at its first prompt."""
        words = shlex.split(line)
        env = {}
        while "=" in words[0]:
            name, value = words.pop(0).split("=", 1)
            env[name] = value
        self.assertEqual(words[0], "greta-cli")
        terminal = self.terminal(*words[1:], state=self.folder, env=env)
        while terminal.read():
            if re.search(CONVERSATION, terminal.seen):
                terminal.send(b"\x04")
                terminal.seen = ""
            if "greta-cli: ready: " in terminal.seen:  # a server, which Ctrl-C ends
                terminal.send(b"\x03")
                terminal.seen = ""
        code = terminal.exit_code()
        refused = outcome.startswith("refused: ")
        self.assertEqual(code, 2 if refused else 0, terminal.whole)
        if refused:
            self.assertEqual(terminal.whole.count("\n"), 1, terminal.whole)

    def check_page(self, page, count):
        commands, conversation = [], []
        for line, outcome in rows(page):
            (conversation if line.startswith("/") else commands).append((line, outcome))
        self.assertGreaterEqual(len(commands), count)
        for line, outcome in commands:
            if line.startswith("greta-cli serve") and not has_server():
                continue
            with self.subTest(line=line):
                self.run_line(line, outcome)
        terminal = self.terminal("chat", "-m", "model.gguf", "-n", 8, state=self.folder)
        terminal.wait_for(CONVERSATION)
        terminal.send(b"Tell me a story.\r")
        terminal.wait_for(r"(?s)story\.\s+\w.+\n> ")
        for line, _ in conversation[:-1]:
            terminal.send(line.encode() + b"\r")
            seen = terminal.wait_for(r"(?s)\n> ")
            self.assertNotIn("there is no", seen)
        terminal.send(conversation[-1][0].encode() + b"\r")
        self.assertEqual(terminal.exit_code(), 0)

    def test_llama_cpp(self):
        self.check_page("coming-from-llama.cpp.md", 30)

    def test_ollama(self):
        self.check_page("coming-from-ollama.md", 18)


if __name__ == "__main__":
    main()
