// Generation feeds prompts in steps, then one token of each session a step. The device draws tokens if its
// kernel supports the settings, else the host chooses from the step's logits. If the device draws for all
// sessions, the next step is submitted before its tokens are known, so that the device does not wait for the
// host. Rows of that step are dropped where a text has ended.
//
// Where a text repeats itself, a step also has rows for the tokens that are likely to come next (draft.h). A
// guess is right if it is the token that is drawn before it, so the text is the same as without guesses.
#include <algorithm>

#include "engine/session/draft.h"
#include "engine/session/session.h"
#include "engine/session/text_stream.h"

namespace greta {

// Gives the caller the text of tokens as they come.
struct Session::TokenStream {
  const GenerateOptions& options;
  TextStream stream;
  std::string text = {};

  bool emit(int32_t token) {  // returns false if the caller wants to stop or a stop string was found
    text.clear();
    const bool more = token == kNoToken ? stream.finish(&text) : stream.push(token, &text);
    if (token == kNoToken && text.empty()) return more;
    const bool stopped =
        options.on_token && options.on_token(options.user, token, text.c_str(), text.size()) != 0;
    return more && !stopped;
  }
};

// One session of a batch, from its prompt to the end of its text. Steps that have rows of it are finished in
// the order in which they were submitted.
class Session::Writing {
 public:
  // What a step has of this session: rows of which the last 1 + `guesses` have `output`.
  struct Part {
    Writing* writing;
    uint32_t rows, position;  // `position` is that of the first row with an output
    Executor::Output output;
    uint32_t guesses = 0;
    uint32_t logits = 0;  // which of the step's rows of logits is that of the first row with an output
  };

  Writing(Generation& item, uint64_t start_ns)
      : item_(item),
        session_(*item.session),
        undo_(item.session, session_.position_),
        prompt_(item.tokens),
        next_(session_.position_),
        on_device_(session_.sampler_.on_device() && !session_.grammar_.active()),
        depth_(session_.draft_tokens_),
        stream_{item.options, {tokenizer(), begins_text(), item.options.spoken}},
        start_ns_(start_ns) {}

  bool goes_on() const { return goes_on_; }
  bool on_device() const { return on_device_; }
  bool in_prompt() const { return sent_ < prompt_.size(); }
  bool guesses() const { return depth_.depth() != 0; }
  bool take_cancel() { return session_.take_cancel(); }
  void keep() {
    if (item_.status.ok()) undo_.keep();
  }

  // Runs one of the functions below. What fails in it, a callback too, ends this session's part alone.
  template <class Act>
  void guard(Act&& act) {
    try {
      const Status status = act();
      if (!status.ok()) fail_with(status);
    } catch (const CallbackThrew& threw) {
      fail_with(fail(Code::Argument, "%s", threw.text));
    }
  }

  Status begin() {
    GRETA_TRY(session_.check(item_.tokens));
    GRETA_TRY(stream_.stream.open(item_.options.stops));
    take_cancel();
    if (drafts()) draft_.push(session_.tokens_);
    if (drafts()) draft_.push(item_.tokens);
    return session_.executor_->reserve(session_.sequence_, next_, next_ + uint32_t(item_.tokens.size()));
  }

  // Whether a step can take a row now. `ahead`: its token may be one that a step under way draws.
  bool ready(bool ahead) const {
    if (!goes_on_ || in_prompt() || drawing_ == 0) return goes_on_;
    const bool last = result_.generated_tokens + 1 == item_.options.max_tokens || next_ == session_.context();
    return ahead && drawing_ == 1 && !last && !full_;
  }

  // Gives the next row a page, and those of at most `most` guesses that the step can verify. The text ends
  // where there is no page.
  Status reserve(uint32_t most) {
    const uint32_t left = session_.context() - 1 - next_;
    copy_guesses(drawing_ ? 0 : std::min({most, depth_.depth(), left}));
    const auto pages = [&] {
      const uint32_t end = next_ + 1 + uint32_t(guesses_.size());
      return session_.executor_->reserve(session_.sequence_, next_, end);
    };
    Status status = pages();
    if (status.code == Code::Full && !guesses_.empty()) {
      guesses_.clear();
      status = pages();
    }
    if (status.code != Code::Full) return status;
    full_ = true;
    return drawing_ ? Status{} : stop(StopReason::Context);
  }
  bool full() const { return full_; }

