#include "tools/cli/suggest.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/edit_distance.h"

namespace conclave::tools {
namespace {

std::vector<const CLI::App*> Subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> Names(const std::vector<const CLI::App*>& apps) {
  std::vector<std::string> names;
  for (const CLI::App* app : apps) names.push_back(app->get_name());
  return names;
}

// Options that a subcommand does not know fall through to those above it.
const CLI::Option* FindOption(const CLI::App* app, const std::string& name) {
  for (; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

std::vector<std::string> OptionNames(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames())
        names.push_back(absl::StrCat("--", name));
    }
  }
  return names;
}

std::string FullName(const CLI::App* app) {
  if (app->get_parent() == nullptr) return "conclave";
  return absl::StrCat(FullName(app->get_parent()), " ", app->get_name());
}

std::string DidYouMean(const std::string& nearest) {
  return nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
}

}  // namespace

std::string Nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string nearest;
  // Further away it is another word, and no slip.
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : known) {
    const size_t distance = EditDistance(word, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

std::string ExplainUnknown(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") break;
    if (word.size() > 1 && word[0] == '-') {
      const size_t equals = word.find('=');
      const CLI::Option* option = FindOption(at, word.substr(0, equals));
      if (option == nullptr && word.rfind("--", 0) == 0) {
        return absl::StrCat(FullName(at), " has no option ", word.substr(0, equals),
                            DidYouMean(Nearest(word.substr(0, equals), OptionNames(at))));
      }
      // Its value is no word of ours.
      if (option != nullptr && option->get_items_expected_max() > 0 &&
          equals == std::string::npos) {
        ++i;
      }
      continue;
    }
    const std::vector<const CLI::App*> known = Subcommands(*at);
    if (known.empty()) continue;
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const CLI::App* sub) { return sub->get_name() == word; });
    if (found == known.end()) {
      return absl::StrCat("there is no '", FullName(at), " ", word, "'",
                          DidYouMean(Nearest(word, Names(known))),
                          "\nThere are: ", absl::StrJoin(Names(known), ", "));
    }
    at = *found;
  }
  const std::vector<std::string> missing = Names(Subcommands(*at));
  if (missing.empty()) return "";
  return absl::StrCat("what is '", FullName(at),
                      "' to do? Add one of: ", absl::StrJoin(missing, ", "));
}

}  // namespace conclave::tools
