// Conversations with the bundled model: what is fed, what is kept when an answer is stopped, and calls that
// pass through real templates and back.
#include "engine/session/chat.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "places.h"
#include "support/test_data.h"
#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;
using namespace std::string_view_literals;
using Catch::Matchers::ContainsSubstring;
using jinja::Value;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const std::string& tales() {
  static const std::string bytes = read(GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf");
  return bytes;
}

void require(Status status) {
  INFO(error_text());
  REQUIRE(status.ok());
}

struct Talk {
  Engine engine;
  std::unique_ptr<Session> session;
  std::unique_ptr<Chat> chat;

  explicit Talk(const ChatOptions& options = {}, uint32_t context = 512) {
    open_engine(tales(), {.executor = {.context = context}}, &engine);
    require(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session));
    require(Chat::open(*session, options, Log{}, &chat));
  }
  Status add(const char* json) {
    Value message;
    require(parse_json(json, &message));
    return chat->add(message);
  }
  void say(std::string_view text, const char* role = "user") {
    Value message = Value::dict();
    message.set("role"sv, role);
    message.set("content"sv, text);
    require(chat->add(message));
  }
  ChatResult answer(ChatAnswerOptions options = {.max_tokens = 12, .ignore_end = true},
                    const ChatEvents& events = {}) {
    ChatResult result;
    require(chat->answer(options, events, &result));
    return result;
  }
  std::vector<int32_t> prompt() const {
    std::string text;
    std::vector<int32_t> tokens;
    require(chat->render(true, &text));
    require(engine.model->tokenizer->encode(text, {true, true}, &tokens));
    return tokens;
  }
  std::string last(std::string_view key) const {
    return std::string(chat->messages().back()[key].as_string());
  }
};

uint32_t common(std::span<const int32_t> a, std::span<const int32_t> b) {
  return uint32_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// A template that opens reasoning in the prompt and leaves it out of earlier answers.
constexpr char kThinking[] =
    "{% for m in messages %}{{ '<|' ~ m.role ~ '|>\\n' ~ m.content ~ '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n<think>\\n' }}{% else %}</think>{% endif %}";

}  // namespace

TEST_CASE("chat: only what is new of a conversation is fed", "[chat]") {
  Talk talk;
  const char* const questions[] = {"Tell me a story about a beaver.", "And then?", "What did the fox say?"};
  for (const char* question : questions) {
    talk.say(question);
    const std::vector<int32_t> held(talk.session->tokens().begin(), talk.session->tokens().end());
    const std::vector<int32_t> prompt = talk.prompt();
    const ChatResult result = talk.answer();
    CHECK(result.prompt_tokens == prompt.size());
    CHECK(result.reused_tokens == common(held, prompt));
    CHECK(result.generated_tokens == 12);
    CHECK(result.end == ChatEnd::Length);
    CHECK(talk.session->position() == prompt.size() + 11);  // the last token drawn was not fed
    if (question != questions[0]) CHECK(result.reused_tokens > prompt.size() / 2);

    // A session that has never seen the conversation answers the same.
    Talk fresh;
    for (const Value& message : talk.chat->messages())
      if (&message != &talk.chat->messages().back()) require(fresh.chat->add(message));
    CHECK(fresh.answer().reused_tokens == 0);
    CHECK(fresh.last("content") == talk.last("content"));
  }
  // The same question is asked once more: the session holds all but its last token.
  talk.chat->truncate(talk.chat->messages().size() - 1);
  const std::vector<int32_t> prompt = talk.prompt();
  CHECK(talk.answer().reused_tokens == prompt.size() - 1);
}

