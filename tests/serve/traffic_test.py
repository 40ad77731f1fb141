"""Requests in the form of those of Codex and Claude Code, two turns of each, with headers, tools and fields. They were written by hand, not recorded."""
import http.client
import json

from server import LIMIT, ServerTest, main

HELP = ("You are a coding agent that runs in a terminal and works with the user until the task is done. Read files before you change them, keep changes "
        "small, run the tests, and say in the end what was done. Never revert what you did not write. ") * 3


def schema(required=(), **properties):
    return {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": properties, "required": list(required),
            "additionalProperties": False}


TEXT, NUMBER, FLAG = {"type": "string", "description": "A text."}, {"type": "number", "description": "Milliseconds."}, {"type": "boolean"}
CODEX_HEADERS = {"Authorization": "Bearer none", "OpenAI-Beta": "responses=experimental", "originator": "codex_cli_rs", "version": "0.98.0",
                 "User-Agent": "codex_cli_rs/0.98.0 (Debian 12; x86_64) xterm", "session_id": "0199-aa", "conversation_id": "0199-aa",
                 "Accept": "text/event-stream", "Content-Type": "application/json"}
CODEX_TOOLS = [
    {"type": "function", "name": "shell_command", "description": "Runs a command and gives its output.", "strict": False,
     "parameters": {"type": "object", "properties": {"command": TEXT, "workdir": TEXT, "timeout_ms": NUMBER, "login": FLAG},
                    "required": ["command"], "additionalProperties": False}},
    {"type": "function", "name": "update_plan", "description": "Changes the plan.", "strict": False,
     "parameters": {"type": "object", "properties": {
         "explanation": {"type": "string"}, "plan": {"type": "array", "description": "The steps", "items": {
             "type": "object", "properties": {"status": {"type": "string", "description": "pending, in_progress or completed"}, "step": {"type": "string"}},
             "required": ["step", "status"], "additionalProperties": False}}}, "required": ["plan"], "additionalProperties": False}},
    {"type": "custom", "name": "apply_patch", "description": "Changes files. It takes a text, and no JSON.",
     "format": {"type": "grammar", "syntax": "lark", "definition": 'start: begin_patch hunk+ end_patch\nbegin_patch: "*** Begin Patch" LF\n'}},
    {"type": "web_search", "external_web_access": False},
    {"type": "function", "name": "view_image", "description": "Shows an image.", "strict": False,
     "parameters": {"type": "object", "properties": {"path": TEXT}, "required": ["path"], "additionalProperties": False}}]


def said(role, *texts):
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text} for text in texts]}


CODEX_INPUT = [said("developer", "<permissions instructions>Commands run in a sandbox.</permissions instructions>"),
               said("user", "# AGENTS.md instructions for /src\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
                    "<environment_context>\n  <cwd>/src</cwd>\n  <shell>bash</shell>\n</environment_context>"),
               said("user", "Which files are here?")]


