// Calls are written by chat templates and read back. What a template writes is what its model was trained
// to write, so every set of arguments must come back as it was, in one piece and one byte at a time.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
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
  return value.is_string()  ? "string"
         : value.is_bool()  ? "boolean"
         : value.is_none()  ? "null"
         : value.is_int()   ? "integer"
         : value.is_float() ? "number"
         : value.is_list()  ? "array"
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
  return Value::list(
      {dict({{"type", "function"},
             {"function",
              dict({{"name", set.function},
                    {"description", "d"},
                    {"parameters",
                     dict({{"type", "object"}, {"properties", properties}, {"$defs", definitions}})}})}})});
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
    size_t common =
        std::mismatch(asked.begin(), asked.end(), whole.begin(), whole.end()).first - asked.begin();
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
  ChatParser parser(
      form, tools, prompt,
      {[&](std::string_view text) { return out.said += text, true; }, [](std::string_view) { return true; },
       [&](ChatCall call) { return out.calls.push_back(std::move(call)), true; }});
  for (size_t at = 0; at < answer.size(); at += piece) CHECK(parser.push(answer.substr(at, piece)));
  CHECK(parser.finish());
  return out;
}

// What came of calls while they were written.
struct PiecesReading : Reading {
  size_t begun = 0, most_pieces = 0;
  std::string fault;  // "" if the pieces of each call are those of the whole one
};

PiecesReading read_in_pieces(const ChatForm& form, const ToolList& tools, std::string_view prompt,
                             std::string_view answer, size_t piece) {
  PiecesReading out;
  ChatCall open;
  size_t pieces = 0;
  bool is_open = false;
  ChatSink sink;
  sink.text = [&](std::string_view text) { return out.said += text, true; };
  sink.reasoning = [](std::string_view) { return true; };
  sink.pieces.begin = [&](const ChatCall& call) {
    if (is_open) out.fault += "two are open; ";
    open = {call.id, call.name, ""};
    pieces = 0;
    ++out.begun;
    return is_open = true;
  };
  sink.pieces.argument = [&](std::string_view text) {
    if (!is_open || !is_valid_utf8(text)) out.fault += "a piece beside calls; ";
    open.arguments += text;
    out.most_pieces = std::max(out.most_pieces, ++pieces);
    return true;
  };
  sink.call = [&](ChatCall call) {
    if (is_open && (open.name != call.name || open.id != call.id || open.arguments != call.arguments))
      out.fault += open.arguments + " in place of " + call.arguments + "; ";
    is_open = false;
    return out.calls.push_back(std::move(call)), true;
  };
  ChatParser parser(form, tools, prompt, std::move(sink));
  for (size_t at = 0; at < answer.size(); at += piece) CHECK(parser.push(answer.substr(at, piece)));
  CHECK(parser.finish());
  if (is_open) out.fault += "one stays open";
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

Writer make_writer(std::string name, std::string text) {
  Writer writer;
  writer.name = std::move(name);
  writer.text = std::move(text);
  REQUIRE(writer.form.parse(writer.text).ok());
  return writer;
}

ChatForm form_of(const Writer& writer) {
  ChatForm form = chat_form(writer.text);
  form.style = find_call_style([&](const Value& messages, const Value& tools, std::string* out) {
    return writer.render(messages, tools, false, out);
  });
  return form;
}

// ---- templates of our own, one for each way to write calls ------------------------------------

constexpr const char* kBefore =
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{% for c in m.tool_calls or [] %}"
    "{% set f = c.function %}";
constexpr const char* kAfter =
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}";

