#ifndef CONCLAVE_BROKER_SERVER_PRODUCER_IDS_H_
#define CONCLAVE_BROKER_SERVER_PRODUCER_IDS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/executor/executor.h"
#include "common/rpc/failover_caller.h"
#include "common/rpc/server.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "conclave/v1/controller.pb.h"
#include "conclave/v1/produce.pb.h"

namespace conclave::broker {

// Hands out producer ids (KIP-98), from blocks that the controller gives this broker: no id is given
// twice in the life of the cluster. Not thread-safe; on `executor`; destroyed after that has
// stopped.
class ProducerIds {
 public:
  // `epoch`: under which this broker is registered at present; nullopt: it is not.
  ProducerIds(BrokerId self, std::vector<std::string> controllers,
              std::function<std::optional<BrokerEpoch>()> epoch, Transport& transport,
              Executor& executor);

  void Init(const v1::InitProducerIdRequest& request,
            Responder<v1::InitProducerIdResponse> respond);

 private:
  void GiveNew(Responder<v1::InitProducerIdResponse> respond);
  void FetchBlock();
  void OnBlock(absl::StatusOr<v1::AllocateProducerIdsResponse> block);

  const BrokerId self_;
  const std::function<std::optional<BrokerEpoch>()> epoch_;
  Executor& executor_;
  FailoverCaller controllers_;
  int64_t next_ = 0;
  int64_t end_ = 0;
  bool fetching_ = false;
  std::vector<Responder<v1::InitProducerIdResponse>> waiting_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_PRODUCER_IDS_H_
