// What the routes call. Each throws Refused, or answers, or starts a job that does.
#pragma once
#include "server.h"

namespace greta::serve {

// status.cpp
void health(Context& context);
void list_models(Context& context);
void show_model(Context& context);
void load_model(Context& context);
void unload_model(Context& context);
void props(Context& context);
void metrics(Context& context);
void page(Context& context);  // page.cpp
// slots.cpp
void slots(Context& context);
void slot_action(Context& context);  // save, restore, erase
// adapters.cpp
void list_adapters(Context& context);
void set_adapters(Context& context);
// openai_chat.cpp
void chat_completions(Context& context);
// completions.cpp
void completions(Context& context);        // OpenAI's
void native_completion(Context& context);  // llama.cpp's
void infill(Context& context);             // fill.cpp
// texts.cpp
void embeddings(Context& context);
void tokenize(Context& context);
void detokenize(Context& context);
void apply_template(Context& context);
// parts.cpp
void input_tokens(Context& context);
// anthropic.cpp
void messages(Context& context);
void count_tokens(Context& context);
// ollama.cpp
void ollama_version(Context& context);
void ollama_tags(Context& context);
void ollama_show(Context& context);
void ollama_chat(Context& context);
void ollama_generate(Context& context);
// responses.cpp
void responses(Context& context);

// ---- parts that several APIs share: parts.cpp ----
// `differs_at` is that of Sink.
Json usage_json(const greta_request_result& result, uint32_t differs_at);    // OpenAI's
Json timings_json(const greta_request_result& result, uint32_t differs_at);  // llama.cpp's
Json progress_json(const greta_request_event& event);           // llama.cpp's, of a prompt that is read
const char* finish_reason(const greta_request_result& result);  // OpenAI's
// The text of an event's token and the likeliest ones beside their probabilities, in the form of chat
// completions, or in llama.cpp's form of those after sampling.
Json logprob_json(const greta_tokenizer* tokenizer, const greta_request_event& event, bool sampled);
// A choice for each of `n` draws of the same ask.
std::vector<JobItem> repeat(std::shared_ptr<const Ask> ask, size_t n);
// How many tokens the prompt of the request has, without running it.
uint64_t count_prompt(const Model& model, const Ask& ask);
int64_t now_s();
// The head of a stream of server-sent events.
Response event_stream();

// ---- prompts: prompts.cpp ----
inline constexpr uint32_t kPromptFlags = GRETA_ENCODE_BOS | uint32_t{GRETA_ENCODE_SPECIAL};
// A text, tokens, or a list of at most `most` of them. `flags` are for texts; without
// any, one may be empty.
std::vector<std::vector<int32_t>> prompts_of(const Fields& fields, const char* name,
                                             const greta_tokenizer* tokenizer, size_t most,
                                             uint32_t flags = kPromptFlags);
std::vector<int32_t> tokens_of(const Fields& fields, const char* name, const greta_tokenizer* tokenizer);

// ---- texts with a gap: fill.cpp ----
struct Gap {
  std::vector<int32_t> prefix, suffix;  // what is before it and behind it
  std::vector<int32_t> before;          // other texts
  std::vector<int32_t> begun;           // the beginning of what fills it
};
bool can_fill(const greta_tokenizer* tokenizer);
// Cuts what is far from the gap if the context has no room for it and for `answer` tokens.
std::vector<int32_t> fill_prompt(const Model& model, const Gap& gap, uint32_t answer);

// ---- llama.cpp's completion: native.cpp ----
// Starts it. `prompt_of` gives the tokens once all other fields were read.
void start_native(Context& context, const Fields& fields,
                  const std::function<std::vector<int32_t>(const Ask&)>& prompt_of);

// ---- conversations: conversation.cpp ----
// Messages in OpenAI's form. If the last one is the assistant's, the answer goes on with it.
void set_messages(std::vector<Json> messages, Ask* ask);
std::vector<Json> read_messages(const Fields& fields);
// OpenAI's tools and tool_choice. Tools that are no functions are skipped and named in `skipped`.
void read_tools(const Fields& fields, Ask* ask, std::string* skipped);
// Variables of the template, and reasoning.
void read_template_options(const Fields& fields, Ask* ask);
// All three, of a body of chat completions.
void read_conversation(const Fields& fields, Ask* ask, std::string* skipped);

}  // namespace greta::serve