struct OwnTemplate {
  const char* name;
  const char* call;
  const char* macros = "";
};
#define EACH_ARGUMENT(text) "{% for k, v in f.arguments.items() %}" text "{% endfor %}"
#define PYTHON_VALUE "{{ v if v is string else v | string }}"
#define JSON_VALUE "{{ v if v is string else v | tojson }}"
constexpr OwnTemplate kOwnTemplates[] = {
    {"JSON",
     "<tool_call>\n{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}\n</tool_call>"},
    {"tags and lines, Python's values",
     "<tool_call>\n<function={{ f.name }}>\n" EACH_ARGUMENT("<parameter={{ k }}>\n" PYTHON_VALUE
                                                            "\n</parameter>\n") "</function>\n</tool_call>"},
    {"tags, Python's values",
     "<seed:tool_call><function={{ f.name }}>" EACH_ARGUMENT("<parameter={{ k }}>" PYTHON_VALUE
                                                             "</parameter>") "</function></seed:tool_call>"},
    {"tags with attributes",
     "<minimax:tool_call><invoke name=\"{{ f.name }}\">" EACH_ARGUMENT(
         "<parameter name=\"{{ k }}\">" JSON_VALUE "</parameter>") "</invoke></minimax:tool_call>"},
    {"tags with types",
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"{{ f.name }}\">\n" EACH_ARGUMENT(
         "<｜DSML｜parameter name=\"{{ k }}\" string=\"{{ 'true' if v is string else 'false' }}\">" JSON_VALUE
         "</｜DSML｜parameter>\n") "</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
    {"keys and values",
     "<tool_call>{{ f.name }}\n" EACH_ARGUMENT("<arg_key>{{ k }}</arg_key>\n<arg_value>" JSON_VALUE
                                               "</arg_value>\n") "</tool_call>"},
    {"a program's call", "<|tool_call_start|>[{{ f.name }}(" EACH_ARGUMENT(
                             "{{ ', ' if not loop.first }}{{ k }}={{ (\"'\" ~ v ~ \"'\") if v is string else "
                             "v | string }}") ")]<|tool_call_end|>"},
    {"texts between marks",
     "<|tool_call>call:{{ f.name ~ '{' }}" EACH_ARGUMENT(
         "{{ ',' if not loop.first }}{{ k }}:{{ w(v) }}") "}<tool_call|>",
     "{% macro w(v) %}{% if v is string %}<|\"|>{{ v }}<|\"|>{% elif v is mapping %}{{ '{' }}"
     "{% for k, i in v.items() %}{{ ',' if not loop.first }}{{ k }}:{{ w(i) }}{% endfor %}}"
     "{% elif v is sequence %}[{% for i in v %}{{ ',' if not loop.first }}{{ w(i) }}{% endfor %}]"
     "{% else %}{{ v | tojson }}{% endif %}{% endmacro %}"},
    {"a name and JSON", "[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}"},
    {"an id, a name and JSON",
     "<|tool_calls|><|tool_call:begin|>{{ c.id }}<|tool_call:name|>{{ f.name }}<|tool_call:args|>"
     "{{ f.arguments | tojson }}<|tool_call:end|><|calls|>"},
    {"a name for a key", "<|tools_prefix|>[{\"{{ f.name }}\": {{ f.arguments | tojson }}}]<|tools_suffix|>"},
    {"channels",
     "<|start|>assistant<|channel|>commentary to=functions.{{ f.name }} <|constrain|>json<|message|>"
     "{{ f.arguments | tojson }}<|call|>"},
};

std::vector<Writer> own_writers() {
  std::vector<Writer> out;
  for (const OwnTemplate& own : kOwnTemplates) {
    out.push_back(make_writer(own.name, std::string(own.macros) + kBefore + own.call + kAfter));
    REQUIRE(find_way(&out.back()));
  }
  return out;
}

std::vector<Writer> real_writers() {
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data() / "templates"))
    if (entry.path().extension() == ".jinja") paths.insert(entry.path());
  std::vector<Writer> out;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    Writer writer = make_writer(path.stem(), std::string(std::istreambuf_iterator<char>(file), {}));
    if (find_way(&writer)) out.push_back(std::move(writer));
  }
  return out;
}

// Templates whose form of calls is not looked for.
constexpr std::string_view kUnreadForms[] = {
    "meetkai-functionary-medium-v3.2",  // a name alone on a line, then JSON; the prompt has the mark
};

