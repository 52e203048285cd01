#include "tests/simulation/controllers/admin_workload.h"

#include <iterator>
#include <utility>
#include <vector>

#include "common/error/error.h"

namespace conclave::control_sim {
AdminWorkload::AdminWorkload(SimExecutor& executor, AdminClient& client, const Random& random,
                             std::function<void(const std::string&)> broken,
                             std::function<void(const std::string&)> say)
    : executor_(executor),
      client_(client),
      random_(random),
      broken_(std::move(broken)),
      say_(std::move(say)) {}

void AdminWorkload::Start(Duration mean_pause) {
  mean_pause_ = mean_pause;
  running_ = true;
  executor_.Post([this] { Next(); });
}

void AdminWorkload::Next() {
  if (!running_) return;
  const double what = static_cast<double>(random_.Below(1000)) / 1000;
  if (what < 0.5) {
    CreateOne([](const absl::Status&) {});
  } else if (what < 0.7) {
    DeleteAny();
  } else {
    List();
  }
  const Duration pause = Duration::Nanoseconds(random_.Between(0, 2 * mean_pause_.nanoseconds()));
  executor_.PostAfter(pause, [this] { Next(); });
}

void AdminWorkload::CreateOne(std::function<void(const absl::Status&)> done) {
  const std::string name = "topic-" + std::to_string(++last_number_);
  const int partitions = static_cast<int>(random_.Between(1, 4));
  v1::CreateTopicsRequest request;
  v1::NewTopic& topic = *request.add_topics();
  topic.set_name(name);
  topic.set_partitions(partitions);
  topic.set_replication_factor(static_cast<int>(random_.Between(1, 3)));
  say_("create " + name);
  ++under_way_;
  client_.CreateTopics(std::move(request), [this, name, partitions, done = std::move(done)](
                                               absl::StatusOr<v1::CreateTopicsResponse> response) {
    --under_way_;
    absl::Status outcome = response.status();
    if (response.ok()) outcome = StatusFromError(response->topics(0).error());
    say_("create " + name + ": " + Describe(outcome));
    if (outcome.ok()) {
      ++counters_.created;
      topics_[name] = {response->topics(0).topic_id(), partitions, false, false};
      if (running_ && random_.Chance(0.3)) Delete(name);
    } else {
      ++counters_.failed;
    }
    done(outcome);
  });
}

void AdminWorkload::DeleteAny() {
  std::vector<std::string> names;
  for (const auto& [name, topic] : topics_) {
    if (!topic.delete_tried) names.push_back(name);
  }
  if (!names.empty()) Delete(names[random_.Below(names.size())]);
}

void AdminWorkload::Delete(const std::string& name) {
  topics_[name].delete_tried = true;
  say_("delete " + name);
  v1::DeleteTopicsRequest request;
  request.add_names(name);
  ++under_way_;
  client_.DeleteTopics(
      std::move(request), [this, name](absl::StatusOr<v1::DeleteTopicsResponse> response) {
        --under_way_;
        if (!response.ok()) {
          ++counters_.failed;
          return;
        }
        const v1::ErrorCode code = response->topics(0).error().code();
        if (code == v1::NONE) {
          ++counters_.deleted;
          say_("deleted " + name);
          topics_[name].deleted = true;
        } else if (code == v1::UNKNOWN_TOPIC_OR_PARTITION) {
          broken_("a topic that was acknowledged, " + name + ", was not there to be deleted");
        } else {
          ++counters_.failed;
        }
      });
}

void AdminWorkload::List() {
  ++under_way_;
  client_.DescribeTopics(
      {}, [this, before = topics_](absl::StatusOr<v1::DescribeTopicsResponse> response) {
        --under_way_;
        if (!response.ok()) {
          ++counters_.failed;
          return;
        }
        ++counters_.listed;
        Listed(before, *response);
      });
}

// What was acknowledged before the question must be in the answer.
void AdminWorkload::Listed(const std::map<std::string, Topic>& before,
                           const v1::DescribeTopicsResponse& found) {
  std::map<std::string, std::string> ids;
  for (const v1::TopicDescription& topic : found.topics()) ids[topic.name()] = topic.topic_id();
  for (const auto& [name, topic] : before) {
    const auto it = ids.find(name);
    if (topic.deleted) {
      if (it != ids.end()) broken_("a list shows " + name + ", whose deletion was acknowledged");
    } else if (!topics_[name].delete_tried) {
      if (it == ids.end()) broken_("a list lacks " + name + ", which was acknowledged before");
      if (it != ids.end() && it->second != topic.id) broken_(name + " has another id");
    }
  }
}

std::string AdminWorkload::CheckFinal(const MetadataImage& image) const {
  for (const auto& [name, topic] : topics_) {
    const auto* found = image.FindTopic(std::string_view(name));
    if (topic.deleted) {
      if (found != nullptr) return name + " is there, and its deletion was acknowledged";
    } else if (!topic.delete_tried) {
      if (found == nullptr) return name + " was acknowledged and is not there";
      if (found->id.ToBytes() != topic.id) return name + " has another id than was acknowledged";
      if (static_cast<int>(found->partitions.size()) != topic.partitions) {
        return name + " has another number of partitions than was asked for";
      }
    }
  }
  return "";
}

}  // namespace conclave::control_sim
