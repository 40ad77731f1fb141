// The parsed form of a template: a tree of nodes, each with its line and its height.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace greta::jinja {

struct Node;
struct FunctionRow;  // of the library: a filter, a test, a method or a function

enum class Form : uint8_t {
  // Expressions. The comment says what the `kids` are, and after a semicolon what else is used.
  Constant,   // -
  Name,       // -
  Tuple,      // the items
  List,       // the items
  Dict,       // key, value, key, value ...
  Condition,  // test, then, else (may be null)
  Or,         // left, right
  And,        // left, right
  Not,        // operand
  Negative,   // operand
  Positive,   // operand
  Binary,     // left, right; text is + - * / // % **
  Concat,     // the operands
  Compare,    // the operands; `comparisons` stand between them
  Attribute,  // object; text
  Item,       // object, index
  Slice,      // start, stop, step (each may be null); only as an Item's index
  Call,       // callee; arguments
  Filter,     // operand (null at the head of a block's filter); text, arguments
  Test,       // operand; text, arguments
  // Statements
  Output,       // an expression to print
  Data,         // -; constant
  If,           // test; body, other
  For,          // iterable, filter (may be null); target, body, other
  Set,          // value; target
  SetBlock,     // filter (may be null); target, body
  Macro,        // -; parameters, body
  CallBlock,    // the call; parameters, body
  FilterBlock,  // the filter; body
  With,         // values; targets, body
  Scope,        // -; body
  Break,
  Continue,
  // Targets of assignments: Name, Tuple of targets, or
  NamespaceTarget,  // name, text
};

enum class Comparison : uint8_t { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, In, NotIn };

struct ArgumentNode {
  Node* value;
  std::string name;  // "" by position
  uint8_t stars;     // 1 for *value, 2 for **value
};

struct Parameter {
  uint32_t name;
  Node* otherwise;  // its default; null: undefined
};

struct Node {
  Form form;
  uint32_t line;
  uint32_t height = 1;
  uint32_t name = 0;  // of a variable
  std::string text;   // of an attribute, an operator, a filter
  Value constant;
  std::vector<Node*> kids;
  std::vector<Comparison> comparisons;
  std::vector<ArgumentNode> arguments;
  std::vector<Parameter> parameters;
  std::vector<Node*> targets;      // one, except in With
  std::vector<Node*> body, other;  // statements
  bool recursive = false;          // For
  bool is_chain = false;           // If: `other` is the elif that follows
  bool catches_varargs = false, catches_kwargs = false, uses_caller = false;  // Macro, CallBlock
  const FunctionRow* function = nullptr;  // Filter, Test: null if there is none of this name
};

// Names that the engine itself knows, by their ids.
enum KnownName : uint32_t { kLoop, kCaller, kVarargs, kKwargs, kKnownNames };

struct Program {
  std::deque<Node> nodes;  // a flat store, so that destroying it takes no recursion
  std::vector<Node*> body;
  std::vector<std::string> names;
  std::map<std::string, uint32_t, std::less<>> name_ids;

  uint32_t name_id(std::string_view name) {
    const auto found = name_ids.find(name);
    if (found != name_ids.end()) return found->second;
    names.emplace_back(name);
    return name_ids[names.back()] = uint32_t(names.size() - 1);
  }
};

// Trees higher than this are refused, since evaluating one takes as many calls within each other.
constexpr uint32_t kMaxHeight = 250;
// How deep brackets, blocks, signs and tighter operators may be nested, since the parser recurses there.
constexpr uint32_t kMaxBrackets = 200;

Status parse_program(std::string_view text, Program* out);

}  // namespace greta::jinja
