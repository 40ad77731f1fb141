// What a grammar of calls allows is read back as calls that the tools' schemas allow, in the form of every
// template.
#include "text/chat/tool_grammar.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <random>
#include <set>

#include "support/gguf_writer.h"
#include "support/test_data.h"

using namespace greta;
using namespace greta::test;
using jinja::Value;
using Kind = ToolChoice::Kind;

namespace {

struct Vocabulary {
  std::string file = bpe_vocabulary({"<tool_call>", "<|call|>"}, {}, "gpt-2").file();
  Gguf gguf;
  Tokenizer tokenizer;
  Vocabulary() {
    Source source;
    REQUIRE(source.open_memory(file.data(), file.size()).ok());
    REQUIRE(gguf.open(std::move(source)).ok());
    REQUIRE(tokenizer.open(gguf, Log{}).ok());
  }
};

// Their texts have an end, so that a random walk ends.
constexpr const char* kTools = R"([
  {"type": "function", "function": {"name": "weather", "description": "d", "parameters": {"type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "New York"]}, "days": {"type": "integer"},
                   "deep": {"type": "boolean"},
                   "hours": {"type": "array", "items": {"enum": [6, 12]}, "maxItems": 2}},
    "required": ["city", "days"]}}},
  {"type": "function", "function": {"name": "stop", "description": "d",
                                    "parameters": {"type": "object", "properties": {}}}}])";

struct Template {
  std::string name, text;
  jinja::Template form = {};

  bool render(const Value& messages, const Value& tools, std::string* out) const {
    Value context = Value::dict();
    context.set("messages", messages);
    context.set("tools", tools);
    context.set("add_generation_prompt", false);
    for (const char* key : {"bos_token", "functions", "datetime"}) context.set(key, "<s>");
    context.set("eos_token", "</s>");
    out->clear();
    return form.render(context, 1721952000, {}, out).ok();
  }
};

const std::vector<std::string> kEnds = {"</s>",
                                        "<|im_end|>",
                                        "<|eot_id|>",
                                        "<|eom_id|>",
                                        "<turn|>",
                                        "<|end_of_text|>",
                                        "<|call|>",
                                        "<|return|>",
                                        "[e~[",
                                        "<SPECIAL_12>",
                                        "<seed:eos>",
                                        "<|tool_response>",
                                        "<|flush|>",
                                        "<｜end▁of▁sentence｜>",
                                        "<|END_OF_TURN_TOKEN|>"};

struct Calls {
  ChatForm form;
  CallWriting writing;
  ToolList tools;

  explicit Calls(const Template& of) {
    form = chat_form(of.text);
    const RenderConversation render = [&](const Value& messages, const Value& tool_list, std::string* out) {
      return of.render(messages, tool_list, out);
    };
    form.style = find_call_style(render);
    writing = find_call_writing(form, kEnds, render);
    REQUIRE(tools.parse(kTools).ok());
  }

  std::shared_ptr<const Grammar> hold(const Vocabulary& v, const ToolChoice& choice) const {
    std::shared_ptr<const Grammar> grammar;
    const Status status = hold_calls(form, writing, tools, choice, v.tokenizer, Log{}, &grammar);
    INFO(error_text());
    REQUIRE(status.ok());
    REQUIRE(grammar);
    return grammar;
  }

  std::vector<ChatCall> read(std::string_view answer, std::string* said) const {
    std::vector<ChatCall> calls;
    ChatParser parser(
        form, tools, form.channels ? "<|start|>assistant" : "",
        {[&](std::string_view text) { return *said += text, true; }, [](std::string_view) { return true; },
         [&](ChatCall call) { return calls.push_back(std::move(call)), true; }});
    parser.push(answer);
    parser.finish();
    return calls;
  }
};

// A text that the grammar allows, made at random. In channels it begins as a call, since thoughts have no
// end.
std::string walk(const Calls& calls, std::shared_ptr<const Grammar> grammar, std::mt19937* random) {
  GrammarMatcher matcher(std::move(grammar));
  REQUIRE(matcher.reset().ok());
  std::string out = calls.form.channels ? calls.writing.head : "", bytes(255, 0);
  REQUIRE(matcher.push(out).ok());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = char(i + 1);
  while (out.size() < 4000 && !(matcher.may_end() && (*random)() % 2)) {
    std::ranges::shuffle(bytes, *random);
    const auto next = std::ranges::find_if(bytes, [&](const char& c) { return matcher.push({&c, 1}).ok(); });
    if (next == bytes.end()) break;
    out += *next;
  }
  CHECK(matcher.may_end());
  return out;
}

bool takes(std::shared_ptr<const Grammar> grammar, std::string_view text) {
  GrammarMatcher matcher(std::move(grammar));
  REQUIRE(matcher.reset().ok());
  return matcher.push(text).ok() && matcher.may_end();
}

