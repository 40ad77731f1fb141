// Generation for the sessions of a batch: prompts are read in steps, then one token of each session a step.
#include <algorithm>

#include "engine/session/session.h"
#include "engine/write/model_draft.h"
#include "engine/write/steps.h"

namespace greta {

// A session of a batch. Its callbacks get the text.
class Session::Writer final : public Writing {
 public:
  explicit Writer(Generation& item)
      : Writing(item.session->executor_->model(), item.session->context(), item.session->text_, item.options),
        item_(item),
        session_(*item.session),
        undo_(item.session, session_.position()) {}

  Status begin() {
    start_clock();
    GRETA_TRY(session_.check(item_.tokens));
    session_.executor_->keep_checkpoint(sequence(), session_.text_.fed);
    read_again(std::exchange(session_.behind_, 0));
    std::vector<int32_t>& tokens = session_.text_.tokens;
    tokens.insert(tokens.end(), item_.tokens.begin(), item_.tokens.end());
    GRETA_TRY(Writing::begin(item_.options.stops, item_.options.spoken, item_.options.parser));
    session_.take_cancel();
    return session_.executor_->reserve(sequence(), sent(), uint32_t(tokens.size()));
  }

  // The session keeps what was fed, or is as it was if the text has failed.
  void settle() {
    item_.status = status();
    if (status().ok()) {
      item_.result = result();
      session_.take_back(session_.position());
    } else {
      item_.error = error();
      session_.take_back(undo_.to);
    }
    session_.executor_->drop_for_guesses(sequence());
  }
  void keep() {
    if (status().ok()) undo_.keep();
  }
  // How many of its next `rows` tokens a piece of the prompt has, so that it ends where a checkpoint is made.
  uint32_t piece(uint32_t rows) const {
    if (!reading() || !session_.executor_->has_checkpoints()) return rows;
    const std::vector<uint32_t>& places = item_.options.places;
    const auto next = std::ranges::upper_bound(places, sent());
    return next == places.end() ? rows : std::min(rows, *next - sent());
  }

 private:
  bool give(int32_t token, const std::string& text, const float*) override {
    const GenerateOptions& o = item_.options;
    if (token == kNoToken && text.empty()) return true;
    const Span span(session_.executor_->model().spans, SpanKind::Callback, "on_token");
    if (o.on_token && o.on_token(o.user, token, text.c_str(), text.size()) != 0) return false;
    return token == kNoToken || !session_.take_cancel();
  }
  bool read(uint32_t done, uint32_t total) override {
    const GenerateOptions& o = item_.options;
    if (done == total) session_.executor_->keep_checkpoint(sequence(), session_.text_.fed);
    return !(o.on_prompt && o.on_prompt(o.user, done, total) != 0) && !session_.take_cancel();
  }
  void piece_sent() override {
    if (!reading() || std::ranges::binary_search(item_.options.places, sent()))
      session_.executor_->keep_checkpoint(sequence(), sent());
  }
  // Where the text ends a step may be under way that has moved its state.
  void next_sent() override { session_.executor_->keep_passing_state(sequence(), sent()); }
  void took_back(uint32_t position) override { undo_.to = std::min(undo_.to, position); }

  Generation& item_;
  Session& session_;
  Undo undo_;
};

// The sessions of a batch, and the steps that they share.
class Session::Batch final : Steps::Owner {
 public:
  explicit Batch(std::span<Generation> items)
      : executor_(*items[0].session->executor_),
        steps_(executor_, *this, Steps::Thrown::Passes, items.size()) {
    for (Generation& item : items) writers_.push_back(std::make_unique<Writer>(item));
  }

  void run() {
    for (const auto& writer : writers_) steps_.act_for(*writer, [&] { return writer->begin(); });
    for (bool goes_on = true; goes_on;) {
      fill();
      goes_on = !steps_.parts().empty();
      if (goes_on)
        steps_.run();
      else
        goes_on = steps_.collect();
    }
    for (const auto& writer : writers_) writer->keep();
  }

 private:
  void ended(Writing& writing) override { static_cast<Writer&>(writing).settle(); }

  // Fills a step: first the next tokens of texts, then pieces of prompts. Where a step does not take all
  // texts, the next one begins with those that were left out.
  void fill() {
    steps_.begin();
    steps_.guess_together(writers_);
    const size_t count = writers_.size(), first = first_;
    for (size_t i = 0; i < count; ++i) {
      const size_t at = (first + i) % count;
      Writer& writer = *writers_[at];
      if (writer.reading() || !writer.ready(steps_.ahead())) continue;
      if (!steps_.has_room(writer)) {
        first_ = at;
        break;
      }
      steps_.act_for(writer, [&] { return add(writer); });
    }
    for (const auto& writer : writers_)
      if (writer->goes_on() && writer->reading()) steps_.act_for(*writer, [&] { return add(*writer); });
  }

  // Adds the rows of a text for which there are pages. A text without a page for its next token ends.
  Status add(Writer& writer) {
    Writing::Room room = steps_.room(size_t(std::ranges::count_if(writers_, &Writing::goes_on)));
    room.rows = writer.piece(room.rows);
    for (;; room.guesses = 0) {
      const Writing::Part part = writer.part(executor_, room);
      if (!part.count) return {};
      const Status status = executor_.reserve(writer.sequence(), part.begin, part.end());
      if (status.ok()) return steps_.add(part), status;
      if (status.code != Code::Full || writer.reading()) return status;
      if (!part.guesses) return writer.end_for_pages();
    }
  }

  Executor& executor_;
  Steps steps_;
  std::vector<std::unique_ptr<Writer>> writers_;
  size_t first_ = 0;  // which text comes first in the next step
};

Status Session::set_draft(DraftSettings settings) {
  GRETA_TRY(check_draft(settings, executor_->has_head()));
  if (settings.kind == DraftKind::Model) {
    GRETA_TRY(check_draft_model(executor_->model(), context(), *settings.executor));
    GRETA_TRY(open_draft(settings, &settings.source));  // it goes on from text to text
  }
  draft_ = std::move(settings);
  return {};
}

Status Session::generate_batch(std::span<Generation> items) {
  GRETA_TRY(check_together(items));
  for (Generation& item : items) item.options.draft = item.session->draft_;
  Batch(items).run();
  return {};
}

Status Session::generate(std::span<const int32_t> tokens, const GenerateOptions& options,
                         GenerateResult* result) {
  Generation item{this, tokens, options};
  GRETA_TRY(generate_batch({&item, 1}));
  if (!item.status.ok()) return fail(item.status.code, "%s", item.error.c_str());
  *result = item.result;
  return {};
}

}  // namespace greta
