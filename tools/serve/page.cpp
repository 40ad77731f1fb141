// The page at "/": its files are sent with headers that let it load and call nothing but this server.
#include "page.h"

#include "endpoints.h"

namespace greta::serve {
namespace {

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

struct Type {
  std::string_view end;
  const char* type;
};
constexpr Type kTypes[] = {{".html", "text/html; charset=utf-8"},
                           {".js", "text/javascript; charset=utf-8"},
                           {".css", "text/css; charset=utf-8"},
                           {".svg", "image/svg+xml"}};

}  // namespace

void page(Context& context) {
  constexpr std::string_view kFolder = "/page/";
  const std::string& path = context.call.path;
  std::string_view name = path == "/" ? "index.html" : std::string_view(path);
  if (name.starts_with(kFolder)) name.remove_prefix(kFolder.size());
  const PageFile* file = kPageFiles;
  while (file->name && name != file->name) ++file;
  if (!file->name || !context.server.options().page) throw Refused(404, "there is nothing at " + path);
  Response response;
  for (const Type& row : kTypes)
    if (name.ends_with(row.end)) response.type = row.type;
  response.body.assign(reinterpret_cast<const char*>(file->bytes), file->size);
  response.headers = {{"Content-Security-Policy", kPolicy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"}};
  context.reply->send(std::move(response));
}

}  // namespace greta::serve