  // Adds at most `most` rows to a step.
  Part add_rows(uint32_t most, std::vector<Executor::Row>* rows) const {
    const Executor::Output output = on_device_ ? Executor::Output::Draw : Executor::Output::Logits;
    if (!in_prompt()) {
      rows->push_back({drawing_ ? kTokenFromSample : uint32_t(token_), next_, session_.sequence_, output});
      const uint32_t guesses = uint32_t(guesses_.size());
      for (uint32_t i = 0; i < guesses; ++i)
        rows->push_back({uint32_t(guesses_[i]), next_ + 1 + i, session_.sequence_, output});
      return {const_cast<Writing*>(this), 1 + guesses, next_, output, guesses};
    }
    const auto left = prompt_.subspan(sent_);
    const uint32_t count = uint32_t(std::min<size_t>(most, left.size()));
    for (uint32_t i = 0; i < count; ++i)
      rows->push_back({uint32_t(left[i]), next_ + i, session_.sequence_, Executor::Output::None});
    if (count == left.size() && !again_) rows->back().output = output;
    return {const_cast<Writing*>(this), count, next_ + count - 1, rows->back().output};
  }

  void submitted(const Part& part) {
    if (in_prompt()) sent_ += part.rows;
    next_ += part.rows - part.guesses;
    drawing_ += part.output != Executor::Output::None;
  }

  // Takes the results of a step.
  Status finish(const Part& part) {
    if (fed_ == prompt_.size()) {
      session_.fed({&token_, 1});
    } else {
      session_.fed(prompt_.subspan(fed_, part.rows));
      fed_ += part.rows;
      if (!again_) result_.prompt_ns = now_ns() - start_ns_;
      if (again_ && fed_ == prompt_.size()) result_.forgotten_tokens += leaving_;
      const GenerateOptions& o = item_.options;
      const bool stopped = o.on_prompt && o.on_prompt(o.user, uint32_t(fed_), uint32_t(prompt_.size())) != 0;
      if (stopped || take_cancel()) return stop(StopReason::Cancelled);
    }
    if (part.output == Executor::Output::None) return {};
    --drawing_;
    return part.guesses ? verify(part) : watch(part);
  }

  // Ends the text. The session keeps what was fed.
  Status stop(StopReason reason) {
    goes_on_ = false;
    session_.executor_->truncate(session_.sequence_, session_.position_);
    if (again_ && fed_ < prompt_.size()) {  // stopped while the kept text was read again
      session_.sampler_.truncate(session_.position_);
      session_.grammar_.truncate(session_.position_);
    }
    const uint64_t spent = now_ns() - start_ns_;
    if (!result_.prompt_ns) result_.prompt_ns = spent;
    result_.generate_ns = spent - result_.prompt_ns;
    result_.prompt_tokens = uint32_t(item_.tokens.size());
    if (stream_.stream.found() < 0) stream_.emit(kNoToken);
    result_.stop_string = stream_.stream.found();
    result_.reason = result_.stop_string >= 0 ? StopReason::String : reason;
    item_.result = result_;
    return {};
  }

  // Ends the session's part as if it had not been there. error_text() belongs to `status`.
  void fail_with(Status status) {
    goes_on_ = false;
    item_.status = status;
    item_.error = error_text();
    session_.take_back(undo_.to);
  }

 private:
  const Tokenizer& tokenizer() const { return *session_.executor_->model().tokenizer; }
  bool drafts() const { return session_.draft_tokens_ != 0; }
  bool begins_text() const {
    return session_.position_ == 0 && item_.tokens.size() == 1 && item_.tokens[0] == tokenizer().bos() &&
           tokenizer().adds_space_prefix() && !session_.grammar_.active();
  }

  // Takes the token of a step without guesses, and sees whether it would have been guessed.
  Status watch(const Part& part) {
    if (drafts()) copy_guesses(1);
    GRETA_TRY(take_draw(part, 0));
    if (!guesses_.empty()) depth_.watched(token_ == guesses_[0]);
    return {};
  }

  // Takes the tokens of a step with guesses, up to the first one that was not guessed.
  Status verify(const Part& part) {
    result_.drafted_tokens += part.guesses;
    for (uint32_t right = 0;; ++right) {
      GRETA_TRY(take_draw(part, right));
      if (!goes_on_) return {};
      if (right == part.guesses || token_ != guesses_[right]) {
        depth_.verified(part.guesses, right);
        return {};
      }
      ++result_.accepted_tokens;
      session_.fed({&token_, 1});
      ++next_;
    }
  }

  Status take_draw(const Part& part, uint32_t i) {
    const Status drawn = draw(part, i);
    if (drawn.code == Code::Cancelled) return stop(StopReason::Cancelled);
    GRETA_TRY(drawn);
    if (drafts()) draft_.push({&token_, 1});
    return take_token();
  }

