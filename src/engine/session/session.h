// A session is one sequence of an executor, with its position and its settings for choosing tokens.
#pragma once
#include <functional>
#include <optional>
#include <utility>

#include "engine/write/writing.h"

namespace greta {

enum class OutputRows : uint32_t { None = 0, Last = 1, All = 2 };
struct GenerateOptions : WritingOptions {
  int (*on_token)(void* user, int32_t token, const char* text, size_t bytes) = nullptr;  // non-zero stops
  int (*on_prompt)(void* user, uint32_t done, uint32_t total) = nullptr;                 // non-zero stops
  void* user = nullptr;
  std::span<const std::string_view> stops = {};  // texts that end the generation (stop.h)
  std::span<const int32_t> spoken = {};          // control tokens whose text on_token gets too, ascending
  ChatParser* parser = nullptr;                  // takes the answer apart, before on_token gets its text
};
using GenerateResult = WritingResult;

struct StateReader;

class Session {
 public:
  static Status open(std::shared_ptr<Executor> executor, std::unique_ptr<Session>* out);
  ~Session();

  Status fork(std::unique_ptr<Session>* out);
  Status truncate(uint32_t position);
  uint32_t position() const { return text_.fed + behind_; }
  uint32_t context() const { return executor_->plan().context; }
  Executor& executor() { return *executor_; }

  // A call that fails with a status or an exception leaves the session as it was. A cancelled call keeps what
  // was fed. `logits` is [0, 1 or tokens][vocab] and valid until the next call on the executor.
  Status eval(std::span<const int32_t> tokens, OutputRows rows, const float** logits);
  // Feeds tokens likewise, and pools their hidden states. The vector [width], without pooling vectors
  // [tokens][width], is valid until the next call.
  Status embed(std::span<const int32_t> tokens, const EmbedOptions& options, std::span<const float>* out);
  // After on_full has given tokens, a failed generation leaves what both have in common.
  Status generate(std::span<const int32_t> tokens, const GenerateOptions& options, GenerateResult* result);

  // Feeds the tokens as one step and times each of its kernels by itself.
  Status profile(std::span<const int32_t> tokens, void (*on_stage)(void* user, const Executor::Stage& stage),
                 void* user);

  // Chooses from the logits [vocab] of the last token fed the one that follows it (Text::choose).
  Status sample(const float* logits, bool may_end, int32_t* token);

  Status set_sampling(SamplerSettings settings);  // a failure leaves the settings as they were
  const SamplerSettings& sampling() const { return text_.sampler.settings(); }
  // The adapters of the tokens that are fed from now on. What is there stays as it was computed.
  Status set_adapters(std::shared_ptr<const AdapterList> adapters);
  Status set_draft(DraftSettings settings);  // who guesses tokens in generate()
  // Null removes the grammar.
  void set_grammar(std::shared_ptr<const Grammar> grammar) { text_.grammar.set(std::move(grammar)); }
  const std::shared_ptr<const Grammar>& grammar() const { return text_.grammar.grammar(); }
  // The next generation begins anew, held to `whole` in place of the grammar that was set.
  void begin_grammar(std::shared_ptr<const Grammar> whole) { text_.grammar.begin(std::move(whole)); }
  std::span<const int32_t> tokens() const {  // fed so far
    return std::span(text_.tokens).first(position());
  }

  // Saves tokens and cache as a stream of state_bytes() bytes (state.h). `write` gets the next bytes and
  // stops by returning non-zero. A restored state replaces what the session holds; any failure leaves the
  // session as it was.
  using WriteState = int (*)(void* user, const void* bytes, size_t count);
  uint64_t state_bytes() const;
  Status save(WriteState write, void* user);
  Status restore(const Source& source);
  void cancel() { executor_->cancel(text_.sequence); }

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
  class Writer;
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
  Status run_piece(bool last);  // of what is fed: the rows
  // Fails unless the items are different sessions of one executor.
  template <class AnyItem>
  static Status check_together(std::span<AnyItem> items);
  // The identity of the adapters of all tokens; none if not all have the same.
  std::optional<uint64_t> adapters_of_all() const;
  void take_back(uint32_t position);  // forgets what was fed and reserved from there on
  Status catch_up();                  // reads what is behind
  void feed_head(uint32_t begin, uint32_t count);
  bool take_cancel() { return executor_->take_cancel(text_.sequence); }

  std::shared_ptr<Executor> executor_;
  Text text_;            // its tokens have room for the whole context and one that is drawn behind it
  uint32_t behind_ = 0;  // tokens behind those fed that are to be read again first (Executor::truncate)
  DraftSettings draft_;
  // The identity of the adapters with which the tokens before adapters_since_ were fed, if it is one for all.
  std::optional<uint64_t> fed_with_ = 0;
  uint32_t adapters_since_ = 0;  // where the adapters were set last
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
    size_t& item = item_of[items[i].session->text_.sequence];
    if (item) return fail(Code::Argument, "items %zu and %zu are one session", item - 1, i);
    item = i + 1;
  }
  return {};
}

}  // namespace greta
