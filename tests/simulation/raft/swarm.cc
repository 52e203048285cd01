#include "tests/simulation/raft/swarm.h"

#include <sstream>

namespace conclave::raft::sim {
namespace {

Duration Between(Random& random, int64_t low_us, int64_t high_us) {
  return Duration::Microseconds(random.Between(low_us, high_us));
}

// Of a fault, in times a second.
double Rate(Duration between) {
  return between == Duration::Infinite() ? 1e-6 : 1 / between.seconds();
}

Duration AtMost(Duration d, double seconds) {
  return d.seconds() <= seconds ? d : Duration::Microseconds(static_cast<int64_t>(seconds * 1e6));
}

}  // namespace

Swarm Swarm::Draw(Random random) {
  Swarm s;
  s.voters = random.Chance(0.6) ? 3 : 5;
  s.observers = random.Chance(0.25) ? 1 : 0;
  s.safety_phase = Duration::Milliseconds(random.Between(30'000, 40'000));

  if (random.Chance(0.4)) s.drop = 0.001 * static_cast<double>(random.Between(1, 100));
  if (random.Chance(0.4)) s.duplicate = 0.01 * static_cast<double>(random.Between(1, 20));
  if (random.Chance(0.4)) s.slow = 0.001 * static_cast<double>(random.Between(1, 100));
  s.delay_min = Between(random, 50, 2'000);
  s.delay_max = s.delay_min + Between(random, 100, random.Chance(0.3) ? 60'000 : 5'000);
  s.slow_delay = Between(random, 50'000, 2'000'000);
  s.in_order = random.Chance(0.3);

  s.sync_min = Between(random, 50, 2'000);
  s.sync_max = s.sync_min + Between(random, 100, random.Chance(0.4) ? 100'000 : 5'000);
  if (random.Chance(0.3)) s.sync_slow = 0.001 * static_cast<double>(random.Between(1, 100));
  s.sync_slow_delay = Between(random, 50'000, 1'500'000);

  // Now and then quicker than an election, so that terms end with tails that nobody else has.
  const auto often = [&] {
    return random.Chance(0.4) ? Between(random, 200'000, 1'500'000)
                              : Between(random, 1'500'000, 10'000'000);
  };
  if (random.Chance(0.7)) s.between_crashes = often();
  if (random.Chance(0.4)) s.between_partitions = often();
  if (random.Chance(0.4)) s.between_one_way_cuts = often();
  if (random.Chance(0.3)) s.between_stream_resets = often();
  if (random.Chance(0.3)) s.between_stalls = often();
  if (random.Chance(0.25)) s.between_pauses = often();
  if (random.Chance(0.3)) s.crash_after_send = 0.0001 * static_cast<double>(random.Between(1, 100));
  if (random.Chance(0.3)) s.crash_after_vote = 0.1 * static_cast<double>(random.Between(1, 5));
  if (random.Chance(0.7)) s.strike_new_leader = 0.1 * static_cast<double>(random.Between(5, 9));
  s.rolling_strikes = random.Chance(0.5);
  // Of the order of a round trip with its syncs, when what a new leader sends is half there.
  s.strike_within = Duration::Microseconds(
      static_cast<int64_t>((s.delay_max + s.sync_max).seconds() * 1e5) * random.Between(5, 100));
  if (random.Chance(0.1)) s.wipes = s.voters / 2;
  s.at_leader = 0.25 * static_cast<double>(random.Between(0, 4));
  s.restart_max =
      random.Chance(0.5) ? Between(random, 1'000, 200'000) : Between(random, 200'000, 5'000'000);
  s.fault_max = Between(random, 100'000, 6'000'000);
  // On the whole less than one such fault at a time: a cluster that never stands makes no history
  // that could go wrong.
  const double lasting = Rate(s.between_partitions) + Rate(s.between_one_way_cuts) +
                         Rate(s.between_stalls) + Rate(s.between_pauses);
  s.fault_max = AtMost(s.fault_max, 1.2 / lasting);
  s.restart_max = AtMost(s.restart_max, 1.2 / Rate(s.between_crashes));
  s.stream_reset_on_crash = random.Chance(0.5) ? 1.0 : 0.5 * static_cast<double>(random.Below(2));

  s.between_proposals = Between(random, 10'000, 200'000);
  s.burst = random.Chance(0.4) ? static_cast<int>(random.Between(2, 20)) : 1;
  s.data_bytes = random.Chance(0.2) ? random.Below(2'000) : 8;
  s.reads = random.Chance(0.5) ? 0.3 : 0;

  if (random.Chance(0.6)) s.max_append_bytes = random.Chance(0.8) ? 1 : 200;
  if (random.Chance(0.6)) s.max_in_flight_appends = static_cast<size_t>(random.Between(1, 3));
  return s;
}

std::string Swarm::ToString() const {
  std::ostringstream out;
  const auto often = [&](const char* name, Duration d) {
    if (d != Duration::Infinite()) out << ", " << name << " every " << d;
  };
  out << voters << " voters, " << observers << " observers, delay " << delay_min << " to "
      << delay_max << (in_order ? " in order" : "") << ", drop " << drop << ", duplicate "
      << duplicate << ", slow " << slow << " up to " << slow_delay << ", sync " << sync_min
      << " to " << sync_max << ", slow " << sync_slow << " up to " << sync_slow_delay;
  often("crash", between_crashes);
  often("partition", between_partitions);
  often("one-way cut", between_one_way_cuts);
  often("stream reset", between_stream_resets);
  often("disk stall", between_stalls);
  often("pause", between_pauses);
  out << ", crash after send " << crash_after_send << ", after vote " << crash_after_vote
      << ", strike at new leader " << strike_new_leader << " within " << strike_within
      << (rolling_strikes ? " rolling" : "") << ", wipes " << wipes << ", at leader " << at_leader
      << ", restart within " << restart_max << ", faults up to " << fault_max
      << ", proposals every " << between_proposals << " by " << burst << " of " << data_bytes
      << " bytes, appends of " << max_append_bytes << " bytes, " << max_in_flight_appends
      << " in flight";
  return out.str();
}

}  // namespace conclave::raft::sim