// Returns "" if the arguments are what the schema asks for.
std::string fault(const ChatCall& call) {
  Value arguments;
  if (!jinja::parse_json(call.arguments, &arguments).ok()) return "no JSON";
  if (call.name == "stop") return arguments.size() ? "arguments" : "";
  if (call.name != "weather") return "a name";
  const std::string_view city = arguments["city"].as_string();
  if (city != "Paris" && city != "New York") return "a city";
  if (!arguments["days"].is_int()) return "days";
  if (arguments.find("deep") && !arguments["deep"].is_bool()) return "deep";
  if (arguments.find("hours") && (!arguments["hours"].is_list() || arguments["hours"].size() > 2))
    return "hours";
  return "";
}

void check_walks(const Vocabulary& v, const Calls& calls) {
  std::mt19937 random(7);
  for (const bool one : {false, true})
    for (const char* name : {"", "weather", "stop"}) {
      ToolChoice choice;
      choice.kind = *name ? Kind::Name : Kind::Required;
      choice.name = name;
      choice.one_call = one;
      const auto grammar = calls.hold(v, choice);
      CHECK_FALSE(takes(grammar, "Hello."));
      for (int i = 0; i < 4; ++i) {
        const std::string text = walk(calls, grammar, &random);
        INFO("[" << text << "]");
        std::string said;
        const std::vector<ChatCall> read = calls.read(text, &said);
        CHECK(said == "");
        CHECK((one ? read.size() == 1 : !read.empty()));
        for (const ChatCall& call : read) {
          CHECK(fault(call) == "");
          CHECK((!*name || call.name == name));
        }
      }
    }
}

// In "auto" there is text, or text and calls; with "none" there is no call.
void check_choices(const Vocabulary& v, const Calls& calls) {
  std::mt19937 random(8);
  ToolChoice choice;
  choice.kind = Kind::Required;
  const std::string called = walk(calls, calls.hold(v, choice), &random);
  choice.kind = Kind::Auto;
  const auto automatic = calls.hold(v, choice);
  const std::string begin = calls.form.channels ? "<|channel|>final<|message|>" : "";
  INFO("[" << called << "]");
  CHECK(takes(automatic, begin + "Hello, <you>.\n"));
  CHECK(takes(automatic, called));
  const bool marked = !calls.writing.bare && !calls.form.channels;
  if (marked) {
    CHECK(takes(automatic, "So I call:\n" + called.substr(called.find(calls.writing.mark))));
    CHECK_FALSE(takes(automatic, "Look: " + calls.writing.mark + " is a mark"));
    choice.kind = Kind::None;
    const auto none = calls.hold(v, choice);
    CHECK(takes(none, "Hello, <you>.\n"));
    CHECK_FALSE(takes(none, called));
  }
}

std::vector<Template> real_templates() {
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(test_data() / "templates"))
    if (entry.path().extension() == ".jinja") paths.insert(entry.path());
  std::vector<Template> out;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    out.push_back({path.stem(), std::string(std::istreambuf_iterator<char>(file), {})});
    REQUIRE(out.back().form.parse(out.back().text).ok());
  }
  return out;
}

#define AROUND(call)                                                                          \
  "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{% for c in m.tool_calls or [] %}" \
  "{% set f = c.function %}" call "{% endfor %}</s>\n{% endfor %}"
#define EACH(text) "{% for k, v in f.arguments.items() %}" text "{% endfor %}"
#define VALUE "{{ v if v is string else v | tojson }}"
constexpr const char* kOwnTemplates[] = {
    AROUND(
        "<tool_call>\n{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}\n</tool_call>"),
    AROUND("<tool_call>\n<function={{ f.name }}>\n" EACH("<parameter={{ k }}>\n" VALUE
                                                         "\n</parameter>\n") "</function>\n</tool_call>"),
    AROUND("<tool_call>{{ f.name }}\n" EACH("<arg_key>{{ k }}</arg_key>\n<arg_value>" VALUE
                                            "</arg_value>\n") "</tool_call>"),
    AROUND(
        "<|tool_call_start|>[{{ f.name }}(" EACH("{{ ', ' if not loop.first }}{{ k }}={{ ('\"' ~ v ~ '\"') "
                                                 "if v is string else v | string }}") ")]"
                                                                                      "<|tool_call_end|>"),
    AROUND("[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}"),
    AROUND("<|tool_calls|><|tool_call:begin|>{{ c.id }}<|tool_call:name|>{{ f.name }}<|tool_call:args|>"
           "{{ f.arguments | tojson }}<|tool_call:end|><|calls|>"),
};

}  // namespace

TEST_CASE("calls that a grammar allows are calls of the tools", "[chat][calls][grammar]") {
  const Vocabulary v;
  for (const char* text : kOwnTemplates) {
    Template own{"own", text};
    REQUIRE(own.form.parse(own.text).ok());
    INFO(text);
    const Calls calls(own);
    REQUIRE(calls.writing.known);
    check_walks(v, calls);
    check_choices(v, calls);
  }
}

TEST_CASE("calls that a grammar allows are calls in the form of real templates", "[chat][calls][grammar]") {
  const Vocabulary v;
  size_t known = 0;
  std::string unknown;
  for (const Template& of : real_templates()) {
    INFO(of.name);
    const Calls calls(of);
    if (!calls.writing.known) {
      unknown += of.name + " ";
      continue;
    }
    ++known;
    check_walks(v, calls);
    check_choices(v, calls);
  }
  INFO("unknown: " << unknown);
  CHECK(known >= 40);
}
