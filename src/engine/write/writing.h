// A text that is being written: what it wants of a step, and what becomes of the step's results.
//
// A step gets rows of tokens that were not fed yet. A row has an output where the token that follows it is
// not known: the device draws that token if its kernel supports the settings, else the host chooses it from
// the row's logits. Where the device draws, the next row may be submitted before its token is known.
//
// A step may also have rows for tokens that are likely to come next (draft.h). A guess is right if it is the
// token that is drawn before it, so the text is the same as without guesses. What layers with a state have
// made of wrong guesses is undone by going back to the state before them, from which the state behind the
// right ones is made (replay.cpp). Where that cannot be, the right tokens are read again in the next step,
// beside the new one.
#pragma once
#include <optional>

#include "engine/write/draft.h"
#include "engine/write/pooling.h"
#include "engine/write/text.h"
#include "engine/write/text_stream.h"

namespace greta {

enum class StopReason : uint32_t { Length = 0, End = 1, Context = 2, Cancelled = 3, String = 4, Unread = 5 };
constexpr size_t kStopReasons = 6;

struct WritingOptions {
  uint32_t max_tokens = 0;  // 0: until the context is full
  bool ignore_end = false;
  DraftSettings draft = {};  // who guesses the next tokens

  // Called where the context is full. It gives the tokens that shall stand in place of those held, or none if
  // the text shall end. They are read again from the first on that differs, and read() counts them.
  std::function<Status(std::span<const int32_t> held, std::vector<int32_t>* instead)> on_full = {};

  // Positions within the prompt at which messages of a conversation begin, ascending. A text whose layers
  // keep states or windows can go on there again.
  std::vector<uint32_t> places = {};

  // Reasoning is closed after this many tokens; -1: when the model closes it, or where a grammar would have
  // too little room behind it.
  int64_t reasoning_tokens = -1;

  bool no_answer = false;                  // it ends when the prompt was read
  std::optional<EmbedOptions> embed = {};  // it gives a vector of the prompt in place of an answer
  bool logprobs = false;                   // give() gets logits
  bool ends_exactly = false;               // no step is submitted before the token before it is known
  bool prompt_logprobs = false;            // so does score(), for each token of the prompt but the last
};

struct WritingResult {
  StopReason reason = StopReason::Length;
  int32_t stop_string = -1;  // its index
  uint32_t prompt_tokens = 0, generated_tokens = 0;
  // That were read before: of the prompt's beginning, which others do not count, or since it was set back.
  uint32_t reread_tokens = 0;
  uint32_t forgotten_tokens = 0;                     // by on_full
  uint32_t drafted_tokens = 0, accepted_tokens = 0;  // guesses that were verified, and those that were right
  uint32_t draw_steps = 0;                           // that made the generated tokens
  bool draft_stopped = false;                        // memory lacked for a guess, so that no more were made
  uint32_t reasoning_tokens = 0;                     // generated tokens that belong to reasoning
  bool open_reasoning = false;                       // it ended within its reasoning
  uint64_t prompt_ns = 0, generate_ns = 0;
};

struct ModelAsk;
class ModelDraft;

class Writing {
 public:
  // What a step can still take.
  struct Room {
    uint32_t rows, choices, guesses;  // `choices` are rows whose logits the host gets
    uint32_t hidden;                  // rows whose hidden states the host gets
  };
  // The rows of one text in a step. The last `outputs` of them have an output, and the last `guesses` of
  // these are guessed.
  struct Part {
    Writing* writing;       // null: it is gone
    uint32_t begin, count;  // positions
    uint32_t outputs, guesses, hidden;
    bool draws;    // from the last row that is no guess, and from guesses
    bool on_host;  // outputs are logits
    uint32_t era;  // of the text
    // Steps that draw have at most a row of logits of each text but for guesses; hidden states have steps of
    // their own.
    enum class Kind : uint8_t { Draws, Scores, Pools } kind;
    uint32_t end() const { return begin + count; }
    uint32_t choices() const { return on_host ? outputs : 0; }
    bool live() const { return writing && writing->goes_on_ && writing->era_ == era; }
  };

  virtual ~Writing() = default;
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

  bool goes_on() const { return goes_on_; }  // it has neither ended nor failed
  bool on_device() const { return on_device_; }
  bool reading() const { return sent_ < read_to_; }  // tokens that are known, as those of the prompt
  bool guessing() const { return goes_on_ && depth_.depth() != 0; }
  // Rows that it wants now are for score().
  bool scores() const { return options_.prompt_logprobs && sent_ + 1 < result_.prompt_tokens; }
  // Tokens that were fed or are in steps under way.
  uint32_t sent() const { return sent_; }
  std::span<const int32_t> tokens() const { return text_.tokens; }  // all that are known
  uint32_t sequence() const { return text_.sequence; }
  const Model& model() const { return model_; }
  const WritingResult& result() const { return result_; }
  Status status() const { return status_; }
  const char* error() const { return error_; }  // the sentence of a failure

  // Whether a step can take a row now. `ahead`: its token may be one that a step under way draws.
  bool ready(bool ahead) const;
  // The rows that it wants of a step with so much room; none if `count` is 0.
  Part part(Executor& executor, const Room& room);
  // There is no page for its next row: it ends with the token that a step under way draws, or now.
  Status end_for_pages();
  void add_rows(const Part& part, std::vector<Executor::Row>* rows) const;
  void submitted(const Part& part);
  // Takes the results of a step. outputs: its logits or hidden states for this part.
  Status finish(const Part& part, Executor& executor, const float* outputs);
  // Lets readers know, after the results of a step were given to all of its texts.
  virtual void deliver() {}

