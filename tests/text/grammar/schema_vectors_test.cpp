// JSON schemas are compared with another implementation: with what its validator says of documents
// (make_schema_vectors.py), and by texts that are walked out of the grammars for it to check.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "places.h"
#include "text/grammar/grammar.h"
#include "text/grammar/json_schema.h"

using namespace greta;

namespace {

std::shared_ptr<const Grammar> grammar_of(const std::string& schema) {
  std::string gbnf;
  std::shared_ptr<const Grammar> grammar;
  const bool made = json_schema_grammar(schema, {.strict = true}, &gbnf).ok() &&
                    parse_grammar(gbnf, "root", nullptr, &grammar).ok();
  INFO(schema << ": " << error_text());
  REQUIRE(made);
  return grammar;
}

// A random text that the grammar allows. Each byte is one of those that may come next; the longer the text
// gets, the more often it is one that ends something. "" if the text found no end.
std::string walk(GrammarMatcher* matcher, std::mt19937* draw) {
  constexpr std::string_view kEnds = "\"]}", kPlain = "\",:]}0123456789abeflnrstu -";
  std::string text;
  if (!matcher->reset().ok()) return "";
  while (text.size() < 2000) {
    if (matcher->may_end() && (matcher->is_over() || (*draw)() % 3 == 0)) return text;
    const std::string_view first = (*draw)() % 400 < text.size() ? kEnds : (*draw)() % 4 ? kPlain : "";
    std::string candidates;
    for (int byte = 0; byte < 256; ++byte) candidates += char(byte);
    std::shuffle(candidates.begin(), candidates.end(), *draw);
    std::string order(first);
    std::shuffle(order.begin(), order.end(), *draw);
    bool moved = false;
    for (const char byte : order + candidates)
      if ((moved = matcher->push(std::string_view(&byte, 1)).ok())) {
        text += byte;
        break;
      }
    if (!moved) return matcher->may_end() ? text : "";
  }
  return "";
}

}  // namespace

TEST_CASE("json schema: documents are judged as another implementation judges them", "[grammar]") {
  const char* other = std::getenv("GRETA_SCHEMA_VECTORS");  // a longer list
  const char* walks =
      std::getenv("GRETA_SCHEMA_WALKS");  // a file to write, for make_schema_vectors.py --check
  std::stringstream in;
  for (const char* list : {"schema_vectors.tsv", "schema_shapes.tsv"}) {
    std::ifstream file(other ? other : std::string(GRETA_SOURCE_DIR "/tests/text/grammar/") + list);
    REQUIRE(file);
    in << file.rdbuf();
    if (other) break;
  }
  std::ofstream out;
  if (walks) out.open(walks);
  std::mt19937 draw(1);
  std::shared_ptr<const Grammar> grammar;
  std::string schema;
  uint64_t yes = 0, no = 0, walked = 0;
  for (std::string line; std::getline(in, line);) {
    const size_t tab = line.find('\t');
    const std::string mark = line.substr(0, tab), text = line.substr(tab + 1);
    if (mark == "schema") {
      schema = text;
      grammar = grammar_of(schema);
      GrammarMatcher matcher(grammar);
      size_t found = 0;
      if (walks) out << line << "\n";
      for (int i = 0; i < (walks ? 20 : 1); ++i)
        if (const std::string made = walk(&matcher, &draw); !made.empty()) {
          ++found;
          std::string plain;  // on one line, since white space may hold line ends and texts may not
          for (const char c : made) plain += c == '\n' || c == '\t' ? ' ' : c;
          if (walks) out << "meets\t" << plain << "\n";
        }
      walked += found;
      continue;
    }
    (mark == "yes" ? yes : no) += 1;
    GrammarMatcher matcher(grammar);
    REQUIRE(matcher.reset().ok());
    INFO(schema << "\n" << mark << ": " << text);
    CHECK((matcher.push(text).ok() && matcher.may_end()) == (mark == "yes"));
  }
  INFO(yes << " that meet their schemas, " << no << " that do not, " << walked << " walked");
  CHECK(yes > 500);
  CHECK(no > 500);
  CHECK(walked > 200);
}
