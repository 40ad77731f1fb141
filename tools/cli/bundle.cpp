#include "bundle.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace greta::cli {
namespace {

constexpr std::string_view kSystemFolders[] = {"/dev/",     "/etc/",  "/lib/", "/lib64/",
                                               "/opt/rocm", "/proc/", "/sys/", "/usr/"};
constexpr std::string_view kSystemNames[] = {"root", "render", "video", "nogroup", "nobody"};

bool is_of_system(std::string_view path) {
  return std::ranges::any_of(kSystemFolders, [&](std::string_view folder) {
    return path.starts_with(folder) || path == folder.substr(0, folder.size() - 1);
  });
}

bool ends_path(char letter) { return std::strchr(" \t\n,;:()'\"=", letter) != nullptr; }

// Replaces the word behind each `key` unless it is a system's name or a number.
void hide_names(std::string_view key, std::string* text) {
  for (size_t at = 0; (at = text->find(key, at)) != text->npos;) {
    at += key.size();
    const size_t end = std::min(text->find_first_of(" ,)", at), text->size());
    const std::string name = text->substr(at, end - at);
    const bool is_known = std::ranges::count(kSystemNames, std::string_view(name)) > 0 ||
                          name.find_first_not_of("0123456789") == name.npos;
    if (!is_known) text->replace(at, end - at, "(another)");
  }
}

}  // namespace

std::string without_private_paths(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool starts = text[at] == '/' && (!at || ends_path(text[at - 1]));
    size_t end = at;
    while (starts && end < text.size() && !ends_path(text[end])) ++end;
    const std::string_view path(text.data() + at, end - at);
    if (!starts || path.size() < 2) {
      out += text[at++];
      continue;
    }
    out += is_of_system(path) ? std::string(path) : "..." + std::string(path.substr(path.find_last_of('/')));
    at = end;
  }
  return out;
}

std::vector<MachineFinding> without_private(std::vector<MachineFinding> findings) {
  std::erase_if(findings, [](const MachineFinding& finding) { return finding.subject == "environment"; });
  for (MachineFinding& finding : findings) {
    for (std::string* text : {&finding.value, &finding.advice}) {
      for (const char* key : {"owner ", "group ", "usermod -aG ", "the environment has "})
        hide_names(key, text);
      *text = without_private_paths(*text);
    }
  }
  return findings;
}

std::string tar_bytes(const std::vector<ArchiveFile>& files) {
  constexpr size_t kBlock = 512;
  std::string out;
  for (const ArchiveFile& file : files) {
    char head[kBlock] = "";
    std::snprintf(head, 100, "%s", file.name.c_str());
    std::snprintf(head + 100, 24, "0000644%c0000000%c0000000", 0, 0);
    std::snprintf(head + 124, 12, "%011zo", file.text.size());
    std::snprintf(head + 136, 12, "%011o", 0U);
    std::memset(head + 148, ' ', 8);  // the sum is taken with blanks in its place
    head[156] = '0';
    std::memcpy(head + 257, "ustar\00000", 8);
    unsigned sum = 0;
    for (const char byte : head) sum += static_cast<unsigned char>(byte);
    std::snprintf(head + 148, 8, "%06o", sum);
    out.append(head, kBlock);
    out += file.text;
    out.append((kBlock - file.text.size() % kBlock) % kBlock, '\0');
  }
  return out.append(2 * kBlock, '\0');
}

}  // namespace greta::cli
