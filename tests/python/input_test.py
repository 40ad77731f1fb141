"""Arguments of other kinds than are wanted: each is refused with one sentence that names the argument."""
from support import MODEL, ModelTest, greta, main


class Wrong(ModelTest):
    def refused(self, call, words, kind=(TypeError, ValueError)):
        with self.subTest(words):
            with self.assertRaises(kind) as caught:
                call()
            self.assertRegex(str(caught.exception), words)
            self.assertNotIn("\n", str(caught.exception))

    def test_lists_that_are_none(self):
        model = self.model
        for wrong in (None, 3, "a fox", b"a fox", {"a": 1}):
            self.refused(lambda: model.generate_all(wrong), "^prompts is .*, but it must be a list of prompts")
            self.refused(lambda: model.score_all(wrong), "^prompts is .*, but it must be a list of prompts")
            self.refused(lambda: model.chat(tools=wrong), "^tools is .*, but it must be a list of functions")
            self.refused(lambda: model.chat(messages=wrong), "^messages is .*, but it must be a list of dicts")
            self.refused(lambda: model.tokenizer.apply_chat_template(wrong), "^messages is .*, but it must be a list")
        self.refused(lambda: model.embed(None), "^prompt is None, but it must be a text")
        self.refused(lambda: model.embed(3), "^prompt is 3, but it must be a list of token ids")
        self.refused(lambda: model.embed(["a", None]), "^prompt is .*, but it must be a list of token ids")
        self.refused(lambda: model.generate("x", stop=3), "^stop is 3, but it must be a list of texts")
        self.refused(lambda: model.generate("x", stop=[None]), "^stop is None, but it must be a text")
        self.assertEqual(len(model.embed(text for text in ("a", "b"))), 2)

    def test_objects_that_are_others(self):
        with self.model.session() as session:  # whose pointer the library would take for a model's
            for wrong in (None, session):
                for kind in (greta.Service, greta.Session, greta.Chat, greta.Tokenizer):
                    self.refused(lambda: kind(wrong), "^model is .*, but it must be a greta.Model")
            self.refused(lambda: greta.Model(MODEL, runtime=session), "^runtime is .*, but it must be a greta.Runtime")
            self.refused(lambda: greta.Chat(self.model, service=self.model), "^service is .*, but it must be a greta.Service")
        self.refused(lambda: greta.Model(MODEL, runtime="cpu"), "^runtime is 'cpu', but it must be a greta.Runtime")
        self.refused(lambda: greta.Model("\ud800"), "^path is .*, with a character that no file name has")
        self.refused(lambda: greta.Tensor([1.0]), "^array must be a float32 array")
        with self.model.session() as session:
            self.refused(lambda: session.save(3), "^to is 3, but it must be a path or an open file")
            self.refused(lambda: session.sample([1.0]), r"^logits must be float32 \[4096\]")
            self.refused(lambda: session.restore(None), "^path is None, but it must be the path of a file")

    def test_options(self):
        def ask(**options):
            return lambda: self.model.generate("x", max_tokens=1, **options)

        self.refused(ask(logit_bias=[3]), "^logit_bias is a list, but it must be a dict")
        self.refused(ask(logit_bias={"a": 1}), "^a token of logit_bias is 'a'")
        self.refused(ask(response_format="no schema"), "^response_format is a text, but not one of a JSON schema")
        self.refused(ask(response_format=3), "^3 has no JSON schema: use ")
        self.refused(ask(grammar=3), "^grammar is 3, but it must be a text")
        self.refused(ask(grammar='root ::= "x"', grammar_root="gone"), 'no rule "gone"', greta.ArgumentError)
        self.refused(ask(sampler_order="gone"), 'no sampler is called "gone"', greta.ArgumentError)

    def test_chats(self):
        model = self.model
        self.refused(lambda: model.chat(tools=[3]), "^a tool is 3, but it must be a function, or a dict")
        self.refused(lambda: model.chat(tools=[lambda: 1]), "give a function made by def")
        self.refused(lambda: model.chat(messages=["hi"]), "^a message is a str, but it must be a dict")
        self.refused(lambda: model.chat(rounds=-1), "^rounds is -1, but it must be from 0")
        self.refused(lambda: model.chat(arguments={"a": object()}), "^arguments cannot be written as JSON")
        self.refused(lambda: model.tokenizer.apply_chat_template([{"content": object()}]), "^the messages cannot be ")
        chat = model.chat(messages=[{"role": "user", "content": object()}])
        self.refused(lambda: chat.ask(max_tokens=1), "^a message cannot be written as JSON")
        self.assertEqual(len(chat.messages), 1)


if __name__ == "__main__":
    main()
