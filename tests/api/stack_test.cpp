// The functions of greta.h need at most 256 KiB of stack, also at the limits of what may be nested.
//
// A call runs on a thread whose stack was filled with a pattern before. What has lost the pattern was used.
// Only optimised builds are measured: others, and those with sanitizers, have frames several times as large.
// There the same calls run on a large stack, which the sanitizer watches.
#include <pthread.h>
#include <sys/mman.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "greta.h"
#include "places.h"
#include "support/gguf_writer.h"

using namespace greta::test;

namespace {

constexpr size_t kPromised = 256u << 10;
constexpr size_t kRoom = 2u << 20;    // more than the bound, to see by how much a call exceeds it
constexpr size_t kLarge = 64u << 20;  // for builds that may need more
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr bool kMeasured = false;
#elif defined(__has_feature)
constexpr bool kMeasured = !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
constexpr bool kMeasured = true;
#endif

using Call = std::function<void()>;

void* run_call(void* call) {
  (*static_cast<const Call*>(call))();
  return nullptr;
}

void run_thread(pthread_attr_t* attributes, const Call& call) {
  pthread_t thread;
  REQUIRE(pthread_create(&thread, attributes, run_call, const_cast<Call*>(&call)) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(attributes);
}

// Returns the bytes of stack that the call used, with what the system itself keeps there; 0 if nothing is
// measured.
size_t stack_used(const Call& call) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  if (!kMeasured) {
    REQUIRE(pthread_attr_setstacksize(&attributes, kLarge) == 0);
    run_thread(&attributes, call);
    return 0;
  }
  constexpr uint8_t kPaint = 0xA7;
  void* const stack = mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(stack != MAP_FAILED);
  memset(stack, kPaint, kRoom);
  REQUIRE(pthread_attr_setstack(&attributes, stack, kRoom) == 0);
  run_thread(&attributes, call);
  const auto* const bytes = static_cast<const uint8_t*>(stack);
  const size_t untouched =
      size_t(std::find_if(bytes, bytes + kRoom, [](uint8_t b) { return b != kPaint; }) - bytes);
  munmap(stack, kRoom);
  return kRoom - untouched;
}

// Measures the call, then runs it on a stack of the promised size.
void check_stack(const std::string& what, const Call& call) {
  const size_t used = stack_used(call);
  INFO(what << ": " << used << " bytes of stack, " << kPromised << " are promised");
  CHECK(used <= kPromised);
  if (!kMeasured || used > kPromised) return;
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, kPromised) == 0);
  run_thread(&attributes, call);
  if (getenv("GRETA_TEST_PRINT_STACK")) printf("%-44s %7zu bytes of stack\n", what.c_str(), used);
}