  void copy_guesses(uint32_t most) {
    const std::span<const int32_t> guess = draft_.guess(most);
    guesses_.assign(guess.begin(), guess.end());
  }

  // Gives the token that the step drew at output `i` of the part, or chooses it from the step's logits.
  Status draw(const Part& part, uint32_t i) {
    const Executor& executor = *session_.executor_;
    if (!on_device_) {
      const float* logits = executor.logits() + uint64_t(part.logits + i) * executor.model().shape.vocab;
      return session_.sample(logits, !item_.options.ignore_end, &token_);
    }
    token_ = int32_t(executor.drawn(session_.sequence_, part.position + i));
    return token_ == int32_t(kNoDraw) ? no_finite_logit() : Status{};
  }

  Status take_token() {
    if (token_ == kNoToken || (!item_.options.ignore_end && tokenizer().is_end(token_)))
      return stop(StopReason::End);
    ++result_.generated_tokens;
    if (!stream_.emit(token_) || take_cancel()) return stop(StopReason::Cancelled);
    if (result_.generated_tokens == item_.options.max_tokens) return stop(StopReason::Length);
    if (full_) return stop(StopReason::Context);
    return session_.position_ == session_.context() ? make_room() : Status{};
  }

  // Where the context is full, some of the tokens leave, and those behind them are read again. So the cache
  // is what reading the kept text for the first time gives, on every device and for every type of cache and
  // architecture. Then the text goes on behind its last token as if it had not moved: the grammar and the
  // sampler keep what they know. The text ends if on_full gives no tokens.
  Status make_room() {
    std::vector<int32_t> instead;
    if (item_.options.on_full) GRETA_TRY(item_.options.on_full(session_.tokens_, &instead));
    if (instead.empty()) return stop(StopReason::Context);
    const uint32_t before = session_.position_, after = uint32_t(instead.size());
    if (after >= before)
      return fail(Code::Full, "%u tokens shall take the place of %u, which makes no room", after, before);
    const auto differs = std::mismatch(instead.begin(), instead.end(), session_.tokens_.begin()).first;
    // At least the last token is read again, since a step needs one.
    const auto common = uint32_t(std::min<size_t>(size_t(differs - instead.begin()), after - 1));
    undo_.to = std::min(undo_.to, common);
    session_.executor_->truncate(session_.sequence_, common);
    session_.position_ = next_ = common;
    session_.tokens_.resize(common);
    session_.sampler_.move_back(before - after);
    session_.grammar_.move_back(before - after);
    again_ = true;
    leaving_ = before - after;
    reread_ = std::move(instead);
    prompt_ = std::span<const int32_t>(reread_).subspan(common);
    sent_ = fed_ = 0;
    return session_.executor_->reserve(session_.sequence_, common, after);
  }

  Generation& item_;
  Session& session_;
  Undo undo_;
  std::span<const int32_t> prompt_;  // the item's, or what is read again
  std::vector<int32_t> reread_;
  bool again_ = false;    // prompt_ is part of reread_
  uint32_t leaving_ = 0;  // tokens that reread_ leaves out
  uint32_t next_;         // the position of the next row
  bool on_device_;
  Draft draft_;
  DraftDepth depth_;
  std::vector<int32_t> guesses_;  // of the step that comes next or is under way
  size_t sent_ = 0;               // tokens of the prompt that were submitted
  size_t fed_ = 0;                // those whose step is finished
  uint32_t drawing_ = 0;          // steps under way that draw a token
  int32_t token_ = kNoToken;      // the last one drawn
  bool goes_on_ = true;
  bool full_ = false;  // the pool has no page for the next row
  TokenStream stream_;
  uint64_t start_ns_;
  GenerateResult result_;
};

// The sessions of a batch, and the steps that they share.
class Session::Batch {
 public:
  explicit Batch(std::span<Generation> items) : executor_(*items[0].session->executor_) {
    rows_.reserve(executor_.plan().step_tokens);
    writings_.reserve(items.size());
    for (Step& step : steps_) step.parts.reserve(items.size());
    const uint64_t start_ns = now_ns();
    for (Generation& item : items) writings_.emplace_back(item, start_ns);
  }