def codex(items):
    return {"model": "gpt-5-codex", "instructions": HELP, "input": items, "tools": CODEX_TOOLS, "tool_choice": "auto", "parallel_tool_calls": False,
            "reasoning": {"effort": "medium", "summary": "auto"}, "store": False, "stream": True, "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "0199-aa", "text": {"verbosity": "low"}}


CLAUDE_PATH = "/v1/messages?beta=true"
CLAUDE_HEADERS = {"x-api-key": "none", "anthropic-version": "2023-06-01", "x-app": "cli", "anthropic-dangerous-direct-browser-access": "true",
                  "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27",
                  "User-Agent": "claude-cli/2.1.30 (external, cli)", "X-Stainless-Lang": "js", "X-Stainless-Retry-Count": "0", "X-Stainless-Timeout": "600",
                  "Content-Type": "application/json"}
CLAUDE_TOOLS = [
    {"name": "Bash", "description": "Runs a command.", "input_schema": schema(["command"], command=TEXT, timeout=NUMBER, run_in_background=FLAG)},
    {"name": "Grep", "description": "Searches files.", "input_schema": schema(
        ["pattern"], pattern=TEXT, output_mode={"type": "string", "enum": ["content", "files_with_matches", "count"]}, **{"-A": {"type": "number"}})},
    {"name": "TodoWrite", "description": "Keeps a list.", "input_schema": schema(["todos"], todos={"type": "array", "items": schema(
        ["content", "status"], content={"type": "string", "minLength": 1}, status={"type": "string", "enum": ["pending", "in_progress", "completed"]})})},
    {"name": "WebFetch", "description": "Reads a page.", "input_schema": schema(["url"], url={"type": "string", "format": "uri"})}]
KEPT = {"cache_control": {"type": "ephemeral"}}
CLAUDE_MESSAGES = [{"role": "user", "content": [
    {"type": "text", "text": "<system-reminder>\nToday's date is 2026-11-28.\n</system-reminder>"},
    {"type": "text", "text": "Which files are here?", **KEPT}]}]


def claude(messages, turn, **more):
    system = [f"x-anthropic-billing-header: cc_version=2.1.30.{turn}a; cc_entrypoint=cli; cch={turn}f0;", "You are Claude Code.", HELP]
    return {"model": "claude-opus-4-6", "messages": messages,
            "system": [{"type": "text", "text": text, **(KEPT if text == HELP else {})} for text in system],
            "tools": CLAUDE_TOOLS, "metadata": {"user_id": "user_0_account__session_0"}, "max_tokens": 32000,
            "thinking": {"type": "enabled", "budget_tokens": 31999}, "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "output_config": {"effort": "medium"}, "stream": True, **more}


class Traffic(ServerTest):
    ARGS = ("--parallel", 2, "-c", 4096, "-n", 24, "--temp", 0)

    def events(self, path, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=LIMIT)
        self.addCleanup(connection.close)
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        if answer.status != 200:
            self.fail(f"{answer.status}: {answer.read()}")
        for line in answer:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
        connection.close()

    def test_codex(self):
        turns, items = [], list(CODEX_INPUT)
        for turn in range(2):
            events = list(self.events("/v1/responses", codex(items), CODEX_HEADERS))
            self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))
            self.assertEqual(events[0]["type"], "response.created")
            self.assertIn(events[-1]["type"], ("response.completed", "response.incomplete"))
            response = events[-1]["response"]
            self.assertEqual([event["item"] for event in events if event["type"] == "response.output_item.done"], response["output"])
            turns.append(response["usage"])
            # What the client sends with its next turn: all that it got, and what its tools gave.
            items += [*response["output"], {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None},
                      {"type": "function_call", "name": "shell_command", "arguments": '{"command":"ls","workdir":"/src"}', "call_id": "call_1"},
                      {"type": "function_call_output", "call_id": "call_1", "output": "Exit code: 0\nWall time: 0 seconds\nOutput:\nmain.c\n"},
                      {"type": "custom_tool_call", "status": "completed", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin Patch\n*** End Patch"},
                      {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "Success."}]},
                      said("user", "Go on.")]
        self.assertGreater(turns[1]["input_tokens"], turns[0]["input_tokens"])
        shared = turns[0]["input_tokens"] // 64 * 64 - 64  # the end of a prompt may be written otherwise in a history
        self.assertGreaterEqual(turns[1]["input_tokens_details"]["cached_tokens"], shared)

    def test_claude_code(self):
        probe = {"model": "claude-haiku-4-5", "max_tokens": 1, "messages": [{"role": "user", "content": "quota"}], "metadata": {"user_id": "user_0"}}
        self.assertEqual(self.server.post(CLAUDE_PATH, probe)["usage"]["output_tokens"], 1)
        counted = {key: value for key, value in claude(CLAUDE_MESSAGES, 0).items() if key in ("model", "messages", "system", "tools", "thinking")}
        count = self.server.post("/v1/messages/count_tokens?beta=true", counted)["input_tokens"]
        reads = []
        for turn, messages in enumerate((CLAUDE_MESSAGES, CLAUDE_MESSAGES, CLAUDE_MESSAGES + [
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "I look.", "signature": "c2ln"},
                                                  {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "main.c", "is_error": False, **KEPT},
                                             {"type": "text", "text": "<system-reminder>\nThe list is empty.\n</system-reminder>"}]}])):
            events = list(self.events(CLAUDE_PATH, claude(messages, turn, max_tokens=24), CLAUDE_HEADERS))
            names = [event["type"] for event in events if event["type"] != "ping"]
            self.assertEqual((names[0], names[-2:]), ("message_start", ["message_delta", "message_stop"]))
            self.assertEqual(names.count("content_block_start"), names.count("content_block_stop"))
            usage = events[0]["message"]["usage"]
            reads.append((usage["input_tokens"] + usage["cache_read_input_tokens"], usage["cache_read_input_tokens"]))
        self.assertEqual((reads[0][0], reads[1][0]), (count, count))
        self.assertGreaterEqual(reads[1][1], count // 64 * 64 - 64)  # the billing header is another one
        self.assertGreaterEqual(reads[2][1], count // 64 * 64 - 128)

    def test_a_user_who_stops(self):
        """Claude Code closes the connection."""
        events = self.events(CLAUDE_PATH, claude(CLAUDE_MESSAGES, 9), CLAUDE_HEADERS)
        self.assertEqual(next(events)["type"], "message_start")
        events.close()
        self.doCleanups()
        self.wait_until(lambda: self.running() == 0, "the request goes on")


if __name__ == "__main__":
    main()