std::string repeated(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

std::string nested(std::string_view open, std::string_view core, std::string_view close, size_t levels) {
  return repeated(open, levels) + std::string(core) + repeated(close, levels);
}

template <class T>
T sized() {
  T value{};
  value.struct_size = sizeof value;
  return value;
}

greta_status render(const std::string& text, const std::string& context = "{}") {
  size_t bytes = 0;
  return greta_template_render(text.data(), text.size(), context.data(), context.size(), 0, nullptr, 0,
                               &bytes);
}

struct Nesting {
  const char *name, *open, *core, *close;
};

// Levels of nesting from far below every limit to beyond it.
constexpr size_t kLevels[] = {20,  40,  60,  80,  99,  120, 140, 160, 180,
                              198, 199, 200, 220, 248, 249, 250, 2000};

const Nesting kTemplates[] = {
    {"parentheses", "(", "1", ")"},
    {"tuples", "(1,", "1", ")"},
    {"lists", "[", "1", "]"},
    {"dicts", "{1:", "1", "}"},
    {"dict keys", "{", "1", ":1}"},
    {"not", "not ", "1", ""},
    {"signs", "-", "1", ""},
    {"sums", "1+", "1", ""},
    {"sums in parentheses", "(1+", "1", ")"},
    {"all operators", "(1 or 1 and not 1 == 1 + 1 ~ 1 * 1 ** -", "1", ")"},
    {"conditions", "1 if 1 else ", "1", ""},
    {"conditions in parentheses", "(1 if ", "1", " else 1)"},
    {"calls", "range(", "1", ")"},
    {"named arguments", "dict(x=", "1", ")"},
    {"indices", "x[", "1", "]"},
    {"slices", "x[1:", "1", "]"},
    {"filters", "1|default(", "1", ")"},
    {"chained filters", "", "1", "|string"},
    {"tests", "1 is eq(", "1", ")"},
    {"attributes", "", "x", ".x"},
};
const Nesting kBlocks[] = {
    {"if", "{% if 1 %}", "1", "{% endif %}"},
    {"else", "{% if 0 %}{% else %}", "1", "{% endif %}"},
    {"elif", "{% if 0 %}{% elif 1 %}", "1", "{% endif %}"},
    {"for", "{% for i in [1] %}", "1", "{% endfor %}"},
    {"for else", "{% for i in [] %}{% else %}", "1", "{% endfor %}"},
    {"macro", "{% macro m() %}", "1", "{% endmacro %}{{ m() }}"},
    {"call", "{% call m() %}", "1", "{% endcall %}"},
    {"set", "{% set x %}", "1", "{% endset %}"},
    {"filter", "{% filter upper %}", "1", "{% endfilter %}"},
    {"with", "{% with x = 1 %}", "1", "{% endwith %}"},
    {"generation", "{% generation %}", "1", "{% endgeneration %}"},
    {"targets", "{% for ", "x", " in [1] %}{% endfor %}"},
};

}  // namespace

TEST_CASE("stack: templates that nest are parsed and rendered in 256 KiB", "[api][stack]") {
  for (const Nesting& form : kTemplates)
    check_stack(std::string("template: ") + form.name, [&] {
      for (const size_t levels : kLevels) {
        const std::string expression = nested(form.open, form.core, form.close, levels);
        render("{{ " + expression + " }}");
        render("{% set x = " + expression + " %}");
        render("{% if 0 %}{{ " + expression + " }}{% endif %}");
      }
    });
  const std::string macro = "{% macro m() %}{{ caller() if caller }}{% endmacro %}";
  for (const Nesting& form : kBlocks)
    check_stack(std::string("template: blocks of ") + form.name, [&] {
      for (const size_t levels : kLevels) render(macro + nested(form.open, form.core, form.close, levels));
    });
  check_stack("template: brackets in blocks", [&] {
    for (const size_t levels : kLevels)
      render(nested("{% for i in [1] %}", "{{ " + nested("(", "1", ")", levels / 2) + " }}", "{% endfor %}",
                    levels / 2));
  });
  check_stack("template: targets in brackets", [&] {
    for (const size_t levels : kLevels) render("{% set " + nested("(", "x", ")", levels) + " = 1 %}");
  });
}

