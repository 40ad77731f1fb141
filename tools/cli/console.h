// What the commands need of the terminal: stdout that carries nothing but results, stderr for all
// else, Ctrl-C, and the outcomes that end a command.
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
inline constexpr int kExitInterrupted = 130;

// Thrown by commands, turned into exit codes by main.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Misused : std::runtime_error {  // arguments that each parse, but not together
  using std::runtime_error::runtime_error;
};
struct Interrupted {};   // Ctrl-C
struct OutputClosed {};  // whoever reads stdout has left: nothing more to do, and nothing wrong

// Once, first: makes sure that 0, 1 and 2 are open, ignores SIGPIPE, takes over SIGINT.
void start_console();

// ---- Ctrl-C ----
// kStop: the first notes the wish and cancels the session in use, the second ends the program at once.
// kNote: it is noted, and ends a read of the terminal.
enum class OnInterrupt { kStop, kNote };
void on_interrupt(OnInterrupt what);
bool interrupted() noexcept;
void forget_interrupt();
void set_active_session(greta_session* session);
const greta_session* active_session();

// ---- stdout ----
// Writes at once: to a terminal as printable_lines(), so that no text of a model or a file steers it,
// elsewhere byte for byte. False after a failure or Ctrl-C; check_output() then throws what happened.
bool write_output(std::string_view text) noexcept;
void check_output();
void put(std::string_view text);  // both

// ---- stderr ----
enum class Verbosity { kQuiet, kNormal, kVerbose };
void set_verbosity(Verbosity level);
Verbosity verbosity();
bool stdin_is_terminal();
bool stderr_is_terminal();
void say(std::string_view text);     // "greta-cli: text", always
void note(std::string_view text);    // the same, unless -q
void detail(std::string_view text);  // the same, with -v
void write_error(std::string_view text);
// What say, note and detail write goes to this file as well. Throws Failed.
void set_log_file(const std::string& path);

// ---- colour: --color, else CLICOLOR_FORCE and NO_COLOR, else whether it is a terminal ----
enum class Colour { kAuto, kOn, kOff };
void set_colour(Colour choice);
bool stderr_has_colour();
bool stdout_is_terminal();

// One line on a terminal's stderr that is rewritten in place and gone at the end; elsewhere nothing.
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
// Control characters and what is not UTF-8 as \n, \x1b: names and values out of a file must not steer
// a terminal.
std::string printable(std::string_view text);
// The same for texts of several lines: line ends and tabs stay.
std::string printable_lines(std::string_view text);

}  // namespace greta::cli
