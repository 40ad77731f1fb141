#include "text/chat/answer_grammar.h"

#include <algorithm>

#include "text/grammar/build.h"

namespace greta {

using Sequence = GrammarBuilder::Sequence;
using Kind = ChatSection::Kind;

namespace {

constexpr uint32_t kMaxBlanks = 8;  // between the parts of an answer

uint32_t only_byte(const ByteSet& set) {
  uint32_t byte = 0;
  while (!set[byte]) ++byte;
  return byte;
}

// Returns true if an alternative of the grammar has a mark of answers in it, as text or as a token.
bool writes_marks(const Grammar& grammar, const Tokenizer& tokenizer) {
  const std::vector<std::string_view> marks = answer_marks();
  std::string text;
  const auto found = [&] {
    const bool any = std::ranges::any_of(marks, [&](auto mark) { return text.find(mark) != text.npos; });
    text.clear();
    return any;
  };
  for (const GrammarElement& e : grammar.elements) {
    const bool plain = e.kind == GrammarElement::Bytes && grammar.sets[e.value].count() == 1;
    if (!plain && found()) return true;
    if (plain) text += char(only_byte(grammar.sets[e.value]));
    if (e.kind != GrammarElement::Token) continue;
    text = tokenizer.vocab().text(e.value);
    if (found()) return true;
  }
  return false;
}

class AnswerGrammar {
 public:
  AnswerGrammar(const ChatForm& form, const Tokenizer& tokenizer) : form_(form), tokenizer_(tokenizer) {}

  Status make(const ChatSection* opened, const Grammar& held, std::shared_ptr<const Grammar>* out) {
    uint32_t root = 0, answer = 0;
    GRETA_TRY(builder_.add_rule(&root));
    GRETA_TRY(builder_.add_rule(&answer));
    Sequence text;
    GRETA_TRY(builder_.append_grammar(held, &text));
    GRETA_TRY(define_answer(answer, text));
    const GrammarElement then{GrammarElement::Rule, answer};
    GRETA_TRY(form_.channels ? define_channels(root, text) : define_reasoning(root, opened, then));
    return builder_.finish(root, out);
  }

 private:
  // The control token with this text; kNoToken if the vocabulary spells the text.
  int32_t control_token(std::string_view mark) const {
    const int32_t token = tokenizer_.find(mark);
    return token != kNoToken && tokenizer_.vocab().kind(uint32_t(token)) == TokenKind::Control ? token
                                                                                               : kNoToken;
  }

  // Appends a mark, by its bytes or as a control token.
  Status append_mark(std::string_view mark, Sequence* out) {
    const int32_t token = control_token(mark);
    if (token == kNoToken) return builder_.append_text(mark, out);
    uint32_t rule = 0;
    GRETA_TRY(builder_.add_rule(&rule));
    Sequence text;
    GRETA_TRY(builder_.append_text(mark, &text));
    builder_.define(rule, {std::move(text), {{GrammarElement::Token, uint32_t(token)}}});
    out->push_back({GrammarElement::Rule, rule});
    return {};
  }

  Status append_free(std::string_view end, Sequence* out) {
    return builder_.append_until(end, control_token(end), out);
  }

  Status append_blanks(Sequence* out) {
    Sequence blank;
    GRETA_TRY(builder_.append_class({{' ', ' '}, {'\t', '\n'}, {'\r', '\r'}}, false, &blank));
    return builder_.repeat(blank, 0, kMaxBlanks, out);
  }

  // The text, behind the mark of answers where the family has one.
  Status define_answer(uint32_t rule, const Sequence& text) {
    std::vector<Sequence> ways{text};
    for (const ChatSection* section : form_.sections) {
      if (section->kind != Kind::Answer) continue;
      Sequence& marked = ways.emplace_back();
      GRETA_TRY(append_mark(section->open, &marked));
      GRETA_TRY(append_blanks(&marked));
      marked.insert(marked.end(), text.begin(), text.end());
    }
    builder_.define(rule, std::move(ways));
    return {};
  }

  // The rest of reasoning that is open, or reasoning that the model may open, and then the answer.
  Status define_reasoning(uint32_t rule, const ChatSection* opened, GrammarElement answer) {
    std::vector<Sequence> ways;
    if (!opened) ways.push_back({answer});
    for (const ChatSection* section : form_.sections) {
      if (section->kind != Kind::Reasoning || (opened && section != opened)) continue;
      Sequence& way = ways.emplace_back();
      if (!opened) {
        GRETA_TRY(append_blanks(&way));
        GRETA_TRY(append_mark(section->open, &way));
      }
      GRETA_TRY(append_free(section->close, &way));
      GRETA_TRY(append_blanks(&way));
      way.push_back(answer);
    }
    builder_.define(rule, std::move(ways));
    return {};
  }

  // <|channel|>analysis<|message|>...<|end|><|start|>assistant, any number of times, and then the final
  // message.
  Status define_channels(uint32_t rule, const Sequence& text) {
    Sequence thought, final, typed;
    GRETA_TRY(append_mark("<|channel|>", &thought));
    final = thought;
    GRETA_TRY(builder_.append_text("analysis", &thought));
    GRETA_TRY(append_mark("<|message|>", &thought));
    GRETA_TRY(append_free("<|end|>", &thought));
    GRETA_TRY(append_mark("<|start|>", &thought));
    GRETA_TRY(builder_.append_text("assistant", &thought));
    thought.push_back({GrammarElement::Rule, rule});
    GRETA_TRY(builder_.append_text("final", &final));
    typed = final;
    GRETA_TRY(append_blanks(&typed));
    GRETA_TRY(append_mark("<|constrain|>", &typed));
    GRETA_TRY(builder_.append_text("json", &typed));
    for (Sequence* way : {&final, &typed}) {
      GRETA_TRY(append_mark("<|message|>", way));
      way->insert(way->end(), text.begin(), text.end());
    }
    builder_.define(rule, {std::move(thought), std::move(final), std::move(typed)});
    return {};
  }

  const ChatForm& form_;
  const Tokenizer& tokenizer_;
  GrammarBuilder builder_;
};

}  // namespace

Status hold_behind_reasoning(const ChatForm& form, const Tokenizer& tokenizer, std::string_view prompt,
                             std::shared_ptr<const Grammar>* grammar, bool calls) {
  if (calls && form.channels) return {};
  if (!*grammar || (!form.channels && (!form.reasons() || form.closed_by(prompt)))) return {};
  if (!calls && !(*grammar)->is_schema && writes_marks(**grammar, tokenizer)) return {};
  const std::shared_ptr<const Grammar> held = *grammar;
  return AnswerGrammar(form, tokenizer).make(form.opened_by(prompt), *held, grammar);
}

}  // namespace greta