namespace {

// Templates that recurse N times and then evaluate LEAF.
const std::pair<const char*, const char*> kRecursions[] = {
    {"a macro", "{% macro m(n) %}{{ m(n - 1) if n else LEAF }}{% endmacro %}{{ m(N) }}"},
    {"a macro in blocks",
     "{% macro m(n) %}{% if n %}{% for i in [1] %}{{ 'x' ~ m(n - 1) }}{% endfor %}{% else %}{{ LEAF }}"
     "{% endif %}{% endmacro %}{{ m(N) }}"},
    {"a macro with a default", "{% macro m(n, x=m(n - 1) if n else LEAF) %}{{ x }}{% endmacro %}{{ m(N) }}"},
    {"a macro within an argument",
     "{% macro m(n) %}{{ [m(n - 1) if n else LEAF] | join }}{% endmacro %}{{ m(N) }}"},
    {"a macro in a dict", "{% macro m(n) %}{{ {n: m(n - 1)} if n else LEAF }}{% endmacro %}{{ m(N) }}"},
    {"call blocks",
     "{% macro w() %}{{ caller() }}{% endmacro %}"
     "{% macro m(n) %}{% if n %}{% call w() %}{{ m(n - 1) }}{% endcall %}{% else %}{{ LEAF }}{% endif %}{% "
     "endmacro %}"
     "{{ m(N) }}"},
    {"call blocks of itself",
     "{% macro m(n) %}{{ caller and '' }}{% if n %}{% call m(n - 1) %}{% endcall %}{% else %}{{ LEAF }}{% "
     "endif %}{% endmacro %}"
     "{{ m(N) }}"},
    {"filter blocks",
     "{% macro m(n) %}{% filter upper %}{{ m(n - 1) if n else LEAF }}{% endfilter %}{% endmacro %}{{ m(N) "
     "}}"},
    {"a recursive loop", "{% for i in [N] recursive %}{{ loop([i - 1]) if i else LEAF }}{% endfor %}"},
    {"the filter of a loop",
     "{% macro m(n) %}{% for i in [1] if m(n - 1) or n == 0 %}{{ LEAF if n == 0 }}{% endfor %}{% endmacro %}"
     "{{ m(N) }}"},
};
const std::pair<const char*, const char*> kLeaves[] = {
    {"printed", "deep"},
    {"as JSON", "deep | tojson"},
    {"compared", "deep == other"},
    {"ordered", "deep < other"},
    {"as JSON in lines", "deep | tojson(indent=1)"},
    {"sorted", "[deep, other] | sort"},
    {"unique", "[deep, other] | unique | list"},
    {"formatted", "'%s' % [deep]"},
    {"joined", "[deep] | join"},
    {"mapped", "[[1]] | map('first') | list"},
    {"looked for", "deep in [other]"},
};

std::string with(std::string text, const std::string& name, const std::string& value) {
  for (size_t at = 0; (at = text.find(name, at)) != text.npos; at += value.size())
    text.replace(at, name.size(), value);
  return text;
}

}  // namespace

TEST_CASE("stack: templates that recurse are rendered in 256 KiB", "[api][stack]") {
  const std::string deep = nested("[", "1", "]", 190);
  const std::string context = "{\"deep\":" + deep + ",\"other\":" + deep + "}";
  for (const auto& [recursion, text] : kRecursions)
    check_stack(std::string("template: ") + recursion, [&] {
      const auto status = [&](const char* leaf, int n) {
        return render(with(with(text, "LEAF", leaf), "N", std::to_string(n)), context);
      };
      int deepest = 1, beyond = 1000;  // recursions that are accepted and refused
      while (beyond - deepest > 1) {
        const int n = (deepest + beyond) / 2;
        (status("1", n) == GRETA_OK ? deepest : beyond) = n;
      }
      for (const auto& [leaf, expression] : kLeaves)
        for (int n = deepest - 2; n <= beyond; ++n) status(expression, n);
    });
  check_stack("template: deep values", [&] {
    for (const auto& [leaf, expression] : kLeaves) {
      for (const size_t levels : kLevels) {
        const std::string value = nested("{\"a\":", "1", "}", levels);
        render("{{ " + std::string(expression) + " }}", "{\"deep\":" + value + ",\"other\":" + value + "}");
      }
      // Values may be built deeper than they may be written in a template or in JSON.
      render(
          "{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}" +
          with(with("{% set deep = ns.x %}{% set other = [ns.x] %}{{ LEAF }}", "LEAF", expression), "N", ""));
    }
  });
}

namespace {

const Nesting kSchemas[] = {
    {"items", R"({"items":)", "{}", "}"},
    {"prefixItems", R"({"prefixItems":[)", "{}", "]}"},
    {"properties", R"({"properties":{"a":)", "{}", "}}"},
    {"additionalProperties", R"({"additionalProperties":)", "{}", "}"},
    {"anyOf", R"({"anyOf":[)", "{}", "]}"},
    {"anyOf beside type", R"({"type":"object","anyOf":[)", "{}", "]}"},
    {"allOf", R"({"allOf":[)", "{}", "]}"},
    {"allOf of two", R"({"allOf":[{"type":"object"},)", R"({"type":"object"})", "]}"},
    {"types", R"({"type":["array","null"],"items":)", "{}", "}"},
};

}  // namespace

