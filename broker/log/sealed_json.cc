#include "broker/log/sealed_json.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/checksum/crc32c.h"
#include "common/error/error.h"

namespace conclave {
namespace {

constexpr char kChecksumKey[] = "crc32c";
constexpr char kVersionKey[] = "version";

std::string Canonical(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Checksum(const nlohmann::json& object) {
  return absl::StrFormat("%08x", Crc32c(Canonical(object)));
}

absl::Status Damaged(const std::string& path, const std::string& how) {
  return MakeError(v1::STORAGE_ERROR, absl::StrCat(path, " is damaged: ", how));
}

}  // namespace

absl::Status WriteSealedJson(FileSystem& fs, const std::string& path, int version,
                             nlohmann::json object) {
  object[kVersionKey] = version;
  object[kChecksumKey] = Checksum(object);
  return WriteFileAtomically(fs, path, Canonical(object) + "\n");
}

absl::StatusOr<nlohmann::json> ReadSealedJson(FileSystem& fs, const std::string& path,
                                              int version) {
  const auto text = ReadWholeFile(fs, path, kMaxSealedJsonBytes);
  if (!text.ok()) return text.status();
  nlohmann::json object = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Damaged(path, "it is no JSON object");
  const auto checksum = object.find(kChecksumKey);
  if (checksum == object.end() || !checksum->is_string()) {
    return Damaged(path, "its checksum, crc32c, is missing");
  }
  const std::string stated = checksum->get<std::string>();
  object.erase(checksum);
  if (stated != Checksum(object)) return Damaged(path, "its checksum does not match");
  const auto stated_version = object.find(kVersionKey);
  if (stated_version == object.end() || !stated_version->is_number_integer() ||
      stated_version->get<int64_t>() != version) {
    return MakeError(v1::UNSUPPORTED_VERSION,
                     absl::StrCat(path, " has version ",
                                  stated_version == object.end() ? "none" : stated_version->dump(),
                                  ", and this program reads version ", version));
  }
  return object;
}

absl::Status BadSealedJson(const std::string& path, const std::string& what) {
  return Damaged(path, absl::StrCat("its checksum matches, and ", what));
}

}  // namespace conclave
