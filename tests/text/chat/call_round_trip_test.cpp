// Calls are written by chat templates and read back. What a template writes is what its model was trained
// to write, so every set of arguments must come back as it was, in one piece and one byte at a time.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "support/test_data.h"
#include "text/chat/call_sets.h"
#include "text/chat/parser.h"
#include "text/chat/text.h"

using namespace greta;
using jinja::Value;
using namespace std::string_view_literals;

namespace {

Value json(std::string_view text) {
  Value value;
  REQUIRE(jinja::parse_json(text, &value).ok());
  return value;
}

std::string sorted_json(const Value& value) {
  jinja::JsonStyle style;
  style.sort_keys = true;
  std::string out;
  REQUIRE(jinja::to_json(value, style, &out).ok());
  return out;
}

Value dict(std::initializer_list<std::pair<std::string_view, Value>> entries) {
  Value out = Value::dict();
  for (const auto& [key, value] : entries) out.set(key, value);
  return out;
}

// ---- tools ------------------------------------------------------------------------------------

const char* type_of(const Value& value) {
  return value.is_string() ? "string"
         : value.is_bool() ? "boolean"
         : value.is_none() ? "null"
         : value.is_int()  ? "integer"
         : value.is_float() ? "number"
         : value.is_list() ? "array"
                           : "object";
}

// Ways to say in a schema which type a value has.
constexpr const char* kSchemaWays[] = {"type", "types", "anyOf", "oneOf", "allOf", "$ref", "const", "enum"};

Value schema_of(const Value& value, std::string_view way) {
  const Value plain = dict({{"type", type_of(value)}}), null = dict({{"type", "null"}});
  if (way == "types") return dict({{"type", Value::list({type_of(value), "null"})}});
  if (way == "anyOf" || way == "oneOf") {
    if (value.is_none()) return dict({{way, Value::list({plain, dict({{"type", "integer"}})})}});
    return dict({{way, Value::list({plain, null})}});
  }
  if (way == "allOf") return dict({{way, Value::list({plain, dict({{"description", "d"}})})}});
  if (way == "$ref") return dict({{way, "#/$defs/" + std::string(type_of(value))}});
  if (way == "const") return dict({{way, value}});
  if (way == "enum") return dict({{way, Value::list({"another", value})}});
  return plain;
}

Value tools_for(const test::CallSet& set, std::string_view way) {
  Value properties = Value::dict(), definitions = Value::dict();
  for (const char* type : {"string", "boolean", "null", "integer", "number", "array", "object"})
    definitions.set(std::string_view(type), dict({{"type", type}}));
  const Value arguments = json(set.arguments);
  for (const Value::Entry& entry : arguments.entries())
    properties.set(entry.key, schema_of(entry.value, way));
  return Value::list({dict({{"type", "function"},
                            {"function", dict({{"name", set.function},
                                               {"description", "d"},
                                               {"parameters", dict({{"type", "object"},
                                                                    {"properties", properties},
                                                                    {"$defs", definitions}})}})}})});
}

// ---- writing ----------------------------------------------------------------------------------

// What templates ask of a message with calls differs.
struct WritingWay {
  bool text_arguments, null_content;
};
constexpr WritingWay kWritingWays[] = {{false, false}, {false, true}, {true, false}, {true, true}};

struct Writer {
  std::string name;
  jinja::Template form;
  std::string text;
  const WritingWay* way = nullptr;

  bool render(const Value& messages, const Value& tools, bool prompt, std::string* out) const {
    out->clear();
    return form
        .render(dict({{"messages", messages},
                      {"tools", tools},
                      {"add_generation_prompt", prompt},
                      {"bos_token", "<s>"},
                      {"eos_token", "</s>"},
                      {"functions", "[]"},
                      {"datetime", "today"}}),
                1721952000, {}, out)
        .ok();
  }

  // Writes a call. `*prompt` is what the model continues, and `*answer` what it is to write.
  bool write(const test::CallSet& set, const Value& tools, std::string* prompt, std::string* answer) const {
    const Value question = dict({{"role", "user"}, {"content", "hi"}});
    const Value arguments =
        way->text_arguments ? Value(jinja::to_json(json(set.arguments))) : json(set.arguments);
    const Value call = dict({{"id", "abcdefghi"},
                             {"type", "function"},
                             {"function", dict({{"name", set.function}, {"arguments", arguments}})}});
    const Value message = dict({{"role", "assistant"},
                                {"content", way->null_content ? Value(nullptr) : Value("")},
                                {"tool_calls", Value::list({call})}});
    std::string asked, whole;
    if (!render(Value::list({question}), tools, true, &asked)) return false;
    if (!render(Value::list({question, message}), tools, false, &whole)) return false;
    size_t common = std::mismatch(asked.begin(), asked.end(), whole.begin(), whole.end()).first - asked.begin();
    // A prompt that goes on in another way is cut before what differs.
    if (common < asked.size()) common = whole.find_last_of("\n>]", common ? common - 1 : 0) + 1;
    *prompt = whole.substr(0, common);
    *answer = without_end(whole.substr(common));
    return true;
  }

