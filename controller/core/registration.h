#ifndef CONCLAVE_CONTROLLER_CORE_REGISTRATION_H_
#define CONCLAVE_CONTROLLER_CORE_REGISTRATION_H_

#include "absl/status/statusor.h"
#include "common/metadata/image.h"
#include "common/random/random.h"
#include "common/types/ids.h"
#include "conclave/v1/controller.pb.h"
#include "controller/core/change.h"
#include "controller/core/replica_reports.h"
#include "controller/core/sessions.h"

namespace conclave::controller {

// A broker process has started and asks for its epoch.
//
// It replaces the old incarnation when it has (some of) the same directories and the old stream is
// gone, or when the old session is over: then the old one's leaderships move, or at least end with
// a raised epoch, in what is committed with the registration. Replicas in directories that did not
// come back are taken out of their ISRs, even as the last.
//
// BROKER_SESSION_ALIVE (try again) while the old stream is open; DUPLICATE_BROKER_REGISTRATION
// (final) for other directories under a live id; the incarnation that is registered already gets
// the epoch it has.
//
// Its last stop was clean if `clean_stop_epoch` is the epoch it had; else its replicas under
// FLUSH_POLICY_REPLICATED may lack what they acknowledged, and leave ISR and ELR.
absl::StatusOr<Change<v1::RegisterBrokerResponse>> RegisterBroker(
    const MetadataImage& image, const Sessions& sessions, const ReplicaReports& reports,
    const v1::RegisterBrokerRequest& request, Random& random, Now now);

// For a broker that will not come back: its id is free again. Refused while it lives, or while a
// replica is assigned to it.
absl::StatusOr<Change<NoResponse>> UnregisterBroker(const MetadataImage& image,
                                                    const Sessions& sessions, BrokerId broker,
                                                    Now now);

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_REGISTRATION_H_
