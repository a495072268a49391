// A program for the thesis's interface, which is Bulla's by an include and a namespace.
#include <bulla.h>
#include <bulla/thesis.hpp>
#include <bulla.h>

#include <iostream>
#include <thread>

using namespace bulla::thesis;

#define HOLDS(condition)                                                                                            \
  do {                                                                                                              \
    if (!(condition)) {                                                                                             \
      std::cerr << "line " << __LINE__ << ": " << #condition << ": " << LoggingManager::lastError() << "\n";         \
      return 1;                                                                                                     \
    }                                                                                                               \
  } while (0)

static std::size_t lines_of(const std::string &path) {
  std::ifstream file(path);
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) count++;
  return count;
}

int main(int, char **argv) {
  const LogEntry counted(LogEntry::ActionType::READ, "a", "bc", "", "d", {1});
  HOLDS(counted.serialize().size() == 32 + 1 + 2 + 0 + 1 + 1 && counted.serializedSize() == counted.serialize().size());
  LoggingConfig config;
  config.basePath = argv[1];
  config.baseFilename = "trail";
  config.maxSegmentSize = 1 << 20;
  config.maxAttempts = 5;
  config.queueCapacity = 1000;
  config.maxExplicitProducers = 4;
  config.batchSize = 10;
  config.numWriterThreads = 1;
  config.appendTimeout = std::chrono::seconds(5);
  config.compressionLevel = 4;
  config.maxOpenFiles = 32;
  {
    LoggingConfig wrong[] = {config, config, config};
    wrong[0].useEncryption = false;
    wrong[1].appendTimeout = std::chrono::milliseconds(-1);
    wrong[2].baseRetryDelay = std::chrono::milliseconds(-1);
    const char *names[] = {"useEncryption", "appendTimeout", "baseRetryDelay"};
    for (int i = 0; i < 3; i++) {
      bool refused = false;
      try {
        const LoggingManager of_wrong(wrong[i]);
      } catch (const std::invalid_argument &error) {
        refused = std::string(error.what()).find(names[i]) != std::string::npos;
      }
      HOLDS(refused);
    }
  }
  LoggingManager manager(config);
  HOLDS(!manager.stop());
  {
    std::string why;
    try {
      manager.createProducerToken();
    } catch (const bulla::error &error) {
      why = error.what();
    }
    HOLDS(why == "start() was not called");
  }
  HOLDS(manager.start());
  HOLDS(!manager.start());
  const auto before = std::chrono::system_clock::now();
  const auto work = [&manager](int worker) {
    auto token = manager.createProducerToken();
    for (int i = 0; i < 500; i++) {
      const std::string subject = "user" + std::to_string(i % 50);
      manager.append(LogEntry(LogEntry::ActionType::READ, "users/" + subject, "controller", "processor", subject), token);
    }
    std::vector<LogEntry> batch(500, LogEntry(LogEntry::ActionType::DELETE, "users/x", "", "", "", {1, 2, 3}));
    return manager.appendBatch(batch, token, "file_" + std::to_string(worker));
  };
  bool other_ok = false;
  std::thread other([&] { other_ok = work(1); });
  HOLDS(work(0));
  other.join();
  HOLDS(other_ok);
  auto token = manager.createProducerToken();
  HOLDS(!manager.appendBatch({LogEntry()}, token, std::string(70000, 'x')));
  HOLDS(!manager.exportLogs(config.basePath + "/early.ndjson"));
  HOLDS(manager.stop());
  HOLDS(!manager.append(LogEntry(), token));
  HOLDS(manager.exportLogs(config.basePath + "/all.ndjson"));
  HOLDS(lines_of(config.basePath + "/all.ndjson") == 2000);
  // Up to the last moment that there is, and that before it.
  const auto last = std::chrono::system_clock::time_point::max();
  for (const auto until : {last, last - std::chrono::system_clock::duration(1), before + std::chrono::hours(1)}) {
    HOLDS(manager.exportLogs(config.basePath + "/all.ndjson", {}, until));
    HOLDS(lines_of(config.basePath + "/all.ndjson") == 2000);
  }
  HOLDS(manager.exportLogs(config.basePath + "/one.ndjson", {}, {}, std::string("user7")));
  HOLDS(lines_of(config.basePath + "/one.ndjson") == 20);
  // A misspelt name does not come to nothing.
  HOLDS(!manager.exportLogs(config.basePath + "/misspelt.ndjson", {}, {}, std::string("usr7")));
  HOLDS(manager.lastError().find("`usr7` is not known here") != std::string::npos);
  HOLDS(!manager.exportLogs(config.basePath + "/nowhere/all.ndjson"));
  HOLDS(manager.lastError().find("/nowhere/all.ndjson") != std::string::npos);
  HOLDS(manager.exportLogs(config.basePath + "/none.ndjson", {}, before - std::chrono::hours(1)));
  HOLDS(lines_of(config.basePath + "/none.ndjson") == 0);
  // What was written before is gone on with.
  HOLDS(manager.start());
  auto again = manager.createProducerToken();
  HOLDS(manager.append(LogEntry(LogEntry::ActionType::UPDATE, "users/y", "c", "p", "y"), again));
  HOLDS(manager.stop());
  HOLDS(manager.exportLogs(config.basePath + "/more.ndjson"));
  HOLDS(lines_of(config.basePath + "/more.ndjson") == 2001);
  // A directory that is there and is empty becomes a log, one that has something else in it does not, and what is wrong has a name.
  {
    LoggingConfig apart = config;
    apart.baseFilename = "empty";
    std::filesystem::create_directory(apart.basePath + "/empty");
    LoggingManager in_empty(apart);
    HOLDS(in_empty.start() && in_empty.stop());
    apart.baseFilename = "full";
    std::filesystem::create_directories(apart.basePath + "/full/of");
    LoggingManager in_full(apart);
    HOLDS(!in_full.start() && !std::filesystem::exists(apart.basePath + "/full.keys"));
    apart.baseFilename = "huge";
    apart.maxSegmentSize = SIZE_MAX;
    LoggingManager huge(apart);
    HOLDS(!huge.start() && LoggingManager::lastError().find("segment_size") != std::string::npos);
  }
  // Of a log that is damaged no part is left that looks like all of it.
  {
    LoggingConfig apart = config;
    apart.baseFilename = "damaged";
    LoggingManager damaged(apart);
    HOLDS(damaged.start());
    auto used = damaged.createProducerToken();
    for (int i = 0; i < 50; i++) HOLDS(damaged.append(LogEntry(LogEntry::ActionType::CREATE, "x", "c", "p", "s"), used));
    HOLDS(damaged.stop());
    for (const auto &file : std::filesystem::recursive_directory_iterator(apart.basePath + "/damaged")) {
      if (file.path().extension() != ".seg") continue;
      std::fstream segment(file.path(), std::ios::binary | std::ios::in | std::ios::out);
      segment.seekp(static_cast<std::streamoff>(file.file_size() / 2));
      segment.write("damaged!damaged!", 16);
    }
    HOLDS(!damaged.exportLogs(apart.basePath + "/damaged.ndjson"));
    HOLDS(!LoggingManager::lastError().empty());
    HOLDS(!std::filesystem::exists(apart.basePath + "/damaged.ndjson"));
  }
  // As many writers as the prototype was measured with have the memory that they need, at every level.
  for (int level = 0; level <= 9; level++) {
    LoggingConfig many = config;
    many.numWriterThreads = 16;
    many.compressionLevel = level;
    LoggingManager with_many(many);
    HOLDS(with_many.start());
    HOLDS(with_many.stop());
  }
  std::cout << "all of it holds\n";
}
