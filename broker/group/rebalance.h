#ifndef CONCLAVE_BROKER_GROUP_REBALANCE_H_
#define CONCLAVE_BROKER_GROUP_REBALANCE_H_

#include <string>

#include "broker/group/topic_view.h"
#include "broker/group/transaction.h"
#include "broker/group/types.h"

// From membership to targets, and from targets to what each member holds (KIP-848): steps of a
// group's state as records.
namespace conclave::group {

// Membership, a subscription or a partition count has changed: raises the group's epoch, draws the
// targets anew, and moves members towards them. `reason` is for people.
void Rebalance(Transaction& transaction, const std::string& group, const TopicView& topics,
               const std::string& reason);

// Whether drawing the targets anew would give others: after the metadata has changed in ways that
// this coordinator has not seen.
bool TargetsAreOutdated(const GroupImage& image, const std::string& group, const TopicView& topics);

// Moves every member towards its target as far as can be: asks back what it is not to keep, and
// gives what nobody holds. A member whose set changes has the group's new epoch; one whose set does
// not is left alone. Nothing changes where nothing can.
void Reconcile(Transaction& transaction, const std::string& group);

// The member, having heard of everything up to `epoch`, says that it owns `owned`: what it was
// asked back by then, and does not own, it has given up. False if there is nothing of that kind.
bool GiveUp(Transaction& transaction, const std::string& group, const std::string& member,
            GroupEpoch epoch, const PartitionSet& owned);

// The member's records are no more. To be followed by Rebalance.
void RemoveMember(Transaction& transaction, const std::string& group, const std::string& member);

}  // namespace conclave::group

#endif  // CONCLAVE_BROKER_GROUP_REBALANCE_H_
