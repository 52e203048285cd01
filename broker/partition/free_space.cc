#include "broker/partition/free_space.h"

#include <glog/logging.h>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::broker {

void FreeSpace::Take(uint64_t bytes) {
  taken_ += bytes;
  if (min_bytes_ > 0 && taken_ >= min_bytes_ / 8) Look();
}

void FreeSpace::Look() {
  taken_ = 0;
  const auto free = fs_.FreeBytes(directory_);
  if (!free.ok()) {
    LOG(ERROR) << "the room on the disk is not known: " << Describe(free.status());
    return;
  }
  if (*free >= min_bytes_) {
    if (!refusal_.ok()) {
      LOG(WARNING) << directory_ << " has " << *free << " bytes of room: records are taken again";
    }
    refusal_ = absl::OkStatus();
    return;
  }
  const bool was_ok = refusal_.ok();
  refusal_ =
      MakeError(v1::OUT_OF_RESOURCES,
                absl::StrCat("the disk of ", directory_, " has ", *free,
                             " bytes of room, and records are taken while it has ", min_bytes_,
                             " (log.dir.free.bytes.min): make room, or let "
                             "retention make it"));
  if (was_ok) LOG(ERROR) << Describe(refusal_);
}

}  // namespace conclave::broker
