#include "drivers.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "bench/build_commit.h"
#include "children.h"
#include "console.h"
#include "doctor_parts.h"
#include "driver_state.h"
#include "model.h"
#include "output_file.h"

namespace greta::cli {
namespace {

constexpr int kMeasureSeconds = 120;
constexpr int kOpeningTakes = 6;  // times as long as asking: a driver may compile kernels
constexpr char kDevices[] = "devices", kMachine[] = "machine", kMeasure[] = "measure", kOpen[] = "open";

// How long drivers may take to say what there is. A node with many GPUs may need more.
int driver_seconds() {
  const char* text = std::getenv("GRETA_DRIVER_SECONDS");
  const int given = text ? std::atoi(text) : 0;
  return given > 0 ? given : 10;
}

// A record of an answer is a head and so many bytes.
enum class Told : uint32_t { kOpening, kDevice, kFinding, kLibrary, kEnd };
struct Head {
  Told told;
  uint32_t bytes;
};
struct Record {
  Told told;
  std::string bytes;
};

// ---- the child ----

void tell(Told told, std::string_view bytes) {
  const Head head = {told, static_cast<uint32_t>(bytes.size())};
  std::string record(reinterpret_cast<const char*>(&head), sizeof head);
  record += bytes;
  for (size_t done = 0; done < record.size();) {
    const ssize_t n = write(kAnswerFile, record.data() + done, record.size() - done);
    if (n < 0 && errno != EINTR) _exit(kExitFailed);
    if (n > 0) done += static_cast<size_t>(n);
  }
}

void tell_opening(void*, greta_log_level, const char* text) {
  constexpr std::string_view kOpening = "opening ";
  if (std::string_view(text).starts_with(kOpening)) tell(Told::kOpening, text + kOpening.size());
}

// Its driver is loaded now, and may not be later.
int tell_device(void*, const greta_device_info* device) {
  tell(Told::kDevice, {reinterpret_cast<const char*>(device), sizeof *device});
  if (device->usable && !device->cpu_type)
    for (const std::string& path : mapped_libraries()) tell(Told::kLibrary, path);
  return 0;
}

int tell_finding(void*, const greta_finding* found) {
  std::string texts;
  for (const char* text : {found->subject, found->key, found->value, found->advice})
    texts.append(text, std::strlen(text) + 1);
  tell(Told::kFinding, texts);
  return 0;
}

void tell_found(const MachineFinding& found) {
  const greta_finding finding = {
      sizeof finding, 0, found.subject.c_str(), found.key.c_str(), found.value.c_str(), found.advice.c_str()};
  tell_finding(nullptr, &finding);
}

void tell_measured(const char* device) {
  try {
    measure_device(device, tell_found);
  } catch (const Failed& error) {
    tell_found({device, "measured bandwidth", "failed", error.what()});
  }
}

void open_best(const greta_runtime_options& options) {
  greta_runtime* runtime = nullptr;
  greta_runtime_open(&options, &runtime);  // an error is the parent's to tell
}

// ---- the parent ----

std::vector<Record> records_of(const ChildResult& child) {
  std::vector<Record> list;
  std::string_view rest = child.answer;
  for (Head head; rest.size() >= sizeof head;) {
    std::memcpy(&head, rest.data(), sizeof head);
    if (rest.size() - sizeof head < head.bytes) break;
    list.push_back({head.told, std::string(rest.substr(sizeof head, head.bytes))});
    rest.remove_prefix(sizeof head + head.bytes);
  }
  return list;
}

// The last line that has text.
std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of(" \r\n");
  if (end == text.npos) return "";
  const size_t start = text.find_last_of('\n', end) + 1;
  return text.substr(start, std::min<size_t>(end + 1 - start, 200));
}

// What was opened last: the file of a driver, or a device.
std::string last_opened(const std::vector<Record>& records) {
  std::string last;
  for (const Record& record : records)
    if (record.told == Told::kOpening) last = record.bytes;
  return last;
}

// How a child ended that did not end well: "its driver F" + " ends the process that" + " asks it" + ..
std::string ending_of(const ChildResult& child, std::string text, const char* deed, int seconds) {
  if (child.over_limit)
    text += format(" does not answer within %d seconds", seconds);
  else if (WIFSIGNALED(child.status))
    text += format(" ends the process that %s it (signal %d, %s)", deed, WTERMSIG(child.status),
                   strsignal(WTERMSIG(child.status)));
  else
    text += format(" ends the process that %s it (exit code %d)", deed, WEXITSTATUS(child.status));
  const std::string line = last_line(child.said);
  return line.empty() ? text : text + ": " + line;
}

bool is_whole(const std::vector<Record>& records) {
  return !records.empty() && records.back().told == Told::kEnd;
}

// Why there is no whole answer; "" if there is one. A driver that dies after it had answered does no harm.
std::string trouble_of(const ChildResult& child, const std::vector<Record>& records, int seconds) {
  if (!child.started) return "its driver is not asked, since this program cannot start itself";
  if (is_whole(records)) return "";
  const std::string file = last_opened(records);
  return ending_of(child, file.empty() ? "its driver" : "its driver " + file, "asks", seconds);
}

// ---- what was opened well before ----

// All that may change what a driver does when a device is opened.
std::string opening_key(const AskedDevices& asked) {
  std::string key = format("%u %s", greta_version(), kBuildCommit);
  utsname system;
  if (uname(&system) == 0) key += format("\n%s %s", system.release, system.version);
  for (const greta_device_info& device : asked.devices)
    key += format("\n%s\t%u\t%s\t%s\t%s\t%s", device.id, device.usable, device.name, device.driver,
                  device.arch, device.pci);
  return key + "\n";
}

bool was_opened(const std::string& path, const std::string& key) {
  std::ifstream file(path, std::ios::binary);
  return file && std::string(std::istreambuf_iterator<char>(file), {}) == key;
}

// Without such a file the device is tried again, so errors are left alone.
void remember_opened(const std::string& path, const std::string& key) {
  try {
    make_folders(path);
    OutputFile file(path + format(".%d", int(getpid())), OutputFile::Readers::Owner);
    file.write(key.data(), key.size());
    file.finish_as(path);
  } catch (const Failed&) {
  }
}

void add_devices(const std::vector<Record>& records, std::vector<greta_device_info>* to) {
  for (const Record& record : records) {
    if (record.told != Told::kDevice || record.bytes.size() != sizeof(greta_device_info)) continue;
    std::memcpy(&to->emplace_back(), record.bytes.data(), sizeof(greta_device_info));
  }
}

void add_libraries(const std::vector<Record>& records, std::vector<std::string>* to) {
  for (const Record& record : records)
    if (record.told == Told::kLibrary && std::find(to->begin(), to->end(), record.bytes) == to->end())
      to->push_back(record.bytes);
}

void add_findings(const std::vector<Record>& records, std::vector<MachineFinding>* to) {
  for (const Record& record : records) {
    if (record.told != Told::kFinding) continue;
    std::string texts[4];
    const char* at = record.bytes.c_str();
    for (std::string& text : texts) text = at, at += text.size() + 1;
    to->push_back({texts[0], texts[1], texts[2], texts[3]});
  }
}

greta_device_info not_asked(const BrokenDriver& broken) {
  auto device = sized<greta_device_info>();
  std::snprintf(device.id, sizeof device.id, "%s0", broken.kind.c_str());
  std::snprintf(device.reason, sizeof device.reason, "%s", broken.reason.c_str());
  return device;
}

std::string others(const std::string& kind) {
  std::string names;
  for (uint32_t i = 0; const char* name = greta_device_kind(i, nullptr); ++i)
    if (kind != name) names += (names.empty() ? "" : ",") + std::string(name);
  return names;
}

}  // namespace

