// The terminal, Ctrl-C, and the two output streams.
#include "console.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "greta.h"
#include "wrap.h"

namespace greta::cli {
namespace {

std::atomic<int> interrupts{0};
std::atomic<OnInterrupt> interrupt_answer{OnInterrupt::kStop};
std::atomic<greta_session*> session_in_use{nullptr};
static_assert(std::atomic<greta_session*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

int output_error = 0;  // errno of the first write to stdout that failed
Verbosity level = Verbosity::kNormal;
bool level_known = false;
std::vector<std::string> early_notes;  // notes made before the verbosity is known
std::vector<std::string> later_notes;  // those that were said come first
size_t later_notes_said = 0;
bool notes_wait = true;
Colour colour = Colour::kAuto;
int log_file = -1;
WordWrap words;  // of stdout
termios shown_keys;
std::atomic<bool> keys_are_silent{false};

void handle_interrupt(int) {
  const int saved = errno;
  const bool first = interrupts.fetch_add(1) == 0;
  if (!first && interrupt_answer.load() == OnInterrupt::kStop) {
    SilentKeys::restore_keys();
    // The terminal has written ^C, and the cursor stands behind it.
    if (write(STDERR_FILENO, "\n", 1) < 0) errno = saved;
    _exit(kExitInterrupted);
  }
  if (greta_session* session = session_in_use.load()) greta_session_cancel(session);
  errno = saved;
}

// Writes all of the text. Returns 0 or errno.
int write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n > 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {  // another program has made the terminal non-blocking
      pollfd wait{fd, POLLOUT, 0};
      poll(&wait, 1, 100);
      if (interrupted()) return EINTR;
    } else if (errno != EINTR) {  // After the first Ctrl-C the rest is still written.
      return errno;
    }
  }
  return 0;
}

}  // namespace

void start_console() {
  // A file that is opened later must not become descriptor 0, 1 or 2. Writing to a closed stdout fails on.
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    const int mode = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", mode) < 0) _exit(kExitFailed);
  }
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action = {};
  action.sa_handler = handle_interrupt;  // without SA_RESTART, so that a blocked read or write returns
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

void on_interrupt(OnInterrupt what) { interrupt_answer.store(what); }
bool interrupted() noexcept { return interrupts.load() > 0; }
void forget_interrupt() { interrupts.store(0); }
void set_active_session(greta_session* session) { session_in_use.store(session); }
const greta_session* active_session() { return session_in_use.load(); }

bool write_output(std::string_view text) noexcept {
  if (output_error != 0) return false;
  if (!stdout_is_terminal()) return (output_error = write_all(STDOUT_FILENO, text)) == 0;
  try {
    output_error = write_all(STDOUT_FILENO, printable_lines(text));
  } catch (...) {  // out of memory
    output_error = ENOMEM;
  }
  return output_error == 0;
}

NoOutput::NoOutput() : stdout_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) {
  if (stdout_ >= 0) dup2(STDERR_FILENO, STDOUT_FILENO);
}

NoOutput::~NoOutput() {
  if (stdout_ < 0) return;
  fflush(stdout);  // a library may have printed into its buffer
  dup2(stdout_, STDOUT_FILENO);
  close(stdout_);
}

bool write_words(std::string_view text) noexcept {
  if (!stdout_is_terminal()) return write_output(text);
  if (output_error != 0) return false;
  try {
    output_error = write_all(STDOUT_FILENO, words.push(printable_lines(text), terminal_columns()));
  } catch (...) {  // out of memory
    output_error = ENOMEM;
  }
  return output_error == 0;
}

bool end_words() noexcept {
  if (output_error == 0) output_error = write_all(STDOUT_FILENO, words.flush());
  if (words.column() == 0) words = {};  // the next text begins anew
  return output_error == 0;
}

void check_output() {
  if (output_error == 0) return;
  if (output_error == EPIPE) throw OutputClosed{};
  if (interrupted()) throw Interrupted{};
  throw Failed(format("stdout: %s", std::strerror(output_error)));
}

void put(std::string_view text) {
  write_output(text);
  check_output();
}

void set_verbosity(Verbosity to) {
  level = to;
  level_known = true;
  for (const std::string& text : early_notes) note(text);
  early_notes.clear();
}
Verbosity verbosity() { return level; }
bool stdin_is_terminal() { return isatty(STDIN_FILENO) != 0; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0; }