  // An answer ends before the first token that ends it.
  static std::string without_end(std::string_view text) {
    for (const std::string_view end :
         {"</s>"sv, "<|im_end|>"sv, "<|eot_id|>"sv, "<|eom_id|>"sv, "<|end_of_text|>"sv, "<turn|>"sv,
          "<|tool_response>"sv, "<｜end▁of▁sentence｜>"sv, "<|END_OF_TURN_TOKEN|>"sv, "[e~["sv,
          "<SPECIAL_12>"sv, "<seed:eos>"sv})
      text = text.substr(0, text.find(end));
    return std::string(text);
  }
};

// Finds out how the template has to be asked for a call. Returns false if it writes none.
bool find_way(Writer* writer) {
  const test::CallSet probe = {"probe", R"({"key": "a text"})", "probing"};
  for (const WritingWay& way : kWritingWays) {
    writer->way = &way;
    std::string prompt, answer;
    if (writer->write(probe, tools_for(probe, "type"), &prompt, &answer) &&
        answer.find("probing") != answer.npos && answer.find("a text") != answer.npos)
      return true;
  }
  return false;
}

// ---- reading ----------------------------------------------------------------------------------

// What came of an answer: the calls, and what is said beside them.
struct Reading {
  std::vector<ChatCall> calls;
  std::string said;
};

Reading read_answer(const ChatForm& form, const ToolList& tools, std::string_view prompt,
                    std::string_view answer, size_t piece) {
  Reading out;
  ChatParser parser(form, tools, prompt,
                    {[&](std::string_view text) { return out.said += text, true; },
                     [](std::string_view) { return true; },
                     [&](ChatCall call) { return out.calls.push_back(std::move(call)), true; }});
  for (size_t at = 0; at < answer.size(); at += piece) CHECK(parser.push(answer.substr(at, piece)));
  CHECK(parser.finish());
  return out;
}

// Returns "" if the call came back, else what came.
std::string difference(const Reading& reading, const test::CallSet& set) {
  Value arguments;
  if (reading.calls.size() == 1 && reading.said.empty() && reading.calls[0].name == set.function &&
      jinja::parse_json(reading.calls[0].arguments, &arguments).ok() &&
      sorted_json(arguments) == sorted_json(json(set.arguments)))
    return {};
  std::string out = "said [" + reading.said + "]";
  for (const ChatCall& call : reading.calls) out += ", called " + call.name + " " + call.arguments;
  return out;
}

std::vector<Writer> real_writers() {
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data() / "templates"))
    if (entry.path().extension() == ".jinja") paths.insert(entry.path());
  std::vector<Writer> out;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    Writer writer;
    writer.name = path.stem();
    writer.text.assign(std::istreambuf_iterator<char>(file), {});
    REQUIRE(writer.form.parse(writer.text).ok());
    if (find_way(&writer)) out.push_back(std::move(writer));
  }
  return out;
}

}  // namespace

TEST_CASE("calls that real templates write come back", "[chat][calls]") {
  size_t good = 0, all = 0;
  for (const Writer& writer : real_writers()) {
    ChatForm form = chat_form(writer.text);
    form.style = find_call_style([&](const Value& messages, const Value& tools, std::string* out) {
      return writer.render(messages, tools, false, out);
    });
    size_t bad = 0;
    for (const test::CallSet& set : test::kCallSets) {
      const Value plain = tools_for(set, "type");
      const Value shown = tools_for({"", "{}"}, "type");
      std::string prompt, answer;
      if (!writer.write(set, shown, &prompt, &answer)) { printf("  %s: %s REFUSED %s\n", writer.name.c_str(), set.name, error_text()); ++bad; ++all; continue; }
      ToolList tools;
      REQUIRE(tools.parse(jinja::to_json(plain)).ok());
      const std::string whole = difference(read_answer(form, tools, prompt, answer, answer.size()), set);
      const std::string cut = difference(read_answer(form, tools, prompt, answer, 1), set);
      CHECK(whole == cut);
      ++all;
      if (whole.empty()) ++good; else { ++bad; if (getenv("SHOW")) printf("  %s: %s: [%s] gave %s\n", writer.name.c_str(), set.name, answer.c_str(), whole.c_str()); }
    }
    printf("%s: %zu bad, way %d %d\n", writer.name.c_str(), bad, writer.way->text_arguments, writer.way->null_content);
  }
  printf("%zu of %zu\n", good, all);
}
