// Calls of greta.h in any order, with odd numbers, texts and structs. What must hold: each gives a status of
// the header, with a sentence where it fails; nothing is an internal error or a lost device; and at the end a
// session that took no part writes what it wrote at the beginning.
//
// Input: for each call a byte that chooses it, then its arguments (api_tape.h).
#include <string>
#include <string_view>
#include <vector>

#include "api_tape.h"
#include "greta.h"
#include "places.h"

using greta::fuzz::Odd;
using greta::fuzz::Tape;

namespace {

constexpr int kMostCalls = 24, kMostTokens = 96;
constexpr uint32_t kContext = 128;
int tokens_left;  // of all generations of an input

bool ok(greta_status status) {
  if (status < GRETA_OK || status > GRETA_ERROR_BUSY || status == GRETA_ERROR_DEVICE) __builtin_trap();
  const std::string_view text = greta_error_text();
  if (status && text.empty()) __builtin_trap();
  if (status && text.find("internal error") != text.npos) __builtin_trap();
  return status == GRETA_OK;
}
void must(greta_status status) {
  if (status != GRETA_OK) __builtin_trap();
}

int on_token(void*, int32_t, const char* text, size_t bytes) {
  if (text[bytes] != 0) __builtin_trap();
  return --tokens_left < 0;
}
int on_prompt(void*, uint32_t done, uint32_t total) { return done > total; }
int on_event(void*, const greta_chat_event*) { return --tokens_left < 0; }
int on_write(void* user, const void* bytes, size_t count) {
  static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), count);
  return 0;
}
void on_stage(void*, const greta_profile_stage*) {}
int on_unused(void*, const greta_unused*) { return 0; }

struct Rig {
  greta_source source{};
  greta_runtime* runtime = nullptr;
  greta_file* file = nullptr;
  greta_model* model = nullptr;
  const greta_tokenizer* tokenizer = nullptr;
  greta_executor* executor = nullptr;  // of the input's sessions
  greta_session* witness = nullptr;    // takes no part
  std::string reference;
  std::vector<int32_t> tokens;
  std::vector<float> logits;

  Rig() {
    Odd<greta_runtime_options> runtime_options;
    runtime_options->device = "cpu";
    runtime_options->threads = 1;
    runtime_options->exact = 1;
    runtime_options->memory_limit_bytes = 64 << 20;
    must(greta_runtime_open(&runtime_options.value, &runtime));
    source.struct_size = sizeof source;
    source.path = GRETA_SOURCE_DIR "/tests/golden/architectures/llama-plain.gguf";
    must(greta_file_open(&source, &file));
    Odd<greta_model_options> load;
    load->source = &source;
    must(greta_model_open(runtime, &load.value, &model));
    tokenizer = greta_model_tokenizer(model);
    Odd<greta_executor_options> sizes;
    sizes->context = kContext, sizes->sequences = 4, sizes->cache_tokens = 256;
    must(greta_executor_open(model, &sizes.value, &executor));
    must(greta_session_open(model, nullptr, &witness));
    for (uint32_t i = 0; i < 512; ++i) tokens.push_back(int32_t(i * 7 % greta_tokenizer_size(tokenizer)));
    logits.resize(greta_tokenizer_size(tokenizer));
    reference = written();
  }
  std::string written() {
    std::string state;
    must(greta_session_truncate(witness, 0));
    must(greta_session_eval(witness, tokens.data(), 5, GRETA_ROWS_NONE, nullptr));
    must(greta_session_save(witness, on_write, &state));
    return state;
  }
};
Rig& rig() {
  static Rig& made = *new Rig;
  return made;
}

// What one input has opened.
struct Program {
  Tape tape;
  greta_session* sessions[4] = {};

  greta_session*& slot() { return sessions[tape.below(4)]; }
  // As many as there are, or a number that no context has.
  size_t count() {
    const uint64_t n = tape.number();
    return n <= rig().tokens.size() ? size_t(n) : size_t(n) | size_t(1) << 32;
  }
  ~Program() {
    for (greta_session* session : sessions) greta_session_close(session);
  }
};

