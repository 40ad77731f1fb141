#include "text/chat/tool_grammar.h"

#include <algorithm>

#include "text/chat/text.h"
#include "text/grammar/build.h"
#include "text/grammar/json_schema.h"

namespace greta {

using jinja::Value;
using Sequence = GrammarBuilder::Sequence;
using Choice = ToolChoice::Kind;
using namespace std::string_view_literals;

namespace {

constexpr uint32_t kMostBlanks = 8;     // before calls
constexpr size_t kMaxProperties = 256;  // of a tool, where each argument is written by itself

class CallsGrammar {
 public:
  CallsGrammar(const CallWriting& writing, const ToolList& tools, const ToolChoice& choice,
               const Tokenizer& tokenizer, const Log& log)
      : writing_(writing), tools_(tools), choice_(choice), tokenizer_(tokenizer), log_(log) {}

  Status make(const ChatForm& form, const Grammar* held, std::shared_ptr<const Grammar>* out) {
    std::vector<Sequence> ways;
    const bool calls = choice_.kind != Choice::None, must = choice_.kind >= Choice::Required;
    uint32_t root = 0;
    GRETA_TRY(builder_.add_rule(&root));
    Sequence said;
    if (held) GRETA_TRY(builder_.append_grammar(*held, &said));
    if (form.channels) {
      GRETA_TRY(define_channels(root, said, held != nullptr, calls, must));
      return builder_.finish(root, out);
    }
    if (calls) {
      GRETA_TRY(append_blanks(&ways.emplace_back()));
      GRETA_TRY(append_calls(writing_.head, &ways.back()));
    }
    if (held && !must) ways.push_back(said);
    if (!held && !must) GRETA_TRY(append_free(calls, &ways));
    builder_.define(root, std::move(ways));
    return builder_.finish(root, out);
  }

 private:
  // ---- texts ----

  Status append_blanks(Sequence* out) {
    Sequence blank;
    GRETA_TRY(builder_.append_class({{' ', ' '}, {'\t', '\n'}, {'\r', '\r'}}, false, &blank));
    return builder_.repeat(blank, 0, kMostBlanks, out);
  }

  int32_t control_token(std::string_view text) const {
    const int32_t token = tokenizer_.find(text);
    return token != kNoToken && tokenizer_.vocab().kind(uint32_t(token)) == TokenKind::Control ? token
                                                                                               : kNoToken;
  }

  // The longest control token with which the text begins, as marks are written: between brackets.
  size_t control_at(std::string_view text, int32_t* token) const {
    *token = kNoToken;
    if (text.empty() || (text[0] != '<' && text[0] != '[')) return 0;
    const char close = text[0] == '<' ? '>' : ']';
    const std::string_view within = text.substr(0, 64);
    for (size_t at = within.rfind(close); at != within.npos && at > 0; at = within.rfind(close, at - 1)) {
      *token = control_token(within.substr(0, at + 1));
      if (*token != kNoToken) return at + 1;
    }
    return 0;
  }

  Status append_control(std::string_view text, int32_t token, Sequence* out) {
    uint32_t rule = 0;
    GRETA_TRY(builder_.add_rule(&rule));
    Sequence spelled;
    GRETA_TRY(builder_.append_text(text, &spelled));
    builder_.define(rule, {std::move(spelled), {{GrammarElement::Token, uint32_t(token)}}});
    out->push_back({GrammarElement::Rule, rule});
    return {};
  }