Search::Search(std::string without) : without_(std::move(without)) {
  for (const char* name : {"ROCM_PATH", "HIP_PATH"})
    if (const char* folder = std::getenv(name)) rocm_ += (rocm_.empty() ? "" : ":") + std::string(folder);
  if (const char* folder = std::getenv("VIRTUAL_ENV")) environment_ = folder;
  for (const char* name :
       {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}) {
    const char* value = std::getenv(name);
    if (value && *value) hiding_ += (hiding_.empty() ? "" : " and ") + format("%s=%s", name, value);
  }
}

void Search::put(greta_runtime_options* to) const {
  to->rocm_folders = rocm_.c_str();
  to->virtual_environment = environment_.c_str();
  to->without = without_.c_str();
  to->hiding = hiding_.c_str();
}

std::string names_of(const std::vector<BrokenDriver>& broken) {
  std::string names;
  for (const BrokenDriver& driver : broken) names += (names.empty() ? "" : ",") + driver.kind;
  return names;
}

std::string advice_for(const BrokenDriver& broken) {
  if (broken.kind == "vulkan")
    return "update the driver (Mesa: mesa-vulkan-drivers); VK_LOADER_DEBUG=driver greta-cli selftest "
           "--device "
           "vulkan names the drivers in turn, and VK_LOADER_DRIVERS_DISABLE leaves one out";
  return "update ROCm, or remove the library; until then it is left alone, and Vulkan serves the GPU";
}