void open_session(Program& p) {
  Odd<greta_executor_options> sizes;
  sizes->context = kContext, sizes->sequences = 2;
  Odd<greta_session_options> options;
  const uint32_t kind = p.tape.below(4);
  if (kind != 1) options->executor = rig().executor;
  if (kind == 1 || kind == 2) {
    options->private_executor = sizes.change(p.tape);
    if (kind == 2) options->private_executor = &sizes.value;
  }
  greta_session*& session = p.slot();
  greta_session_close(session);
  session = nullptr;
  ok(greta_session_open(rig().model,
                        options.change(p.tape),
                        &session));
}

void fork_session(Program& p) {
  greta_session*& from = p.slot();
  greta_session*& to = p.slot();
  if (&from == &to) return;
  greta_session_close(to);
  to = nullptr;
  ok(greta_session_fork(from, &to));
}

void close_session(Program& p) {
  greta_session*& session = p.slot();
  greta_session_close(session);
  session = nullptr;
}

void eval(Program& p) {
  const float* logits = nullptr;
  std::vector<int32_t> tokens = rig().tokens;
  if (p.tape.below(4) == 0) tokens[p.tape.below(16)] = int32_t(p.tape.number());
  greta_session* const session = p.slot();
  ok(greta_session_eval(session, tokens.data(), p.count(), greta_rows(p.tape.below(4)),
                        p.tape.below(8) ? &logits : nullptr));
  if (logits) rig().logits[0] = logits[0];
  ok(greta_session_truncate(session, uint32_t(p.tape.number())));
  Odd<greta_embed_options> how;
  how->pooling = greta_pooling(p.tape.below(5));
  const float* embedding = nullptr;
  if (ok(greta_session_embed(session, tokens.data(), p.count(), how.change(p.tape), &embedding)))
    rig().logits[0] = embedding[0];
}

void batch(Program& p) {
  greta_batch_item items[5] = {};
  for (greta_batch_item& item : items) {
    item.session = p.slot();
    item.tokens = rig().tokens.data();
    item.count = p.count();
  }
  ok(greta_batch_eval(items, p.tape.below(6)));
}

void fill(Program& p, Odd<greta_generate_options>* options) {
  static const char* const kStops[] = {"a", "\xc3\xa9", ""};
  (*options)->max_tokens = 3;
  (*options)->on_token = on_token;
  (*options)->on_prompt = on_prompt;
  (*options)->stop_strings = kStops;
  (*options)->stop_count = p.tape.below(3);
  using O = greta_generate_options;
  options->change(p.tape, {offsetof(O, stop_count)});
}

void generate(Program& p) {
  Odd<greta_generate_options> options;
  fill(p, &options);
  Odd<greta_generate_result> result;
  result.change(p.tape);
  greta_session* const session = p.slot();
  if (p.tape.below(4) == 0) ok(greta_session_draft_tokens(session, uint32_t(p.tape.number())));
  ok(greta_session_generate(session, rig().tokens.data(), p.count(), &options.value, &result.value));
}

void batch_generate(Program& p) {
  Odd<greta_generate_options> options;
  fill(p, &options);
  Odd<greta_generate_result> result;
  result.change(p.tape);
  greta_generate_item items[4] = {};
  for (greta_generate_item& item : items) {
    item.session = p.slot();
    item.tokens = rig().tokens.data();
    item.count = p.count();
    item.options = p.tape.below(4) ? &options.value : nullptr;
    item.result = p.tape.below(4) ? nullptr : &result.value;
  }
  if (!ok(greta_batch_generate(items, p.tape.below(5)))) return;
  for (const greta_generate_item& item : items)
    if (item.status && !item.error[0]) __builtin_trap();
}

void set_sampling(Program& p) {
  greta_session* const s = p.slot();
  Tape& t = p.tape;
  const float a = t.real(), b = t.real();
  switch (t.below(12)) {
    case 0:
      ok(greta_session_temperature(s, a));
      break;
    case 1:
      ok(greta_session_dynamic_temperature(s, a, b));
      break;
    case 2:
      ok(greta_session_top_k(s, uint32_t(t.number())));
      break;
    case 3:
      ok(greta_session_top_p(s, a));
      break;
    case 4:
      ok(greta_session_min_p(s, a));
      break;
    case 5:
      ok(greta_session_typical_p(s, a));
      break;
    case 6:
      ok(greta_session_top_n_sigma(s, a));
      break;
    case 7:
      ok(greta_session_xtc(s, a, b));
      break;
    case 8:
      ok(greta_session_penalties(s, a, b, t.real(), uint32_t(t.number())));
      break;
    case 9:
      ok(greta_session_mirostat(s, a, b));
      break;
    case 10:
      ok(greta_session_seed(s, t.number()));
      break;
    default:
      ok(greta_session_sampling_clear(s));
      break;
  }
}

