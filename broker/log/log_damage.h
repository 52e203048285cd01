#ifndef CONCLAVE_BROKER_LOG_LOG_DAMAGE_H_
#define CONCLAVE_BROKER_LOG_LOG_DAMAGE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/types/ids.h"

namespace conclave {

// Records that were on disk and are gone: a bad checksum, a cut file, a missing segment. Nothing is
// ever cut because of it; whoever knows a replica that has the records decides.
struct LogDamage {
  // The file that is damaged, or the directory that lacks one.
  std::string file;
  // Of the first bad byte, as far as is known.
  uint64_t position = 0;
  // The records that cannot be read: [first_missing, end_missing).
  Offset first_missing;
  Offset end_missing;
  std::string what;
};

// STORAGE_ERROR with the damage in words and, for code, in a payload.
absl::Status DamageError(const LogDamage& damage);

// "FILE at byte N: WHAT; offsets A to B", for people.
std::string DescribeDamage(const LogDamage& damage);

// What DamageError carries; nullopt for any other status.
std::optional<LogDamage> DamageOf(const absl::Status& status);

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_LOG_DAMAGE_H_
