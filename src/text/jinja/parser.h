// The parser makes nodes of tokens. Statements are in parser.cpp, expressions in parser_expressions.cpp.
//
// It calls itself for what is nested. kMaxBrackets levels of that must fit a small stack, so functions that
// need a large frame and do not call back (messages, names) are not inlined.
#pragma once
#include <initializer_list>

#include "text/jinja/lexer.h"
#include "text/jinja/syntax.h"

namespace greta::jinja {

class Parser {
 public:
  Parser(std::vector<Token>&& tokens, Program* program) : tokens_(std::move(tokens)), program_(*program) {}
  Status parse();

 private:
  using Words = std::initializer_list<const char*>;

  // ---- statements ----
  Status statements(Words ends, std::vector<Node*>* out);
  Status body(Words ends, std::vector<Node*>* out);  // the end of the tag, then statements
  Status statement(Node** out);
  [[gnu::noinline]] Status unknown_tag() const;
  [[gnu::noinline]] Status missing(Words ends) const;
  Status parse_if(Node** out);
  Status parse_for(Node** out);
  Status parse_set(Node** out);
  Status parse_macro(Node** out);
  Status parse_call_block(Node** out);
  Status parse_filter_block(Node** out);
  Status parse_with(Node** out);
  Status parse_generation(Node** out);
  Status parse_jump(Node** out);
  Status signature(Node* macro);
  Status own_body(const char* end, Node* node);
  Status target(bool with_namespace, bool until_in, Node** out);
  Status target_part(bool with_namespace, Node** out);
  Status target_name(Node** out);

  // ---- expressions ----
  Status tuple(bool with_condition, bool in_brackets, Words ends, Node** out);
  Status expression(Node** out) { return condition(out); }
  Status condition(Node** out);
  enum Level : uint8_t { kOr, kAnd, kNot, kComparison, kSum, kConcat, kProduct, kPower };  // weakest first
  struct Operator {
    const char* text;
    Level level;
    Form form;
    Comparison meaning = Comparison::Equal;  // of Form::Compare
  };
  const Operator* operator_now() const;
  Status operation(uint32_t least, Node** out);
  Status unary(bool with_filters, Node** out);
  Status primary(Node** out);
  [[gnu::noinline]] Status atom(Node** out);
  Status list(Node** out);
  Status dict(Node** out);
  Status postfix(Node** node);
  Status filters(Node** node);
  Status subscript(Node** node);
  Status subscript_index(Node** out);
  Status call(Node** node);
  Status arguments(Node* node);
  Status filter(Node** node);
  Status test(Node** node);
  Status dotted_name(std::string* out);

  // ---- nodes ----
  Node* make(Form form, uint32_t line);
  Status finish(Node* node);  // sets the height, once the node's children are in place
  Status nest();              // goes one level deeper into the parser's own recursion
  struct Nested {             // goes back at the end of a scope
    explicit Nested(Parser* parser) : parser_(*parser) {}
    ~Nested() { --parser_.depth_; }
    Parser& parser_;
  };

  // ---- tokens ----
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool skip_op(std::string_view op) { return now().is_op(op) ? (next(), true) : false; }
  bool skip_name(std::string_view name) { return now().is_name(name) ? (next(), true) : false; }
  bool at_name(Words names) const;
  [[gnu::noinline]] Status expect_op(const char* op);
  Status expect_name(std::string* out);
  Status expect(TokenType type, const char* what);
  [[gnu::noinline]] Status unexpected(const char* expected) const;

  std::vector<Token> tokens_;
  Program& program_;
  size_t at_ = 0;
  uint32_t depth_ = 0, loops_ = 0;
};

}  // namespace greta::jinja