void set_texts(Program& p) {
  greta_session* const s = p.slot();
  const char* const text = p.tape.text();
  const char* const other = p.tape.text();
  Odd<greta_dry_options> dry;
  dry->multiplier = p.tape.real();
  dry->base = p.tape.real();
  const char* const breakers[] = {text, other};
  dry->breakers = breakers;
  dry->breaker_count = p.tape.below(3);
  using D = greta_dry_options;
  const int32_t token = int32_t(p.tape.number());
  const float bias = p.tape.real();
  switch (p.tape.below(5)) {
    case 0:
      ok(greta_session_grammar(s, text, other));
      break;
    case 1:
      ok(greta_session_json_schema(s, text));
      break;
    case 2:
      ok(greta_session_sampler_order(s, text));
      break;
    case 3:
      ok(greta_session_logit_bias(s, &token, &bias, p.tape.below(2)));
      break;
    default:
      ok(greta_session_dry(s, dry.change(p.tape, {offsetof(D, breaker_count)})));
  }
}

void sample(Program& p) {
  std::vector<float> logits(rig().logits.size());
  const float most = p.tape.real(), other = p.tape.real();
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = i % 3 ? most : other;
  int32_t token = -1;
  if (ok(greta_session_sample(p.slot(), logits.data(), &token)) && token >= int32_t(logits.size()))
    __builtin_trap();
}

void save_and_restore(Program& p) {
  std::string state;
  if (!ok(greta_session_save(p.slot(), on_write, &state))) return;
  if (p.tape.below(2)) state[p.tape.number() % state.size()] ^= char(p.tape.byte());
  Odd<greta_source> from;
  from->memory = state.data();
  from->memory_bytes = state.size();
  using S = greta_source;
  from.change(p.tape, {offsetof(S, memory_bytes)});
  ok(greta_session_restore(p.slot(), &from.value));
}

void chat(Program& p) {
  Odd<greta_chat_options> options;
  options->chat_template = p.tape.text();
  options->tools = p.tape.text();
  options->arguments = p.tape.text();
  greta_chat* chat = nullptr;
  if (!ok(greta_chat_open(p.slot(), options.change(p.tape), &chat))) return;
  for (uint32_t more = p.tape.below(4); more; --more) {
    const greta_message message = {p.tape.text(), p.tape.text(), p.tape.text()};
    ok(greta_chat_add(chat, &message));
  }
  Odd<greta_chat_answer_options> answer;
  answer->max_tokens = 3;
  answer->on_event = on_event;
  using A = greta_chat_answer_options;
  answer.change(p.tape, {offsetof(A, stop_count)});
  ok(greta_chat_answer(chat, &answer.value, nullptr));
  greta_message message;
  ok(greta_chat_get(chat, uint32_t(p.tape.number()), &message));
  ok(greta_chat_truncate(chat, uint32_t(p.tape.number())));
  greta_chat_close(chat);
}

void texts(Program& p) {
  const char *text = p.tape.text(), *context = p.tape.text();
  const size_t bytes = text ? strlen(text) : 0, context_bytes = context ? strlen(context) : 0;
  const greta_tokenizer* const tokenizer = rig().tokenizer;
  char out[64];
  int32_t ids[8];
  const size_t room = p.tape.below(sizeof out + 1), id_room = p.tape.below(9);
  size_t count = 0;
  const greta_message message = {context, text, p.tape.text()};
  switch (p.tape.below(5)) {
    case 0:
      ok(greta_tokenizer_encode(tokenizer, text, bytes, uint32_t(p.tape.number()), ids, id_room, &count));
      break;
    case 1:
      for (int32_t& id : ids) id = int32_t(p.tape.number());
      ok(greta_tokenizer_decode(tokenizer, ids, id_room, out, room, &count));
      break;
    case 2:
      ok(greta_tokenizer_chat(tokenizer, &message, 1, int(p.tape.below(3)), out, room, &count));
      break;
    case 3:
      ok(greta_tokenizer_render(tokenizer, context, context_bytes, int64_t(p.tape.number()), out, room,
                                &count));
      break;
    default:
      ok(greta_template_render(text, bytes, context, context_bytes, int64_t(p.tape.number()), out, room,
                               &count));
  }
}