AskedDevices ask_devices(bool expected_only) {
  std::vector<std::string> kinds;
  std::vector<std::vector<std::string>> questions;
  uint32_t expected = 0;
  for (uint32_t i = 0; const char* name = greta_device_kind(i, &expected); ++i) {
    if (expected_only && (!expected || std::string_view(name) == "cpu")) continue;
    kinds.emplace_back(name);
    questions.push_back({kAskDrivers, kDevices, others(name)});
  }
  const int seconds = driver_seconds();
  const std::vector<ChildResult> children = run_children(questions, seconds);
  AskedDevices asked;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const std::vector<Record> records = records_of(children[i]);
    const BrokenDriver driver = {kinds[i], trouble_of(children[i], records, seconds)};
    if (driver.reason.empty()) {
      add_devices(records, &asked.devices);
      add_libraries(records, &asked.libraries);
      continue;
    }
    asked.devices.push_back(not_asked(driver));
    if (children[i].started) asked.broken.push_back(driver);
  }
  return asked;
}

void try_opening(const std::string& folder, AskedDevices* asked) {
  const std::string path = folder + "/opened";
  const int seconds = kOpeningTakes * driver_seconds();
  const auto is_gpu = [](const greta_device_info& device) { return device.usable && !device.cpu_type; };
  for (;;) {
    if (std::none_of(asked->devices.begin(), asked->devices.end(), is_gpu)) return;
    const std::string key = opening_key(*asked);
    if (!folder.empty() && was_opened(path, key)) return;
    const ChildResult child = run_children({{kAskDrivers, kOpen, names_of(asked->broken)}}, seconds)[0];
    const std::vector<Record> records = records_of(child);
    if (!child.started) return;
    if (is_whole(records)) return folder.empty() ? void() : remember_opened(path, key);
    std::string device;  // that was opened last
    for (const Record& record : records)
      for (const greta_device_info& info : asked->devices)
        if (record.told == Told::kOpening && record.bytes == info.id) device = info.id;
    if (device.empty()) return;
    const std::string kind = device.substr(0, device.find_first_of("0123456789"));
    const auto is_kind = [&](const greta_device_info& info) {
      return std::string_view(info.id).starts_with(kind);
    };
    asked->broken.push_back({kind, ending_of(child, device, "opens", seconds)});
    std::erase_if(asked->devices, is_kind);
    asked->devices.push_back(not_asked(asked->broken.back()));
  }
}

std::vector<MachineFinding> ask_machine(const std::vector<BrokenDriver>& broken) {
  const int seconds = driver_seconds();
  const ChildResult child = run_children({{kAskDrivers, kMachine, names_of(broken)}}, seconds)[0];
  const std::vector<Record> records = records_of(child);
  std::vector<MachineFinding> findings;
  add_findings(records, &findings);
  if (const std::string trouble = trouble_of(child, records, seconds); !trouble.empty())
    findings.push_back({"system", "examination", "not finished: " + trouble, "report it"});
  for (const BrokenDriver& driver : broken)
    findings.push_back({driver.kind, "usable", "no: " + driver.reason, advice_for(driver)});
  return findings;
}

std::vector<MachineFinding> ask_measured(const std::string& device) {
  const ChildResult child = run_children({{kAskDrivers, kMeasure, device}}, kMeasureSeconds)[0];
  const std::vector<Record> records = records_of(child);
  std::vector<MachineFinding> findings;
  add_findings(records, &findings);
  if (const std::string trouble = trouble_of(child, records, kMeasureSeconds); !trouble.empty())
    findings.push_back({device, "measured bandwidth", "failed: " + trouble, trouble});
  return findings;
}

void answer_about_drivers(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody reads the answer any more
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const std::string_view asked = argc > 3 ? argv[2] : "";
  const Search search(argc > 3 ? argv[3] : "");
  auto options = sized<greta_runtime_options>();
  search.put(&options);
  options.log = tell_opening;
  if (asked == kDevices)
    greta_device_list(&options, tell_device, nullptr);
  else if (asked == kMachine)
    greta_machine_examine_with(&options, tell_finding, nullptr);
  else if (asked == kMeasure)
    tell_measured(argv[3]);
  else if (asked == kOpen)
    open_best(options);
  else
    _exit(kExitUsage);
  tell(Told::kEnd, "");
  _exit(kExitOk);  // without what libraries do at the end of a process
}

}  // namespace greta::cli
