#include "prompt_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "console.h"
#include "model.h"
#include "output_file.h"

namespace greta::cli {
namespace {

size_t file_bytes(const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0) {
    if (errno == ENOENT) return 0;
    throw Failed(path + ": " + std::strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) throw Failed(path + ": it is not a file, and so cannot be replaced");
  return static_cast<size_t>(about.st_size);
}

// The library's callbacks must not throw, so that the words of a failure wait here.
struct Writer {
  OutputFile file;
  std::string error;
  static int write(void* user, const void* bytes, size_t count) {
    Writer& self = *static_cast<Writer*>(user);
    try {
      self.file.write(bytes, count);
      return 0;
    } catch (const Failed& failed) {
      self.error = failed.what();
      return 1;
    }
  }
};

}  // namespace

void add_options(CLI::App& app, PromptCacheOptions& options) {
  CLI::Option* path = app.add_option("--prompt-cache", options.path,
                                     "keep what was read in this file, so that it need not be read again");
  path->type_name("FILE");
  app.add_flag("--prompt-cache-ro", options.read_only, "use the file of --prompt-cache, but do not write it")
      ->needs(path);
}

PromptCache::PromptCache(const PromptCacheOptions& options, greta_session* session)
    : options_(options), session_(session) {
  if (options.path.empty()) return;
  if (file_bytes(options.path) == 0) {
    note(options.path + ": the file is not there yet" +
         (options.read_only ? "" : "; it is written when this is done"));
    return;
  }
  auto source = sized<greta_source>();
  source.path = options.path.c_str();
  const greta_status status = greta_session_restore(session, &source);
  if (interrupted()) throw Interrupted{};
  if (status != GRETA_OK)
    throw Failed(std::string("--prompt-cache ") + greta_error_text() + " (remove the file to begin anew)");
  const int32_t* tokens = greta_session_tokens(session);
  saved_.assign(tokens, tokens + greta_session_position(session));
}

size_t PromptCache::keep_common(const std::vector<int32_t>& tokens) {
  const auto differ = std::mismatch(saved_.begin(), saved_.end(), tokens.begin(), tokens.end()).first;
  const size_t common = std::min(static_cast<size_t>(differ - saved_.begin()), tokens.size() - 1);
  check(greta_session_truncate(session_, static_cast<uint32_t>(common)));
  if (!saved_.empty())
    note(format("%s has %zu of the %zu tokens of the prompt", options_.path.c_str(), common, tokens.size()));
  return common;
}

void PromptCache::save(uint32_t count) {
  if (options_.path.empty() || options_.read_only) return;
  count = std::min(count, greta_session_position(session_));
  const int32_t* tokens = greta_session_tokens(session_);
  if (count <= saved_.size() && std::equal(tokens, tokens + count, saved_.begin())) return;
  if (greta_session_truncate(session_, count) != GRETA_OK) throw Failed(greta_error_text());
  Writer writer{OutputFile(options_.path + ".part", OutputFile::Readers::Owner), ""};
  if (greta_session_save(session_, Writer::write, &writer) != GRETA_OK)
    throw Failed(writer.error.empty() ? options_.path + ": " + greta_error_text() : writer.error);
  writer.file.finish_as(options_.path);
}

}  // namespace greta::cli
