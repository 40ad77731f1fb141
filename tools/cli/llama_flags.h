// Flags of llama.cpp's programs that mean the same here, mean nothing here, or are not possible. Each is
// taken, taken with a note, or refused with a text that says what to do instead. The table is
// llama_flags.def.
#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace greta::cli {

// The word that this one stands for here; the word itself if the table does not have it.
std::string llama_spelling(const std::string& word);

// LLAMA_ARG_* variables of the environment that are set, in the order of the table.
struct Variable {
  const char *name, *option, *value;
};
std::vector<Variable> llama_variables();
// The option that a variable of this name sets; null if there is none.
const char* option_of_variable(const std::string& name);

// The single-dash words for an option: "--device" -> {"-dev"}.
std::vector<std::string> single_dash_words(const std::string& long_name);

// Declares the flags that `app` does not have yet. The help does not show them.
void add_llama_flags(CLI::App& app);

// Whether the flag may stand alone or before on, off or auto.
bool takes_switch(const std::string& word);
bool is_switch(const std::string& value);
void adapt_llama_switch(std::string* word, std::string* value);  // as below: --mmap 0 is --no-mmap

// Replaces a flag and its value by what they mean here: -ngl 0 and -dev none are the CPU, -b above 512 is
// 512, -lv N is -q, -v or nothing, -t -1 is -t 0, and --temp below 0 is 0. An empty
// value means that the word has none; an empty word is left out.
void adapt_llama_value(std::string* word, std::string* value);

}  // namespace greta::cli
