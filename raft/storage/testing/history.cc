#include "raft/storage/testing/history.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "common/checksum/crc32c.h"

namespace conclave::raft::testing {
namespace {

void ApplyWrite(const Write& write, RecoveredState& state) {
  if (write.hard_state) state.hard_state = *write.hard_state;
  if (write.truncate_from) state.entries.resize(write.truncate_from->value() - 1);
  for (const Entry& entry : write.entries) state.entries.push_back(entry);
}

}  // namespace

Entry MakeEntry(uint64_t index, uint64_t term, std::string data, EntryKind kind) {
  Entry entry;
  entry.index = LogIndex(index);
  entry.term = Term(term);
  entry.kind = kind;
  entry.data = std::make_shared<const std::string>(std::move(data));
  return entry;
}

ReplicaKey MakeKey(int32_t node) {
  return {.node = NodeId(node),
          .directory = DirectoryId::FromRandom(static_cast<uint64_t>(node), 7)};
}

std::string ToText(const RecoveredState& state) {
  std::ostringstream text;
  text << "term " << state.hard_state.term << " vote ";
  if (state.hard_state.vote) {
    text << *state.hard_state.vote;
  } else {
    text << "none";
  }
  for (const Entry& entry : state.entries) {
    text << "\n"
         << entry.position() << " kind " << static_cast<int>(entry.kind) << " "
         << entry.data->size() << " bytes, CRC " << Crc32c(*entry.data);
  }
  return text.str();
}

History::History(RecoveredState initial) : state_(initial), drawn_(std::move(initial)) {
  states_.push_back(ToText(state_));
}

std::vector<Write> History::DrawBatch(Random& random, size_t max_data) {
  drawn_ = state_;
  std::vector<Write> batch;
  const uint64_t writes = 1 + random.Below(3);
  for (uint64_t i = 0; i < writes; ++i) batch.push_back(DrawWrite(random, max_data));
  return batch;
}

Write History::DrawWrite(Random& random, size_t max_data) {
  Write write;
  write.ticket = WriteTicket(++last_ticket_);
  // The term rises with every write, so that no two states are alike and a batch that came apart
  // shows.
  HardState hard_state;
  hard_state.term = Term(drawn_.hard_state.term.value() + 1);
  if (random.Chance(0.5)) hard_state.vote = MakeKey(static_cast<int32_t>(random.Below(3)));
  write.hard_state = hard_state;
  const uint64_t length = drawn_.entries.size();
  uint64_t next = length + 1;
  if (length > 1 && random.Chance(0.25)) {
    next = length - random.Below(std::min<uint64_t>(length - 1, 5));
    write.truncate_from = LogIndex(next);
  }
  const uint64_t entries = random.Below(4);
  for (uint64_t i = 0; i < entries; ++i) {
    const size_t bytes = random.Chance(0.1) ? max_data : random.Below(max_data / 8 + 1);
    write.entries.push_back(
        MakeEntry(next + i, hard_state.term.value(),
                  std::string(bytes, static_cast<char>('a' + random.Below(26)))));
  }
  ApplyWrite(write, drawn_);
  return write;
}

void History::Apply(const std::vector<Write>& batch) {
  for (const Write& write : batch) ApplyWrite(write, state_);
  states_.push_back(ToText(state_));
}

}  // namespace conclave::raft::testing
