// Arguments of calls that are hard to write: 68 sets of them, and the functions that are called.
#pragma once

namespace greta::test {

struct CallSet {
  const char* name;
  const char* arguments;  // a JSON object
  const char* function = "f";
};

// clang-format off
constexpr CallSet kCallSets[] = {
    // ---- types ----
    {"no arguments", R"({})"},
    {"text", R"({"s": "Rome"})"},
    {"whole number", R"({"n": 3})"},
    {"negative number", R"({"n": -17})"},
    {"large number", R"({"n": 9007199254740993})"},
    {"fraction", R"({"n": 1.5})"},
    {"fraction that is whole", R"({"n": 2.0})"},
    {"small fraction", R"({"n": 1e-07})"},
    {"true", R"({"b": true})"},
    {"false", R"({"b": false})"},
    {"null", R"({"x": null})"},
    {"empty text", R"({"s": ""})"},
    {"empty object", R"({"o": {}})"},
    {"empty list", R"({"l": []})"},
    {"several of different types", R"({"city": "Rome", "days": 3, "zip": "00100", "on": true, "off": null})"},
    // ---- nesting ----
    {"list of numbers", R"({"l": [1, 2.5, -3]})"},
    {"list of texts", R"({"l": ["a", "b c", ""]})"},
    {"list of everything", R"({"l": [1, "a", null, true, [2], {"k": false}]})"},
    {"object", R"({"o": {"k": "v", "n": 1}})"},
    {"object with null and booleans", R"({"o": {"k": null, "t": true, "f": false}})"},
    {"objects in a list", R"({"l": [{"k": "v"}, {"k": "w", "n": [1, 2]}]})"},
    {"deep", R"({"o": {"a": {"b": {"c": {"d": [[[1], "x"]]}}}}})"},
    {"texts with quotes, nested", R"({"o": {"k": "it's \"so\"", "l": ["'", "\""]}})"},
    {"texts with lines, nested", R"({"o": {"k": "a\nb\tc\\d"}})"},
    {"texts beyond ASCII, nested", R"({"o": {"k": "é日本🦫", "l": ["ß"]}})"},
    // ---- texts that look like something else ----
    {"text of a number", R"({"s": "42"})"},
    {"text of a fraction", R"({"s": "1.50"})"},
    {"text of true", R"({"s": "true"})"},
    {"text of null", R"({"s": "null"})"},
    {"text of None", R"({"s": "None"})"},
    {"text of an object", R"({"s": "{\"a\": 1}"})"},
    {"text of a list", R"({"s": "[1, 2]"})"},
    {"text in quotes", R"({"s": "\"quoted\""})"},
    {"text in single quotes", R"({"s": "'quoted'"})"},
    // ---- quotes and white space ----
    {"double quotes", R"({"s": "say \"yes\" now"})"},
    {"single quotes", R"({"s": "it's Ann's"})"},
    {"both quotes", R"({"s": "\"it's\", he said: 'no'"})"},
    {"backslashes", R"({"s": "C:\\new\\table\\"})"},
    {"lines", R"({"s": "a\nb\n\nc"})"},
    {"line end last", R"({"s": "a line\n"})"},
    {"line end first", R"({"s": "\na line"})"},
    {"line ends around", R"({"s": "\n\nx\n\n"})"},
    {"only a line end", R"({"s": "\n"})"},
    {"blanks around", R"({"s": "  x \t"})"},
    {"returns", R"({"s": "a\r\nb\r\n"})"},
    {"source text", R"({"code": "def f(x):\n    if x < 1 and x > -1:\n        return {\"a\": [x]}\n"})"},
    // ---- brackets, separators and marks ----
    {"brackets", R"({"s": "}{][)("})"},
    {"separators", R"({"s": "a, b=c; d: e, f=\"g\""})"},
    {"markup", R"({"s": "<a href=\"x\">b</a> &amp; <br/>"})"},
    {"marks of calls", R"({"s": "<tool_call> and </tool_call>"})"},
    {"marks of parameters", R"({"s": "a </parameter> b </function> c </invoke> d"})"},
    {"marks of values", R"({"s": "a </arg_value> b </arg_key> c"})"},
    {"marks of others", R"({"s": "[TOOL_CALLS] [ARGS] <|tool_call_end|> <|call|> <tool_call|> <|end|>"})"},
    {"marks of reasoning", R"({"s": "<think>a</think>b[THINK]c[/THINK]"})"},
    {"fence", R"({"s": "```json\n{}\n```"})"},
    // ---- Unicode ----
    {"letters beyond ASCII", R"({"s": "Ärger, naïve, Ωμέγα, жук"})"},
    {"Chinese", R"({"s": "北京天气，“好”"})"},
    {"emoji", R"({"s": "🦫👩‍👩‍👧 ok"})"},
    {"odd spaces", R"({"s": "a\u00a0b\u2028c\u200bd"})"},
    {"control characters", R"({"s": "a\u0001b\u007fc\u001b[0m"})"},
    // ---- names and keys ----
    {"key with a blank", R"({"Due Date": "2026-01-02", "n": 1})"},
    {"keys of queries", R"({"$filter": "a eq 1", "@type": "x", "a/b": "y"})"},
    {"key with separators", R"({"a:b": "x", "c=d": "y", "e,f": "z"})"},
    {"keys beyond ASCII", R"({"größe": "x", "名前": "y"})"},
    {"keys of digits", R"({"1": "x", "2.5": "y"})"},
    {"name with a dash", R"({"s": "x"})", "get-the_weather"},
    {"name with dots", R"({"s": "x"})", "files.v2.open"},
    {"name that begins with a digit", R"({"s": "x"})", "3d_render"},
};
// clang-format on
static_assert(sizeof kCallSets / sizeof *kCallSets == 68);

}  // namespace greta::test
