// A folder of pages that holds any files, from which pages are read and to which they are written. What must
// hold: no crash; a page that was read is the one that was written, unless it was forged; the folder keeps
// within its limit; nothing half written is left; what lies beside the folder stays as it is. A request to a
// service with this folder ends with the tokens that it has without the folder. Where a page was forged they
// are any tokens of the vocabulary, or the model gives no numbers to choose one by, and the request fails.
//
// Input: a byte of flags (its lowest two bits choose the limit, 4: the sums of forged pages are set right,
// 8: a service uses the folder), then for each file what name_of() and put() take.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "api_tape.h"
#include "engine/serve/scheduler.h"
#include "places.h"
#include "platform/files/folder.h"
#include "runtime/runtime.h"

using namespace greta;
using greta::fuzz::Tape;

namespace {

constexpr int kMostFiles = 8;
constexpr uint32_t kPromptTokens = 140, kAnswerTokens = 4;  // two whole pages, and a part of one
constexpr size_t kSumAt = 104, kSummedAt = 112;             // in a file of a page

void must(bool holds) {
  if (!holds) __builtin_trap();
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Rig {
  std::string base, folder, witness;
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceKernels> kernels;
  Model model;
  std::unique_ptr<Executor> executor;
  std::shared_ptr<Doorbell> bell = std::make_shared<Doorbell>();
  std::vector<int32_t> expected;
  std::string names[2], pages[2];  // of the prompt's whole pages, as a service writes them

  Rig() {
    base = (std::filesystem::temp_directory_path() / "greta-pages-XXXXXX").string();
    must(mkdtemp(base.data()));
    static std::string made;
    made = base;
    std::atexit([] { std::filesystem::remove_all(made); });
    folder = base + "/pages", witness = base + "/witness";
    write_file(witness, "as it was");
    Device* opened = nullptr;
    DeviceOptions options;
    options.threads = 1;
    must(open_device("cpu", options, &opened).ok());
    device.reset(opened);
    kernels = std::make_unique<DeviceKernels>(*device);
    Source source;
    must(source.open_file(GRETA_SOURCE_DIR "/tests/golden/architectures/llama-plain.gguf").ok());
    must(describe_model(std::move(source), *kernels, true, Log{}, &model).ok());
    must(load_model(&model, {}).ok());
    must(Executor::open(model, {.context = 256, .sequences = 1, .cache_tokens = 256}, uint64_t(1) << 30,
                        &executor)
             .ok());
    expected = answer(uint64_t(1) << 30);
    for (const FolderFile& file : list_files(folder, ".kvpage")) {
      const bool second = !pages[0].empty() && file.bytes > pages[0].size();  // its text is longer
      if (!second) names[1] = names[0], pages[1] = pages[0];
      names[second] = file.path, pages[second] = read_file(file.path);
    }
    must(pages[1].size() > pages[0].size());
    must(answer(uint64_t(1) << 30) == expected);
  }

  // Penalties read the tokens that a page brings with it.
  RequestOptions request() const {
    RequestOptions options;
    for (uint32_t i = 0; i < kPromptTokens; ++i)
      options.tokens.push_back(int32_t(3 + i * i % (model.shape.vocab - 3)));
    options.max_tokens = kAnswerTokens;
    options.ignore_end = true;
    options.sampling.repeat = 1.3f;
    options.sampling.penalty_last_n = 200;
    return options;
  }

  // What a service of its own answers, which then stores its pages.
  std::vector<int32_t> answer(uint64_t limit, bool forged = false) {
    SchedulerOptions options;
    options.folder = {folder, limit, 1};
    Scheduler scheduler(*executor, options);
    std::shared_ptr<Request> asked;
    must(Request::open(model, executor->plan().context, 100, bell, request(), &asked).ok());
    scheduler.add(asked);
    for (int steps = 0; scheduler.step(); ++steps) must(steps < 1000);
    std::vector<int32_t> tokens;
    for (RequestEvent event; asked->next(0, &event);)
      if (event.token.token != kNoToken) tokens.push_back(event.token.token);
    RequestResult result;
    must(asked->ended(&result));
    if (result.status.ok())
      must(tokens.size() == kAnswerTokens);
    else
      must(forged && result.status.code == Code::File);
    for (const int32_t token : tokens) must(token >= 0 && uint32_t(token) < model.shape.vocab);
    return tokens;
  }
};

// Reads both pages, then writes them. Returns whether what was read is what a service wrote.
bool read_and_write(const Rig& rig, uint64_t limit) {
  PageFolder folder(*rig.executor, {rig.folder, limit, 1});
  const std::vector<int32_t> tokens = rig.request().tokens;
  std::vector<uint8_t> page(rig.executor->page_bytes());
  bool right = true;
  for (uint32_t which : {1, 0}) {
    const auto text = std::span(tokens).first(size_t(which + 1) * kPageTokens);
    const size_t before = rig.pages[which].size() - page.size();
    const char* const written = rig.pages[which].data() + before;
    if (folder.load(0, text, page)) right &= !memcmp(page.data(), written, page.size());
    memcpy(page.data(), written, page.size());
    if (folder.has(0, text))
      folder.touch(0, text);
    else
      folder.store(0, text, page);
  }
  return right;
}

std::string changed(Tape& tape, std::string page) {
  for (uint32_t more = tape.below(4) + 1; more > 0; --more) {
    const size_t place = tape.byte() | size_t(tape.byte()) << 8 | size_t(tape.byte()) << 16;
    page[place % page.size()] ^= char(tape.byte());
  }
  return page;
}

std::string with_sum(std::string page) {
  if (page.size() < kSummedAt) return page;
  const uint64_t sum = checksum(page.data() + kSummedAt, page.size() - kSummedAt);
  memcpy(page.data() + kSumAt, &sum, sizeof sum);
  return page;
}

std::string any_bytes(Tape& tape) {
  size_t count = tape.byte() | size_t(tape.byte()) << 8;
  count = std::min(count, tape.left);
  std::string bytes(reinterpret_cast<const char*>(tape.at), count);
  tape.at += count, tape.left -= count;
  return bytes;
}

std::string name_of(Tape& tape, const Rig& rig) {
  const uint32_t kind = tape.below(6), which = tape.below(2);
  if (kind <= 1) return rig.names[which];
  if (kind == 2) return rig.names[which] + "." + std::to_string(getpid());
  if (kind == 3) return rig.names[which] + ".1";
  if (kind == 4) return rig.folder + (which ? "/.kvpage" : "/greta-0000000000000000.kvpage");
  std::string name = any_bytes(tape).substr(0, 40);
  for (char& letter : name)
    if (letter == '/' || letter == 0) letter = '.';
  return rig.folder + "/" + name + (which ? ".kvpage" : "");
}

// Makes one file, or something that is none. Returns whether its page may be taken for what it is not.
bool put(Tape& tape, const Rig& rig, bool right_sums) {
  const std::string path = name_of(tape, rig);
  struct stat there;
  if (lstat(path.c_str(), &there) == 0) return false;  // writing to a pipe would wait, to a link would follow
  const uint32_t kind = tape.below(7);
  const std::string& page = rig.pages[tape.below(2)];
  const auto forged = [&](const std::string& bytes) {
    write_file(path, right_sums ? with_sum(bytes) : bytes);
    return right_sums;
  };
  if (kind == 0) return write_file(path, page), false;
  if (kind == 1) return forged(changed(tape, page));
  if (kind == 2) return forged(any_bytes(tape));
  if (kind == 3) {
    std::string cut = page;
    cut.resize((tape.byte() | size_t(tape.byte()) << 8 | size_t(tape.byte()) << 16) % (page.size() + 64));
    return forged(cut);
  }
  if (kind == 4) return (void)mkdir(path.c_str(), 0700), false;
  if (kind == 5) return (void)mkfifo(path.c_str(), 0600), false;
  const std::string to[] = {rig.witness, path, rig.base + "/none", rig.names[1]};
  return symlink(to[tape.below(4)].c_str(), path.c_str()) == 0 && false;
}

// Whether a service may have written it: "greta-", 16 hexadecimal digits, ".kvpage". Others are left alone.
bool is_of_the_folder(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.size() == 29 && name.starts_with("greta-") &&
         name.find_first_not_of("0123456789abcdef", 6) == 22;
}

void check_folder(const Rig& rig, uint64_t limit) {
  uint64_t bytes = 0;
  for (const FolderFile& file : list_files(rig.folder, ".kvpage")) {
    must(file.path.ends_with(".kvpage"));
    if (is_of_the_folder(file.path)) bytes += file.bytes;
  }
  must(bytes <= limit);
  must(read_file(rig.witness) == "as it was");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Rig& rig = *new Rig;
  Tape tape{data, size};
  const uint8_t flags = tape.byte();
  const uint64_t one = rig.pages[0].size(), two = one + rig.pages[1].size();
  const uint64_t limit = flags % 4 == 0 ? uint64_t(1) << 30 : flags % 4 == 1 ? two : flags % 4 == 2 ? one : 0;
  std::filesystem::remove_all(rig.folder);
  std::filesystem::create_directory(rig.folder);
  bool forged = false;
  for (int files = 0; tape.left && files < kMostFiles; ++files) forged |= put(tape, rig, flags & 4);
  const bool right = flags & 8 ? rig.answer(limit, forged) == rig.expected : read_and_write(rig, limit);
  must(right || forged);
  check_folder(rig, limit);
  return 0;
}
