#include "tests/history/history.h"

namespace conclave::history {

Name History::NameOf(std::string_view name) {
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  const auto added = static_cast<Name>(texts_.size());
  texts_.emplace_back(name);
  names_.emplace(name, added);
  return added;
}

std::string_view History::TextOf(Name name) const {
  if (name == Name::kNone) return "-";
  return texts_[static_cast<size_t>(name)];
}

KeyIndex History::KeyOf(std::string_view topic_id, int32_t partition) {
  Key key{std::string(topic_id), partition};
  const auto known = key_indexes_.find(key);
  if (known != key_indexes_.end()) return known->second;
  const auto added = static_cast<KeyIndex>(keys_.size());
  keys_.push_back(key);
  key_indexes_.emplace(std::move(key), added);
  return added;
}

}  // namespace conclave::history
