// Tests: what stands after "is".
#include "text/jinja/library/library.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {
namespace {

using Check = bool (*)(const Value&);

// A test of the value alone.
template <Check Is>
Status plain(Run&, const Value& subject, const Arguments& arguments, bool* out) {
  GRETA_TRY(bind("the test", arguments, {}, 0, nullptr));
  *out = Is(subject);
  return {};
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_boolean(const Value& v) { return v.is_bool(); }
bool is_true(const Value& v) { return v.as_bool(); }
bool is_false(const Value& v) { return v.is_bool() && !v.as_bool(); }
bool is_integer(const Value& v) { return v.is_int(); }
bool is_float(const Value& v) { return v.is_float(); }
bool is_real(const Value& v) { return v.is_number() || v.is_bool(); }
bool is_string(const Value& v) { return v.is_string(); }
bool is_mapping(const Value& v) { return v.is_dict(); }
bool is_escaped(const Value& v) { return v.is_markup(); }
bool is_callable(const Value& v) {
  if (v.is_undefined()) return true;  // it can be called, to fail
  const bool object = v.kind() == Kind::Object;
  return object && !special_of(v, Special::Namespace) && !special_of(v, Special::Cycler);
}
bool is_iterable(const Value& v) {
  return sequence_of(v) || v.is_dict() || v.is_string() || v.is_undefined() || special_of(v, Special::Loop);
}
bool is_sequence(const Value& v) {
  const Sequence* sequence = sequence_of(v);
  if (!sequence) return v.is_dict() || v.is_string() || v.is_undefined();
  return v.kind() != Kind::Iterable || sequence->flavor == Flavor::Range;
}

Status case_test(Run& run, const Value& subject, CharClass wanted, CharClass other, bool* out) {
  std::string text;
  GRETA_TRY(to_text(run, subject, &text));
  bool some = false, none = true;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const CharClass c = char_class(point.code);
    some |= c == wanted;
    none &= c != other && c != CharClass::Title;
    at += point.bytes;
  }
  *out = some && none;
  return {};
}

Status lower(Run& run, const Value& subject, const Arguments& arguments, bool* out) {
  GRETA_TRY(bind("lower", arguments, {}, 0, nullptr));
  return case_test(run, subject, CharClass::Lower, CharClass::Upper, out);
}
Status upper(Run& run, const Value& subject, const Arguments& arguments, bool* out) {
  GRETA_TRY(bind("upper", arguments, {}, 0, nullptr));
  return case_test(run, subject, CharClass::Upper, CharClass::Lower, out);
}

Status remainder(Run& run, const Value& subject, const Value& divisor, int64_t wanted, bool* out) {
  Value rest;
  if (subject.is_string()) return fail(Code::Argument, "a string is no number");
  GRETA_TRY(operate(run, "%", subject, divisor, &rest));
  return equal(run, rest, Value(wanted), out);
}
Status odd(Run& run, const Value& subject, const Arguments& arguments, bool* out) {
  GRETA_TRY(bind("odd", arguments, {}, 0, nullptr));
  return remainder(run, subject, Value(2), 1, out);
}
Status even(Run& run, const Value& subject, const Arguments& arguments, bool* out) {
  GRETA_TRY(bind("even", arguments, {}, 0, nullptr));
  return remainder(run, subject, Value(2), 0, out);
}
Status divisibleby(Run& run, const Value& subject, const Arguments& arguments, bool* out) {
  const Value* slot;
  GRETA_TRY(bind("divisibleby", arguments, {"num"}, 1, &slot));
  return remainder(run, subject, *slot, 0, out);
}

template <Comparison How>
Status compared(Run& run, const Value& subject, const Arguments& arguments, bool* out) {
  const Value* slot;
  GRETA_TRY(bind("the test", arguments, {"other"}, 1, &slot));
  return holds(run, How, subject, *slot, out);
}

Status sameas(Run& run, const Value& subject, const Arguments& arguments, bool* out) {
  const Value* slot;
  GRETA_TRY(bind("sameas", arguments, {"other"}, 1, &slot));
  if (subject.kind() != slot->kind()) return *out = false, Status{};
  if (subject.object() && !subject.is_string()) return *out = subject.object() == slot->object(), Status{};
  return equal(run, subject, *slot, out);
}

Status want_hashable(const Value& name) {
  if (is_hashable(name) || name.is_undefined()) return {};
  return fail(Code::Argument, "%s is no name", name.type_name());
}

Status is_filter(Run&, const Value& subject, const Arguments& arguments, bool* out) {
  GRETA_TRY(bind("filter", arguments, {}, 0, nullptr));
  GRETA_TRY(want_hashable(subject));
  *out = subject.is_string() && find_filter(subject.as_string());
  return {};
}
Status is_test(Run&, const Value& subject, const Arguments& arguments, bool* out) {
  GRETA_TRY(bind("test", arguments, {}, 0, nullptr));
  GRETA_TRY(want_hashable(subject));
  *out = subject.is_string() && find_test(subject.as_string());
  return {};
}

struct TestRow {
  const char* name;
  Predicate predicate;
};
constexpr TestRow kTests[] = {
    {"defined", plain<is_defined>},
    {"undefined", plain<is_undefined>},
    {"none", plain<is_none>},
    {"boolean", plain<is_boolean>},
    {"true", plain<is_true>},
    {"false", plain<is_false>},
    {"integer", plain<is_integer>},
    {"float", plain<is_float>},
    {"number", plain<is_real>},
    {"string", plain<is_string>},
    {"mapping", plain<is_mapping>},
    {"sequence", plain<is_sequence>},
    {"iterable", plain<is_iterable>},
    {"callable", plain<is_callable>},
    {"escaped", plain<is_escaped>},
    {"lower", lower},
    {"upper", upper},
    {"odd", odd},
    {"even", even},
    {"divisibleby", divisibleby},
    {"sameas", sameas},
    {"filter", is_filter},
    {"test", is_test},
    {"in", compared<Comparison::In>},
    {"eq", compared<Comparison::Equal>},
    {"==", compared<Comparison::Equal>},
    {"equalto", compared<Comparison::Equal>},
    {"ne", compared<Comparison::NotEqual>},
    {"!=", compared<Comparison::NotEqual>},
    {"lt", compared<Comparison::Less>},
    {"<", compared<Comparison::Less>},
    {"lessthan", compared<Comparison::Less>},
    {"le", compared<Comparison::LessEqual>},
    {"<=", compared<Comparison::LessEqual>},
    {"gt", compared<Comparison::Greater>},
    {">", compared<Comparison::Greater>},
    {"greaterthan", compared<Comparison::Greater>},
    {"ge", compared<Comparison::GreaterEqual>},
    {">=", compared<Comparison::GreaterEqual>},
};

}  // namespace

Predicate find_test(std::string_view name) {
  for (const TestRow& row : kTests)
    if (name == row.name) return row.predicate;
  return nullptr;
}

}  // namespace greta::jinja
