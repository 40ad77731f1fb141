// Tests, which stand after "is".
#include "text/jinja/library/library.h"

namespace greta::jinja {
namespace {

// A test of the value alone.
template <auto Is>
Status plain(Call& call) {
  return call.give(bool(Is(call.self)));
}

bool is_callable(const Value& v) {
  if (v.is_undefined()) return true;  // it can be called, which then fails
  return v.kind() == Kind::Object && !special_of(v, Special::Namespace) && !special_of(v, Special::Cycler);
}
bool is_iterable(const Value& v) {
  return sequence_of(v) || v.is_dict() || v.is_string() || v.is_undefined() || special_of(v, Special::Loop);
}
bool is_sequence(const Value& v) {
  const Sequence* sequence = sequence_of(v);
  if (!sequence) return v.is_dict() || v.is_string() || v.is_undefined();
  return v.kind() != Kind::Iterable || sequence->flavor == Flavor::Range;
}

template <CharClass Wanted, CharClass Other>
Status case_test(Call& call) {
  std::string text;
  GRETA_TRY(call.self_text(&text));
  return call.give(is_in_case(text, Wanted, Other));
}

Status has_remainder(Call& call, const Value& divisor, int64_t wanted) {
  Value rest;
  bool yes;
  if (call.self.is_string()) return fail(Code::Argument, "a string is no number");
  GRETA_TRY(operate(call.run, "%", call.self, divisor, &rest));
  GRETA_TRY(equal(call.run, rest, Value(wanted), &yes));
  return call.give(yes);
}
Status odd(Call& call) { return has_remainder(call, Value(2), 1); }
Status even(Call& call) { return has_remainder(call, Value(2), 0); }
Status divisibleby(Call& call) { return has_remainder(call, *call[0], 0); }

template <Comparison How>
Status compared(Call& call) {
  bool yes;
  GRETA_TRY(holds(call.run, How, call.self, *call[0], &yes));
  return call.give(yes);
}

Status sameas(Call& call) {
  const Value &self = call.self, &other = *call[0];
  if (self.kind() != other.kind()) return call.give(false);
  if (self.object() && !self.is_string()) return call.give(self.object() == other.object());
  return compared<Comparison::Equal>(call);
}

// Returns true if a filter or a test has this name.
template <const FunctionRow* (*Find)(std::string_view)>
Status is_name_of(Call& call) {
  const Value& name = call.self;
  if (!is_hashable(name) && !name.is_undefined())
    return fail(Code::Argument, "%s is no name", name.type_name());
  return call.give(name.is_string() && Find(name.as_string()));
}

template <Comparison How>
constexpr FunctionRow comparing(const char* name) {
  return {name, compared<How>, 1, {{"other"}}};
}

constexpr FunctionRow kTests[] = {
    {"defined", plain<[](const Value& v) { return !v.is_undefined(); }>},
    {"undefined", plain<[](const Value& v) { return v.is_undefined(); }>},
    {"none", plain<[](const Value& v) { return v.is_none(); }>},
    {"boolean", plain<[](const Value& v) { return v.is_bool(); }>},
    {"true", plain<[](const Value& v) { return v.as_bool(); }>},
    {"false", plain<[](const Value& v) { return v.is_bool() && !v.as_bool(); }>},
    {"integer", plain<[](const Value& v) { return v.is_int(); }>},
    {"float", plain<[](const Value& v) { return v.is_float(); }>},
    {"number", plain<[](const Value& v) { return is_numeric(v); }>},
    {"string", plain<[](const Value& v) { return v.is_string(); }>},
    {"mapping", plain<[](const Value& v) { return v.is_dict(); }>},
    {"escaped", plain<[](const Value& v) { return v.is_markup(); }>},
    {"sequence", plain<is_sequence>},
    {"iterable", plain<is_iterable>},
    {"callable", plain<is_callable>},
    {"lower", case_test<CharClass::Lower, CharClass::Upper>},
    {"upper", case_test<CharClass::Upper, CharClass::Lower>},
    {"odd", odd},
    {"even", even},
    {"divisibleby", divisibleby, 1, {{"num"}}},
    {"sameas", sameas, 1, {{"other"}}},
    {"filter", is_name_of<find_filter>},
    {"test", is_name_of<find_test>},
    comparing<Comparison::In>("in"),
    comparing<Comparison::Equal>("eq"),
    comparing<Comparison::Equal>("=="),
    comparing<Comparison::Equal>("equalto"),
    comparing<Comparison::NotEqual>("ne"),
    comparing<Comparison::NotEqual>("!="),
    comparing<Comparison::Less>("lt"),
    comparing<Comparison::Less>("<"),
    comparing<Comparison::Less>("lessthan"),
    comparing<Comparison::LessEqual>("le"),
    comparing<Comparison::LessEqual>("<="),
    comparing<Comparison::Greater>("gt"),
    comparing<Comparison::Greater>(">"),
    comparing<Comparison::Greater>("greaterthan"),
    comparing<Comparison::GreaterEqual>("ge"),
    comparing<Comparison::GreaterEqual>(">="),
};

}  // namespace

const FunctionRow* find_test(std::string_view name) { return find_row(kTests, name); }

}  // namespace greta::jinja