  // A step with this part failed and may have changed the state of the sequence. The text is read again from
  // the last place at which it can go on, and goes alone until it has come past the part.
  void go_back(const Part& part, Executor& executor);
  bool goes_alone() const { return sent_ < alone_to_; }  // in steps of its own

  // The rows of a step that has ended, for the layer that drafts tokens.
  Executor::HeadPart head_part(const Part& part, uint32_t row) const;
  void take_guesses(std::vector<int32_t>&& guesses);
  void stop_draft(Status status);  // the text goes on without guesses
  // What it asks a second model now, for at most so many guesses. Returns false if that is nothing.
  bool asks_model(uint32_t most, ModelAsk* out) const;

  Status end(StopReason reason);  // after the text that was held back
  void fail(Status status);       // error_text() belongs to `status`

 protected:
  // text, options: they outlive the object, which does not look at them yet
  Writing(const Model& model, uint32_t context, Text& text, const WritingOptions& options)
      : model_(model), context_(context), text_(text), options_(options) {}
  // The text has its settings, and the prompt behind what was fed.
  // stops   texts that end it (stop.h)
  // spoken  control tokens whose text give() gets too, ascending; they stay the caller's
  // parser  takes the answer apart before give() hears of its text; null: nothing does
  Status begin(std::span<const std::string_view> stops, std::span<const int32_t> spoken, ChatParser* parser);
  void start_clock() { begun_ns_ = now_ns(); }
  // So many tokens of what begin() reads were read before, and a checkpoint lies before them.
  void read_again(uint32_t count) { result_.reread_tokens = count; }
  void skip(uint32_t count) { text_.fed = sent_ += count; }  // tokens whose keys and values are there

  // Gets a token that was drawn with the text that it completes, and its logits [vocab] if the host chose it.
  // kNoToken comes with text that was held back, at the end or where reasoning is closed. Returns false to
  // end the text.
  virtual bool give(int32_t token, const std::string& text, const float* logits) = 0;
  // Hears how many of the tokens that are known were read. Returns false to end the text.
  virtual bool read(uint32_t done, uint32_t total) { return (void)done, (void)total, true; }
  // The tokens up to sent() are in steps that were submitted, the last of which has read known ones, and no
  // step has gone on from there.
  virtual void piece_sent() {}
  // A step with the text's next token was submitted, and no step has gone on from there.
  virtual void next_sent() {}
  // Gets the logits behind a token of the prompt, from which the next one's probability follows.
  virtual void score(uint32_t position, const float* logits) { (void)position, (void)logits; }
  virtual void give_vector(std::vector<float>&& vector) { (void)vector; }
  // Tokens from `position` on have left the text.
  virtual void took_back(uint32_t position) { (void)position; }

  uint32_t leave();  // gives up its sequence, so that it is read anew in another one

 private:
  bool has_states() const { return model_.shape.recurrent_layers != 0; }
  // Where reasoning is closed a state has no place behind it to go back to.
  bool goes_exactly() const {
    return options_.ends_exactly || (has_states() && parser_ && most_thought_ >= 0);
  }
  // Tokens that are known and that a state has to read again, since it went back before wrong guesses.
  uint32_t again() const {
    const uint32_t known = uint32_t(text_.tokens.size());
    return known > sent_ + 1 && !reading() ? known - 1 - sent_ : 0;
  }
  void push_draft(std::span<const int32_t> tokens) {
    if (draft_) draft_->push(tokens);
  }
  uint32_t most_guesses(const Part& part, const Room& room) const;
  bool begins_text() const;
  Status take_read();
  Status take_hidden(const Part& part, const float* states);
  Status watch(const Part& part, Executor& executor, const float* logits);
  Status verify(const Part& part, Executor& executor, const float* logits);
  Status take_draw(const Part& part, uint32_t i, Executor& executor, const float* logits);
  Status take_token(int32_t token, const float* logits, Executor& executor);
  Status make_room(Executor& executor);
  void limit_reasoning();
  bool thinks_too_long() const;
  Status add_closing();
  Status close_reasoning(Executor& executor);
  void copy_guesses(uint32_t most);
  void read_on_from(uint32_t position);
  void go_on_from(uint32_t position, const Part& part);
  void note_times();

  const Model& model_;
  const uint32_t context_;
  Text& text_;
  const WritingOptions& options_;
  std::optional<TextStream> stream_;
  ChatParser* parser_ = nullptr;
  int64_t most_thought_ = -1;  // tokens of reasoning; -1: no limit
  std::string piece_;
  std::optional<PooledText> pooled_;
  bool on_device_ = true;
  std::shared_ptr<DraftSource> draft_;  // null: nobody guesses
  HeadDraft* head_ = nullptr;           // the same, if it is one
  ModelDraft* second_ = nullptr;        // the same, if it is one
  DraftDepth depth_{0};
  std::vector<int32_t> made_;     // guesses that the source has made
  size_t made_for_ = 0;           // behind so many tokens
  std::vector<int32_t> guesses_;  // of the step that comes next or is under way
  int32_t drawn_ = kNoToken;      // the last one
  uint32_t sent_ = 0;
  uint32_t read_before_ = 0;              // tokens that were fed when it last gave up its sequence
  uint32_t read_from_ = 0, read_to_ = 0;  // the tokens that are read now or were read last
  uint32_t alone_to_ = 0;                 // up to here it goes alone
  uint32_t leaving_ = 0;                  // tokens that on_full has left out, until the others are read again
  uint32_t drawing_ = 0;                  // steps under way that draw
  uint32_t era_ = 0;                      // results of steps that were filled in an earlier one are dropped
  bool goes_on_ = true;
  bool full_ = false;  // the pool has no page for the next row
  Status status_;
  char error_[kErrorTextBytes] = "";
  uint64_t begun_ns_ = 0, first_ns_ = 0;
  WritingResult result_;
};

}  // namespace greta