TEST_CASE("chat: reasoning is closed when its tokens are used up, and left out of the next prompt",
          "[chat]") {
  Talk talk({.chat_template = kThinking});
  talk.say("Tell me a story about a beaver.");
  std::string text, reasoning;
  const ChatEvents events{.text = [&](std::string_view t) { return text += t, true; },
                          .reasoning = [&](std::string_view t) { return reasoning += t, true; },
                          .call = {},
                          .prompt = {}};
  const ChatResult result =
      talk.answer({.max_tokens = 16, .ignore_end = true, .reasoning_tokens = 5}, events);
  CHECK(result.reasoning_tokens == 5);
  CHECK(result.generated_tokens == 16);
  CHECK(result.open_reasoning == 0);
  CHECK_FALSE(reasoning.empty());
  CHECK_FALSE(text.empty());
  CHECK(talk.last("content") == text);
  CHECK(talk.last("reasoning_content") == reasoning);

  const std::vector<int32_t> first = talk.prompt();
  talk.say("And then?");
  const std::vector<int32_t> held(talk.session->tokens().begin(), talk.session->tokens().end());
  const std::vector<int32_t> prompt = talk.prompt();
  const ChatResult next = talk.answer({.max_tokens = 4, .ignore_end = true, .reasoning_tokens = 0});
  CHECK(next.reused_tokens == common(held, prompt));
  CHECK(next.reused_tokens < held.size());  // the old reasoning is gone
  CHECK(next.reused_tokens > 10);           // the question is not
  CHECK(next.reasoning_tokens == 0);
  CHECK_FALSE(talk.last("content").empty());
}

TEST_CASE("chat: a grammar holds the answer, and leaves the reasoning free", "[chat][grammar]") {
  std::shared_ptr<const Grammar> grammar;
  require(parse_json_schema(R"({"enum": ["yes", "no"]})", {}, &grammar));
  const auto is_held = [](const std::string& text) { return text == "\"yes\"" || text == "\"no\""; };
  Talk talk({.chat_template = kThinking}), free({.chat_template = kThinking});
  talk.session->set_grammar(grammar);
  for (const int64_t budget : {int64_t(-1), int64_t(7), int64_t(0)}) {
    INFO("budget " << budget);
    talk.say("Is a beaver an animal?"), free.say("Is a beaver an animal?");
    const ChatAnswerOptions options{.max_tokens = 60, .reasoning_tokens = budget};
    const ChatResult result = talk.answer(options);
    CHECK(is_held(talk.last("content")));
    CHECK(result.end == ChatEnd::Stop);
    // Without a budget, a quarter of the tokens is left for the answer.
    CHECK(result.reasoning_tokens == (budget < 0 ? 45 : uint32_t(budget)));
    free.answer({.max_tokens = 60, .reasoning_tokens = budget < 0 ? 45 : budget});
    CHECK(talk.last("reasoning_content") == free.last("reasoning_content"));
    free.chat->truncate(0), talk.chat->truncate(0);
  }
  // A generation of the session itself is held from its first token on.
  std::string text;
  GenerateOptions options;
  options.max_tokens = 20;
  options.user = &text;
  options.on_token = [](void* user, int32_t, const char* bytes, size_t count) {
    return static_cast<std::string*>(user)->append(bytes, count), 0;
  };
  GenerateResult made;
  require(talk.session->truncate(0));
  require(talk.session->generate(talk.prompt(), options, &made));
  CHECK(is_held(text));
}

TEST_CASE("chat: reasoning that is never closed is reasoning", "[chat]") {
  Talk talk({.chat_template = kThinking});
  talk.say("Tell me a story about a beaver.");
  const ChatResult result = talk.answer();
  CHECK(result.open_reasoning == 1);
  CHECK(result.end == ChatEnd::Length);
  CHECK(talk.last("content").empty());
  CHECK_FALSE(talk.last("reasoning_content").empty());

  Talk raw({.chat_template = kThinking, .raw = true});
  raw.say("Tell me a story about a beaver.");
  CHECK(raw.answer().open_reasoning == 0);
  CHECK_FALSE(raw.last("content").empty());
}