// Returns the number of calls that came back, whole and cut.
size_t count_returning(const Writer& writer) {
  const ChatForm form = form_of(writer);
  const Value shown = tools_for({"", "{}"}, "type");  // some templates refuse a few types
  size_t returning = 0;
  for (const test::CallSet& set : test::kCallSets) {
    std::string prompt, answer;
    REQUIRE(writer.write(set, shown, &prompt, &answer));
    ToolList tools;
    REQUIRE(tools.parse(jinja::to_json(tools_for(set, "type"))).ok());
    INFO(writer.name << ", " << set.name << ": " << answer);
    const std::string whole = difference(read_answer(form, tools, prompt, answer, answer.size()), set);
    CHECK(whole == "");
    CHECK(difference(read_answer(form, tools, prompt, answer, 1), set) == whole);
    returning += whole.empty();
  }
  return returning;
}

// Counts the calls that came in pieces. In pieces or not, the calls are the same.
size_t count_in_pieces(const Writer& writer) {
  const ChatForm form = form_of(writer);
  const Value shown = tools_for({"", "{}"}, "type");
  size_t begun = 0;
  for (const test::CallSet& set : test::kCallSets) {
    std::string prompt, answer;
    REQUIRE(writer.write(set, shown, &prompt, &answer));
    ToolList tools;
    REQUIRE(tools.parse(jinja::to_json(tools_for(set, "type"))).ok());
    INFO(writer.name << ", " << set.name << ": " << answer);
    const Reading plain = read_answer(form, tools, prompt, answer, 1);
    size_t pieces = 0;
    for (const size_t bytes : {answer.size(), size_t(7), size_t(1)}) {
      const PiecesReading reading = read_in_pieces(form, tools, prompt, answer, bytes);
      CHECK(reading.fault == "");
      CHECK(difference(reading, set) == difference(plain, set));
      REQUIRE(reading.calls.size() == plain.calls.size());
      CHECK(reading.calls[0].id == plain.calls[0].id);
      CHECK(reading.calls[0].arguments == plain.calls[0].arguments);
      pieces = reading.begun == 1 ? reading.most_pieces : 0;
    }
    // One byte at a time, each character that is certain is a piece.
    if (pieces) CHECK(pieces >= std::min<size_t>(3, plain.calls[0].arguments.size() / 2));
    begun += pieces > 0;
  }
  return begun;
}

// Where a schema allows null beside texts, these texts are read as null.
bool reads_as_null(const test::CallSet& set, std::string_view way) {
  return (way == "types" || way == "anyOf" || way == "oneOf") &&
         (std::string_view(set.name) == "text of null" || std::string_view(set.name) == "text of None");
}

}  // namespace

TEST_CASE("calls of every form come back as they were written", "[chat][calls]") {
  for (const Writer& writer : own_writers()) CHECK(count_returning(writer) == std::size(test::kCallSets));
}

TEST_CASE("calls that real templates write come back", "[chat][calls]") {
  size_t templates = 0, returning = 0;
  for (const Writer& writer : real_writers()) {
    if (std::ranges::find(kUnreadForms, writer.name) != std::end(kUnreadForms)) continue;
    returning += count_returning(writer);
    ++templates;
  }
  CHECK(templates >= 35);
  CHECK(returning == templates * std::size(test::kCallSets));
}

TEST_CASE("arguments come in pieces where they are JSON", "[chat][calls]") {
  size_t forms = 0;
  for (const Writer& writer : own_writers()) {
    const size_t begun = count_in_pieces(writer);
    const bool json = writer.name.find("JSON") != writer.name.npos || writer.name == "channels";
    INFO(writer.name);
    CHECK(begun == (json ? std::size(test::kCallSets) : 0));
    forms += json;
  }
  CHECK(forms == 4);
}

