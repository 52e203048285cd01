#include "broker/partition/metadata_update.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::broker {
namespace {

MetadataPosition FromProto(const v1::MetadataPosition& proto) {
  return {LogIndex(proto.index()), Term(proto.term())};
}

}  // namespace

absl::Status ApplyUpdate(const v1::WatchMetadataResponse& update, MetadataImage& image,
                         MetadataDelta& delta) {
  if (update.has_image()) {
    const MetadataPosition position = FromProto(update.image_position());
    if (position.index < image.position().index) {
      return MakeError(v1::METADATA_BEHIND,
                       absl::StrCat("an image at ", position.index.value(), " came after one at ",
                                    image.position().index.value()));
    }
    auto newer = MetadataImage::FromProto(update.image(), position);
    if (!newer.ok()) return newer.status();
    delta.Merge(DeltaBetween(image, *newer));
    image = *std::move(newer);
  }
  for (const v1::CommittedBatch& batch : update.batches()) {
    const MetadataPosition position = FromProto(batch.position());
    if (position.index <= image.position().index) continue;
    if (absl::Status applied = image.Apply(position, batch.batch(), &delta); !applied.ok()) {
      return applied;
    }
  }
  return absl::OkStatus();
}

}  // namespace conclave::broker
