#ifndef CONCLAVE_CLIENT_PRODUCER_IDENTITY_SOURCE_H_
#define CONCLAVE_CLIENT_PRODUCER_IDENTITY_SOURCE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/base/backoff.h"
#include "client/base/lifetime.h"
#include "client/metadata/metadata_cache.h"
#include "client/producer/produce_batch.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/transport/transport.h"
#include "conclave/v1/produce.pb.h"

namespace conclave {

// Gets a producer's id, and its next epochs, from any broker (KIP-98, KIP-360). Asks until it is
// answered. Everything runs on the executor; all that is given outlives it.
class IdentitySource {
 public:
  // `changed` is called when there is another identity, and after each try that failed.
  IdentitySource(MetadataCache& metadata, Transport& transport, Executor& executor,
                 const Random& random, std::function<void()> changed);
  ~IdentitySource();

  // Not valid before the first answer.
  const ProducerIdentity& current() const { return current_; }
  // Sees to it that there will be one.
  void Ensure();
  // Sees to it that there will be another than `failed`.
  void Replace(const ProducerIdentity& failed);

  // Why the last try failed; OK if it did not.
  const absl::Status& last_failure() const { return last_failure_; }

 private:
  void Ask();
  void Answered(const std::string& endpoint, absl::StatusOr<v1::InitProducerIdResponse> response);

  MetadataCache& metadata_;
  Transport& transport_;
  Executor& executor_;
  Random random_;
  const std::function<void()> changed_;
  ProducerIdentity current_;
  bool asking_ = false;
  TimerId timer_;
  Backoff pause_;
  absl::Status last_failure_;
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_PRODUCER_IDENTITY_SOURCE_H_