  Status append_any(char which, Sequence* out) {
    Sequence one;
    if (which == kAnyNumber) {
      GRETA_TRY(builder_.append_class({{'0', '9'}}, false, &one));
      return builder_.repeat(one, 1, 3, out);
    }
    GRETA_TRY(builder_.append_class({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, false, &one));
    return builder_.repeat(one, 9, 9, out);
  }

  // A stretch of the form: its control tokens may come as tokens.
  Status append_form(std::string_view text, Sequence* out) {
    size_t plain = 0;
    for (size_t at = 0; at <= text.size();) {
      int32_t token = kNoToken;
      const bool any = at < text.size() && (text[at] == kAnyId || text[at] == kAnyNumber);
      const size_t bytes = any ? 1 : control_at(text.substr(at), &token);
      if (!bytes && at < text.size()) {
        ++at;
        continue;
      }
      GRETA_TRY(builder_.append_text(text.substr(plain, at - plain), out));
      if (any) GRETA_TRY(append_any(text[at], out));
      if (!any && bytes) GRETA_TRY(append_control(text.substr(at, bytes), token, out));
      at += std::max<size_t>(bytes, 1);
      plain = at;
    }
    return {};
  }

  // ---- the answer ----

  // Text without a mark of calls, or text and then calls from their mark on.
  Status append_free(bool calls, std::vector<Sequence>* ways) {
    if (writing_.bare) {  // what does not begin as a call is text
      Sequence text;
      GRETA_TRY(append_blanks(&text));
      uint32_t rest = 0;
      GRETA_TRY(builder_.add_rule(&rest));
      Sequence solid;
      GRETA_TRY(builder_.append_class({{'{', '{'}, {' ', ' '}, {'\t', '\n'}, {'\r', '\r'}}, true, &solid));
      Sequence any;
      GRETA_TRY(builder_.append_class({}, true, &any));
      GRETA_TRY(builder_.repeat(any, 0, GrammarBuilder::kNoLimit, &solid));
      builder_.define(rest, {std::move(solid), {}});
      text.push_back({GrammarElement::Rule, rest});
      ways->push_back(std::move(text));
      return {};
    }
    const int32_t token = control_token(writing_.mark);
    GRETA_TRY(builder_.append_without(writing_.mark, &ways->emplace_back()));
    if (!calls) return {};
    Sequence called;
    GRETA_TRY(builder_.append_until(writing_.mark, token, &called));
    GRETA_TRY(append_calls(std::string_view(writing_.head).substr(writing_.mark.size()), &called));
    ways->push_back(std::move(called));
    return {};
  }

  // gpt-oss: <|channel|>analysis<|message|>...<|end|><|start|>assistant, any number of times, and then the
  // final message or a call, whose header goes on behind "assistant".
  Status define_channels(uint32_t root, const Sequence& said, bool held, bool calls, bool must) {
    Sequence thought;
    GRETA_TRY(append_form("<|channel|>analysis<|message|>", &thought));
    GRETA_TRY(builder_.append_until("<|end|>", control_token("<|end|>"), &thought));
    GRETA_TRY(append_form("<|start|>assistant", &thought));
    thought.push_back({GrammarElement::Rule, root});
    std::vector<Sequence> ways{std::move(thought)};
    if (calls) GRETA_TRY(append_calls(writing_.head, &ways.emplace_back()));
    if (!must) {
      Sequence& final = ways.emplace_back();
      GRETA_TRY(append_form("<|channel|>final<|message|>", &final));
      if (held) final.insert(final.end(), said.begin(), said.end());
      Sequence any;
      GRETA_TRY(builder_.append_class({}, true, &any));
      if (!held) GRETA_TRY(builder_.repeat(any, 0, GrammarBuilder::kNoLimit, &final));
    }
    builder_.define(root, std::move(ways));
    return {};
  }

  // ---- calls ----

  Status append_calls(std::string_view head, Sequence* out) {
    uint32_t named = 0;
    GRETA_TRY(builder_.add_rule(&named));
    std::vector<Sequence> tools;
    const bool more = writing_.more && !choice_.one_call;
    for (const Value& tool : tools_.value().items()) {
      const Value& function = tool["function"];
      const std::string_view name = function["name"].as_string();
      if (choice_.kind == Choice::Name && name != choice_.name) continue;
      strict_ = choice_.strict || function["strict"].is_true();
      Sequence& call = tools.emplace_back();
      GRETA_TRY(builder_.append_text(name, &call));
      GRETA_TRY(within(writing_.json ? append_object(function["parameters"], named, more, &call)
                                     : append_arguments(function["parameters"], named, more, &call),
                       "tool %s", Quoted(name).c_str()));
    }
    builder_.define(named, std::move(tools));
    GRETA_TRY(append_form(head, out));
    out->push_back({GrammarElement::Rule, named});
    return {};
  }

  // What comes behind the arguments of a call: the end, or a further call.
  Status append_end(std::string_view tail, std::string_view between, uint32_t named, bool more,
                    Sequence* out) {
    uint32_t rule = 0;
    GRETA_TRY(builder_.add_rule(&rule));
    std::vector<Sequence> ways(1);
    GRETA_TRY(append_form(tail, &ways[0]));
    if (more) {
      GRETA_TRY(append_form(between, &ways.emplace_back()));
      ways.back().push_back({GrammarElement::Rule, named});
    }
    builder_.define(rule, std::move(ways));
    out->push_back({GrammarElement::Rule, rule});
    return {};
  }

  // Appends the JSON that a schema allows. A schema that cannot be held allows every object or value, unless
  // it is strict.
  Status append_schema(const Value& schema, const char* otherwise, Sequence* out) {
    std::shared_ptr<const Grammar> grammar;
    Status status = parse_json_schema(jinja::to_json(schema), {.strict = strict_, .log = log_}, &grammar);
    if (!status.ok()) {
      if (strict_) return status;
      log_(LogLevel::Warning, "the schema of a tool is not held: %s", error_text());
      GRETA_TRY(parse_json_schema(otherwise, {}, &grammar));
    }
    return builder_.append_grammar(*grammar, out);
  }

  Status append_object(const Value& parameters, uint32_t named, bool more, Sequence* out) {
    Value schema = Value::dict();
    for (const Value::Entry& entry : parameters.entries()) schema.set(entry.key, entry.value);
    if (!schema.find("type")) schema.set("type"sv, "object");
    GRETA_TRY(append_form(writing_.before_json, out));
    GRETA_TRY(append_schema(schema, R"({"type": "object"})", out));
    return append_end(writing_.tail, writing_.between, named, more, out);
  }

  // Each argument by itself, in the order of the schema. Rules begin[i] and go_on[i] stand for what may come
  // from property i on, where nothing or something has come before it.
  Status append_arguments(const Value& parameters, uint32_t named, bool more, Sequence* out) {
    const std::span<const Value::Entry> properties = parameters["properties"].entries();
    if (properties.size() > kMaxProperties)
      return fail(Code::Argument, "%zu parameters, at most %zu are held", properties.size(), kMaxProperties);
    std::vector<uint32_t> begin(properties.size() + 1), go_on(properties.size() + 1);
    for (uint32_t& rule : begin) GRETA_TRY(builder_.add_rule(&rule));
    for (uint32_t& rule : go_on) GRETA_TRY(builder_.add_rule(&rule));
    for (size_t i = 0; i < properties.size(); ++i) {
      const std::string_view key = properties[i].key.as_string();
      const std::span<const Value> required = parameters["required"].items();
      const bool must =
          std::ranges::any_of(required, [&](const Value& name) { return name.as_string() == key; });
      uint32_t pair = 0;
      GRETA_TRY(builder_.add_rule(&pair));
      GRETA_TRY(within(define_pair(pair, key, properties[i].value, parameters), "parameter %s",
                       Quoted(key).c_str()));
      for (const bool first : {true, false}) {
        std::vector<Sequence> ways(1);
        GRETA_TRY(append_form(first ? writing_.before_keys : writing_.next_key, &ways[0]));
        ways[0].push_back({GrammarElement::Rule, pair});
        ways[0].push_back({GrammarElement::Rule, go_on[i + 1]});
        if (!must) ways.push_back({{GrammarElement::Rule, (first ? begin : go_on)[i + 1]}});
        builder_.define((first ? begin : go_on)[i], std::move(ways));
      }
    }
    Sequence none, some;
    GRETA_TRY(append_end(writing_.none_tail, writing_.none_between, named, more, &none));
    GRETA_TRY(append_end(writing_.tail, writing_.between, named, more, &some));
    builder_.define(begin.back(), {std::move(none)});
    builder_.define(go_on.back(), {std::move(some)});
    out->push_back({GrammarElement::Rule, begin[0]});
    return {};
  }

  // ---- a value by itself ----

  Status define_pair(uint32_t rule, std::string_view key, const Value& schema, const Value& root) {
    std::vector<Sequence> ways;
    const auto begin = [&](CallWriting::Kind kind) {
      Sequence& way = ways.emplace_back();
      GRETA_TRY(builder_.append_text(key, &way));
      return append_form(writing_.assign[kind], &way);
    };
    const std::vector<Value> choices = choices_of(schema);
    for (const Value& value : choices) {
      const CallWriting::Kind kind = value.is_string() ? CallWriting::Text : CallWriting::Other;
      GRETA_TRY(begin(kind));
      GRETA_TRY(
          builder_.append_text(value.is_string() ? value.as_string() : jinja::to_json(value), &ways.back()));
      GRETA_TRY(append_form(writing_.close[kind], &ways.back()));
    }
    bool text = false;
    Value other;
    if (choices.empty()) GRETA_TRY(split_types(schema, root, &text, &other));
    if (text) {
      GRETA_TRY(begin(CallWriting::Text));
      GRETA_TRY(append_free_text(&ways.back()));
    }
    if (!other.is_undefined()) {
      GRETA_TRY(begin(CallWriting::Other));
      GRETA_TRY(append_schema(other, "{}", &ways.back()));
      GRETA_TRY(append_form(writing_.close[CallWriting::Other], &ways.back()));
    }
    builder_.define(rule, std::move(ways));
    return {};
  }

  static std::vector<Value> choices_of(const Value& schema) {
    if (const Value* one = schema.find("const")) return {*one};
    const std::span<const Value> all = schema["enum"].items();
    return {all.begin(), all.end()};
  }

  // Whether the schema allows texts, and the schema of everything else that it allows.
  Status split_types(const Value& schema, const Value& root, bool* text, Value* other) const {
    Value types = Value::list();
    bool known = false;
    const auto note = [&](const Value& type) {
      known = true;
      if (type.as_string() == "string")
        *text = true;
      else
        types.push(type);
    };
    if (schema["type"].is_string()) note(schema["type"]);
    for (const Value& type : schema["type"].items()) note(type);
    if (!known) {
      if (strict_)
        return fail(Code::Unsupported, "a strict parameter that is written by itself needs a type");
      *text = true;
      return {};
    }
    if (*text && strict_)
      for (const char* word : {"pattern", "format", "minLength", "maxLength"})
        if (schema.find(word))
          return fail(Code::Unsupported, "%s is not held for a text that is written by itself", word);
    if (!types.size()) return {};
    *other = Value::dict();
    for (const Value::Entry& entry : schema.entries()) other->set(entry.key, entry.value);
    other->set("type"sv, types);
    for (const char* word : {"$defs", "definitions"})
      if (const Value* definitions = root.find(word)) other->set(std::string_view(word), *definitions);
    return {};
  }

  // A text and what closes it. Between quotes it is that of a programming language.
  Status append_free_text(Sequence* out) {
    const std::string& close = writing_.close[CallWriting::Text];
    if (close != "\"" && close != "'") {
      return builder_.append_until(close, control_token(close), out);
    }
    const uint32_t quote = uint32_t(uint8_t(close[0]));
    uint32_t character = 0;
    GRETA_TRY(builder_.add_rule(&character));
    Sequence plain, escaped;
    GRETA_TRY(
        builder_.append_class({{quote, quote}, {'\\', '\\'}, {'\n', '\n'}, {'\r', '\r'}}, true, &plain));
    GRETA_TRY(builder_.append_text("\\", &escaped));
    GRETA_TRY(builder_.append_class({{'n', 'n'}, {'t', 't'}, {'\\', '\\'}, {quote, quote}}, false, &escaped));
    builder_.define(character, {std::move(plain), std::move(escaped)});
    GRETA_TRY(builder_.repeat({{GrammarElement::Rule, character}}, 0, GrammarBuilder::kNoLimit, out));
    return builder_.append_text(close, out);
  }

  const CallWriting& writing_;
  const ToolList& tools_;
  const ToolChoice& choice_;
  const Tokenizer& tokenizer_;
  const Log& log_;
  GrammarBuilder builder_;
  bool strict_ = false;
};

}  // namespace

Status read_tool_choice(std::string_view text, const ToolList& tools, ToolChoice* out) {
  if (text.empty()) return {};
  out->kind = text == "none"       ? Choice::None
              : text == "auto"     ? Choice::Auto
              : text == "required" ? Choice::Required
                                   : Choice::Name;
  if (out->kind < Choice::Required) return {};
  if (tools.empty())
    return fail(Code::Argument, "tool_choice is %s, and there are no tools", Quoted(text).c_str());
  out->name = text;
  if (out->kind == Choice::Name && !tools.has(text))
    return fail(Code::Argument,
                "tool_choice is %s, which is no tool: expected none, auto, required or a name",
                Quoted(text).c_str());
  return {};
}

Status hold_calls(const ChatForm& form, const CallWriting& writing, const ToolList& tools,
                  const ToolChoice& choice, const Tokenizer& tokenizer, const Log& log,
                  std::shared_ptr<const Grammar>* grammar) {
  const bool must = choice.kind >= Choice::Required;
  if (choice.kind == Choice::Free || tools.empty()) return {};
  if (!writing.known) {
    if (must || choice.strict)
      return fail(Code::Unsupported, "the chat template does not show how the model calls tools");
    return {};
  }
  if (choice.kind == Choice::None && (*grammar || writing.bare || writing.mark.empty()) && !form.channels)
    return {};
  const std::shared_ptr<const Grammar> held = *grammar;
  return CallsGrammar(writing, tools, choice, tokenizer, log).make(form, held.get(), grammar);
}

}  // namespace greta