TEST_CASE("arguments of real templates come in pieces", "[chat][calls]") {
  size_t in_pieces = 0;
  for (const Writer& writer : real_writers()) {
    if (std::ranges::find(kUnreadForms, writer.name) != std::end(kUnreadForms)) continue;
    const size_t begun = count_in_pieces(writer);
    INFO(writer.name);
    CHECK((begun == 0 || begun == std::size(test::kCallSets)));
    in_pieces += begun > 0;
    UNSCOPED_INFO(writer.name << (begun ? ": in pieces" : ": whole"));
  }
  CHECK(in_pieces >= 20);
}

TEST_CASE("arguments come back however their schema names the type", "[chat][calls]") {
  const Value shown = tools_for({"", "{}"}, "type");
  size_t nulls = 0;
  for (const Writer& writer : own_writers()) {
    const ChatForm form = form_of(writer);
    for (const test::CallSet& set : test::kCallSets)
      for (const std::string_view way : kSchemaWays) {
        std::string prompt, answer;
        REQUIRE(writer.write(set, shown, &prompt, &answer));
        ToolList tools;
        REQUIRE(tools.parse(jinja::to_json(tools_for(set, way))).ok());
        INFO(writer.name << ", " << set.name << ", " << way << ": " << answer);
        const std::string found = difference(read_answer(form, tools, prompt, answer, answer.size()), set);
        if (reads_as_null(set, way) && !found.empty())
          ++nulls;
        else
          CHECK(found == "");
      }
  }
  CHECK(nulls <= 24);  // four forms of tags, three ways, two texts
}

TEST_CASE("a text is what the schema allows", "[chat][calls]") {
  struct Row {
    const char *schema, *text, *value;
  };
  constexpr Row kRows[] = {
      {R"({"type": "string"})", "42", R"("42")"},
      {R"({"type": ["string", "null"]})", "1.50", R"("1.50")"},
      {R"({"type": ["string", "null"]})", "None", "null"},
      {R"({"type": ["string", "integer"]})", "42", "42"},
      {R"({"type": ["string", "integer"]})", "042", R"("042")"},
      {R"({"type": ["string", "number"]})", "1.50", R"("1.50")"},
      {R"({"type": "number"})", "1.50", "1.5"},
      {R"({"type": "integer"})", " 7\n", "7"},
      {R"({"type": "integer"})", "seven", R"("seven")"},
      {R"({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})", "[1]",
       R"("[1]")"},
      {R"({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})", "['a']",
       R"(["a"])"},
      {R"({"enum": ["1", "2"]})", "1", R"("1")"},
      {R"({"enum": ["auto", 5]})", "5", "5"},
      {R"({"enum": ["a", "b"]})", "\"a\"", R"("a")"},
      {R"({"enum": ["a", "b"]})", "\na\n", R"("a")"},
      {R"({"const": "null"})", "null", R"("null")"},
      {R"({"$ref": "#/$defs/N"})", "{\"a\": 1}", R"("{\"a\": 1}")"},
      {R"({"$ref": "#/$defs/Loop"})", "3", "3"},
      {R"({"$ref": "#/nowhere"})", "3", "3"},
      {R"({"type": "string", "nullable": true})", "null", "null"},
      {R"({"type": "boolean"})", "True", "true"},
      {R"({"type": "object"})", "{'k': None, 'l': (1, 'it\\'s')}", R"({"k": null, "l": [1, "it's"]})"},
      {R"({})", "True", R"("True")"},
      {R"({})", "{\"a\":1}", R"({"a": 1})"},
      {R"({})", "\"quoted\"", R"("\"quoted\"")"},
      {R"(true)", "null", "null"},
  };
  for (const Row& row : kRows) {
    INFO(row.schema << " " << row.text);
    const std::string json = R"([{"name": "f", "parameters": {"properties": {"p": )" +
                             std::string(row.schema) +
                             R"(}, "$defs": {"N": {"type": "string"}, "Loop": {"anyOf": [
                              {"$ref": "#/$defs/Loop"}, {"$ref": "#/$defs/Loop"}]}}}}])";
    ToolList tools;
    REQUIRE(tools.parse(json).ok());
    CHECK(jinja::to_json(tools.read("f", "p", row.text)) == row.value);
  }
}