void write_error(std::string_view text) { write_all(STDERR_FILENO, text); }
void say(std::string_view text) {
  const std::string line = "greta-cli: " + printable(text) + "\n";
  write_error(stderr_is_terminal() ? wrapped(line, terminal_columns()) : line);
  if (log_file >= 0) write_all(log_file, line);
}
void note(std::string_view text) {
  if (!level_known) {
    early_notes.emplace_back(text);
  } else if (level != Verbosity::kQuiet) {
    say(text);
  }
}
void note_later(const std::string& text) {
  const bool known = std::find(later_notes.begin(), later_notes.end(), text) != later_notes.end();
  if (!known) later_notes.push_back(text);
  if (notes_wait) return;
  say_later_notes();
}
void say_later_notes() {
  notes_wait = false;
  for (; later_notes_said < later_notes.size(); ++later_notes_said) note(later_notes[later_notes_said]);
}
void detail(std::string_view text) {
  if (level == Verbosity::kVerbose) say(text);
}

void set_log_file(const std::string& path) {
  log_file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log_file < 0) throw Failed(path + ": " + std::strerror(errno));
}

void set_colour(Colour choice) { colour = choice; }

bool stderr_has_colour() {
  if (colour != Colour::kAuto) return colour == Colour::kOn;
  const char* const force = std::getenv("CLICOLOR_FORCE");
  if (force && *force && std::strcmp(force, "0") != 0) return true;
  const char* const none = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  return stderr_is_terminal() && !(none && *none) && !(term && std::strcmp(term, "dumb") == 0);
}

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) != 0; }

uint32_t terminal_columns() {
  winsize size{};
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (ioctl(fd, TIOCGWINSZ, &size) == 0) return size.ws_col;
  }
  return 0;
}

SilentKeys::SilentKeys() {
  if (!stdin_is_terminal() || tcgetattr(STDIN_FILENO, &shown_keys) != 0) return;
  termios silent = shown_keys;
  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  keys_are_silent.store(tcsetattr(STDIN_FILENO, TCSANOW, &silent) == 0);
}

void SilentKeys::restore_keys() noexcept {
  if (keys_are_silent.exchange(false)) tcsetattr(STDIN_FILENO, TCSANOW, &shown_keys);
}

void Progress::show(std::string_view state) {
  if (!stderr_is_terminal() || level == Verbosity::kQuiet) return;
  std::string line = label_ + " " + printable(state);
  // A line that is wider than the terminal could not be erased.
  if (const uint32_t columns = terminal_columns()) line.resize(std::min<size_t>(line.size(), columns - 1));
  if (line == shown_) return;
  write_error("\r\x1b[K" + line);
  shown_ = line;
}

void Progress::show_fraction(uint64_t done, uint64_t total) {
  const int percent = total == 0 ? 100 : static_cast<int>(100.0 * static_cast<double>(done) / total);
  if (percent == percent_) return;
  percent_ = percent;
  show(format("%d %%", percent));
}

void Progress::clear() {
  if (!shown_.empty()) write_error("\r\x1b[K");
  shown_.clear();
}

std::string format(const char* form, ...) {
  va_list args, again;
  va_start(args, form);
  va_copy(again, args);
  const int length = vsnprintf(nullptr, 0, form, args);
  va_end(args);
  std::string text(length < 0 ? 0 : static_cast<size_t>(length), '\0');
  vsnprintf(text.data(), text.size() + 1, form, again);
  va_end(again);
  return text;
}

std::string size_text(uint64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return format(unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
}

namespace {

// Bytes of the UTF-8 character that `text` begins with, 0 if it begins with none.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 0 || first > 0xf4 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool no_scalar = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return overlong || no_scalar ? 0 : length;
}

}  // namespace

namespace {

// The character that `text` begins with, of three bytes, if it turns the direction of writing: with these a
// text can be shown in another order than it has. Else 0.
unsigned direction_control(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]) & 0x3fu; };
  const unsigned code = (static_cast<unsigned char>(text[0]) & 0x0fu) << 12 | byte(1) << 6 | byte(2);
  return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ? code : 0;
}

std::string printable_but(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t length = character_length(text);
    const unsigned direction = length == 3 ? direction_control(text) : 0;
    const bool control = direction != 0 || first < 0x20 || first == 0x7f ||
                         (length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
    if (length != 0 && (!control || kept.find(text[0]) != kept.npos)) {
      out += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    if (direction != 0) {
      out += format("\\u%04x", direction);
      text.remove_prefix(length);
      continue;
    }
    out += first == '\n' ? "\\n" : first == '\t' ? "\\t" : first == '\r' ? "\\r" : format("\\x%02x", first);
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return printable_but(text, ""); }
// A file may hold what turns the direction of writing. All of these characters begin with one byte.
bool is_text(std::string_view text) { return printable_but(text, "\n\t\r\f\xe2") == text; }
std::string printable_lines(std::string_view text) { return printable_but(text, "\n\t"); }

}  // namespace greta::cli