TEST_CASE("chat: a stopped answer keeps what was said", "[chat]") {
  Talk talk;
  talk.say("Tell me a story about a beaver.");
  std::string said;
  int pieces = 0;
  ChatEvents events;
  events.text = [&](std::string_view t) { return said += t, ++pieces < 3; };
  CHECK(talk.answer({}, events).end == ChatEnd::Cancelled);
  CHECK(pieces == 3);
  CHECK(talk.last("role") == "assistant");
  CHECK(talk.last("content") == said);
  CHECK_FALSE(said.empty());

  talk.say("Go on.");
  events.text = [&](std::string_view) { return talk.session->cancel(), true; };
  CHECK(talk.answer({}, events).end == ChatEnd::Cancelled);
  CHECK(talk.chat->messages().size() == 4);

  // An answer that is stopped before its first text adds no message.
  talk.say("Go on.");
  events.prompt = [](uint32_t, uint32_t) { return false; };
  CHECK(talk.answer({}, events).end == ChatEnd::Cancelled);
  CHECK(talk.chat->messages().size() == 5);
  CHECK(talk.answer().end == ChatEnd::Length);
}

TEST_CASE("chat: a conversation without room stays as it was", "[chat]") {
  Talk talk({}, 64);
  talk.say("Tell me a story about a beaver.");
  talk.answer({.max_tokens = 4});
  const std::vector<int32_t> held(talk.session->tokens().begin(), talk.session->tokens().end());
  std::string words;
  for (int i = 0; i < 80; ++i) words += "word ";
  talk.say(words);
  ChatResult result;
  CHECK(talk.chat->answer({}, {}, &result).code == Code::Full);
  CHECK_THAT(error_text(), ContainsSubstring("64"));
  CHECK(talk.chat->messages().size() == 3);
  CHECK(std::vector<int32_t>(talk.session->tokens().begin(), talk.session->tokens().end()) == held);
  talk.chat->truncate(2);
  talk.say("And then?");
  CHECK(talk.answer({.ignore_end = true}).end == ChatEnd::Context);
  CHECK(talk.chat->messages().size() == 4);
}

TEST_CASE("chat: what cannot be answered is said", "[chat]") {
  Talk talk;
  ChatResult result;
  CHECK(talk.chat->answer({}, {}, &result).code == Code::Argument);
  talk.say("Be brief.", "system");
  CHECK(talk.chat->answer({}, {}, &result).code == Code::Argument);
  talk.say("Hi", "user");
  talk.say("Hello", "assistant");
  CHECK(talk.chat->answer({}, {}, &result).code == Code::Argument);
  CHECK(talk.chat->messages().size() == 3);
  for (const char* bad : {"[]", "{}", R"({"role": "user"})", R"({"role": "user", "content": 1})",
                          R"({"role": "assistant", "content": null})",
                          R"({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]})"}) {
    INFO(bad);
    CHECK(talk.add(bad).code == Code::Argument);
  }
  CHECK(talk.chat->messages().size() == 3);
  for (const ChatOptions& bad : {ChatOptions{.chat_template = "{% for %}"}, ChatOptions{.tools = "{"},
                                 ChatOptions{.tools = "[{}]"}, ChatOptions{.arguments = "[1]"}}) {
    std::unique_ptr<Chat> chat;
    CHECK(Chat::open(*talk.session, bad, Log{}, &chat).code == Code::Argument);
    CHECK_FALSE(chat);
  }
  // Templates can be given by the names of plain forms.
  for (const char* name : {"chatml", "llama3", "Phi-3", "gemma", "mistral"}) {
    std::unique_ptr<Chat> chat;
    require(Chat::open(*talk.session, {.chat_template = name}, Log{}, &chat));
  }
  std::unique_ptr<Chat> none;
  CHECK(Chat::open(*talk.session, {.chat_template = "no such form"}, Log{}, &none).code == Code::Argument);
  // A template may refuse with its own words.
  Talk refusing({.chat_template = "{{ raise_exception('no thanks') }}"});
  refusing.say("Hi");
  CHECK(refusing.chat->answer({}, {}, &result).code == Code::Argument);
  CHECK_THAT(error_text(), ContainsSubstring("no thanks"));
  CHECK(refusing.chat->messages().size() == 1);
}