  void run() {
    for (Writing& writing : writings_) writing.guard([&] { return writing.begin(); });
    Step* before = nullptr;  // under way
    for (uint32_t turn = 0;; ++turn) {
      const bool ahead = runs_ahead();
      if (before && !ahead) finish(*std::exchange(before, nullptr));
      Step& step = steps_[turn % kFlights];
      fill(step, ahead);
      Status status;
      if (!step.parts.empty()) status = executor_.submit(rows_, &step.flight);
      const bool submitted = !step.parts.empty() && status.ok();
      if (submitted)
        for (const Part& part : step.parts) part.writing->submitted(part);
      if (!before && !submitted) {
        if (status.ok()) break;  // all have ended
        refuse(step, status);
      }
      if (before) finish(*before);
      before = submitted ? &step : nullptr;
    }
    for (Writing& writing : writings_) writing.keep();
  }

 private:
  using Part = Writing::Part;
  struct Step {
    uint32_t flight = 0;
    std::vector<Part> parts;
  };

  bool runs_ahead() const {
    return executor_.model().device->info().runs_ahead &&
           std::ranges::all_of(
               writings_, [](const Writing& w) { return !w.goes_on() || (w.on_device() && !w.guesses()); });
  }

  // Fills a step: first the next tokens of texts, then pieces of prompts. Where a step does not take all
  // texts, the next one begins with those that were left out.
  void fill(Step& step, bool ahead) {
    rows_.clear();
    step.parts.clear();
    logits_ = 0;
    const size_t count = writings_.size(), first = first_;
    for (size_t i = 0; i < count; ++i) {
      const size_t at = (first + i) % count;
      Writing& writing = writings_[at];
      if (writing.in_prompt() || !writing.ready(ahead)) continue;
      if (!has_room(writing)) {
        first_ = at;
        break;
      }
      writing.guard([&] { return writing.reserve(room_for_guesses(writing)); });
      if (writing.goes_on() && !writing.full()) add(step, writing);
    }
    for (Writing& writing : writings_)
      if (writing.goes_on() && writing.in_prompt() && has_room(writing)) add(step, writing);
  }

  bool has_room(const Writing& writing) const {
    return rows_.size() < executor_.plan().step_tokens &&
           (writing.on_device() || logits_ < executor_.options().output_rows);
  }

  // Guesses are verified only in steps of few rows, which cost little more than a step of one.
  uint32_t room_for_guesses(const Writing& writing) const {
    const uint32_t rows = std::min(kGuessedRows, executor_.plan().step_tokens);
    const uint32_t logits = writing.on_device() ? rows : executor_.options().output_rows - logits_;
    const uint32_t taken = uint32_t(rows_.size()) + 1;
    return taken < rows ? std::min(rows - taken, logits - 1) : 0;
  }

  void add(Step& step, Writing& writing) {
    Part part = writing.add_rows(executor_.plan().step_tokens - uint32_t(rows_.size()), &rows_);
    if (part.output == Executor::Output::Logits) {
      part.logits = logits_;
      logits_ += 1 + part.guesses;
    }
    step.parts.push_back(part);
  }

  void finish(const Step& step) {
    const Status status = executor_.wait(step.flight);
    for (const Part& part : step.parts)
      if (part.writing->goes_on())
        part.writing->guard([&] { return status.ok() ? part.writing->finish(part) : status; });
  }

  // Ends those of a step that could not be submitted. One of them, or the executor's opener, may have
  // stopped the compiling of kernels.
  void refuse(const Step& step, Status status) {
    bool named = false;
    const auto stop = [&](const Part& part) {
      part.writing->guard([&] { return part.writing->stop(StopReason::Cancelled); });
      named = true;
    };
    for (const Part& part : step.parts) {
      if (status.code != Code::Cancelled)
        part.writing->fail_with(status);
      else if (part.writing->take_cancel())
        stop(part);
    }
    if (status.code != Code::Cancelled || named) return;
    for (const Part& part : step.parts) stop(part);
  }

  Executor& executor_;
  std::vector<Writing> writings_;
  std::vector<Executor::Row> rows_;  // of the step that is being filled
  uint32_t logits_ = 0;              // those with logits
  Step steps_[kFlights];
  size_t first_ = 0;  // which text comes first in the next step
};

Status Session::set_draft_tokens(uint32_t most) {
  if (most > kMaxDraftTokens)
    return fail(Code::Argument, "%u tokens to guess in a step, at most %u", most, kMaxDraftTokens);
  draft_tokens_ = most;
  return {};
}

Status Session::generate_batch(std::span<Generation> items) {
  GRETA_TRY(check_together(items));
  Batch(items).run();
  return {};
}

Status Session::generate(std::span<const int32_t> tokens, const GenerateOptions& options,
                         GenerateResult* result) {
  Generation item{this, tokens, options};
  Batch({&item, 1}).run();
  if (!item.status.ok()) return fail(item.status.code, "%s", item.error.c_str());
  *result = item.result;
  return {};
}

}  // namespace greta
