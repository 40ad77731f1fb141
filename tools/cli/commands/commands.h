// One function for each command. It declares the command's options on `app` and returns the action to run
// once they are parsed. The action returns an exit code or throws (console.h).
#pragma once
#include <CLI/App.hpp>
#include <functional>

namespace greta::cli {

using Action = std::function<int()>;

Action run_command(CLI::App& app);
Action chat_command(CLI::App& app);
Action info_command(CLI::App& app);
Action verify_command(CLI::App& app);
Action devices_command(CLI::App& app);
Action doctor_command(CLI::App& app);
Action bench_command(CLI::App& app);
Action profile_command(CLI::App& app);
Action report_command(CLI::App& app);
Action tokenize_command(CLI::App& app);
Action template_command(CLI::App& app);
Action logits_command(CLI::App& app);
Action ppl_command(CLI::App& app);
Action embed_command(CLI::App& app);
Action selftest_command(CLI::App& app);
Action tune_command(CLI::App& app);
Action kernel_command(CLI::App& app);
Action serve_command(CLI::App& app);  // where there is a server (GRETA_SERVE)

}  // namespace greta::cli
