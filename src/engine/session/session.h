// A session is one sequence of an executor, with its position and its settings for choosing tokens.
#pragma once
#include <functional>
#include <utility>

#include "engine/executor/executor.h"
#include "engine/sampling/sampler.h"
#include "engine/session/pooling.h"
#include "text/text.h"

namespace greta {

enum class OutputRows : uint32_t { None = 0, Last = 1, All = 2 };
enum class StopReason : uint32_t { Length = 0, End = 1, Context = 2, Cancelled = 3, String = 4, Unread = 5 };

struct GenerateOptions {
  uint32_t max_tokens = 0;  // 0: until the context is full
  bool ignore_end = false;
  int (*on_token)(void* user, int32_t token, const char* text, size_t bytes) = nullptr;  // non-zero stops
  int (*on_prompt)(void* user, uint32_t done, uint32_t total) = nullptr;                 // non-zero stops
  void* user = nullptr;
  std::span<const std::string_view> stops = {};  // texts that end the generation (stop.h)
  std::span<const int32_t> spoken = {};          // control tokens whose text on_token gets too, ascending

  // Called where the context is full. It gives the tokens that shall stand in place of those held, or none if
  // the generation shall end. They are read again from the first on that differs, and on_prompt counts them.
  std::function<Status(std::span<const int32_t> held, std::vector<int32_t>* instead)> on_full = {};
};

struct GenerateResult {
  StopReason reason = StopReason::Length;
  int32_t stop_string = -1;  // its index in options.stops
  uint32_t prompt_tokens = 0, generated_tokens = 0;
  uint32_t forgotten_tokens = 0;  // by on_full
  uint32_t drafted_tokens = 0, accepted_tokens = 0;  // guesses that were verified, and those that were right
  uint64_t prompt_ns = 0, generate_ns = 0;
};

// An on_full that keeps the first `keep` tokens and the last half of the others.
Status forget_half(std::span<const int32_t> held, uint32_t keep, std::vector<int32_t>* instead);

// For samplers with on_device().
DeviceSampling device_sampling(const SamplerSettings& settings);

// Fails unless the tokens are of the vocabulary and fit into the context after `position`.
Status check_tokens(std::span<const int32_t> tokens, uint32_t position, uint32_t context, uint32_t vocab);

// Chooses on the host the token that follows `tokens`, from the logits [vocab] of the last of them. It gives
// kNoToken if the grammar is at its end, and the vocabulary has no token that ends an answer or `may_end`
// forbids it.
Status choose_token(const Model& model, Sampler& sampler, GrammarState& grammar, const float* logits,
                    std::span<const int32_t> tokens, bool may_end, int32_t* token);

struct StateReader;

class Session {
 public:
  static Status open(std::shared_ptr<Executor> executor, std::unique_ptr<Session>* out);
  ~Session();

  Status fork(std::unique_ptr<Session>* out);
  Status truncate(uint32_t position);
  uint32_t position() const { return position_; }
  uint32_t context() const { return executor_->plan().context; }
  Executor& executor() { return *executor_; }

  // A call that fails with a status or an exception leaves the session as it was. A cancelled call keeps what
  // was fed. `logits` is [0, 1 or tokens][vocab] and valid until the next call on the executor.
  Status eval(std::span<const int32_t> tokens, OutputRows rows, const float** logits);
  // Feeds tokens likewise, and pools their hidden states. The vector [width] is valid until the next call.
  Status embed(std::span<const int32_t> tokens, const EmbedOptions& options, std::span<const float>* out);
  // After on_full has given tokens, a failed generation leaves what both have in common.
  Status generate(std::span<const int32_t> tokens, const GenerateOptions& options, GenerateResult* result);

  // Feeds the tokens as one step and times each of its kernels by itself.
  Status profile(std::span<const int32_t> tokens, void (*on_stage)(void* user, const Executor::Stage& stage),
                 void* user);

  // choose_token for the logits [vocab] of the last token fed.
  Status sample(const float* logits, bool may_end, int32_t* token);

