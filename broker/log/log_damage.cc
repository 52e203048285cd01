#include "broker/log/log_damage.h"

#include <nlohmann/json.hpp>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

constexpr char kPayloadUrl[] = "conclave.log.Damage";

}  // namespace

std::string DescribeDamage(const LogDamage& damage) {
  return absl::StrCat(damage.file, " at byte ", damage.position, ": ", damage.what, "; offsets ",
                      damage.first_missing.value(), " to ", damage.end_missing.value() - 1);
}

absl::Status DamageError(const LogDamage& damage) {
  absl::Status status = MakeError(
      v1::STORAGE_ERROR,
      absl::StrCat(damage.file, " is damaged at byte ", damage.position, ": ", damage.what,
                   ". Offsets ", damage.first_missing.value(), " to ",
                   damage.end_missing.value() - 1,
                   " cannot be read; nothing was cut. They are copied from another replica, where "
                   "there is one; else bring the file back from a copy, or go on with what is left "
                   "by 'conclave topic elect-leader --unclean'"));
  const nlohmann::json json = {{"file", damage.file},
                               {"position", damage.position},
                               {"first", damage.first_missing.value()},
                               {"end", damage.end_missing.value()},
                               {"what", damage.what}};
  status.SetPayload(
      kPayloadUrl, absl::Cord(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  return status;
}

std::optional<LogDamage> DamageOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(std::string(*payload), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  LogDamage damage;
  damage.file = json.value("file", "");
  damage.position = json.value("position", uint64_t{0});
  damage.first_missing = Offset(json.value("first", int64_t{0}));
  damage.end_missing = Offset(json.value("end", int64_t{0}));
  damage.what = json.value("what", "");
  return damage;
}

}  // namespace conclave