TEST_CASE("chat: a model's broken template gives way to a plain form, and that is logged", "[chat]") {
  std::string file = tales();
  const size_t at = file.find("{% ");
  REQUIRE(at != file.npos);
  file.replace(at, 3, "{%%");
  Engine engine;
  open_engine(file, {.executor = {.context = 256}}, &engine);
  std::unique_ptr<Session> session;
  require(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session));
  std::string said;
  const Log log{[](void* user, uint32_t, const char* text) { *static_cast<std::string*>(user) += text; },
                &said};
  std::unique_ptr<Chat> chat;
  require(Chat::open(*session, {}, log, &chat));
  CHECK(chat->dialect().chat_template().is_fallback());
  CHECK_THAT(said, ContainsSubstring("template"));
  Value message = Value::dict();
  message.set("role"sv, "user");
  message.set("content"sv, "Tell me a story.");
  require(chat->add(message));
  ChatResult result;
  require(chat->answer({.max_tokens = 3}, {}, &result));
  CHECK(result.generated_tokens == 3);
}

TEST_CASE("chat: template arguments and tools reach the template", "[chat]") {
  Talk talk(
      {.chat_template =
           "{{ tools[0].function.name }} {{ mood }} {{ messages[0].tool_calls[0].function.arguments.n }} "
           "{{ messages[0].content == '' }} {{ messages[1].content }}",
       .tools = R"([{"name": "f"}])",
       .arguments = R"({"mood": "good"})"});
  require(talk.add(R"({"role": "assistant", "content": null, "tool_calls":
    [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"n\": 7}"}}]})"));
  require(talk.add(R"({"role": "tool", "tool_call_id": "a", "content": "8"})"));
  std::string text;
  require(talk.chat->render(true, &text));
  CHECK(text == "f good 7 True 8");
}

// The parts are written one after the other, or each on a line of its own, wherever a text is written.
TEST_CASE("chat: a content may be a list of parts, for all templates and roles", "[chat]") {
  const std::filesystem::path folder = test_data() / "templates";
  Talk talk;
  const auto message = [](std::string_view role, std::string_view content) {
    return std::string("{\"role\": \"") + std::string(role) +
           "\", \"tool_call_id\": \"call00000\", \"name\": \"weather\", \"content\": " +
           std::string(content) + "}";
  };
  const std::string call =
      R"({"role": "assistant", "content": "", "tool_calls": [{"id": "call00000", "type": "function",
          "function": {"name": "weather", "arguments": "{}"}}]})";
  const auto without_lines = [](std::string text) {
    std::erase_if(text, [](char c) { return c == '\n' || c == ' '; });
    return text;
  };
  uint32_t templates = 0, tried = 0, as_lists = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++templates;
    const std::string form = read(entry.path());
    for (const std::string_view role : {"system", "user", "assistant", "tool"}) {
      const auto render = [&](std::string_view content, std::string* text) {
        std::unique_ptr<Chat> chat;
        require(Chat::open(*talk.session, {.chat_template = form}, Log{}, &chat));
        std::vector<std::string> all = {message("user", "\"question\"")};
        if (role == "system") all.insert(all.begin(), message(role, content));
        if (role == "user") all = {message(role, content)};
        if (role == "assistant") all.insert(all.end(), {message(role, content), message("user", "\"more\"")});
        if (role == "tool") all.insert(all.end(), {call, message(role, content)});
        for (const std::string& json : all) {
          Value value;
          require(parse_json(json.c_str(), &value));
          require(chat->add(value));
        }
        return chat->render(true, text).ok();
      };
      INFO(entry.path().filename().string() << " " << role << " " << error_text());
      std::string whole, lines, one, parts;
      if (!render("\"The first.\"", &whole)) continue;  // the template has no such role
      ++tried;
      REQUIRE(render(R"([{"type": "text", "text": "The first."}])", &one));
      CHECK(one == whole);
      REQUIRE(render("\"The first.\\nThe second.\"", &lines));
      REQUIRE(render(R"([{"type": "text", "text": "The first."}, {"type": "text", "text": "The second."}])",
                     &parts));
      CHECK(without_lines(parts) == without_lines(lines));
      as_lists += parts != lines;
    }
  }
  CHECK(templates > 40);
  CHECK(tried > 3 * templates);
  CHECK(as_lists > 20);
  UNSCOPED_INFO(templates << " templates, " << tried << " roles, " << as_lists << " as lists");
}

