#ifndef CONCLAVE_TOOLS_CLI_SUGGEST_H_
#define CONCLAVE_TOOLS_CLI_SUGGEST_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace conclave::tools {

// The one of `known` that `word` was most likely meant to be; empty if none is near.
std::string Nearest(const std::string& word, const std::vector<std::string>& known);

// Why a command line that the parser refused cannot be, where a word or an option of it is none
// that the program knows, or a verb is missing: the parser itself names neither. Empty for any
// other reason. `words` are the command line without the program.
std::string ExplainUnknown(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_SUGGEST_H_
