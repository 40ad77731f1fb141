// What the commands need of the terminal: stdout for results, stderr for all else, Ctrl-C, and the outcomes
// that end a command.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

struct greta_session;

namespace greta::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitLoss = 3;  // bench compare has found one
inline constexpr int kExitInterrupted = 130;

// Commands throw these, and main turns them into exit codes.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Misused : std::runtime_error {  // arguments that are right one by one, but not together
  using std::runtime_error::runtime_error;
};
struct Interrupted {};   // Ctrl-C
struct OutputClosed {};  // The reader of stdout has left, which is no error.

// Call this once, before all else. It makes sure that descriptors 0, 1 and 2 are open, ignores SIGPIPE and
// takes over SIGINT.
void start_console();

// ---- Ctrl-C ----
// kStop: the first Ctrl-C is noted and cancels the session in use; the second ends the program at once.
// kNote: Ctrl-C is noted, and ends a read of the terminal.
enum class OnInterrupt { kStop, kNote };
void on_interrupt(OnInterrupt what);
bool interrupted() noexcept;
void forget_interrupt();
void set_active_session(greta_session* session);
const greta_session* active_session();

// ---- stdout ----
// Writes without a buffer: to a terminal as printable_lines(), so that no text of a model or a file steers
// it, and byte for byte elsewhere. Returns false after a failure or Ctrl-C; check_output() then throws what
// happened.
bool write_output(std::string_view text) noexcept;
void check_output();
void put(std::string_view text);  // write_output(), then check_output()
// The same for a text that comes in pieces: on a terminal, lines end between words, and so a word waits for
// its end. end_words() writes what still waits; call it before anything else is written.
bool write_words(std::string_view text) noexcept;
bool end_words() noexcept;
// While this lives, what libraries print to stdout goes to stderr, and write_output must not be called.
class NoOutput {
 public:
  NoOutput();
  ~NoOutput();
  NoOutput(const NoOutput&) = delete;
  NoOutput& operator=(const NoOutput&) = delete;

 private:
  int stdout_;
};

// ---- stderr ----
enum class Verbosity { kQuiet, kNormal, kVerbose };
void set_verbosity(Verbosity level);
Verbosity verbosity();
bool stdin_is_terminal();
bool stderr_is_terminal();
void say(std::string_view text);     // "greta-cli: text", always
void note(std::string_view text);    // the same, unless -q
void detail(std::string_view text);  // the same, with -v
// Notes that wait until a command begins its work, or come after the error that keeps it from that. Each text
// is said once.
void note_later(const std::string& text);
void say_later_notes();
void write_error(std::string_view text);
// Makes say, note and detail write to this file as well. Throws Failed.
void set_log_file(const std::string& path);

// ---- colour: decided by --color, else by CLICOLOR_FORCE and NO_COLOR, else by the terminal ----
enum class Colour { kAuto, kOn, kOff };
void set_colour(Colour choice);
bool stderr_has_colour();
bool stdout_is_terminal();
uint32_t terminal_columns();  // of stdout, else of stderr; 0 if it is not known

// While this lives, the terminal does not show what is typed: the keys wait for the next prompt.
class SilentKeys {
 public:
  SilentKeys();
  ~SilentKeys() { restore_keys(); }
  SilentKeys(const SilentKeys&) = delete;
  SilentKeys& operator=(const SilentKeys&) = delete;
  static void restore_keys() noexcept;  // also from a signal handler that ends the program
};

// A line on the terminal of stderr that is rewritten in place and erased at the end. Where stderr is no
// terminal, nothing is written.
class Progress {
 public:
  explicit Progress(std::string label) : label_(std::move(label)) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view state);
  void show_fraction(uint64_t done, uint64_t total);
  void clear();

 private:
  std::string label_, shown_;
  int percent_ = -1;
};

// ---- text ----
[[gnu::format(printf, 1, 2)]] std::string format(const char* form, ...);
std::string size_text(uint64_t bytes);  // "4.56 MiB"
// Writes control characters and bytes that are not UTF-8 as \n or \x1b, because names and values out of a
// file must not steer a terminal.
std::string printable(std::string_view text);
// Does the same for texts of several lines, in which line ends and tabs stay.
std::string printable_lines(std::string_view text);
bool is_text(std::string_view text);  // UTF-8 without control characters, but line ends, tabs and form feeds

}  // namespace greta::cli