namespace {

// A session of the bundled model on the CPU.
struct CpuSession {
  greta_runtime* runtime = nullptr;
  greta_model* model = nullptr;
  greta_session* session = nullptr;

  CpuSession() {
    auto on = sized<greta_runtime_options>();
    on.device = "cpu";
    auto source = sized<greta_source>();
    source.path = GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf";
    auto load = sized<greta_model_options>();
    load.source = &source;
    REQUIRE(greta_runtime_open(&on, &runtime) == GRETA_OK);
    REQUIRE(greta_model_open(runtime, &load, &model) == GRETA_OK);
    REQUIRE(greta_session_open(model, nullptr, &session) == GRETA_OK);
  }
  ~CpuSession() {
    greta_session_close(session);
    greta_model_close(model);
    greta_runtime_close(runtime);
  }
};

}  // namespace

TEST_CASE("stack: schemas and grammars that nest take 256 KiB", "[api][stack]") {
  const CpuSession cpu;
  greta_session* const session = cpu.session;
  for (const Nesting& form : kSchemas)
    check_stack(std::string("schema: ") + form.name, [&] {
      for (size_t levels = 10; levels < 75; ++levels)
        greta_session_json_schema(session, nested(form.open, form.core, form.close, levels).c_str());
    });
  check_stack("schema: what lies at the bottom", [&] {
    const std::string pattern = R"({"pattern":"^)" + nested("(", "[a-f]", ")", 60) + "$\"}";
    const std::string key =
        R"({"properties":{")" + std::string(250, 'k') + R"(":{}},"additionalProperties":{}})";
    const std::string numbers =
        R"({"type":"number","minimum":-9223372036854775808,"maximum":9223372036854775807})";
    for (size_t levels = 10; levels < 75; ++levels)
      for (const std::string& leaf : {pattern, key, numbers})
        greta_session_json_schema(session, nested(R"({"items":)", leaf, "}", levels).c_str());
  });
  check_stack("schema: references", [&] {
    for (const size_t links : {20u, 50u, 60u, 63u, 64u, 200u}) {
      std::string schema = R"({"$ref":"#/$defs/0","$defs":{)";
      for (size_t i = 0; i < links; ++i)
        schema +=
            "\"" + std::to_string(i) + R"(":{"items":{"$ref":"#/$defs/)" + std::to_string(i + 1) + "\"}},";
      greta_session_json_schema(session, (schema + "\"" + std::to_string(links) + R"(":{}}})").c_str());
    }
  });
  check_stack("grammar: parentheses", [&] {
    for (const size_t levels : kLevels)
      greta_session_grammar(session, ("root ::= " + nested("(", "\"a\"", ")*", levels)).c_str(), "root");
  });
  check_stack("grammar: a text that nests", [&] {
    greta_session_grammar(session, "root ::= \"(\" root \")\" | \"a\"", "root");
    greta_session_grammar(session, "root ::= (root2 root2?)+\nroot2 ::= [a-z] root2 | \"\"", "root");
  });
}

TEST_CASE("stack: JSON that nests takes 256 KiB", "[api][stack]") {
  const CpuSession cpu;
  greta_session* const session = cpu.session;
  check_stack("messages: JSON", [&] {
    greta_chat* chat = nullptr;
    auto options = sized<greta_chat_options>();
    greta_chat_open(session, &options, &chat);
    for (size_t levels = 100; levels < 300; levels += 3)
      for (const auto& [open, close] : {std::pair("[", "]"), {"{\"a\":", "}"}}) {
        const std::string json =
            R"({"role":"user","content":"x","more":)" + nested(open, "1", close, levels) + "}";
        const greta_message message = {nullptr, nullptr, json.c_str()};
        greta_chat_add(chat, &message);
        greta_message got = {};
        greta_chat_get(chat, 0, &got);
      }
    greta_chat_close(chat);
    render("{{ x }}", R"({"x":)" + nested("[", "1", "]", 100000) + "}");
  });
}

