// The main workload of the thesis, through its interface: producers append batches of 4096 entries, most of them to a file that is named, as fast
// as they are taken. Prints how long that took, from starting the manager until it is stopped, and how long each batch.
//   thesis PLACE PRODUCERS WRITERS SECONDS ENTRIES < entries
// The log is `audit` in PLACE. Each producer has as many of the entries as every other, and appends them again and again; it ends after so many
// seconds or its share of so many entries, whichever comes first.
#include <bulla/thesis.hpp>

#include "program.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

using namespace bulla::thesis;

namespace {

constexpr std::size_t BATCH = 4096;
// Batches go to so many files in turn, and then one to none that is named; producers begin so many apart.
constexpr std::size_t FILES = 1024, APART = 64;

LogEntry made_of(const bulla_entry &entry) {
  const auto text = [](bulla_bytes bytes) {
    return bytes.data == nullptr ? std::string() : std::string(bytes.data, bytes.size);
  };
  const std::string operation = text(entry.operation);
  const auto action = operation == "create"   ? LogEntry::ActionType::CREATE
                      : operation == "read"   ? LogEntry::ActionType::READ
                      : operation == "update" ? LogEntry::ActionType::UPDATE
                                              : LogEntry::ActionType::DELETE;
  const auto *payload = reinterpret_cast<const std::uint8_t *>(entry.payload.data);
  return LogEntry(action, text(entry.location), text(entry.controller), text(entry.processor),
                  entry.subject_count == 0 ? std::string() : text(entry.subjects[0]),
                  std::vector<std::uint8_t>(payload, payload + entry.payload.size));
}

struct producer {
  std::vector<std::vector<LogEntry>> batches;
  std::vector<std::uint64_t> nanoseconds;
  std::uint64_t appended = 0;
};

}  // namespace

int main(int argc, char **argv) {
  if (argc != 6) fail("thesis", "it takes PLACE PRODUCERS WRITERS SECONDS ENTRIES");
  std::vector<producer> producers(std::stoul(argv[2]));
  LoggingConfig config;
  config.basePath = argv[1];
  config.baseFilename = "audit";
  config.numWriterThreads = std::stoul(argv[3]);
  config.appendTimeout = std::chrono::seconds(120);
  config.queueCapacity = 2000000;
  config.batchSize = 2048;
  config.compressionLevel = 1;
  config.maxExplicitProducers = producers.size();
  const double seconds = std::stod(argv[4]);
  const std::uint64_t most = (std::stoull(argv[5]) - 1) / producers.size() + 1;

  {
    std::vector<LogEntry> entries;
    records given = read_records();
    const char *const begin = given.next;
    while (given.next < given.end) {
      bulla_entry entry;
      bulla_bytes subject;
      take_entry(&given, &entry, &subject);
      entries.push_back(made_of(entry));
    }
    free(const_cast<char *>(begin));
    const std::size_t each = entries.size() / producers.size();
    for (std::size_t number = 0; number < producers.size(); number++)
      for (std::size_t first = 0; first < each; first += BATCH) {
        const auto from = entries.begin() + static_cast<std::ptrdiff_t>(number * each + first);
        const auto count = static_cast<std::ptrdiff_t>(std::min(BATCH, each - first));
        producers[number].batches.emplace_back(std::make_move_iterator(from), std::make_move_iterator(from + count));
      }
  }
  std::vector<std::optional<std::string>> files(1);
  for (std::size_t number = 0; number < FILES; number++) files.push_back("stream_" + std::to_string(number));

  const double start = seconds_of(CLOCK_MONOTONIC), processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  LoggingManager manager(config);
  if (!manager.start()) fail("starting", LoggingManager::lastError().c_str());
  const auto produce = [&](std::size_t number) {
    producer &own = producers[number];
    auto token = manager.createProducerToken();
    for (std::size_t turn = 0; own.appended < most && seconds_of(CLOCK_MONOTONIC) - start < seconds; turn++) {
      const std::vector<LogEntry> &batch = own.batches[turn % own.batches.size()];
      const auto begun = std::chrono::steady_clock::now();
      if (!manager.appendBatch(batch, token, files[(number * APART + turn) % files.size()]))
        fail("appending", LoggingManager::lastError().c_str());
      const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begun;
      own.nanoseconds.push_back(static_cast<std::uint64_t>(taken.count()));
      own.appended += batch.size();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < producers.size(); number++) threads.emplace_back(produce, number);
  for (std::thread &thread : threads) thread.join();
  if (!manager.stop()) fail("stopping", LoggingManager::lastError().c_str());
  const double taken = seconds_of(CLOCK_MONOTONIC) - start, used = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor;

  std::uint64_t appended = 0;
  std::string latencies;
  for (const producer &own : producers) {
    appended += own.appended;
    for (const std::uint64_t each : own.nanoseconds) latencies += (latencies.empty() ? "" : ",") + std::to_string(each);
  }
  std::printf("{\"entries\":%llu,\"seconds\":%.9f,\"processor_seconds\":%.9f,\"latencies_ns\":[%s]}\n",
              static_cast<unsigned long long>(appended), taken, used, latencies.c_str());
  return 0;
}