  Status set_sampling(SamplerSettings settings);  // a failure leaves the settings as they were
  const SamplerSettings& sampling() const { return sampler_.settings(); }
  // The most tokens that are guessed and verified in one step of generate(), at most kMaxDraftTokens
  // (draft.h).
  Status set_draft_tokens(uint32_t most);
  // Null removes the grammar.
  void set_grammar(std::shared_ptr<const Grammar> grammar) { grammar_.set(std::move(grammar)); }
  const std::shared_ptr<const Grammar>& grammar() const { return grammar_.grammar(); }
  // The next generation begins anew, held to `whole` in place of the grammar that was set.
  void begin_grammar(std::shared_ptr<const Grammar> whole) { grammar_.begin(std::move(whole)); }
  std::span<const int32_t> tokens() const { return tokens_; }  // fed so far

  // Saves tokens and cache as a stream of state_bytes() bytes (state.h). `write` gets the next bytes and
  // stops by returning non-zero. A restored state replaces what the session holds; any failure leaves the
  // session as it was.
  using WriteState = int (*)(void* user, const void* bytes, size_t count);
  uint64_t state_bytes() const;
  Status save(WriteState write, void* user);
  Status restore(const Source& source);
  void cancel() { executor_->cancel(sequence_); }

  // What generate_batch() does for one of its sessions.
  struct Generation {
    Session* session;
    std::span<const int32_t> tokens;
    GenerateOptions options;
    GenerateResult result = {};
    Status status = {};
    std::string error = {};  // the text of a failure
  };
  // generate() for several sessions of one executor, in shared steps. What fails for one session, or stops
  // it, stands in its item and changes nothing for the others. An exception undoes all.
  static Status generate_batch(std::span<Generation> items);

  // Feeds several sessions of one executor in shared steps. An item's logits are those of its last token.
  struct Item {
    Session* session;
    std::span<const int32_t> tokens;
    const float* logits;
  };
  static Status eval_batch(std::span<Item> items);

 private:
  struct TokenStream;
  class Writing;
  class Batch;
  struct Undo {  // takes back what a call has fed, unless it is kept
    Session* session;
    uint32_t to;
    Undo(Session* of, uint32_t position) : session(of), to(position) {}
    Undo(Undo&& other) noexcept : session(std::exchange(other.session, nullptr)), to(other.to) {}
    ~Undo() {
      if (session) session->take_back(to);
    }
    void keep() { session = nullptr; }
  };
  explicit Session(std::shared_ptr<Executor> executor);
  Status check(std::span<const int32_t> tokens) const;
  Status restore_from(StateReader& reader);
  // Feeds tokens in steps of at most `most`. `output` says what becomes of each, and `taken` reads the rows
  // of a step, whose first token has the index `done`.
  template <class OutputOf, class Taken>
  Status feed(std::span<const int32_t> tokens, uint32_t most, OutputOf output, Taken taken);
  // Fails unless the items are different sessions of one executor.
  template <class AnyItem>
  static Status check_together(std::span<AnyItem> items);
  void fed(std::span<const int32_t> tokens);  // counts them as fed, after the executor has taken them
  void take_back(uint32_t position);          // forgets what was fed and reserved from there on
  bool take_cancel() { return executor_->take_cancel(sequence_); }

  std::shared_ptr<Executor> executor_;
  uint32_t sequence_ = ~0u;  // none yet
  uint32_t position_ = 0;
  std::vector<int32_t> tokens_;  // [position_], with capacity for the whole context
  Sampler sampler_;
  GrammarState grammar_;
  uint32_t draft_tokens_ = 0;
  std::vector<float> all_logits_;
  std::vector<float> embedding_;
  std::vector<Executor::Row> rows_;
};

template <class AnyItem>
Status Session::check_together(std::span<AnyItem> items) {
  if (items.empty()) return fail(Code::Argument, "an empty batch");
  size_t item_of[kMaxStepSequences] = {};  // by sequence, from 1
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].session->executor_ != items[0].session->executor_)
      return fail(Code::Argument, "item %zu belongs to another executor", i);
    size_t& item = item_of[items[i].session->sequence_];
    if (item) return fail(Code::Argument, "items %zu and %zu are one session", item - 1, i);
    item = i + 1;
  }
  return {};
}

}  // namespace greta