namespace {

int keep_bytes(void* to, const void* bytes, size_t count) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), count);
  return 0;
}

// All that a program does, from the runtime to the last token. With one thread, kernels run on this stack
// too.
struct Whole {
  greta_status worst = GRETA_OK;
  void note(greta_status status) {
    if (worst == GRETA_OK) worst = status;
  }
  void operator()() {
    auto on = sized<greta_runtime_options>();
    on.device = "cpu";
    on.threads = 1;
    greta_runtime* runtime = nullptr;
    greta_model* model = nullptr;
    greta_session* session = nullptr;
    greta_chat* chat = nullptr;
    auto source = sized<greta_source>();
    source.path = GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf";
    auto load = sized<greta_model_options>();
    load.source = &source;
    note(greta_runtime_open(&on, &runtime));
    note(greta_model_open(runtime, &load, &model));
    auto executor = sized<greta_executor_options>();
    executor.context = 512;
    auto open = sized<greta_session_options>();
    open.private_executor = &executor;
    note(greta_session_open(model, &open, &session));
    std::vector<int32_t> prompt(100, 300);
    auto generate = sized<greta_generate_options>();
    generate.max_tokens = 8;
    auto result = sized<greta_generate_result>();
    note(greta_session_generate(session, prompt.data(), prompt.size(), &generate, &result));
    std::string saved;
    note(greta_session_save(session, keep_bytes, &saved));
    auto from = sized<greta_source>();
    from.memory = saved.data();
    from.memory_bytes = saved.size();
    note(greta_session_restore(session, &from));
    note(greta_session_json_schema(session, R"({"type":"array","items":{"type":"array"},"minItems":2})"));
    note(greta_session_truncate(session, 0));
    note(greta_session_generate(session, prompt.data(), prompt.size(), &generate, &result));
    note(greta_session_json_schema(session, nullptr));
    note(greta_session_truncate(session, 0));
    auto options = sized<greta_chat_options>();
    note(greta_chat_open(session, &options, &chat));
    const greta_message message = {"user", "Tell me a story.", nullptr};
    note(greta_chat_add(chat, &message));
    auto answer = sized<greta_chat_answer_options>();
    answer.max_tokens = 8;
    auto told = sized<greta_chat_result>();
    note(greta_chat_answer(chat, &answer, &told));
    greta_chat_close(chat);
    greta_session_close(session);
    greta_model_close(model);
    greta_runtime_close(runtime);
  }
};

}  // namespace

TEST_CASE("stack: opening, generating, saving and chatting take 256 KiB", "[api][stack]") {
  Whole whole;
  check_stack("a whole program", [&] { whole(); });
  CHECK(whole.worst == GRETA_OK);
}

TEST_CASE("stack: a hostile file takes 256 KiB", "[api][stack]") {
  std::vector<std::string> files;
  for (const size_t levels : kLevels) {
    const std::string form = "{{ " + nested("(", "1", ")", levels) + " }}";
    files.push_back(spm_vocabulary({"a"}, {0.0f}).value("tokenizer.chat_template", form.c_str()).file());
    Bytes payload;
    for (size_t i = 0; i < levels; ++i) payload.u32(9).u64(1);
    files.push_back(GgufWriter().raw_value("deep", 9, payload.u32(4).u64(1).u32(7).data).file());
  }
  check_stack("a file's template and arrays", [&] {
    for (const std::string& bytes : files) {
      auto source = sized<greta_source>();
      source.memory = bytes.data();
      source.memory_bytes = bytes.size();
      greta_file* file = nullptr;
      greta_tokenizer* tokenizer = nullptr;
      if (greta_file_open(&source, &file) == GRETA_OK)
        greta_tokenizer_open(file, nullptr, nullptr, &tokenizer);
      greta_tokenizer_close(tokenizer);
      greta_file_close(file);
    }
  });
}
