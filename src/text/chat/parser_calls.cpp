// The states of the parser in which calls of tools are read, and how calls are passed on.
#include <utility>

#include "text/chat/marks.h"
#include "text/chat/parser.h"
#include "text/chat/text.h"

namespace greta {

// ---- passing calls on ---------------------------------------------------------------------------

void ChatParser::before_call() {
  blanks_.clear();
  trim_ = true;
  apart_ = said_;
}

// Gives those calls that pieces have not given yet.
bool ChatParser::give(std::vector<ChatCall>&& calls) {
  before_call();
  calls.erase(calls.begin(), calls.begin() + std::ptrdiff_t(std::min(calls.size(), pieces_.calls())));
  pieces_ = {};
  for (ChatCall& call : calls)
    if (!stopped_ && !sink_.call(std::move(call))) stopped_ = true;
  return !stopped_;
}

// From here on a call may come in pieces. `before` is a mark that belongs to it.
void ChatParser::look_for_pieces(std::string_view name, std::string_view before) {
  pieces_ = {};
  looked_ = 0;
  if (!sink_.pieces.begin || form_.style.id_behind || tools_.empty()) return;
  pieces_.start(name);
  pass_new(before);
}

void ChatParser::pass_pieces(std::string_view body) {
  if (body.size() <= looked_) return;
  pass_new(body.substr(looked_));
  looked_ = body.size();
}

void ChatParser::pass_new(std::string_view text) {
  if (!pieces_.push(text, tools_, sink_.pieces, sink_.call)) stopped_ = true;
  if (pieces_.begun()) before_call();
}

// ---- states -------------------------------------------------------------------------------------

CallsRead ChatParser::read(std::string_view body, std::vector<ChatCall>* out) const {
  const CallsRead read = read_calls(body, tools_, form_.style, out);
  const bool known =
      std::all_of(out->begin(), out->end(), [&](const ChatCall& c) { return tools_.has(c.name); });
  return known || !form_.any_calls ? read : CallsRead::None;
}

// A closing mark that begins within the limit is waited for, so that the result does not depend on how the
// text is cut.
bool ChatParser::take_calls(bool last) {
  const std::string_view text = rest(), end = section_->close.empty() ? section_->open : section_->close;
  size_t at = text.find(end, searched_);
  const bool closed = at != text.npos;
  // Calls within the reasoning end before it does.
  if (thinking_) {
    const size_t from = searched_ - std::min(searched_, thinking_->close.size());
    if (text.substr(0, at).find(thinking_->close, from) != text.npos) return refuse_calls(), true;
  }
  if (!thinking_) pass_pieces(text.substr(0, closed ? at : text.size() - (last ? 0 : begun(text, end))));
  if (!closed && !last && text.size() <= kMaxCallBytes + end.size()) {
    searched_ = text.size() - std::min(text.size(), end.size() - 1);
    return false;
  }
  if (!closed) at = text.size();
  const size_t after = at + (closed && !section_->close.empty() ? end.size() : 0);
  if (at > kMaxCallBytes) {
    if (pieces_.begun()) drop(after);
    return refuse_calls(), true;
  }
  std::vector<ChatCall> calls;
  std::string whole(section_->open);
  whole += text.substr(0, after);
  const std::string_view body = section_->keep_open ? std::string_view(whole) : text.substr(0, at);
  const CallsRead found = read(body, &calls);
  if (found == CallsRead::Calls) {
    drop(after);
    return accept(std::move(calls), whole);
  }
  if (found == CallsRead::None && closed && section_->or_text && !thinking_) {
    drop(after);
    pass(body, false);
    state_ = State::Start;
    return true;
  }
  // If the mark was within an argument, another one follows.
  if (closed && found == CallsRead::Unfinished && ++failed_calls_ < kMaxFailedCalls) {
    searched_ = at + 1;
    return true;
  }
  if (pieces_.begun()) drop(after);
  refuse_calls();
  return true;
}

// It is no call. Its mark is text, and what follows is looked at again. If it has begun in pieces, it was
// dropped.
void ChatParser::refuse_calls() {
  ++failed_calls_;
  release_held();
  state_ = thinking_ ? State::Reasoning : State::Text;
  if (std::exchange(pieces_, {}).begun()) return;
  pass(section_->open, thinking_ != nullptr);
}

bool ChatParser::accept(std::vector<ChatCall>&& calls, std::string_view written) {
  if (!thinking_) {
    state_ = State::Text;
    return give(std::move(calls));
  }
  state_ = State::Held;
  held_text_ += written;
  held_.insert(held_.end(), std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
  return true;
}

bool ChatParser::take_held(bool last) {
  const std::string_view text = rest();
  std::string_view solid = text;
  skip_blanks(&solid);
  if (solid.empty()) {
    if (!last) return false;
    drop(text.size());
    thinking_ = nullptr;
    state_ = State::Text;
    give(std::move(held_));
    return false;
  }
  const auto take_mark = [&](std::string_view mark) {
    held_text_ += text.substr(0, text.size() - solid.size());
    drop(text.size() - solid.size() + mark.size());
  };
  const bool full = held_.size() >= kMaxCallsInBody || held_text_.size() > kMaxCallBytes;
  if (!held_closed_ && !full) {
    bool may = may_become(solid, thinking_->close);
    for (const ChatSection* section : form_.sections) {
      if (section->kind != ChatSection::Kind::Calls) continue;
      may |= may_become(solid, section->open);
      if (!solid.starts_with(section->open)) continue;
      take_mark(section->open);
      section_ = section;
      searched_ = 0;
      state_ = State::Calls;
      return true;
    }
    if (solid.starts_with(thinking_->close)) {
      take_mark(thinking_->close);
      held_closed_ = true;
      return true;
    }
    if (may && !last) return false;
  }
  // More was thought or said, so these calls were only thought of.
  const bool closed = held_closed_;
  release_held();
  state_ = State::Reasoning;
  if (closed) end_reasoning();
  return true;
}

// Passes on calls that were held, as reasoning.
void ChatParser::release_held() {
  std::string_view text = held_text_;
  if (held_closed_) text = text.substr(0, text.rfind(thinking_->close));
  pass(text, true);
  held_.clear();
  held_text_.clear();
  held_closed_ = false;
}

// Takes JSON at the start of the answer if its first key is one that a call begins with, or if the name of a
// tool stood above it.
bool ChatParser::take_bare_call(bool last) {
  static constexpr std::string_view kKeys[] = {"\"name\"",       "\"type\"",      "\"function\"",
                                               "\"parameters\"", "\"arguments\"", "\"id\""};
  constexpr size_t kMaxBytes = 1u << 16;
  const std::string_view text = rest();
  std::string_view key = text;
  if (!key.empty()) key.remove_prefix(1);
  skip_blanks(&key);
  const bool named = !recipient_.empty();
  bool begins = named && text.starts_with('{'), may = text.empty() || (!named && key.empty());
  for (const std::string_view wanted : kKeys) {
    if (named) break;
    begins |= key.starts_with(wanted);
    may |= may_become(key, wanted);
  }
  const size_t bytes = begins ? json_extent(text.substr(0, kMaxBytes)) : 0;
  if (begins) pass_pieces(bytes ? text.substr(0, bytes) : text);
  if (!last && bytes == 0 && (may || (begins && text.size() < kMaxBytes))) return false;
  std::vector<ChatCall> calls;
  state_ = State::Text;
  const std::string name = std::exchange(recipient_, {});
  const std::string_view body = text.substr(0, bytes);
  const bool called = bytes > 0 && (named ? parse_call(name, body, &calls)
                                          : read(body, &calls) == CallsRead::Calls && calls.size() == 1 &&
                                                tools_.has(calls[0].name));
  if (!called) {
    if (pieces_.begun())
      drop(bytes ? bytes : text.size());
    else if (named)
      pass(name + "\n", false);
    pieces_ = {};
    return true;
  }
  drop(bytes);
  give(std::move(calls));
  state_ = State::Start;  // there may be more
  called_ = true;
  return true;
}

}  // namespace greta
