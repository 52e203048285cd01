#ifndef CONCLAVE_BROKER_GROUP_TRANSACTION_H_
#define CONCLAVE_BROKER_GROUP_TRANSACTION_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/group/image.h"
#include "broker/group/records.h"
#include "broker/group/types.h"
#include "common/types/time.h"

namespace conclave::group {

// The records of one command, each applied to the image as it is put: all of them are appended as
// one batch, or none.
class Transaction {
 public:
  // `image` outlives this.
  Transaction(GroupImage& image, WallTime wall) : image_(image), wall_(wall) {}

  void Put(GroupRecord record) {
    image_.Apply(record);
    records_.push_back(std::move(record));
  }

  // Raises the group's epoch by one, once in a transaction: what changes together has one epoch.
  // Without a reason the last one stays. To be called when the members are as they will be, for it
  // notes since when a group is empty.
  GroupEpoch Raise(const std::string& group, std::optional<std::string> reason = std::nullopt);

  // What the member holds, or its epoch, has changed: it is to be told.
  void MarkChanged(const std::string& group, const std::string& member) {
    changed_[group].insert(member);
  }

  const GroupImage& image() const { return image_; }
  WallTime wall() const { return wall_; }
  const std::map<std::string, std::set<std::string>>& changed() const { return changed_; }
  bool empty() const { return records_.empty(); }
  std::vector<GroupRecord> TakeRecords() { return std::move(records_); }

 private:
  GroupImage& image_;
  const WallTime wall_;
  std::vector<GroupRecord> records_;
  std::map<std::string, GroupEpoch> raised_;
  std::map<std::string, std::set<std::string>> changed_;
};

}  // namespace conclave::group

#endif  // CONCLAVE_BROKER_GROUP_TRANSACTION_H_
