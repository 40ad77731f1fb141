"""The page at "/" in Chromium without a window. Skipped where there is none."""
import json
import pathlib
import tempfile
import time
import unittest

import browser
from calls_test import CALL, FUNCTION, TEMPLATE
from server import Server, ServerTest, main

HARM = "<script>window.harmed = 1</script><img src=x onerror='window.harmed = 2'><b>bold</b> [link](javascript:window.harmed=3) [web](https://example.org/)"


def literal(text):
    return 'root ::= "' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


class Files(ServerTest):
    ARGS = ("--api-key", "secret")

    def test_the_page_needs_no_key_and_loads_nothing_else(self):
        status, text, headers = self.server.ask("GET", "/")
        self.assertEqual((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
        for rule in ("default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"):
            self.assertIn(rule, headers["content-security-policy"])
        self.assertEqual(headers["x-content-type-options"], "nosniff")
        names = [part.split('"')[0] for part in text.split('"page/')[1:]]
        self.assertIn("app.js", names)
        for name, kind in ((name, name.split(".")[-1]) for name in names):
            status, text, headers = self.server.ask("GET", f"/page/{name}")
            self.assertEqual((status, headers["content-type"].split(";")[0]),
                             (200, {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}[kind]))
            self.assertNotIn("https://", text)
        for path in ("/page/", "/page/none.js", "/page/../server.cpp", "/v1/", "/page/index.html/x"):
            self.assertEqual(self.server.ask("GET", path)[0], 404, path)

    def test_without_a_page(self):
        server = Server("--no-webui", ready=False)
        try:
            self.assertEqual((server.ask("GET", "/")[0], server.ask("GET", "/page/app.js")[0]), (404, 404))
        finally:
            server.stop()


class PageTest(ServerTest):
    def setUp(self):
        self.page = browser.Browser()
        self.addCleanup(self.page.close)
        self.page.open(self.url())
        self.page.until("document.querySelector('#model').options.length > 0 && document.activeElement.id === 'input'")

    def url(self):
        return f"http://127.0.0.1:{self.server.port}/"

    def set(self, name, value):
        """Changes a setting as a user does."""
        self.page.key("s", alt=True)
        self.page.until("document.querySelector('#settings').open")
        self.page.run(f"(e => (e.value = {json.dumps(value)}, e.dispatchEvent(new Event('input'))))(document.querySelector('#set-{name}'))")
        self.page.key("Escape")
        self.page.until("!document.querySelector('#settings').open && document.activeElement.id === 'input'")

    def say(self, text, wait="Done"):
        self.page.run("document.querySelector('#input').focus()")
        self.page.type(text)
        self.page.key("Enter")
        self.page.until(f"document.querySelector('#status').textContent.startsWith({json.dumps(wait)}) || document.querySelector('.error:not([hidden])')")

    def texts(self, kind="assistant"):
        return self.page.run(f"[...document.querySelectorAll('#log > .{kind} > .text')].map(e => e.innerText)")

    def press(self, text, within="document"):
        self.page.run(f"[...{within}.querySelectorAll('button')].findLast(e => e.textContent === {json.dumps(text)}).click()")

    def done(self):
        self.page.until("document.querySelector('#status').textContent.startsWith('Done')")

    def clean(self):
        """Nothing was said on the console, and nothing was asked of anybody else."""
        self.assertEqual(self.page.console, [])
        self.assertEqual([url for url in self.page.requests if not url.startswith((self.url(), "blob:"))], [])


class Story(PageTest):
    def test_a_story(self):
        """Written, regenerated, edited, branched, kept and deleted."""
        self.set("seed", "1")
        self.say("Tell me a story about a bear.")
        (first,) = self.texts()
        self.assertGreater(len(first), 20)
        self.assertRegex(self.page.run("document.querySelector('.assistant .counts').textContent"), r"\d+ tokens · [\d.]+ tokens/s · prompt \d+, \d+ of it cached")
        self.assertRegex(self.page.run("document.querySelector('#used-text').textContent"), r"\d+ of 1024 tokens")
        self.set("seed", "2")
        self.press("Regenerate")
        self.done()
        (second,) = self.texts()
        self.assertNotEqual(first, second)
        self.assertEqual(self.page.run("document.querySelector('.branches').innerText").split(), ["‹", "2", "/", "2", "›"])
        self.press("‹")
        self.assertEqual(self.texts(), [first])
        self.say("And a dog?")
        self.assertEqual(len(self.texts()), 2)
        self.page.key("ArrowUp")  # the last message is edited
        self.page.until("document.activeElement.className === 'edit'")
        self.page.run("document.activeElement.select()")
        self.page.type("And a cat?")
        self.page.key("Enter")
        self.done()
        self.assertEqual(self.texts("user"), ["Tell me a story about a bear.", "And a cat?"])
        self.press("‹")
        self.assertEqual(self.texts("user")[1], "And a dog?")
        before = self.texts()
        self.page.open(self.url())  # it is kept
        self.page.until("document.querySelectorAll('#list li').length === 1")
        self.page.run("document.querySelector('#list .open').click()")
        self.assertEqual(self.texts(), before)
        self.page.run("document.querySelector('#list .icon').click()")
        self.page.until("document.querySelectorAll('#list li').length === 0")
        self.assertEqual(self.page.dialogs, ["Delete “Tell me a story about a bear.”?"])
        self.clean()

    def test_stop_and_go_on(self):
        self.set("more", '{"ignore_eos": true}')
        self.page.type("Tell me a story.")
        self.page.key("Enter")
        self.page.until("(document.querySelector('.assistant > .text')?.innerText ?? '').length > 30")
        self.assertIn("tokens/s", self.page.until("/tokens.s/.test(document.querySelector('#status').textContent) && document.querySelector('#status').textContent"))
        self.page.key("Escape")
        self.page.until("document.querySelector('#status').textContent === 'Stopped'")
        (begun,) = self.texts()
        self.set("more", '{"max_tokens": 5}')
        self.press("Continue")
        self.done()
        (more,) = self.texts()
        self.assertEqual(more[:len(begun.rstrip())], begun.rstrip())
        self.assertGreater(len(more), len(begun.rstrip()))
        self.clean()

    def test_harm_is_text(self):
        """What a model writes stays text, however it looks."""
        self.set("more", json.dumps({"grammar": literal(HARM)}))
        self.say("Write something bad.")
        (text,) = self.texts()
        for part in ("<script>window.harmed = 1</script>", "onerror='window.harmed = 2'>", "<b>bold</b>", "link (javascript:window.harmed=3)"):
            self.assertIn(part, text)
        self.assertEqual(self.page.run("document.querySelectorAll('#log script, #log img, #log b').length"), 0)
        self.assertEqual(self.page.run("[...document.querySelectorAll('#log a')].map(a => [a.href, a.rel])"),
                         [["https://example.org/", "noopener noreferrer nofollow"]])
        time.sleep(0.2)
        self.assertIsNone(self.page.run("window.harmed"))
        self.clean()
        # And if a script came into the page all the same, it would not run.
        self.page.run("(s => (s.textContent = 'window.harmed = 4', 0))(document.createElement('div')), document.body.insertAdjacentElement('beforeend', "
                      "Object.assign(document.createElement('a'), {href: 'javascript:window.harmed=5', id: 'harm'})).click()")
        time.sleep(0.2)
        self.assertIsNone(self.page.run("window.harmed"))
        self.assertTrue(any("Content Security Policy" in str(line) for line in self.page.console), self.page.console)

    def test_export_and_import(self):
        self.say("Tell me a story about a bear.")
        (text,) = self.texts()
        self.press("Export all")
        path = pathlib.Path(self.page.downloads) / "greta-conversations.json"
        deadline = time.monotonic() + 30
        while not path.exists():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        kept = json.loads(path.read_text())
        self.assertEqual((kept["format"], len(kept["conversations"]), len(kept["conversations"][0]["nodes"])), ("greta-conversations", 1, 2))

        def give(json_text):
            self.page.run(f"(() => {{ const t = new DataTransfer(); t.items.add(new File([{json.dumps(json_text)}], 'x.json'));"
                          "const i = document.querySelector('#import-file'); i.files = t.files; i.dispatchEvent(new Event('change')); })()")
        give(path.read_text())
        self.page.until("document.querySelectorAll('#list li').length === 2")
        self.page.until("document.querySelectorAll('#log .assistant').length === 1")
        self.assertEqual(self.texts(), [text])
        for bad, words in (("[]", "no conversations"), ("{", "not imported"), ('{"format": "greta-conversations", "conversations": [{"nodes": {"a": {"role": "x"}}}]}', "role"),
                           ('{"format": "greta-conversations", "conversations": [{"nodes": {"a": {"role": "user", "parent": "a"}}}]}', "own answers"),
                           ('{"format": "greta-conversations", "conversations": [{"nodes": {"x y": {"role": "user"}}}]}', "no proper id")):
            give(bad)
            self.page.until(f"document.querySelector('#status').textContent.includes({json.dumps(words)})")
        self.assertEqual(self.page.run("document.querySelectorAll('#list li').length"), 2)
        self.clean()

    def test_small_and_dark(self):
        self.say("Tell me a story about a bear.")
        light = self.page.run("getComputedStyle(document.body).backgroundColor")
        self.page.dark(True)
        self.assertNotEqual(self.page.run("getComputedStyle(document.body).backgroundColor"), light)
        self.set("theme", "light")
        self.assertEqual(self.page.run("getComputedStyle(document.body).backgroundColor"), light)
        self.page.size(360, 640, mobile=True)
        wide = "[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide, pre, .hidden, .skip, #side') && e.getBoundingClientRect().right > 360.5).length"
        self.assertEqual((self.page.run("document.documentElement.scrollWidth"), self.page.run(wide)), (360, 0))
        self.page.key("b", alt=True)
        self.page.until("document.querySelector('#side').getBoundingClientRect().left === 0")
        self.page.key("Escape")
        self.page.key("s", alt=True)
        self.page.until("document.querySelector('#settings').open")
        self.assertEqual(self.page.run(wide), 0)
        self.clean()

    def test_by_keyboard_alone(self):
        """Each control is reached with the tabulator key and has a name."""
        self.say("Tell me a story about a bear.")
        seen = set()
        for _ in range(60):
            self.page.key("Tab")
            seen.add(self.page.run("(e => e.id || e.getAttribute('aria-label') || e.textContent.trim())(document.activeElement)"))
        self.assertLessEqual({"new", "export", "import", "model", "settings-open", "input", "send", "Copy", "Edit", "Regenerate", "Delete"}, seen)
        nameless = "[...document.querySelectorAll('button, input, select, textarea')].filter(e => !e.hidden && !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).length"
        self.assertEqual(self.page.run(nameless), 0)
        self.clean()

    def test_markdown(self):
        def shown(text):
            return self.page.run("import('/page/markdown.js').then(m => { const e = document.createElement('div');"
                                 f"m.show(e, {json.dumps(text)}); return e.innerHTML; }})")
        for text, html in (("a **b** *c* ~~d~~ `e*f*`", "<p>a <strong>b</strong> <em>c</em> <del>d</del> <code>e*f*</code></p>"),
                           ("snake_case_name 2*3*4 \\*x\\*", "<p>snake_case_name 2<em>3</em>4 *x*</p>"),
                           ("# A\n## B", "<h3>A</h3><h4>B</h4>"), ("a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"),
                           ("- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
                           ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'), ("> a\n> b", "<blockquote><p>a<br>b</p></blockquote>"),
                           ("***a***", "<p><strong><em>a</em></strong></p>"), ("**a", "<p>**a</p>"), ("&lt;<i>", "<p>&amp;lt;&lt;i&gt;</p>"),
                           ("![x](http://e.org/a.png)", '<p><a href="http://e.org/a.png" rel="noopener noreferrer nofollow" target="_blank">x</a></p>'),
                           ("[a](data:text/html,x)", "<p><span>a (data:text/html,x)</span></p>"),
                           ("|a|b|\n|-|-:|\n|1|2|", '<div class="wide" tabindex="0"><table><thead><tr><th class="left">a</th><th class="right">b</th></tr></thead>'
                            '<tbody><tr><td class="left">1</td><td class="right">2</td></tr></tbody></table></div>')):
            self.assertEqual(shown(text), html, text)
        self.assertIn('<pre tabindex="0"><code>&lt;b&gt;\n<span class="code-keyword">int</span> x = <span class="code-number">1</span>;'
                      ' <span class="code-comment">// y</span></code></pre>', shown("```cpp\n<b>\nint x = 1; // y\n```"))
        self.assertIn("see https", shown("see https") + "see https")
        for hard in ("*" * 20000, "[" * 20000, "`" * 9999, "> " * 3000, "- " * 3000, "![](" * 5000, "_a" * 9000, "|" * 5000 + "\n" + "|-" * 5000):
            begun = time.monotonic()
            shown(hard)
            self.assertLess(time.monotonic() - begun, 20, hard[:20])
        # What is written below keeps what stands above.
        self.assertTrue(self.page.run("import('/page/markdown.js').then(m => { const e = document.createElement('div'); m.show(e, 'a\\n\\nb');"
                                      "const first = e.firstChild; m.show(e, 'a\\n\\nbc'); return e.firstChild === first && e.innerText; })"))


class Calls(PageTest):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "template.jinja"
            path.write_text(TEMPLATE)
            cls.ARGS = ("--chat-template-file", path, "--temp", 0)
            super().setUpClass()

    def test_a_call_and_its_result(self):
        self.set("tools", json.dumps([FUNCTION]))
        self.set("more", json.dumps({"grammar": literal(CALL)}))
        self.say("How is the weather?")
        self.assertEqual(self.page.run("document.querySelector('.call summary').textContent"), "Calls weather")
        self.assertEqual(json.loads(self.page.run("document.querySelector('.call pre').textContent")), {"city": "Graz", "days": 2})
        self.set("more", '{"max_tokens": 4}')
        self.page.run("document.querySelector('.results textarea').value = 'Sun.'")
        self.press("Send the results")
        self.page.until("document.querySelectorAll('#log .assistant').length === 2")
        self.done()
        self.assertEqual(self.texts("tool"), ["Sun."])
        self.clean()

    def test_reasoning_is_folded(self):
        self.set("thinking", "on")
        self.set("more", json.dumps({"thinking_budget_tokens": 5, "ignore_eos": True, "max_tokens": 20}))
        self.say("Think.")
        self.assertEqual(self.page.run("(e => [e.open, e.hidden])(document.querySelector('.assistant .reasoning'))"), [False, False])
        self.assertTrue(self.page.run("document.querySelector('.assistant .reasoning .text').textContent"))
        self.assertTrue(self.texts()[0])
        self.clean()


class Keys(PageTest):
    ARGS = ("--api-key", "secret")

    def setUp(self):
        self.page = browser.Browser()
        self.addCleanup(self.page.close)

    def test_a_key_is_asked_for(self):
        self.page.open(self.url())
        self.page.until("document.querySelector('#settings').open && document.activeElement.id === 'set-key'")
        self.page.type("secret")
        self.page.key("Escape")
        self.page.until("document.querySelector('#model').options.length === 1")
        self.say("Tell me a story about a bear.")
        self.assertEqual(len(self.texts()), 1)


if __name__ == "__main__":
    if not browser.find():
        Story, Calls, Keys = (unittest.skip("there is no Chromium")(each) for each in (Story, Calls, Keys))
    main()
