// libedit does the editing. Its keys are read here, so that signals, pastes and changes of size are noticed.
#include "chat/line_editor.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "console.h"
#include "wrap.h"

#if GRETA_LINE_EDITOR
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>

#include <atomic>
#include <cstring>
#include <cwchar>
#endif

namespace greta::cli {

#if GRETA_LINE_EDITOR
namespace {

constexpr char kPasteOn[] = "\x1b[?2004h", kPasteOff[] = "\x1b[?2004l";
constexpr size_t kMaxPaste = 1 << 20;  // characters

// ---- signals while a line is edited, which restore the terminal first ----
termios found, editing_mode;
std::atomic<bool> editing{false}, redraw{false}, resized{false};

void leave_terminal() {
  if (write(STDERR_FILENO, kPasteOff, sizeof kPasteOff - 1) < 0) return;
  tcsetattr(STDIN_FILENO, TCSANOW, &found);
}

void end_by_signal(int signal_number) {
  if (editing.load()) leave_terminal();
  SilentKeys::restore_keys();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void stop_by_signal(int) {
  const int saved = errno;
  const bool back = editing.load();
  SilentKeys::restore_keys();
  if (back) {
    tcgetattr(STDIN_FILENO, &editing_mode);
    leave_terminal();
  }
  raise(SIGSTOP);
  if (back) {
    tcsetattr(STDIN_FILENO, TCSANOW, &editing_mode);
    if (write(STDERR_FILENO, kPasteOn, sizeof kPasteOn - 1) < 0) errno = saved;
    redraw.store(true);
  }
  errno = saved;
}

void note_resize(int) { resized.store(true); }

void on_signal(int number, void (*handler)(int)) {
  struct sigaction action = {}, before = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(number, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
}

// ---- what the terminal shows ----
// libedit takes memory for each place of the screen, twice: 34 GB for the largest size that there can be.
bool screen_is_absurd() {
  constexpr uint32_t kMostPlaces = 1 << 22;
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && uint32_t(size.ws_row) * size.ws_col > kMostPlaces;
}

bool can_steer = true;  // whether the terminal knows escape sequences
std::wstring shown_prompt;
std::wstring drawn;           // what libedit drew at once, with the prompt
uint32_t drawn_columns = 80;  // the width of the terminal then

void note_drawing(EditLine* el) {
  const LineInfoW* const line = el_wline(el);
  drawn = shown_prompt + std::wstring(line->buffer, line->lastchar);
  drawn_columns = terminal_columns();
}

// Puts the cursor where the prompt begins, and erases what follows. A terminal breaks its lines anew when its
// width changes, so that the prompt is as many lines above as the text before the cursor takes now.
void erase_line(EditLine* el) {
  const uint32_t columns = terminal_columns();
  if (!can_steer || columns == 0) return;
  const LineInfoW* const line = el_wline(el);
  const std::wstring before = shown_prompt + std::wstring(line->buffer, line->cursor);
  const size_t same = static_cast<size_t>(
      std::mismatch(before.begin(), before.end(), drawn.begin(), drawn.end()).first - before.begin());
  const std::wstring lines = drawn_lines(before.substr(0, same), drawn_columns) + before.substr(same);
  const uint32_t above = lines_above_end(lines, columns);
  write_error(above > 0 ? format("\r\x1b[%uA\x1b[J", above) : "\r\x1b[J");
}

// ---- keys ----

// Waits for a key. False after Ctrl-C. Signals are let through only while it waits, so that none is missed.
bool wait_for_key(EditLine* el) {
  sigset_t held, before;
  sigemptyset(&held);
  sigaddset(&held, SIGINT);
  sigaddset(&held, SIGWINCH);
  sigaddset(&held, SIGTSTP);
  sigprocmask(SIG_BLOCK, &held, &before);
  bool ready = false;
  while (!ready && !interrupted()) {
    const bool erase = resized.exchange(false);
    if (erase) erase_line(el);
    if (redraw.exchange(false) || erase) {
      if (!screen_is_absurd()) el_resize(el);
      note_drawing(el);
      el_set(el, EL_REFRESH);
    }
    pollfd key{STDIN_FILENO, POLLIN, 0};
    ready = ppoll(&key, 1, nullptr, &before) > 0;
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return ready;
}

// Reads a character. Returns 1, or 0 at the end of the input, or -1 after Ctrl-C.
int read_key(EditLine* el, wchar_t* out) {
  mbstate_t state = {};
  for (int bytes = 0;;) {
    if (!wait_for_key(el)) return -1;
    char byte;
    const ssize_t n = read(STDIN_FILENO, &byte, 1);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return static_cast<int>(n);
    const size_t length = mbrtowc(out, &byte, 1, &state);
    if (length != static_cast<size_t>(-1) && length != static_cast<size_t>(-2)) return 1;
    if (length == static_cast<size_t>(-1) || ++bytes == 4) {
      *out = 0xfffd;
      return 1;
    }
  }
}

// Reads what the terminal marks as a paste, to the mark of its end. What is too long is left out.
std::wstring read_paste(EditLine* el, bool* cut) {
  static constexpr wchar_t kEnd[] = L"\x1b[201~";
  constexpr size_t kEndLength = 6;
  std::wstring text;
  size_t count = 0;  // of the characters that match kEnd now
  wchar_t c;
  while (count < kEndLength && read_key(el, &c) == 1) {
    count = c == kEnd[count] ? count + 1 : c == kEnd[0] ? 1 : 0;
    text += c;
    // Of a text that is too long its last characters are kept apart, in which the mark may begin.
    if (text.size() <= kMaxPaste + kEndLength) continue;
    text.erase(kMaxPaste, 1);
    *cut = true;
  }
  if (count == kEndLength) text.resize(text.size() - kEndLength);
  return text;
}

// Puts a paste into the line, with its line ends.
unsigned char take_paste(EditLine* el, int) {
  bool cut = false;
  const std::wstring text = read_paste(el, &cut);
  std::wstring line;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == L'\r' && i + 1 < text.size() && text[i + 1] == L'\n') continue;
    line += text[i] == L'\r' ? L'\n' : text[i];
  }
  if (!line.empty()) el_winsertstr(el, line.c_str());
  note_drawing(el);
  if (!cut) return CC_REFRESH;
  write_error("\n");
  say("of the paste, the first 1048576 characters are taken");
  return CC_REDISPLAY;
}

std::wstring wide(const std::string& text) {
  std::wstring out(text.size() + 1, L'\0');
  const char* from = text.c_str();
  mbstate_t state = {};
  const size_t length = mbsrtowcs(out.data(), &from, out.size(), &state);
  out.resize(length == static_cast<size_t>(-1) ? 0 : length);
  return out;
}

// Editing needs to know the encoding of characters. Where the locale does not say it, it is UTF-8.
void choose_locale() {
  setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

struct LineEditor::Editing {
  EditLine* el = nullptr;
  ::History* history = nullptr;
  FILE* out = nullptr;
  std::string prompt;
  bool pastes = true;  // the terminal may be able to mark them
  Completer complete = nullptr;
  std::wstring text;  // what the line begins as

  bool open(const std::vector<std::string>& lines) {
    const char* term = getenv("TERM");
    if (!term || !*term || tcgetattr(STDIN_FILENO, &found) != 0 || screen_is_absurd()) return false;
    pastes = can_steer = std::strcmp(term, "dumb") != 0;
    choose_locale();
    const int copy = dup(STDERR_FILENO);
    out = copy < 0 ? nullptr : fdopen(copy, "w");
    history = history_init();
    if (out) el = el_init("greta-cli", stdin, out, stderr);
    if (!el || !history) return false;
    HistEvent event;
    ::history(history, &event, H_SETSIZE, static_cast<int>(cli::History::kMaxLines));
    for (const std::string& line : lines) ::history(history, &event, H_ENTER, line.c_str());
    el_set(el, EL_CLIENTDATA, this);
    el_set(el, EL_EDITOR, "emacs");
    el_set(el, EL_SIGNAL, 0);
    el_set(el, EL_HIST, ::history, history);
    el_set(el, EL_GETCFN, read_key);
    el_set(el, EL_PROMPT_ESC, give_prompt, '\1');
    el_set(el, EL_ADDFN, "greta-paste", "take a paste", take_paste);
    el_set(el, EL_ADDFN, "greta-complete", "complete a word", complete_word);
    const struct {
      const char *key, *command;
    } binds[] = {
        {"\\e[200~", "greta-paste"},  {"^R", "em-inc-search-prev"}, {"\\e[3~", "ed-delete-next-char"},
        {"\\e[H", "ed-move-to-beg"},  {"\\e[F", "ed-move-to-end"},  {"\\e[1~", "ed-move-to-beg"},
        {"\\e[4~", "ed-move-to-end"}, {"\\eOH", "ed-move-to-beg"},  {"\\eOF", "ed-move-to-end"},
        {"\\e[1;5C", "em-next-word"}, {"\\e[1;5D", "ed-prev-word"}, {"^W", "ed-delete-prev-word"},
        {"^I", "greta-complete"}};
    for (const auto& bind : binds) el_set(el, EL_BIND, bind.key, bind.command, nullptr);
    for (const int number : {SIGTERM, SIGHUP, SIGQUIT}) on_signal(number, end_by_signal);
    on_signal(SIGTSTP, stop_by_signal);
    on_signal(SIGWINCH, note_resize);
    return true;
  }

  ~Editing() {
    if (el) el_end(el);
    if (history) history_end(history);
    if (out) fclose(out);
  }

  static Editing& of(EditLine* el) {
    void* self = nullptr;
    el_get(el, EL_CLIENTDATA, &self);
    return *static_cast<Editing*>(self);
  }

  static char* give_prompt(EditLine* el) { return of(el).prompt.data(); }

  // Puts in what all words that fit have in common; where that is nothing new, it lists them.
  static unsigned char complete_word(EditLine* el, int) {
    const LineInfo* info = el_line(el);
    const std::string line(info->buffer, info->cursor);
    const Completions found = of(el).complete(line);
    if (found.words.empty()) return CC_ERROR;
    std::string common = found.words[0];
    for (const std::string& word : found.words) {
      const auto end = std::mismatch(common.begin(), common.end(), word.begin(), word.end()).first;
      common.erase(end, common.end());
    }
    const size_t typed = line.size() - found.start;
    if (common.size() > typed) {
      el_insertstr(el, common.c_str() + typed);
      return CC_REFRESH;
    }
    if (found.words.size() == 1) return CC_ERROR;
    std::string list = "\n";
    for (const std::string& word : found.words) list += printable(word) + "  ";
    write_error(list + "\n");
    return CC_REDISPLAY;
  }

  // Reads the first character of a line. The line has been made empty by then.
  static int read_first_key(EditLine* el, wchar_t* out) {
    el_set(el, EL_GETCFN, read_key);
    Editing& self = of(el);
    if (!self.text.empty()) {
      el_winsertstr(el, self.text.c_str());
      note_drawing(el);
      el_set(el, EL_REFRESH);
    }
    return read_key(el, out);
  }

  Outcome read(std::string* line) {
    editing.store(true);
    if (pastes) write_error(kPasteOn);
    el_set(el, EL_GETCFN, read_first_key);
    el_set(el, EL_PREP_TERM,
           1);  // el_gets shows the prompt first: keys that come at once would be read as a line
    int length = 0;
    const char* text = el_gets(el, &length);
    if (pastes) write_error(kPasteOff);
    editing.store(false);
    if (interrupted()) {
      write_error("\n");
      return Outcome::kInterrupted;
    }
    if (!text || length <= 0) return Outcome::kEnd;
    line->assign(text, static_cast<size_t>(length));
    return Outcome::kLine;
  }
};
#else
struct LineEditor::Editing {};
#endif

LineEditor::LineEditor(bool plain, bool colour, Completer complete) : colour_(colour) {
#if GRETA_LINE_EDITOR
  if (plain || !stdin_is_terminal() || !stderr_is_terminal()) return;
  auto editing = std::make_unique<Editing>();
  editing->complete = complete;
  if (editing->open(history_.lines())) editing_ = std::move(editing);
#else
  (void)plain;
  (void)complete;
#endif
}

LineEditor::~LineEditor() = default;

LineEditor::Outcome LineEditor::read(const std::string& prompt, std::string* line, const std::string& text) {
  on_interrupt(OnInterrupt::kNote);
  forget_interrupt();
  Outcome outcome = Outcome::kEnd;
#if GRETA_LINE_EDITOR
  if (editing_) {
    editing_->prompt = colour_ ? "\1\x1b[1;32m\1" + prompt + "\1\x1b[0m\1 " : prompt + " ";
    editing_->text = wide(text);
    shown_prompt = wide(prompt + " ");
    drawn.clear();
    outcome = editing_->read(line);
  } else {
    outcome = read_plain(prompt, line);
  }
#else
  (void)text;
  outcome = read_plain(prompt, line);
#endif
  forget_interrupt();
  on_interrupt(OnInterrupt::kStop);
  if (outcome == Outcome::kLine && !line->empty() && line->back() == '\n') line->pop_back();
  return outcome;
}

LineEditor::Outcome LineEditor::read_plain(const std::string& prompt, std::string* line) {
  write_error(colour_ ? "\x1b[1;32m" + prompt + "\x1b[0m " : prompt + " ");
  char* text = nullptr;
  size_t capacity = 0;
  const ssize_t length = getline(&text, &capacity, stdin);
  if (length >= 0) line->assign(text, static_cast<size_t>(length));
  free(text);
  if (interrupted()) {
    clearerr(stdin);
    write_error("\n");
    return Outcome::kInterrupted;
  }
  return length >= 0 ? Outcome::kLine : Outcome::kEnd;
}

void LineEditor::remember(const std::string& line) {
  if (!history_.add(line)) return;
#if GRETA_LINE_EDITOR
  HistEvent event;
  if (editing_) ::history(editing_->history, &event, H_ENTER, line.c_str());
#endif
}

}  // namespace greta::cli
