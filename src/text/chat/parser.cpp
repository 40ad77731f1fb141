// A state machine over a buffer. Each state takes off its front what is certain, and leaves what may yet be
// the beginning of a mark.
#include "text/chat/parser.h"

#include <utility>

#include "text/chat/channels.h"
#include "text/chat/marks.h"
#include "text/chat/text.h"

namespace greta {

using Kind = ChatSection::Kind;

namespace {

bool is_calls(const ChatSection* section) { return section->kind == Kind::Calls; }

}  // namespace

// ---- in and out ---------------------------------------------------------------------------------

ChatParser::ChatParser(const ChatForm& form, const ToolList& tools, std::string_view prompt, ChatSink sink)
    : form_(form), tools_(tools), sink_(std::move(sink)) {
  if (form.channels) state_ = State::Header;
  if (const ChatSection* opened = form.opened_by(prompt)) begin_reasoning(opened);
}

bool ChatParser::push(std::string_view text) {
  if (stopped_) return false;
  buffer_ += text;
  while (!stopped_ && step(false)) {
  }
  buffer_.erase(0, at_);
  at_ = 0;
  return !stopped_;
}

bool ChatParser::finish() {
  while (!stopped_ && step(true)) {
  }
  buffer_.clear();
  at_ = 0;
  const bool inside = reasoning();
  if (!stopped_ && !inside && !trim_ && !blanks_.empty()) stopped_ = !sink_.text(blanks_);
  blanks_.clear();
  const bool wanted = !stopped_;
  stopped_ = true;
  return wanted;
}

bool ChatParser::step(bool last) {
  using Parser = ChatParser;
  constexpr bool (Parser::* kSteps[])(bool) = {
      // by state
      &Parser::take_start, &Parser::take_text,      &Parser::take_reasoning, &Parser::take_calls,
      &Parser::take_held,  &Parser::take_bare_call, &Parser::take_header,    &Parser::take_message};
  return (this->*kSteps[size_t(state_)])(last);
}

bool ChatParser::reasoning() const {
  const bool message = state_ == State::Message || (state_ == State::Header && resumes_);
  return thinking_ || (message && thought_);
}

std::string ChatParser::reasoning_end() const {
  if (!reasoning()) return {};
  if (form_.addressed) return "<|eom|><|start|>assistant to=user<|message|>";
  if (form_.channels) return "<|end|><|start|>assistant<|channel|>final<|message|>";
  return "\n" + std::string(thinking_->close) + "\n\n";
}

// White space waits for what comes after it. It is dropped before a mark, and where trim_ says so.
void ChatParser::pass(std::string_view text, bool thought) {
  if (trim_) skip_blanks(&text);
  if (text.empty()) return;
  trim_ = false;
  const size_t end = text.find_last_not_of(kBlanks) + 1;
  const std::string_view white = text.substr(end);
  if (end > 0) {
    std::string piece;
    if (apart_ || !blanks_.empty()) {
      piece = (apart_ ? "\n" : "") + std::move(blanks_) + std::string(text.substr(0, end));
      blanks_.clear();
      apart_ = false;
    }
    const std::string_view ready = piece.empty() ? text.substr(0, end) : std::string_view(piece);
    (thought ? reasoned_ : said_) = true;
    if (!thought) before_ = ready.back();
    if (!(thought ? sink_.reasoning : sink_.text)(ready)) stopped_ = true;
  }
  blanks_ += white;
}

void ChatParser::say(size_t bytes) {
  const std::string_view text = rest().substr(0, bytes);
  drop(bytes);
  pass(text, false);
}

void ChatParser::begin_reasoning(const ChatSection* section) {
  thinking_ = section;
  state_ = State::Reasoning;
  trim_ = true;
  apart_ = reasoned_;
}

void ChatParser::end_reasoning() {
  thinking_ = nullptr;
  state_ = State::Start;
  blanks_.clear();
  trim_ = true;
  apart_ = false;
}

// ---- states -------------------------------------------------------------------------------------

// In this state, nothing but white space and reasoning has come so far.
bool ChatParser::take_start(bool last) {
  const std::string_view text = rest(), between = called_ ? " \t\r\n;" : kBlanks;  // Llama 3: call; call
  const std::string_view solid = text.substr(std::min(text.size(), text.find_first_not_of(between)));
  if (solid.empty() && !last) return false;
  for (const ChatSection* section : form_.sections) {
    if (section->kind != Kind::Reasoning) continue;
    if (solid.starts_with(section->open)) {
      drop(text.size() - solid.size() + section->open.size());
      begin_reasoning(section);
      return true;
    }
    if (!last && may_become(solid, section->open)) return false;
  }
  if (form_.named_calls && looks_for_calls()) return take_named_call(solid, last);
  const bool bare = form_.bare_calls && looks_for_calls() && solid.starts_with('{');
  if (bare) drop(text.size() - solid.size());
  if (bare) look_for_pieces("", "");
  state_ = bare ? State::BareCall : State::Text;
  return true;
}

// Takes the line with the name of a tool, below which its arguments stand.
bool ChatParser::take_named_call(std::string_view solid, bool last) {
  const size_t line = solid.find('\n');
  const std::string_view name = trim_blanks(solid.substr(0, line));
  if (line == solid.npos && !last && tools_.may_begin(name)) return false;
  state_ = State::Text;
  if (line == solid.npos || !tools_.has(name)) return true;
  recipient_ = name;
  drop(rest().size() - solid.size() + line + 1);
  look_for_pieces(recipient_, "");
  state_ = State::BareCall;
  return true;
}

bool ChatParser::take_text(bool last) {
  // The marks that open sections, those that close an answer, which are dropped too, and those of reasoning.
  std::vector<std::string_view> marks;
  std::vector<const ChatSection*> sections;
  for (const ChatSection* section : form_.sections) {
    if (section->kind == Kind::Calls && !looks_for_calls()) continue;
    marks.push_back(section->open);
    sections.push_back(section);
    if (section->kind == Kind::Calls) continue;
    marks.push_back(section->close);
    sections.push_back(section);
  }
  int which;
  const std::string_view text = rest();
  const size_t bytes = before_mark(text, marks, &which);
  if (which < 0) {
    say(last ? text.size() : bytes);
    return false;
  }
  say(bytes);
  const ChatSection& section = *sections[size_t(which)];
  if (section.kind == Kind::Reasoning && marks[size_t(which)] == section.close && opened_ == 0)
    return take_stray_close(section, last);
  drop(marks[size_t(which)].size());
  if (section.kind == Kind::Reasoning) {  // it is text, and what closes it is, too
    marks[size_t(which)] == section.open ? ++opened_ : --opened_;
    pass(marks[size_t(which)], false);
  } else if (section.kind == Kind::Calls) {
    section_ = &section;
    searched_ = 0;
    state_ = State::Calls;
    look_for_pieces("", section.keep_open ? section.open : "");
  } else {
    blanks_.clear();
    trim_ = true;
  }
  return true;
}

// The closing mark of reasoning that was not opened is dropped where it comes first or ends a line.
// Elsewhere, and in quotes, it is text.
bool ChatParser::take_stray_close(const ChatSection& section, bool last) {
  std::string_view after = rest().substr(section.close.size());
  after.remove_prefix(std::min(after.size(), after.find_first_not_of(" \t\r")));
  if (said_ && after.empty() && !last) return false;
  drop(section.close.size());
  const bool quoted = blanks_.empty() && std::string_view("`\"'").find(before_) != std::string_view::npos;
  if (said_ && (quoted || (!after.empty() && after[0] != '\n'))) return pass(section.close, false), true;
  blanks_.clear();
  if (said_) return true;
  trim_ = true;
  state_ = State::Start;
  return true;
}

// A call within the reasoning is looked for too, since models forget to close it.
bool ChatParser::take_reasoning(bool last) {
  std::vector<std::string_view> marks{thinking_->close};
  std::vector<const ChatSection*> sections{thinking_};
  for (const ChatSection* section : form_.sections) {
    if (!is_calls(section) || !looks_for_calls()) continue;
    marks.push_back(section->open);
    sections.push_back(section);
  }
  int which;
  const std::string_view text = rest();
  const size_t bytes = before_mark(text, marks, &which);
  const size_t taken = which < 0 && last ? text.size() : bytes;
  drop(taken);
  pass(text.substr(0, taken), true);
  if (which < 0) return false;
  drop(marks[size_t(which)].size());
  if (which > 0) {
    section_ = sections[size_t(which)];
    searched_ = 0;
    state_ = State::Calls;
    return true;
  }
  end_reasoning();
  return true;
}

bool ChatParser::take_header(bool last) {
  const std::string_view text = rest();
  ChannelHeader header;
  const HeaderRead read = read_header(text, &header);
  if (read == HeaderRead::Unfinished && !last) return false;
  if (read == HeaderRead::Unfinished && !resumes_) {
    drop(text.size());  // the answer ends within a header, so nothing was said
    return false;
  }
  state_ = State::Message;
  searched_ = 0;
  if (read == HeaderRead::Header) {
    recipient_ = header.recipient;
    thought_ = header.recipient.empty() && header.channel == "analysis";
    if (form_.addressed && (recipient_ == "self" || recipient_ == "user")) {
      thought_ = recipient_ == "self";
      recipient_.clear();
    }
    drop(header.bytes);
    if (!form_.addressed) look_for_pieces(recipient_, "");
    blanks_.clear();
    trim_ = thought_;
    apart_ = thought_ ? reasoned_ : said_;
    return true;
  }
  // It is no header. Its mark is text, and what follows may begin with another.
  if (!resumes_) {
    recipient_.clear();
    thought_ = false;
  }
  const size_t bytes = resumes_ ? (text.starts_with(kStart) ? kStart : kChannel).size() : 1;
  drop(bytes);
  pass(text.substr(0, bytes), thought_);
  return true;
}

// Reads the call in a message for a tool: its arguments, or with Muse Glimmer the call between tags.
bool ChatParser::read_message(std::string_view body, std::vector<ChatCall>* calls) const {
  if (!form_.addressed) return parse_call(recipient_, body, calls);
  body = trim_blanks(body);
  if (!take(&body, "<atem:function_calls>")) return false;
  return read(body.substr(0, body.rfind("</atem:function_calls>")), calls) == CallsRead::Calls;
}

bool ChatParser::take_message(bool last) {
  const std::string_view text = rest();
  int which;
  const bool call = !recipient_.empty();
  size_t bytes = searched_ + before_mark(text.substr(searched_), kMessageEnds, &which);
  if (call && bytes > kMaxCallBytes) {
    recipient_.clear();  // too long for a call
    if (std::exchange(pieces_, {}).begun()) drop(bytes);
    searched_ = 0;
    return true;
  }
  if (which < 0 && last) bytes = text.size();
  if (call) pass_pieces(text.substr(0, bytes));
  if (call && which < 0 && !last) {
    searched_ = bytes;
    return false;
  }
  const std::string_view body = text.substr(0, bytes), json = trim_blanks(body);
  if (call && which >= 0 && json.starts_with('{') && json_extent(json) == 0 &&
      ++failed_calls_ < kMaxFailedCalls) {
    searched_ = bytes + kMessageEnds[which].size();  // the mark is within an argument
    return true;
  }
  std::vector<ChatCall> calls;
  drop(bytes);
  resumes_ = which >= 0 && (kMessageEnds[which] == kStart || kMessageEnds[which] == kChannel);
  if (call && read_message(body, &calls)) {
    resumes_ = false;
    give(std::move(calls));
  } else if (!std::exchange(pieces_, {}).begun()) {
    pass(body, thought_);
  }
  recipient_.clear();
  searched_ = 0;
  if (which < 0) return false;
  if (!resumes_) {
    if (kMessageEnds[which] != kStart && kMessageEnds[which] != kChannel) drop(kMessageEnds[which].size());
    blanks_.clear();
  }
  state_ = State::Header;
  return true;
}

}  // namespace greta
