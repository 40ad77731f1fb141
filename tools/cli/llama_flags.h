// Flags of llama.cpp's programs that mean the same here, mean nothing here, or cannot be had: each is
// taken, taken with a note, or refused with what to do instead. The samplers' flags are in options.cpp.
#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace greta::cli {

// The word that this one stands for here; itself if it is none of the table's.
const char* llama_spelling(const std::string& word);

// The single-dash words that stand for `long_name`.
void add_single_dash_words(const std::string& long_name, std::vector<std::string>* words);

// Declares the flags that `app` does not have yet; none of them is in its help.
void add_llama_flags(CLI::App& app);

// Whether the flag may stand alone, or before on, off or auto.
bool takes_switch(const std::string& word);
bool is_switch(const std::string& value);

// What the value means here: -ngl 0 is the CPU, -b above 512 is 512, -lv N is -q, -v or nothing,
// -sm none nothing. A word
// that came out without a value has an empty one; an empty word is left out.
void adapt_llama_value(std::string* word, std::string* value);

}  // namespace greta::cli
