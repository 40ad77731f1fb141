// What is asked of the model, in the server's own words: every API is turned into this, and this into a
// request of greta.h.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "adapters.h"
#include "common/handles.h"
#include "json.h"

namespace greta::serve {

using tools::sized;

// llama.cpp's names, values and meanings; docs/sampling.md explains each.
struct Sampling {
  double temperature = 0.8, dynatemp_range = 0, dynatemp_exponent = 1, top_p = 0.95, min_p = 0.05,
         typical_p = 1, top_n_sigma = -1, xtc_probability = 0, xtc_threshold = 0.1, repeat_penalty = 1,
         frequency_penalty = 0, presence_penalty = 0, dry_multiplier = 0, dry_base = 1.75, mirostat_tau = 5,
         mirostat_eta = 0.1;
  int64_t top_k = 40, repeat_last_n = 64, dry_allowed_length = 2, dry_penalty_last_n = -1, mirostat = 0,
          seed = -1;
  bool own_breakers = false;
  std::vector<std::string> dry_breakers;
  std::string order;  // "": the default order
  std::vector<int32_t> bias_tokens;
  std::vector<float> biases;
  std::string grammar, schema;
  bool strict = false;
};

struct Ask {
  // The prompt: tokens, or messages as JSON objects.
  std::vector<int32_t> tokens;
  std::vector<std::string> messages;
  std::string tools;             // a JSON array; "": none
  std::string tool_choice;       // "required" or the name of the tool that is called; "": the model decides
  bool one_call = false;         // an answer has one call at most
  Json template_arguments;       // an object or null
  std::string chat_template;     // "": the model's
  bool continue_answer = false;  // the last message is the beginning of the answer
  bool raw = false;              // the answer is not taken apart
  Sampling sampling;
  std::vector<std::string> stops;
  int64_t max_tokens = -1;        // -1: until the context is full
  int64_t logprobs = -1;          // how many of the likeliest tokens are listed; -1: no probabilities
  bool sampled_logprobs = false;  // they are those after sampling
  int64_t reasoning_tokens = -1;  // -1: no limit
  bool ignore_end = false, no_cache = false, no_answer = false, prompt_logprobs = false, shift = false;
  uint64_t salt = 0;
  bool embed = false, embed_raw = false;
  greta_pooling pooling = GRETA_POOLING_DEFAULT;
  int32_t priority = 0;
  greta_draft_kind draft_kind = GRETA_DRAFT_NONE;  // who guesses tokens
  greta_executor* draft_executor = nullptr;        // of the second model
  uint32_t draft_tokens = 0, prompt_events = 0;
  bool call_pieces = false;  // calls come while they are written
  int64_t keep_tokens = 0;
  std::shared_ptr<ServedAdapters> adapters;  // of the model; null: there are none
  std::vector<float> adapter_scales;         // of each of them, where the request has its own
  bool own_adapters = false;
  int64_t slot = -1;  // that remembers its text; -1: one that is idle
};

struct Options;
// What holds where a request says nothing: the program's options, and the settings that the model's file
// recommends.
Ask default_ask(const Options& options, const greta_model* model, const greta_tokenizer* tokenizer);

// Fields of sampling, stop strings and the like, which most APIs share. `sampling` has the defaults.
void read_sampling(const Fields& fields, const greta_tokenizer* tokenizer, Ask* ask);
// max_tokens under these names, of which the first that is there counts. 0 is allowed where `none` is.
void read_max_tokens(const Fields& fields, const std::vector<const char*>& names, bool none, Ask* ask);

// The prompt of the request as it would be fed, without running it.
struct Prompt {
  std::string text;
  std::vector<int32_t> tokens;
  uint32_t cached_tokens = 0;
};
greta_status make_prompt(greta_service* service, const Ask& ask, Prompt* out);

// Adds the request. `user` is passed to greta_service_options.on_ready.
greta_status add_request(greta_service* service, const Ask& ask, uint64_t seed, void* user,
                         greta_request** out);

std::vector<int32_t> encode(const greta_tokenizer* tokenizer, std::string_view text, uint32_t flags);
std::string decode(const greta_tokenizer* tokenizer, const int32_t* tokens, size_t count);
// The text of one token, control tokens included. It need not be UTF-8.
std::string piece_of(const greta_tokenizer* tokenizer, int32_t token);
uint64_t random_number();
std::string random_id(const char* prefix);  // "chatcmpl-" and 24 letters and digits
bool is_utf8(std::string_view text);

}  // namespace greta::serve