TEST_CASE("chat: a part that is no text is refused by its name", "[chat]") {
  Talk talk;
  const auto refused = [&](const char* content) {
    const Status status = talk.add(
        (std::string(R"({"role": "user", "content": [{"type": "text", "text": "a"}, )") + content + "]}")
            .c_str());
    CHECK_FALSE(status.ok());
    return std::string(error_text());
  };
  CHECK_THAT(refused(R"({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})"),
             ContainsSubstring("part 1 of its content is of type \"image_url\", and only text is read"));
  CHECK_THAT(refused(R"({"type": "input_audio", "input_audio": {}})"), ContainsSubstring("\"input_audio\""));
  CHECK_THAT(refused(R"({"type": "text"})"), ContainsSubstring("part 1 of its content has no text"));
  CHECK_THAT(refused("7"), ContainsSubstring("part 1 of its content has no text"));
  CHECK(talk.chat->messages().empty());
}

// A rendered call is what the model would have written, so the parser finds the same call in it.
TEST_CASE("chat: calls pass through the templates of many models and back", "[chat]") {
  const std::filesystem::path folder = test_data() / "templates";
  const char* const tools =
      R"([{"type": "function", "function": {"name": "weather", "description": "Weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "a city"},
    "days": {"type": "integer", "description": "how many"}}, "required": ["city"]}}}])";
  int there_and_back = 0, with_tools = 0;
  std::string lost;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string text = read(entry.path());
    if (text.find("tool_calls") == text.npos) continue;
    Talk talk;
    std::unique_ptr<Chat> chat;
    require(Chat::open(*talk.session, {.chat_template = text, .tools = tools}, Log{}, &chat));
    const auto add = [&](const char* json) {
      Value message;
      require(parse_json(json, &message));
      require(chat->add(message));
    };
    std::string question, call, result;
    add(R"({"role": "user", "content": "How is it in Rome?"})");
    if (!chat->render(true, &question).ok()) continue;
    add(R"({"role": "assistant", "content": "", "tool_calls": [{"id": "call00000", "type": "function",
      "function": {"name": "weather", "arguments": "{\"city\": \"Rome\", \"days\": 3}"}}]})");
    if (!chat->render(false, &call).ok() || call.find("weather", question.size()) == call.npos) continue;
    ++with_tools;
    add(R"({"role": "tool", "tool_call_id": "call00000", "name": "weather", "content": "sunny"})");
    if (chat->render(true, &result).ok()) CHECK_THAT(result, ContainsSubstring("sunny"));

    // The answer is what follows the prompt, up to the token that ends it. A mark that the prompt's end cuts
    // in two belongs to the answer.
    size_t same =
        std::mismatch(question.begin(), question.end(), call.begin(), call.end()).first - question.begin();
    if (const size_t open = call.rfind('<', same - 1); open != call.npos && call.find('>', open) >= same)
      same = open;
    const std::string eos = talk.engine.model->tokenizer->piece(talk.engine.model->tokenizer->eos(), true);
    if (call.ends_with(eos)) call.resize(call.size() - eos.size());
    const ChatForm form = chat_form(text);
    std::string calls;
    ChatParser parser(form, chat->dialect().tools(), call.substr(0, same),
                      {[](std::string_view) { return true; }, [](std::string_view) { return true; },
                       [&](ChatCall made) { return calls += made.name + " " + made.arguments, true; }});
    parser.push(call.substr(same));
    parser.finish();
    if (calls == "weather {\"city\": \"Rome\", \"days\": 3}")
      ++there_and_back;
    else
      lost += entry.path().filename().string() + ": " + call.substr(same) + " -> " + calls + "\n";
  }
  INFO(lost);
  CHECK(with_tools >= 25);
  CHECK(there_and_back >= with_tools - 1);  // the parser does not know Solar's format
}