void look(Program& p) {
  Odd<greta_tensor_info> tensor;
  Odd<greta_weights_check> check;
  Odd<greta_model_info> model;
  Odd<greta_memory_plan> plan;
  Odd<greta_executor_options> sizes;
  Odd<greta_sampling_defaults> sampling;
  const char *key, *type;
  char value[32];
  switch (p.tape.below(7)) {
    case 0:
      ok(greta_file_tensor(rig().file, p.tape.number(), tensor.change(p.tape)));
      break;
    case 1:
      ok(greta_file_check_weights(rig().file, p.tape.number(), check.change(p.tape)));
      break;
    case 2:
      ok(greta_model_describe(rig().model, model.change(p.tape)));
      break;
    case 3:
      ok(greta_model_sampling(rig().model, sampling.change(p.tape)));
      break;
    case 4:
      ok(greta_file_audit(rig().file, on_unused, nullptr));
      break;
    case 5: {
      const uint64_t index = p.tape.number();
      ok(greta_file_metadata(rig().file, index, &key, &type, value, p.tape.below(sizeof value + 1)));
      break;
    }
    default:
      sizes.change(p.tape);
      ok(greta_memory_plan_make(rig().runtime, rig().file, &sizes.value, plan.change(p.tape)));
  }
}

void open_runtime(Program& p) {
  Odd<greta_runtime_options> options;
  options->device = p.tape.below(2) ? "null" : p.tape.text();
  if (!options->device || !strcmp(options->device, "cpu")) options->device = "null";  // no threads
  options.change(p.tape);
  greta_runtime* runtime = nullptr;
  ok(greta_runtime_open(&options.value, &runtime));
  greta_runtime_close(runtime);
}

// Requests of a service that nobody runs: they wait, and end when it is closed.
void serve(Program& p) {
  Odd<greta_executor_options> sizes;
  sizes->context = kContext, sizes->sequences = 2;
  Odd<greta_service_options> options;
  options->executor = &sizes.value;
  using S = greta_service_options;
  options.change(p.tape, {offsetof(S, own_thread)});
  greta_service* service = nullptr;
  if (!ok(greta_service_open(rig().model, &options.value, &service))) return;
  Odd<greta_sampling_options> sampling;
  sampling->grammar = p.tape.text();
  sampling->order = p.tape.text();
  using O = greta_sampling_options;
  sampling.change(p.tape, {offsetof(O, bias_count)});
  Odd<greta_request_options> ask;
  ask->tokens = rig().tokens.data();
  ask->token_count = p.count();
  ask->sampling = &sampling.value;
  using Q = greta_request_options;
  ask.change(p.tape, {offsetof(Q, token_count), offsetof(Q, message_count), offsetof(Q, stop_count)});
  greta_request* request = nullptr;
  ok(greta_service_add(service, &ask.value, &request));
  Odd<greta_service_info> info;
  ok(greta_service_describe(service, info.change(p.tape)));
  greta_service_close(service);
  Odd<greta_request_event> event;
  ok(greta_request_next(request, 0, event.change(p.tape)));
  ok(greta_request_finish(request, nullptr));
  std::string saved;
  ok(greta_request_save(request, on_write, &saved));
  if (saved.size() > greta_request_state_bytes(request)) __builtin_trap();
  greta_request_close(request);
}

void profile(Program& p) {
  ok(greta_session_profile(p.slot(), rig().tokens.data(), p.count(), on_stage, nullptr));
}

constexpr void (*kCalls[])(Program&) = {
    open_session, fork_session, close_session,    eval, batch, generate, batch_generate, set_sampling,
    set_texts,    sample,       save_and_restore, chat, texts, look,     open_runtime,   serve,
    profile};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Rig& r = rig();
  tokens_left = kMostTokens;
  {
    Program program{{data, size}, {}};
    for (int calls = 0; program.tape.left && calls < kMostCalls; ++calls)
      kCalls[program.tape.below(std::size(kCalls))](program);
  }
  if (r.written() != r.reference) __builtin_trap();
  return 0;
}
